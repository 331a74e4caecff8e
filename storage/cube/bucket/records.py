"""A log of numbered objects, and a lease that is put over the version that was seen: of several takers one wins."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from evalcube.storage.clocks import elapsed_seconds
from evalcube.storage.cube.bounds import MOST_LEASE, MOST_LINES, lines_in, parse_json, refuse_larger
from evalcube.storage.cube.space import Found, LeaseState, LogConflictError, Space, Version, When
from evalcube.storage.errors import CubeDamagedError

_ATTEMPTS = 3


class Stamped(Space, Protocol):
    """A space that knows when an object was put."""

    def stored_at(self, key: str) -> float | None:
        """When an object was put, seconds since the epoch by the store's clock; None if there is none."""


class _Entry(NamedTuple):
    """What the object says."""

    epoch: int
    """How often the lease was taken."""
    record: LeaseState | None
    """None once it was given back: the object stays, so that each taker has one to put over."""
    version: Version


class BucketLease:
    """The object of a lease; see `evalcube.storage.cube.space.LeaseRecord`.

    A line with the time of the last renewal and the epoch, and the holder's record. It changes at each renewal, and so
    does its version: whoever puts over the one that he saw finds out whether somebody else has put meanwhile.
    """

    def __init__(self, space: Stamped, key: str) -> None:
        self._space, self._key = space, key

    def read(self) -> LeaseState | None:
        """The record as it is; None if nobody holds the lease."""
        entry = _entry(self._space.get(self._key, MOST_LEASE))
        if entry is None or entry.record is None:
            return None
        return entry.record._replace(stored=self._space.stored_at(self._key))

    def take(self, successor: Callable[[LeaseState | None], LeaseState]) -> HeldObject:
        """Put the successor over what is there, again if somebody was faster."""
        while True:
            entry = _entry(self._space.get(self._key, MOST_LEASE))
            record = successor(None if entry is None else entry.record)
            epoch = 1 if entry is None else entry.epoch + 1
            when = When.ABSENT if entry is None else entry.version
            version = self._space.put(self._key, _encode_entry(epoch, record), when=when)
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
        entry = _entry(self._space.get(self._key, MOST_LEASE))
        if entry is None or entry.record is None or self._entry.record is None:
            return False
        mine = (entry.epoch, entry.record.data) == (self._entry.epoch, self._entry.record.data)
        self._entry = entry if mine else self._entry
        return mine

    def renew(self, now: float, *, late: bool = False) -> bool:  # noqa: ARG002 - a condition is safe at any time
        """Put the record with another time."""
        record = self._entry.record
        return record is not None and self._put(LeaseState(record.data, now))

    def withdraw(self) -> None:
        """Put an object in its place that nobody holds."""
        if self._entry.record is not None:
            self._put(LeaseState(b"", self._entry.record.at))

    def _put(self, record: LeaseState) -> bool:
        for _ in range(_ATTEMPTS):
            data = _encode_entry(self._entry.epoch, record)
            version = self._space.put(self._key, data, when=self._entry.version)
            if version is not None:
                self._entry = self._entry._replace(record=record if record.data else None, version=version)
                return True
            # Refused because an own put was stored whose answer got lost: its version is known now, so try over that.
            if not self._is_found():
                return False
        return False

    def close(self) -> None:
        """Nothing is open."""


def _encode_entry(epoch: int, record: LeaseState) -> bytes:
    return json.dumps({"epoch": epoch, "at": record.at}).encode() + b"\n" + record.data


def _entry(stored: Found | None) -> _Entry | None:
    if stored is None:
        return None
    line, _, data = stored.data.partition(b"\n")
    try:
        fields = parse_json(line)
        epoch, at = int(fields["epoch"]), float(fields["at"])
    except (ValueError, TypeError, KeyError, OverflowError):
        # Not ours, or damaged: somebody's all the same, whose renewals are watched.
        epoch, at, data = 0, 0.0, stored.data
    return _Entry(epoch, LeaseState(data, at) if data else None, stored.version)


