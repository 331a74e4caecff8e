"""What every cache promises: its methods, the form of its keys, what it reports about itself; the content of an entry.

That is a magic, a checksum that is bound to the key, and a Zstandard frame.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import zstandard

from evalcube.storage.errors import StorageError

MAX_VALUE = 64 * 2**20
"""Greatest value in bytes, as stored and as read: a frame that claims more is not decompressed."""

MOST_BYTES = MAX_VALUE + MAX_VALUE // 64
"""Greatest content in bytes: zstd grows incompressible data by less than 1%. What is larger is no entry."""

MAGIC = b"EVC1"
"""What every content begins with."""

BATCH_BYTES = 16 * 2**20
"""About how much is sent or read at once."""

BATCH_ENTRIES = 512
"""How many entries are, at most."""

T = TypeVar("T")

_CHECK = 16
_HEADER = len(MAGIC) + _CHECK
_LEVEL = 3


def encode(key: str, value: bytes, compressor: zstandard.ZstdCompressor) -> bytes:
    """Content of an entry: magic, checksum bound to `key`, compressed value."""
    payload = compressor.compress(value)
    return MAGIC + checksum(key, payload) + payload


def decode(key: str, data: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes | None:
    """Value in an entry's content; None unless every byte is as `encode` made it for this key."""
    if not is_whole(key, data):
        return None
    payload = data[_HEADER:]
    # The checksum is no secret: one from elsewhere may pass it and still be a bomb.
    try:
        if not 0 <= zstandard.frame_content_size(payload) <= MAX_VALUE:
            return None
        return bytes(decompressor.decompress(payload, allow_extra_data=False))
    except zstandard.ZstdError:
        return None


def is_whole(key: str, data: bytes) -> bool:
    """Whether an entry's content passes its checksum."""
    return data[:_HEADER] == MAGIC + checksum(key, memoryview(data)[_HEADER:])


def checksum(key: str, payload: bytes | memoryview) -> bytes:
    """What an entry's header says of its payload."""
    return hashlib.blake2b(payload, digest_size=_CHECK, key=bytes.fromhex(key)).digest()


def batches(entries: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Some entries at a time, so many that they fit into memory, or into a few requests to a store."""
    batch: list[T] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) >= BATCH_ENTRIES or size + size_of(entry) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += size_of(entry)
    if batch:
        yield batch


class Contexts(threading.local):
    """Zstandard contexts, which threads cannot share."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self.decompressor = zstandard.ZstdDecompressor()


KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds."""

    entries: int
    """Number of values."""
    bytes: int
    """Their size as stored in bytes, compressed."""
    damaged: int
    """Entries in quarantine."""
    journals: int = 0
    """Packs of processes that write, or that were killed; of directories only."""


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """An entry, without its value."""

    key: str
    size: int
    """Bytes as stored."""
    modified: float | None
    """When it was stored, in seconds since the epoch, for people: by whose clock is up to the store. None where that is
    not known."""


class Cache(Protocol):
    """Bytes by digest: put-if-absent, verified on every read.

    Durable is what a power cut does not take: an entry is, once a `commit` that began after its put returned
    (what that means for each kind of store: see the documentation). Before that, an entry in a directory is
    visible to all and outlives its process; elsewhere it waits in this object, which alone sees it.
    """

    @property
    def damaged_count(self) -> int:
        """Entries that this object found damaged."""

    def get(self, key: str) -> bytes | None:
        """Value of a key; None if it is absent or damaged."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys, where it pays several at a time."""

    def put(self, key: str, value: bytes) -> bool:
        """Take a value if its key is absent, without waiting for a network; False = known to be there."""

    def put_all(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """`put` for many values, where it pays several at a time."""

    def commit(self) -> None:
        """Make durable what this object put before the call, also where the put found it there."""

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values and commit: durable on return. False = was there, and the first one stays."""

    def close(self) -> None:
        """Commit and tidy up; the cache may be used again."""


class ManagedCache(Cache, Protocol):
    """A cache that can be looked after."""

    def stats(self) -> CacheStats:
        """Count entries and their bytes."""

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:
        """List the entries, one at a time."""

    def contents(self, keys: Sequence[str]) -> list[bytes | None]:
        """What is stored under each key as it stands, unverified; None where there is nothing."""

    def quarantine(self, key: str) -> bool:
        """Move an entry away if it is damaged; False if it is whole or absent by now."""

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries for good; the number of those that stay, since other processes write the packs they are in.

        Copies of damaged ones under the same keys go, too. Those that are not there are passed over. In a directory,
        one call for many keys costs least.
        """

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, what killed writers left behind an hour ago or earlier."""


def check_key(key: str, where: str) -> str:
    """The key, if it is one."""
    if not KEY.fullmatch(key):
        raise StorageError(f"a key has 64 hex digits in lower case, got {key!r}", where, "Correct the key.")
    return key


def check_value(value: bytes, where: str) -> None:
    """Refuse a value that is too large."""
    if len(value) > MAX_VALUE:
        problem = f"a value of {len(value)} bytes exceeds the limit of {MAX_VALUE}"
        raise StorageError(problem, where, "Lower `limits.response_bytes`.")
