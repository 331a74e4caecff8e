"""An object that is put over the version that was seen: of several takers, and of a holder and a taker, one wins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple, Protocol

from evalcube.storage.cube.space import Found, Renewed, Space, Version, When

_ATTEMPTS = 3


class Stamped(Space, Protocol):
    """A space that knows when an object was put."""

    def stamped(self, key: str) -> float | None:
        """When an object was put, seconds since the epoch by the store's clock; None if there is none."""


class _Entry(NamedTuple):
    """What the object says."""

    epoch: int
    """How often the lease was taken."""
    record: Renewed | None
    """None once it was given back: the object stays, so that each taker has one to put over."""
    version: Version


class BucketLease:
    """The object of a lease; see `evalcube.storage.cube.space.LeaseRecord`.

    A line with the time of the last renewal and the epoch, and the holder's record. It changes at each renewal, and so
    does its version: whoever puts over the one that he saw finds out whether somebody else has put meanwhile.
    """

    def __init__(self, space: Stamped, key: str) -> None:
        self._space, self._key = space, key

    def read(self) -> Renewed | None:
        """The record as it is; None if nobody holds the lease."""
        entry = _entry(self._space.get(self._key))
        if entry is None or entry.record is None:
            return None
        return entry.record._replace(stored=self._space.stamped(self._key))

    def take(self, successor: Callable[[Renewed | None], Renewed]) -> HeldObject:
        """Put the successor over what is there, again if somebody was faster."""
        while True:
            entry = _entry(self._space.get(self._key))
            record = successor(None if entry is None else entry.record)
            epoch = 1 if entry is None else entry.epoch + 1
            when = When.ABSENT if entry is None else entry.version
            version = self._space.put(self._key, _encoded(epoch, record), when=when)
            if version is not None:
                return HeldObject(self._space, self._key, _Entry(epoch, record, version))


class HeldObject:
    """The object of a lease that this process holds, known by its version."""

    def __init__(self, space: Space, key: str, entry: _Entry) -> None:
        self._space, self._key, self._entry = space, key, entry

    def is_mine(self) -> bool:
        """Whether the object is still the one that was put last."""
        if self._entry.record is None:
            return False
        return self._space.version(self._key) == self._entry.version or self._is_found()

    def _is_found(self) -> bool:
        """Whether the object is this holder's after all: a renewal may have been stored whose answer never came."""
        entry = _entry(self._space.get(self._key))
        mine = (
            entry is not None
            and entry.record is not None
            and self._entry.record is not None
            and (entry.epoch, entry.record.data) == (self._entry.epoch, self._entry.record.data)
        )
        if entry is not None and mine:
            self._entry = entry
        return mine

    def renew(self, now: float, *, late: bool = False) -> bool:  # noqa: ARG002 - a condition is safe at any time
        """Put the record with another time."""
        record = self._entry.record
        return record is not None and self._put(Renewed(record.data, now))

    def withdraw(self) -> None:
        """Put an object in its place that nobody holds."""
        if self._entry.record is not None:
            self._put(Renewed(b"", self._entry.record.at))

    def _put(self, record: Renewed) -> bool:
        for _ in range(_ATTEMPTS):
            data = _encoded(self._entry.epoch, record)
            version = self._space.put(self._key, data, when=self._entry.version)
            if version is not None:
                self._entry = self._entry._replace(record=record if record.data else None, version=version)
                return True
            if not self._is_found():
                return False
        return False

    def close(self) -> None:
        """Nothing is open."""


def _encoded(epoch: int, record: Renewed) -> bytes:
    return json.dumps({"epoch": epoch, "at": record.at}).encode() + b"\n" + record.data


def _entry(found: Found | None) -> _Entry | None:
    if found is None:
        return None
    line, _, data = found.data.partition(b"\n")
    try:
        fields = json.loads(line)
        epoch, at = int(fields["epoch"]), float(fields["at"])
    except (ValueError, TypeError, KeyError):
        # Not ours, or damaged: somebody's all the same, whose renewals are watched.
        epoch, at, data = 0, 0.0, found.data
    return _Entry(epoch, Renewed(data, at) if data else None, found.version)