LINES_OF_OBJECT = 64
"""As many lines make an object at most."""
MOST_OBJECTS = 200_000
"""Some servers have something under every name."""
WAITING_SECONDS = 2.0
"""As long waits a line at most, if others come; a put costs as much as a dozen gets."""
_THREADS = 32


class BucketLog:
    """Objects ``ledger/00000000.jsonl`` and so on of a log ``ledger.jsonl``; see `evalcube.storage.cube.space.Log`.

    Numbers are contiguous, so that a reader needs no list: he asks for the next ones, many at once, until one is
    missing.
    A log continues where it was read to, or where it ends when its first line is put. Whoever takes a lease over puts
    an empty object: then nobody who read the log before that can append any more, though he were to wake up after he
    has asked for his lease.
    """

    def __init__(self, space: Space, key: str) -> None:
        self._space = space
        self._folder, _, self._ending = key.partition(".")
        self._next: int | None = None
        self._waiting: list[bytes] = []
        self._since = 0.0

    def lines(self) -> Iterator[bytes]:
        """All lines, those that wait included; at most some dozens of objects are in memory."""
        self.flush()
        number = 0
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-log") as pool:
            # A short log costs two requests, a long one is soon asked for in full breadth.
            for wave in itertools.chain((1, 4, 16), itertools.repeat(_THREADS)):
                if number > MOST_OBJECTS:
                    problem, where = f"its ledger has more than {MOST_OBJECTS:,} objects", self._space.address
                    raise CubeDamagedError(problem, where, "Find out which server answers at this address.")
                for stored in pool.map(self._object, range(number, number + wave)):
                    if stored is None:
                        if self._next is None:
                            self._next = number
                        return
                    number += 1
                    yield from lines_in(io.BytesIO(stored.data), self._space.address)

    def append(self, line: bytes) -> None:
        """Add a line, which waits for others for a moment; it is durable after `flush`."""
        if not self._waiting:
            self._since = elapsed_seconds()
        self._waiting.append(line)
        self.flush(older_than=0.0 if len(self._waiting) >= LINES_OF_OBJECT else WAITING_SECONDS)

    def flush(self, older_than: float = 0.0) -> None:
        """Put the lines that wait, if the first one has done so for as many seconds."""
        if not self._waiting or elapsed_seconds() - self._since < older_than:
            return
        if self._next is None:
            self._next = self._end()
        # The number is the lock: of two that append under it, the store takes one.
        if self._space.put(self._key(self._next), b"".join(self._waiting), when=When.ABSENT) is None:
            # Not tried again: the regions were written by somebody who no longer had the right to.
            self._waiting.clear()
            raise LogConflictError
        self._next += 1
        self._waiting.clear()

    def claim(self) -> None:
        """Keep everybody who has read the log so far from appending to it."""
        number = self._end()
        # Somebody else may append until the moment in which this succeeds; what he appended counts.
        while self._space.put(self._key(number), b"", when=When.ABSENT) is None:
            number += 1

    def close(self) -> None:
        """Put what waits; the next append looks for the end again."""
        self.flush()
        self._next = None

    def _end(self) -> int:
        """Number of objects, found by doubling and halving."""
        # Not by a list: servers of files have none, and a list costs as many requests as there are thousands.
        high = 1
        while self._is_there(high - 1):
            high *= 2
        low = high // 2  # as many are there for sure, and the object at high - 1 is not
        while low < high - 1:
            middle = (low + high - 1) // 2
            low, high = (middle + 1, high) if self._is_there(middle) else (low, middle + 1)
        return low

    def _object(self, number: int) -> Found | None:
        stored = self._space.get(self._key(number), MOST_LINES)
        if stored is not None:
            refuse_larger(stored.size, MOST_LINES, f"{self._space.address}/{self._key(number)}")
        return stored

    def _is_there(self, number: int) -> bool:
        return self._space.version(self._key(number)) is not None

    def _key(self, number: int) -> str:
        return f"{self._folder}/{number:08}.{self._ending}"
