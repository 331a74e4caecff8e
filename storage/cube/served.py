# ruff: noqa: ARG002 - most of what a space does is refused here, whatever is given
"""A cube that a web server gives out as files, for reading only: its directory, or a bucket that everybody may read.

Such a server answers requests for objects by their names, and lists nothing. What is asked for is what zarr's metadata
and the numbers of the ledger say, so that nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalcube.storage import web
from evalcube.storage.cube.bounds import MOST_OBJECT, refuse_larger
from evalcube.storage.cube.bucket.lease import BucketLease
from evalcube.storage.cube.read_only import FinishedLog, ReadOnly
from evalcube.storage.cube.space import Found, HeldRecord, Renewed, Version
from evalcube.storage.errors import NotWritableError

if TYPE_CHECKING:
    from zarr.abc.store import Store

_RANGE_BYTES = 65536


@dataclass(frozen=True, slots=True)
class ServedFiles(ReadOnly):
    """A `evalcube.storage.cube.space.Space` at an address that begins with http:// or https://."""

    cube: str
    """Address of the whole cube."""
    prefix: str = ""
    """Of the keys, empty or with a slash at its end."""

    @property
    def address(self) -> str:
        """The address, as a browser would open it."""
        return f"{self.cube}/{self.prefix}".rstrip("/")

    def at(self, name: str) -> ServedFiles:
        """The files below a folder."""
        return ServedFiles(self.cube, f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a cube: servers do not say what else there is."""
        return self.version("zarr.json") is not None

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A file's content, or its first `most` bytes; None if there is none."""
        part = (0, max(most, 1)) if most is not None and most <= _RANGE_BYTES else None
        answer = web.read(self._url(key), MOST_OBJECT if most is None else most, part)
        if answer is None:
            return None
        if most is None:
            refuse_larger(answer.size, MOST_OBJECT, f"{self.address}/{key}")
        return Found(answer.data, _version(answer), answer.size)

    def version(self, key: str) -> Version | None:
        """What the server says of a file that changes with its content; None if there is none."""
        answer = web.look(self._url(key))
        return None if answer is None else _version(answer)

    def stamped(self, key: str) -> float | None:
        """When a file was written, by the server's clock; None if there is none."""
        answer = web.look(self._url(key))
        return None if answer is None else answer.modified

    def _url(self, key: str) -> str:
        return web.file_url(self.cube, self.prefix + key)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Nothing: a server of files does not list them."""
        return iter(())

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of the files."""
        from evalcube.storage.cube.space_store import SpaceStore  # with zarr, which takes a while

        return SpaceStore(self, read_only=True)

    def log(self, key: str) -> FinishedLog:
        """A log that somebody else writes, into one file or into numbered ones."""
        return FinishedLog(self, key)

    def lease(self, key: str) -> ServedLease:
        """The record of whoever works on the cube."""
        return ServedLease(self, key)

    def refusal(self) -> NotWritableError:
        """See `ReadOnly.refusal`."""
        remedy = "Write to its directory or bucket, or make a copy: evalcube pull."
        return NotWritableError("a cube behind a web server can only be read", self.address, remedy)


class ServedLease:
    """The record of a lease, as its holder's directory or bucket has it."""

    def __init__(self, space: ServedFiles, key: str) -> None:
        self._space, self._key = space, key

    def read(self) -> Renewed | None:
        """The record as it is, from a file that is its holder's record or from an object with a line before that."""
        found = self._space.get(self._key)
        if found is None:
            return None
        if found.data.startswith(b'{"epoch"'):
            return BucketLease(self._space, self._key).read()
        at = self._space.stamped(self._key)
        return None if at is None else Renewed(found.data, at, at)

    def take(self, successor: Callable[[Renewed | None], Renewed]) -> HeldRecord:
        """Refuse."""
        raise self._space.refusal()


def _version(answer: web.Answer) -> Version:
    return Version(answer.tag or f"{answer.modified} {answer.size}")
