"""Proof that processes on several machines see the same cube and the same cache.

One leaves a token in each; the others find it there and leave an answer, which the first finds. A path that exists on
another machine, too, need not be the same place: requests would be paid for, and their replies lost.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import has_folders, redacted

_LAG_SECONDS = 5.0
"""Network file systems show a file of another machine's that late."""
_PAUSE_SECONDS = 0.25
_IN_CUBE = f"{SIDE}/reach/"


@dataclass(frozen=True)
class Token:
    """What was left in one place."""

    what: str
    """``cube`` or ``cache``."""
    url: str
    """Address of that."""
    name: str
    """Unique in all places."""
    secret: str

    def leave(self) -> None:
        """Leave it; also once more, where it is old: caches are cleaned of old files."""
        self._put(self.name, self.secret)

    def answer(self, who: str) -> str:
        """Find the token and answer it; the reason why not, in words, or an empty text."""
        deadline = time.monotonic() + _LAG_SECONDS
        location = redacted(self.url)
        try:
            while self._get(self.name) != self.secret:
                if time.monotonic() > deadline:
                    remedy = f"or give the {self.what} an address that all reach (such as s3://...)"
                    problem = f"does not see the sweep's {self.what} at {location}"
                    return f"{problem}. Mount the same file system there, {remedy}"
                # Not at once refused: a mount may show a file of another machine seconds late.
                time.sleep(_PAUSE_SECONDS)
            self._put(*self._answer_of(who))
        except (OSError, StorageError) as error:
            return f"cannot use the sweep's {self.what} at {location}: {str(error).rstrip('.')}"
        return ""

    def has_answer(self, who: str) -> bool:
        """Whether that process's answer is here."""
        name, text = self._answer_of(who)
        with suppress(OSError, StorageError):
            return self._get(name) == text
        return False

    def remove(self, answered: Iterable[str]) -> None:
        """Take it away, with the answers of some processes."""
        for name in (self.name, *(self._answer_of(who)[0] for who in answered)):
            # What stays does no harm: its name is this run's alone, and it goes with other old files.
            with suppress(OSError, StorageError):
                self._delete(name)
        if self.what == "cube":
            clear_tokens(space_of(self.url))

    def _answer_of(self, who: str) -> tuple[str, str]:
        text = hashlib.sha256(f"{self.secret} {who}".encode()).hexdigest()
        return f"{self.name}-{text[:16]}", text

    def _key(self, name: str) -> str:
        # What both kinds have: a folder of their own, where nobody looks for anything else.
        return f"{_IN_CUBE}{name}" if self.what == "cube" else f"tmp/{name}"

    def _put(self, name: str, text: str) -> None:
        if not has_folders(self.url):
            with closing(open_cache(self.url)) as cache:
                cache.put(_as_key(name), text.encode())
        else:
            space_of(self.url).put(self._key(name), text.encode(), durable=False)

    def _get(self, name: str) -> str:
        if not has_folders(self.url):
            with closing(open_cache(self.url)) as cache:
                return (cache.get(_as_key(name)) or b"").decode(errors="replace")
        stored = space_of(self.url).get(self._key(name), 1000)
        return "" if stored is None else stored.data.decode(errors="replace")

    def _delete(self, name: str) -> None:
        if not has_folders(self.url):
            with closing(open_cache(self.url)) as cache:
                cache.remove([_as_key(name)])
        else:
            space_of(self.url).delete(self._key(name), durable=False)


def _as_key(name: str) -> str:
    """A server holds entries only, under digests."""
    return hashlib.sha256(name.encode()).hexdigest()


def clear_tokens(cube: Space) -> None:
    """Take away what a killed run left in a cube; for the holder of the lease, who is alone."""
    with suppress(OSError, StorageError):
        cube.clear(_IN_CUBE)


def leave_tokens(run: str, cube: str | Path, cache: str | Path) -> tuple[Token, ...]:
    """Leave a token in a sweep's cube and in its cache."""
    places = (("cube", cube), ("cache", cache))
    tokens = tuple(Token(role, str(url), f"reach-{run}", secrets.token_hex(16)) for role, url in places)
    for token in tokens:
        token.leave()
    return tokens
