"""A cache on a store that a network leads to: puts wait in memory, and a commit sends them many at a time.

A put only queues: it may be called from an event loop. `commit` sends what has been put, and returns when the store has
acknowledged it. An entry has the same content as in a directory. A damaged entry stays where it is until a put finds
it: then it is copied aside and replaced, in one step that fails if another process was faster, so that no acknowledged
entry is ever lost to a repair.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalcube.storage.cache.contract import (
    CacheStats,
    Contexts,
    EntryInfo,
    batches,
    check_key,
    check_value,
    decode,
    encode,
)
from evalcube.storage.errors import NotWritableError, StorageError

_WAITING_BYTES = 64 * 2**20
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Stored:
    """What a store has under a key."""

    content: bytes | None
    """None if it is too large, or of another kind, to be an entry."""
    version: object = None
    """What distinguishes it from another content under the same key."""


class Backend(Protocol):
    """What a store has to be able to do. All calls wait, and raise `StorageError`."""

    @property
    def address(self) -> str:
        """Where it is, for messages."""

    def create(self, items: Mapping[str, bytes]) -> list[bool]:
        """Store what is absent, each entry in one step; True = stored, and acknowledged."""

    def read(self, keys: Sequence[str]) -> list[Stored | None]:
        """Read entries."""

    def replace(self, key: str, seen: Stored, content: bytes) -> bool:
        """Replace what was seen; False if it is another by now."""

    def discard(self, key: str, seen: Stored) -> bool:
        """Delete what was seen; False if it is another by now."""

    def copy_aside(self, key: str) -> None:
        """Copy an entry into quarantine."""

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:
        """List the entries, or those that are there now, where that is known."""

    def remove(self, keys: Sequence[str]) -> None:
        """Delete entries."""

    def count_aside(self) -> int:
        """Number of entries in quarantine."""

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, what killed writers left."""

    def close(self) -> None:
        """Give connections back; they come again when they are needed."""


