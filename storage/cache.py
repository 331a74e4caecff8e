"""Digests and response bytes in; the same bytes, verified, out, in this run or any later one.

A directory: entry ``<2 hex>/<62 hex>`` per key, ``tmp/`` for files on their way, ``damaged/`` for entries
that failed their check. A file has the magic, a checksum bound to its key, and a Zstandard frame. An entry
never changes once it has its name, so that any number of processes, also on NFS, need no lock to read and
write.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import zstandard

from storage.errors import NotWritableError, StorageError, guarded
from storage.files import SYNC_THREADS, locked, make_directory, sync_path, write_synced
from storage.urls import directory_of

MAX_VALUE = 64 * 2**20
"""Greatest value in bytes, as stored and as read: a frame that claims more is not decompressed."""

_MAGIC = b"EVC1"
_CHECK = 16
_HEADER = len(_MAGIC) + _CHECK
_LEVEL = 3
_KEY = re.compile(r"[0-9a-f]{64}")
_STALE_SECONDS = 3600.0
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_MIN_PARALLEL = 8

_T = TypeVar("_T")
_R = TypeVar("_R")


class Cache(Protocol):
    """Bytes by digest: durable, put-if-absent, verified on every read."""

    @property
    def damaged(self) -> int:
        """Entries that this object found damaged."""

    def get(self, key: str) -> bytes | None:
        """Value of a key; None if it is absent or damaged."""

    def contains(self, key: str) -> bool:
        """Tell whether the key has an entry, unverified."""

    def put(self, key: str, value: bytes) -> bool:
        """Store one value; see `put_many`."""

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store values that are absent, durable on return; False = was there, and the first one stays."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds."""

    entries: int
    """Number of values."""
    bytes: int
    """Their size on disk in bytes, compressed."""
    damaged: int
    """Files in quarantine."""


def open_cache(url: str | Path) -> Cache:
    """Open or create the cache at an address.

    Raises
    ------
    UnsupportedUrlError
        Not a directory's address.
    NotWritableError
        It cannot be written.
    """
    return DirectoryCache(directory_of(url))


def encode(key: str, value: bytes, compressor: zstandard.ZstdCompressor) -> bytes:
    """File content of an entry: magic, checksum bound to `key`, compressed value."""
    payload = compressor.compress(value)
    return _MAGIC + _checksum(key, payload) + payload


def decode(key: str, data: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes | None:
    """Value in an entry's file content; None unless every byte is as `encode` made it for this key."""
    payload = data[_HEADER:]
    if data[:_HEADER] != _MAGIC + _checksum(key, payload):
        return None
    # The checksum is no secret: a file from elsewhere may pass it and still be a bomb.
    try:
        if not 0 <= zstandard.frame_content_size(payload) <= MAX_VALUE:
            return None
        return bytes(decompressor.decompress(payload, allow_extra_data=False))
    except zstandard.ZstdError:
        return None


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECK, key=bytes.fromhex(key)).digest()


