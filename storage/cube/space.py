"""The interface between a cube and the place that stores it, so that a cube can come to lie on an object store.

A `Space` holds objects under keys, which are relative and divided by slashes. Everything above it, in this package and
in those that use it, handles a cube's records through it, and knows neither paths nor files.
`evalcube.storage.cube.directory.Directory` is its implementation today; a bucket of an object store is the one it is
drawn for.

Its core is what every store has: get, put, put if absent, put if unchanged, delete, list, the store that zarr writes
through, and `Space.sync`, which makes durable what zarr wrote. The rest is there because a directory and a bucket do it
by different means, and because nobody above should know which:

* `Space.assemble` and `Space.sweep`: a directory appears by a rename, and kills leave temporary files
  behind; a bucket would put the cube's metadata last, if absent, and has nothing to sweep.
* `Space.clear`: a directory has folders, which go with what is in them.
* `Space.log`: a directory appends to a file, where a line costs one write and one sync; a bucket would put numbered
  objects that must be absent.
* `Space.lease`: a directory has a lock of the operating system and the time of a file; a bucket would put under the
  version that it saw, with the time inside of the object.
* `Space.version`, `Space.is_there`, `Space.is_writable`: questions that cost less than a get, and less than a failure.
* `Space.at`: who keeps a record need not know in which part of a cube it lies.

The second implementation, in memory and by puts on conditions alone, is in the tests (``tests/storage/support``), which
hold both to the same promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from zarr.abc.store import Store


METADATA = "zarr.json"
"""Key of a cube's metadata, without which it is none; and of an array's, below its name."""


class When(Enum):
    """On what condition an object is put, beside a `Version`."""

    ALWAYS = "always"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Version:
    """What distinguishes one content of an object from others under the same key."""

    mark: str


class Found(NamedTuple):
    """An object's content with its version."""

    data: bytes
    version: Version
    size: int
    """Bytes of the whole object, also where only its first ones were asked for."""


class LogConflictError(Exception):
    """Somebody else has appended to a log since it was opened."""


class Log(Protocol):
    """Lines that one process at a time appends; all may read them."""

    def lines(self) -> Iterator[bytes]:
        """All lines in their order, one in memory at a time; a torn last one comes without its line break."""

    def append(self, line: bytes) -> None:
        """Add a line, which may wait for others until `flush`; a failure leaves the log as it was."""

    def flush(self, older_than: float = 0.0) -> None:
        """Make the lines durable that wait."""

    def claim(self) -> None:
        """Keep everybody who has read the log by now from appending: the lease was taken over from him."""

    def close(self) -> None:
        """Flush, and give up what is open; the next append opens it again."""


class LeaseState(NamedTuple):
    """The record of a lease as its holder wrote it."""

    data: bytes
    at: float
    """When it was renewed last, seconds since the epoch by the holder's clock; for people."""
    stored: float | None = None
    """When that was, by the store's clock; None where the store does not say. For people, too."""

    def same(self, other: LeaseState) -> bool:
        """Whether it was not renewed in between, by this holder or another one."""
        return (self.data, self.at) == (other.data, other.at)


class HeldRecord(Protocol):
    """The record of a lease that this process has taken."""

    def is_mine(self) -> bool:
        """Whether nobody has taken it over."""

    def renew(self, now: float, *, late: bool = False) -> bool:
        """Say that the holder is alive; False, and a successor's record is as it was, if it was taken over."""

    def withdraw(self) -> None:
        """Remove the record; a successor's stays."""

    def close(self) -> None:
        """Give up what is open."""


class LeaseRecord(Protocol):
    """The record of a lease, whoever holds it."""

    def read(self) -> LeaseState | None:
        """Return the record, and when it was renewed; None if nobody holds the lease."""

    def take(self, successor: Callable[[LeaseState | None], LeaseState]) -> HeldRecord:
        """Replace the record by its successor, durable on return; of several writers, one is first."""


class Space(Protocol):
    """Where a cube, or a part of it, is. All calls wait; threads and processes may share a space.

    A space is an address: it can be pickled, and tasks on other machines reach the same objects through it.

    An object that is put on a condition by one writer is put on a condition by all of them. Methods raise `OSError` as
    the operating system does, or `StorageError`; callers that know what they are doing say so with
    `evalcube.storage.errors.guarded`.
    """

    @property
    def address(self) -> str:
        """Where it is, for messages."""

    @property
    def is_object_store(self) -> bool:
        """Whether it is one, which keeps what was put whole: to look again costs a request."""

    def at(self, name: str) -> Space:
        """The part of this space whose keys begin with `name` and a slash."""

    def is_there(self) -> bool:
        """Whether there is anything at all."""

    def is_writable(self) -> bool:
        """Whether objects can be put."""

    def get(self, key: str, most: int | None = None) -> Found | None:
        """An object, or its first `most` bytes; None if there is none."""

    def version(self, key: str) -> Version | None:
        """Version of an object, without its content; None if there is none."""

    def put(
        self, key: str, data: bytes, *, when: When | Version = When.ALWAYS, durable: bool = True
    ) -> Version | None:
        """Store an object in one step: others see the old one or the new one."""

    def delete(self, key: str, *, durable: bool = True) -> None:
        """Delete an object, if it is there."""

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys that begin with a prefix, which is empty or ends in a slash; none if there is nothing."""

    def clear(self, prefix: str) -> None:
        """Delete all below a prefix, as far as that is possible."""

    def sync(self, keys: Iterable[str]) -> None:
        """Make durable what was written through the zarr store: zarr's own writes survive a kill, not a power cut.

        A key that ends in a slash stands for the list of what is below it.
        """

    def fence(self, store: Store, keys: Sequence[str]) -> None:
        """Have zarr write these objects next only over what is there now, where the store can see to that.

        Whoever then asks whether it still holds the lease, and writes, cannot undo what a successor writes, however
        late its requests arrive; zarr raises `LeaseLostError` where it would.
        """

    def zarr(self, *, read_only: bool = False) -> Store:
        """The store that zarr reads and writes arrays through."""

    def assemble(self, fill: Callable[[Space], object]) -> None:
        """Make the space with what `fill` puts into one that nobody else sees: others see all of it or nothing.

        Nothing in that space is durable before it has become this one.
        """

    def remove(self) -> bool:
        """Remove all of it in one step; returns whether that was possible."""

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Count, or delete, what killed writers left at the top and below prefixes, from an age in seconds on."""

    def log(self, key: str) -> Log:
        """A log, which its first append makes."""

    def lease(self, key: str) -> LeaseRecord:
        """The record of a lease, which its first holder makes."""
