"""A cube whose metadata come last, so that others see all of it or nothing.

The place of the metadata is taken first, by an object that names who makes the cube; the metadata then replace that
very object. So of several creators one wins, and one that was stopped, and wakes up after another took over what it had
begun, finds another's object in the place of its own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from evalcube.storage.clocks import elapsed
from evalcube.storage.cube.bucket.conditions import put_always, put_if
from evalcube.storage.cube.space import METADATA, Version, When
from evalcube.storage.errors import CubeExistsError, StorageError
from evalcube.storage.processes import Life, ProcessIdentity, life_of, this_process

if TYPE_CHECKING:
    from evalcube.storage.cube.bucket.draft import CreationStore
    from evalcube.storage.cube.bucket.objects import Bucket

_CLAIM = b'{"evalcube_creating":'
_RENEW_SECONDS = 10.0
_STALE_SECONDS = 60.0
_POLL_SECONDS = 1.0
_MAKING: set[str] = set()
"""Tokens of the claims whose cubes this process makes."""


def is_claim(data: bytes) -> bool:
    """Whether an object holds the place of the metadata of a cube that is being made."""
    return data.startswith(_CLAIM)


class CreationClaim:
    """The place of a cube's metadata, taken by this process."""

    def __init__(self, space: Bucket) -> None:
        self._space = space
        self.token = secrets.token_hex(16)
        self._version: Version | None = None
        self._renewed = elapsed()
        _MAKING.add(self.token)

    def take(self) -> None:
        """Take the place, over from a creator that ended or has not been heard of for a minute.

        Raises
        ------
        CubeExistsError
            Something is there.
        """
        watch = _CreatorWatch(self._space)
        while self._version is None:
            found = self._space.found(METADATA)
            if found is None:
                if any(True for _ in self._space.list()):
                    raise _taken(self._space.address, "something else")
                self._version = self._put(When.ABSENT)
            elif not is_claim(found.data):
                raise _taken(self._space.address, "a cube")
            elif watch.is_over(found.data, found.version):
                self._version = self._put(found.version)
                if self._version is not None:
                    self._space.delete_all(but=METADATA)

    def renew(self, *, older_than: float = _RENEW_SECONDS) -> None:
        """Say that the cube is still being made, if that was not said for so many seconds.

        Raises
        ------
        CubeExistsError
            Another process has taken the place over.
        """
        if self._version is not None and elapsed() - self._renewed >= older_than:
            self._version = self._put(self._version)
            self._renewed = elapsed()
        if self._version is None:
            raise _taken(self._space.address, "another process's cube")

    def commit(self, metadata: bytes) -> None:
        """Put the metadata into the place.

        Raises
        ------
        CubeExistsError
            Another process has taken it over.
        """
        version, self._version = self._version, None
        if version is None or not put_if(self._space.store, self._space.cube, METADATA, metadata, version):
            raise _taken(self._space.address, "another process's cube")

    def give_up(self) -> None:
        """Leave nothing behind, unless another one has taken over."""
        if self._version is not None and self._space.version(METADATA) == self._version:
            self._space.delete_all(but=METADATA)
            self._space.delete(METADATA)

    def close(self) -> None:
        """The cube is made, or will not be."""
        _MAKING.discard(self.token)

    def _put(self, when: When | Version) -> Version | None:
        who = {"token": self.token, "at": time.time(), "process": asdict(this_process())}
        data = _CLAIM + json.dumps(who).encode() + b"}"
        return put_if(self._space.store, self._space.cube, METADATA, data, when)


class _CreatorWatch:
    """Finds out whether the creator that a claim names still makes its cube."""

    def __init__(self, space: Bucket) -> None:
        self._space = space
        self._seen: Version | None = None
        self._since = 0.0

    def is_over(self, data: bytes, version: Version) -> bool:
        """Whether that is known; waits a moment if it is not.

        Raises
        ------
        CubeExistsError
            It still makes it.
        """
        try:
            who = json.loads(data)["evalcube_creating"]
            token, process = str(who["token"]), ProcessIdentity(**who["process"])
        except (ValueError, TypeError, KeyError):
            token, process = "", ProcessIdentity("unknown", "", 0, 0)
        life = life_of(process)
        if life is Life.ENDED or (process == this_process() and token not in _MAKING):
            return True
        if life is not Life.UNKNOWN or (self._seen is not None and version != self._seen):
            raise _taken(self._space.address, f"a cube that process {process.pid} on {process.host} makes")
        if self._seen is None:
            self._seen, self._since = version, elapsed()
        if elapsed() - self._since >= _STALE_SECONDS:
            return True
        time.sleep(_POLL_SECONDS)
        return False


def create_objects(space: Bucket, build: Callable[[CreationStore], object]) -> None:
    """Put all that `build` writes into the store that it gets, the metadata last.

    Raises
    ------
    CubeExistsError
        Something is there already, or comes there meanwhile.
    """
    # Here, as it takes a while, and only creators need it.
    from evalcube.storage.cube.bucket.draft import CreationStore

    claim = CreationClaim(space)
    try:
        claim.take()
        try:
            store = CreationStore(space, claim)
            build(store)
            claim.commit(store.flush())
        except BaseException:
            with suppress(StorageError):
                claim.give_up()
            raise
    finally:
        claim.close()


def remove_objects(space: Bucket) -> bool:
    """Remove a cube: first it is none any more, then its objects go; a kill leaves what the next creation removes."""
    if space.found(METADATA) is None:
        return False
    gone = {"token": "", "at": time.time(), "process": asdict(this_process())}
    put_always(space.store, space.cube, METADATA, _CLAIM + json.dumps(gone).encode() + b"}")
    space.delete_all(but=METADATA)
    space.delete(METADATA)
    return True


def _taken(address: str, what: str) -> CubeExistsError:
    return CubeExistsError(
        f"cannot create the cube: {what} is already there",
        address,
        "Open it, move it away, or choose another address.",
    )