class _Contexts(threading.local):
    """Zstandard contexts, which threads cannot share."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self.decompressor = zstandard.ZstdDecompressor()


class DirectoryCache:
    """A cache in a directory, local or NFS; threads and processes may share it.

    Parameters
    ----------
    path
        The directory; created with its parents.

    Raises
    ------
    NotWritableError
        It cannot be created or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._root = str(self.path)
        self._incoming = str(self.path / "tmp")
        self._lock = self.path / "tmp" / "lock"
        with guarded(self.path, "create the cache"):
            for folder in ("tmp", "damaged"):
                make_directory(self.path / folder)
            _sweep(self.path / "tmp")
        if not os.access(self.path / "tmp", os.W_OK | os.X_OK):
            remedy = "Give yourself write permission, or choose another path for the cache."
            raise NotWritableError("cannot write the cache: the directory is read-only", self.path, remedy)
        self._contexts = _Contexts()
        self._pool = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="evalcube-cache")
        self._counting = threading.Lock()
        self._damaged = 0

    @property
    def damaged(self) -> int:
        """Entries that this object found damaged and moved to ``damaged/``."""
        return self._damaged

    def contains(self, key: str) -> bool:
        """Tell whether the key has an entry; it is not verified."""
        return os.path.exists(self._file(key))  # noqa: PTH110 (a Path costs as much as the call)

    def get(self, key: str) -> bytes | None:
        """Value of a key.

        Parameters
        ----------
        key
            64 hex digits in lower case.

        Returns
        -------
        bytes or None
            None if it is absent, or damaged: then the file was moved to ``damaged/`` and counted, so that the
            next put heals it.

        Raises
        ------
        StorageError
            The key is malformed, or the disk fails.
        """
        file = self._file(key)
        with guarded(self._root, "read the cache"):
            data = _content(file)
            if data is None:
                return None
            value = decode(key, data, self._contexts.decompressor)
            return self._quarantine(key, file) if value is None else value

    def put(self, key: str, value: bytes) -> bool:
        """Store one value; see `put_many`, which costs less for many."""
        return self.put_many([(key, value)])[0]

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store the values whose keys are absent; all are on disk when the call returns.

        A file is synced before it gets its name and the directories after, so that a kill or a power cut
        leaves each entry whole or absent.

        Parameters
        ----------
        items
            Pairs of key (64 hex digits) and value (at most `MAX_VALUE` bytes).

        Returns
        -------
        list of bool
            True where the value was stored, False where the key was there; then the first value stays.

        Raises
        ------
        StorageError
            A key is malformed or a value too large (nothing is stored), or the disk fails (some may be).
        """
        first: dict[str, bytes] = {}
        for key, value in items:
            if len(value) > MAX_VALUE:
                what = f"a value of {len(value)} bytes exceeds the limit of {MAX_VALUE}"
                raise StorageError(what, self._file(key), "Lower `limits.response_bytes`.")
            self._file(key)
            first.setdefault(key, value)
        with guarded(self._root, "write the cache"):
            new = dict(zip(first, self._each(self._store, list(first.items())), strict=True))
            folders = {f"{self._root}/{key[:2]}" for key in first}
            # Also those of entries that were there: their writer may not have synced them yet.
            self._each(sync_path, sorted(folders))
        return [new.pop(key, False) for key, _ in items]

    def stats(self) -> CacheStats:
        """Count entries and their bytes; one directory listing per 2 hex digits.

        Raises
        ------
        StorageError
            The directory cannot be read.
        """
        entries = size = 0
        with guarded(self._root, "read the cache"):
            for shard in os.scandir(self._root):
                if len(shard.name) != 2:
                    continue
                with os.scandir(shard.path) as files:
                    sizes = [file.stat().st_size for file in files]
                entries, size = entries + len(sizes), size + sum(sizes)
            damaged = sum(1 for _ in (self.path / "damaged").iterdir())
        return CacheStats(entries, size, damaged)

    def _file(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise StorageError(
                f"a key has 64 hex digits in lower case, got {key!r}", self._root, "Correct the key."
            )
        return f"{self._root}/{key[:2]}/{key[2:]}"

    def _each(self, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
        """Results of `function` in the order of `items`, several at a time; all have ended on return."""
        if len(items) < _MIN_PARALLEL:
            return [function(item) for item in items]
        runs = [items[start::SYNC_THREADS] for start in range(SYNC_THREADS)]
        futures = [self._pool.submit(lambda run: [function(item) for item in run], run) for run in runs]
        wait(futures)
        parts = [future.result() for future in futures]
        return [parts[index % SYNC_THREADS][index // SYNC_THREADS] for index in range(len(items))]

    def _store(self, item: tuple[str, bytes]) -> bool:
        key, value = item
        file = self._file(key)
        if os.path.exists(file):  # noqa: PTH110 (a Path costs as much as the call)
            return False
        temporary = f"{self._incoming}/{secrets.token_hex(12)}"
        write_synced(temporary, encode(key, value, self._contexts.compressor))
        try:
            return self._name(temporary, file)
        finally:
            Path(temporary).unlink(missing_ok=True)

    def _name(self, temporary: str, file: str) -> bool:
        """Give a finished file its name unless that is taken."""
        try:
            try:
                os.link(temporary, file)
            except FileNotFoundError:
                make_directory(Path(file).parent)
                os.link(temporary, file)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return self._rename(temporary, file)
        return True

    def _rename(self, temporary: str, file: str) -> bool:
        """`_name` for file systems without hard links, where a lock makes test and rename one step."""
        make_directory(Path(file).parent)
        with locked(self._lock):
            if Path(file).exists():
                return False
            Path(temporary).rename(file)
        return True

    def _quarantine(self, key: str, file: str) -> bytes | None:
        """Move a damaged entry away; its value after all if another process healed it meanwhile."""
        # A put never replaces, so under the lock what was read again is what is moved.
        with locked(self._lock):
            data = _content(file)
            if data is None:
                return None
            value = decode(key, data, self._contexts.decompressor)
            if value is not None:
                return value
            Path(file).rename(self.path / "damaged" / f"{key}.{secrets.token_hex(4)}")
        with self._counting:
            self._damaged += 1
        return None


def _content(file: str) -> bytes | None:
    """Bytes of a file, None if there is none; of a file too large for an entry no more than shows it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        parts = []
        # zstd grows incompressible data by less than 1 %.
        left = MAX_VALUE + MAX_VALUE // 64
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left, an hour later."""
    before = time.time() - _STALE_SECONDS
    for file in folder.iterdir():
        if file.name != "lock" and file.stat().st_mtime < before:
            file.unlink(missing_ok=True)
