# ruff: noqa: ARG002 - what a space that is only read does not do is refused, whatever is given
"""What all spaces have in common whose objects stay as they are: they refuse writes, each with its own words."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from evalcube.storage.cube.bounds import lines_in
from evalcube.storage.cube.bucket.records import BucketLog
from evalcube.storage.cube.space import HeldRecord, LeaseRecord, Renewed, Space
from evalcube.storage.errors import NotWritableError

if TYPE_CHECKING:
    from zarr.abc.store import Store


class ReadOnly:
    """The writing half of a `evalcube.storage.cube.space.Space`, refused."""

    __slots__ = ()

    trusted = True

    def refusal(self) -> NotWritableError:
        """The error that says why nothing is written here, and what to do; not raised."""
        raise NotImplementedError

    def is_writable(self) -> bool:
        """Never."""
        return False

    def refuse(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - in the place of methods of all kinds
        """Refuse, whatever is given."""
        raise self.refusal()

    put = delete = clear = sync = fence = assemble = refuse

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of the objects."""
        from evalcube.storage.cube.space_store import SpaceStore  # with zarr, which takes a while

        return SpaceStore(cast("Space", self), read_only=True)

    def log(self, key: str) -> FinishedLog:
        """A log that somebody else wrote or writes, into one file or into numbered ones."""
        return FinishedLog(cast("Space", self), key)

    def remove(self) -> bool:
        """Not possible."""
        return False

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Nothing is on its way here."""
        return 0


class FinishedLog(BucketLog):
    """A log to which nobody appends from here, in one file as of a directory, or in numbered objects as of a bucket."""

    def lines(self) -> Iterator[bytes]:
        """All lines, in their order."""
        found = self._space.get(f"{self._folder}.{self._ending}")
        return super().lines() if found is None else lines_in(io.BytesIO(found.data), self._space.address)

    def append(self, line: bytes) -> None:
        """Refused by the space, at once."""
        self._space.put(f"{self._folder}.{self._ending}", line)


class NobodysLease(LeaseRecord):
    """The lease of a cube on which nobody can work."""

    def __init__(self, space: ReadOnly) -> None:
        self._space = space

    def read(self) -> Renewed | None:
        """Nobody holds it, whatever was copied along."""
        return None

    def take(self, successor: Callable[[Renewed | None], Renewed]) -> HeldRecord:
        """Refuse."""
        raise self._space.refusal()
