# ruff: noqa: ARG002 - most of what a space does is refused here, whatever is given
"""A cube that a web server gives out as files, for reading only: its directory, or a bucket that everybody may read.

Such a server answers requests for objects by their names, and lists nothing. What is asked for is what zarr's metadata
and the numbers of the ledger say, so that nothing else is needed. No redirect leads to another origin, and no more is
read of an answer than was asked for.
"""

from __future__ import annotations

import http.client
import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPMessage
from typing import IO, TYPE_CHECKING, Any
from urllib import error as failures
from urllib import request
from urllib.parse import quote, urlsplit

from evalcube.storage.cube.bounds import MOST_LEASE, MOST_OBJECT, lines_in, refuse_larger
from evalcube.storage.cube.bucket.records import BucketLease, BucketLog
from evalcube.storage.cube.space import METADATA, Found, HeldRecord, LeaseState, Version
from evalcube.storage.errors import NotWritableError, StorageError
from evalcube.storage.urls import redacted

if TYPE_CHECKING:
    from zarr.abc.store import Store

_RANGE_BYTES = 65536


@dataclass(frozen=True, slots=True)
class ServedFiles:
    """A `evalcube.storage.cube.space.Space` at an address that begins with http:// or https://: writes are refused."""

    cube: str
    """Address of the whole cube."""
    prefix: str = ""
    """Of the keys, empty or with a slash at its end."""

    @property
    def is_object_store(self) -> bool:
        """Always: each look is a request."""
        return True

    @property
    def address(self) -> str:
        """The address, as a browser would open it."""
        return f"{self.cube}/{self.prefix}".rstrip("/")

    def at(self, name: str) -> ServedFiles:
        """The files below a folder."""
        return ServedFiles(self.cube, f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a cube: servers do not say what else there is."""
        return self.version(METADATA) is not None

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A file's content, or its first `most` bytes; None if there is none."""
        part = (0, max(most, 1)) if most is not None and most <= _RANGE_BYTES else None
        answer = ask(self._url(key), "GET", MOST_OBJECT if most is None else most, part)
        if answer is None:
            return None
        if most is None:
            refuse_larger(answer.size, MOST_OBJECT, f"{self.address}/{key}")
        return Found(answer.data, _version(answer), answer.size)

    def version(self, key: str) -> Version | None:
        """What the server says of a file that changes with its content; None if there is none."""
        answer = ask(self._url(key))
        return None if answer is None else _version(answer)

    def stored_at(self, key: str) -> float | None:
        """When a file was written, by the server's clock; None if there is none."""
        answer = ask(self._url(key))
        return None if answer is None else answer.modified

    def _url(self, key: str) -> str:
        return f"{self.cube}/{quote(self.prefix + key, safe='/')}"

    def list(self, prefix: str = "") -> Iterator[str]:
        """Nothing: a server of files does not list them."""
        return iter(())

    def lease(self, key: str) -> ServedLease:
        """The record of whoever works on the cube."""
        return ServedLease(self, key)

    def log(self, key: str) -> ServedLog:
        """A log that somebody else writes, into one file or into numbered ones."""
        return ServedLog(self, key)

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of the files."""
        from evalcube.storage.cube.space_store import SpaceStore  # with zarr, which takes a while

        return SpaceStore(self, read_only=True)

    def is_writable(self) -> bool:
        """Never."""
        return False

    def refuse(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - in the place of methods of all kinds
        """Refuse to write, whatever is given."""
        remedy = "Write to its directory or bucket, or make a copy: evalcube pull."
        raise NotWritableError("a cube behind a web server can only be read", self.address, remedy)

    put = delete = clear = sync = fence = assemble = refuse

    def remove(self) -> bool:
        """Not possible."""
        return False

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Nothing is on its way here."""
        return 0


class ServedLog(BucketLog):
    """A log to which nobody appends from here, in one file as of a directory, or in numbered objects as of a bucket."""

    def lines(self) -> Iterator[bytes]:
        """All lines, in their order."""
        file = self._space.get(f"{self._folder}.{self._ending}")
        return super().lines() if file is None else lines_in(io.BytesIO(file.data), self._space.address)

    def append(self, line: bytes) -> None:
        """Refused by the space, at once."""
        self._space.put(f"{self._folder}.{self._ending}", line)


class ServedLease:
    """The record of a lease, as its holder's directory or bucket has it."""

    def __init__(self, space: ServedFiles, key: str) -> None:
        self._files, self._key = space, key

    def take(self, successor: Callable[[LeaseState | None], LeaseState]) -> HeldRecord:
        """Refuse: nobody works on a cube from here."""
        raise self._files.refuse()

    def read(self) -> LeaseState | None:
        """The record as it is, from a file that is its holder's record or from an object with a line before that."""
        record = self._files.get(self._key, MOST_LEASE)
        if record is None:
            return None
        if record.data.startswith(b'{"epoch"'):
            return BucketLease(self._files, self._key).read()
        at = self._files.stored_at(self._key)
        return None if at is None else LeaseState(record.data, at, at)


def _version(answer: ServerAnswer) -> Version:
    return Version(answer.tag or f"{answer.modified} {answer.size}")


RETRIES = 10
"""How often a request is repeated that the server refuses for the moment, or does not take."""
_SECONDS = 60.0
"""Without a byte."""
_LEAST_RATE = 10_000
"""Bytes per second that a file comes with on the whole, but for the first `_SECONDS`."""
_PAUSES = (0.1, 5.0)
"""The first one doubles up to the second one, seconds."""
_PART_BYTES = 2**20
_GONE = (404, 410)
_REFUSED = (401, 403)
_EMPTY_RANGE, _TOO_MANY, _SERVERS_FAULT = 416, 429, 500
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server says of a file."""

    data: bytes
    """As much as was asked for."""
    size: int
    """Bytes of the whole file."""
    tag: str
    """What the server calls this content of the file; empty where it does not."""
    modified: float
    """When it was written, seconds since the epoch by the server's clock; 0 where it does not say."""


class _SameOrigin(request.HTTPRedirectHandler):
    """Follows redirects within one origin: another one is nobody that the user named, and may be inside his network."""

    max_redirections = 5

    def redirect_request(
        self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> request.Request | None:
        if _origin(newurl) != _origin(req.full_url):
            fp.close()
            problem = f"the server redirects to another host: {redacted(newurl)[:200]}"
            remedy = "If you trust that address, use it directly."
            raise StorageError(problem, redacted(req.full_url), remedy)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", url, 0


_opener = cache(lambda: request.build_opener(_SameOrigin))
"""Asks servers; a redirect leads to no file and to no server of another kind, as these are other origins."""


def ask(
    url: str, method: str = "HEAD", most: int = 0, part: tuple[int, int] | None = None
) -> ServerAnswer | None:
    """What a server says of a file, and its first bytes; None if there is none."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "evalcube"}
    if part is not None:
        headers["Range"] = f"bytes={part[0]}-{part[1] - 1}"
    # No pause after the last attempt.
    for pause in (*(min(_PAUSES[0] * 2**attempt, _PAUSES[1]) for attempt in range(RETRIES)), None):
        try:
            return _once(url, method, headers, most)
        except failures.HTTPError as error:
            error.close()
            if error.code in _GONE:
                return None
            # An empty file has no first byte to give: it is there all the same.
            if error.code == _EMPTY_RANGE:
                return ServerAnswer(b"", 0, "", 0.0)
            if error.code in _REFUSED:
                text = "cannot read from the server: access denied"
                remedy = "Ask whoever runs the server, or copy the cube."
                raise NotWritableError(text, redacted(url), remedy) from None
            reason = f"it answers with HTTP status {error.code}"
            if error.code < _SERVERS_FAULT and error.code != _TOO_MANY:
                break
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(getattr(error, "reason", error))[:200] or type(error).__name__
        if pause is not None:
            time.sleep(pause)
    raise _server_error(url, reason)


def _server_error(url: str, reason: str) -> StorageError:
    text = f"cannot read from the server: {reason}"
    return StorageError(text, redacted(url), "Check the network and the address, then run again.")


def _once(url: str, method: str, headers: dict[str, str], most: int) -> ServerAnswer:
    http_request = request.Request(url, headers=headers, method=method)  # noqa: S310 - http: or https:, see the opener
    with _opener().open(http_request, timeout=_SECONDS) as reply:
        length = _number(reply.headers.get("Content-Length"))
        partial = reply.status == http.HTTPStatus.PARTIAL_CONTENT
        whole = _number((reply.headers.get("Content-Range") or "").rpartition("/")[2]) if partial else length
        data, wanted, since = bytearray(), most if length is None else min(length, most), time.monotonic()
        # In parts, as they come: a length that is only claimed takes no memory, and a byte now and then is no answer.
        while len(data) < wanted and (part := reply.read1(min(_PART_BYTES, wanted - len(data)))):
            data += part
            if time.monotonic() - since > _SECONDS + len(data) / _LEAST_RATE:
                raise _server_error(url, f"it sends less than {_LEAST_RATE:,} bytes per second")
        # `http.client` ends a cut body like a whole one.
        if method == "GET" and length is not None and len(data) < wanted:
            raise http.client.IncompleteRead(b"", length - len(data))
        modified = 0.0
        with suppress(TypeError, ValueError, OverflowError):
            modified = parsedate_to_datetime(reply.headers.get("Last-Modified", "")).timestamp()
        size = whole if whole is not None else len(data)
        return ServerAnswer(bytes(data), size, reply.headers.get("ETag") or "", modified)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 20 else None