class RemoteCache:
    """A cache on a store; threads and processes may share it."""

    def __init__(self, backend: Backend, *, writable: bool = True) -> None:
        self._backend = backend
        self._writable = writable
        self._contexts = Contexts()
        self._lock = threading.Lock()
        self._waiting: dict[str, bytes] = {}
        self._bytes = 0
        self._sending: dict[str, bytes] = {}
        self._committing = threading.Lock()
        self._damaged: set[tuple[str, object]] = set()

    @property
    def damaged_count(self) -> int:
        """Entries that this object found damaged."""
        return len(self._damaged)

    def get(self, key: str) -> bytes | None:
        """Value of a key; None if it is absent, or damaged, which is counted and healed by the next put."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys, several at a time."""
        values: list[bytes | None] = []
        for key, stored in zip(keys, self._read_stored(keys), strict=True):
            value = None if stored is None else self._decode(key, stored)
            if stored is not None and value is None:
                self._damaged.add((key, stored.version))
            values.append(value)
        return values

    def put(self, key: str, value: bytes) -> bool:
        """Queue a value without waiting for the network, unless very much waits; durable after `commit`."""
        self._check(key, value)
        content = encode(key, value, self._contexts.compressor)
        with self._lock:
            # What is being sent is as good as stored: a second value for its key must not count as new.
            if key in self._waiting or key in self._sending:
                return False
            self._waiting[key] = content
            self._bytes += len(content)
            much = self._bytes > _WAITING_BYTES
        if much:
            self.commit()
        return True

    def put_all(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """`put` for many values."""
        return [self.put(key, value) for key, value in items]

    def commit(self) -> None:
        """Send what was put before the call, and wait until the store has acknowledged it.

        Any number of threads may put and commit meanwhile.
        """
        # Held until all is sent: a commit that comes later may rely on what this one took.
        with self._committing:
            with self._lock:
                # Not dropped yet: until the store acknowledges, puts and reads must still see these keys.
                self._sending, self._waiting, self._bytes = self._waiting, {}, 0
            try:
                # Of a copy, since what was sent is taken out meanwhile.
                for batch in batches(list(self._sending.items()), _size):
                    self._send(dict(batch))
                    with self._lock:
                        for key, _ in batch:
                            del self._sending[key]
            except BaseException:
                with self._lock:
                    # Perhaps stored, perhaps not: the next commit sends them again, which put-if-absent makes harmless.
                    self._waiting = {**self._waiting, **self._sending}
                    self._bytes = sum(map(len, self._waiting.values()))
                    self._sending = {}
                raise

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values; all are acknowledged when the call returns."""
        for key, value in items:
            self._check(key, value)
        self.commit()
        # Of equal keys the first value counts, as if they had been put one by one.
        first = dict(reversed(items))
        contents = {key: encode(key, value, self._contexts.compressor) for key, value in first.items()}
        stored: dict[str, bool] = {}
        for batch in batches(contents.items(), _size):
            stored.update(self._send(dict(batch)))
        return [stored.pop(key, False) for key, _ in items]

    def close(self) -> None:
        """Commit, and close connections."""
        self.commit()
        self._backend.close()

    def stats(self) -> CacheStats:
        """Count entries and their bytes, by listing all of them."""
        entries = size = 0
        for entry in self.entries():
            entries, size = entries + 1, size + entry.size
        return CacheStats(entries, size, self._backend.count_aside())

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:
        """List the entries, one at a time; see `evalcube.storage.cache.contract.ManagedCache.entries`."""
        return self._backend.entries(there_now=there_now)

    def contents(self, keys: Sequence[str]) -> list[bytes | None]:
        """What is stored under each key, unverified; empty for what is too large to be an entry."""
        return [None if stored is None else stored.content or b"" for stored in self._read_stored(keys)]

    def quarantine(self, key: str) -> bool:
        """Move an entry away if it is damaged; False if it is whole, absent, or changes at this moment."""
        stored = self._read_stored([key])[0]
        if stored is None or self._decode(key, stored) is not None:
            return False
        self._backend.copy_aside(key)
        return self._backend.discard(key, stored)

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; none stays."""
        self._backend.remove([check_key(key, self._backend.address) for key in keys])
        return 0

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, what killed writers left an hour ago or earlier."""
        return self._backend.sweep(delete=delete)

    def _check(self, key: str, value: bytes) -> None:
        check_key(key, self._backend.address)
        check_value(value, self._backend.address)
        if not self._writable:
            where = self._backend.address
            raise NotWritableError("the cache was opened for reading", where, "Open it for writing.")

    def _read_stored(self, keys: Sequence[str]) -> list[Stored | None]:
        for key in keys:
            check_key(key, self._backend.address)
        with self._lock:
            waits = any(key in self._waiting or key in self._sending for key in keys)
        if waits:
            self.commit()
        return self._backend.read(keys)

    def _decode(self, key: str, stored: Stored) -> bytes | None:
        return decode(key, stored.content or b"", self._contexts.decompressor)

    def _send(self, batch: Mapping[str, bytes]) -> dict[str, bool]:
        """Have each entry in the store, the first one or, where that is damaged, this one."""
        stored = dict(zip(batch, self._backend.create(batch), strict=True))
        # A key that is taken may hold a damaged entry, which nobody can read and this value may replace.
        taken = [key for key, new in stored.items() if not new]
        for key, present in zip(taken, self._backend.read(taken), strict=True):
            if present is None or self._decode(key, present) is None:
                stored[key] = self._heal(key, present, batch[key])
        return stored

    def _heal(self, key: str, present: Stored | None, content: bytes) -> bool:
        for _ in range(_ATTEMPTS):
            if present is None:
                if self._backend.create({key: content})[0]:
                    return True
            # Another process was faster, and its entry is whole.
            elif self._decode(key, present) is not None:
                return False
            else:
                self._backend.copy_aside(key)
                # Copied aside before, as it is evidence; if somebody replaced it meanwhile, the new content is judged.
                if self._backend.replace(key, present, content):
                    return True
            present = self._backend.read([key])[0]
        remedy = "Find out what else writes into the cache, then run again."
        raise StorageError(f"the entry {key} keeps changing", self._backend.address, remedy)


def _size(entry: tuple[str, bytes]) -> int:
    return len(entry[1])
