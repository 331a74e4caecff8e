"""The response cache at an address: a directory, an object store or a Redis server, all with the same methods.

The scheme decides: a directory (a path or ``file://``), an object store (``s3://``, ``gs://``, ``az://``) or a Redis or
Valkey server (``redis://``, ``rediss://`` for TLS). Credentials come from the environment, never from the address.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from evalcube.storage.cache.compaction import join_newest
from evalcube.storage.cache.contract import Cache, CacheStats, EntryInfo, ManagedCache
from evalcube.storage.cache.directory import DirectoryCache, prepare_directory
from evalcube.storage.cache.folders import Folders, is_cache
from evalcube.storage.errors import need_package
from evalcube.storage.urls import Kind, directory_of, is_directory, kind_of, object_prefix, redis_address

__all__ = [
    "Cache",
    "CacheStats",
    "DirectoryCache",
    "EntryInfo",
    "ManagedCache",
    "find_cache",
    "open_cache",
    "prepare_cache",
]


def open_cache(url: str | Path, *, writable: bool = True) -> ManagedCache:
    """Open the cache at an address."""
    kind = kind_of(url)
    if kind is Kind.BUCKET:
        address = object_prefix(str(url))
        need_package("obstore", "objects", "a cache", address)
        from evalcube.storage.cache.objects import ObjectBackend
        from evalcube.storage.cache.remote import RemoteCache

        return RemoteCache(ObjectBackend(str(url), writable=writable), writable=writable)
    if kind is Kind.REDIS:
        address = str(redis_address(str(url)))
        need_package("redis", "redis", "a cache", address)
        from evalcube.storage.cache.redis import RedisBackend
        from evalcube.storage.cache.remote import RemoteCache

        return RemoteCache(RedisBackend(str(url), writable=writable), writable=writable)
    return DirectoryCache(directory_of(url), writable=writable)


def prepare_cache(url: str | Path) -> None:
    """Make sure that the cache at an address can be written, without reading what is in it; raises as `open_cache`."""
    if is_directory(url):
        folders = Folders(Path(directory_of(url)).absolute())
        prepare_directory(folders.root)
        # No loss where that fails: another process may be at it, or the disk be full.
        with suppress(OSError), folders.exclusive(0):
            join_newest(folders)
    else:
        open_cache(url)


def find_cache(url: str | Path) -> ManagedCache | None:
    """The cache at an address, for reading only; None if it would be a directory, and there is none."""
    if is_directory(url) and not is_cache(directory_of(url)):
        return None
    return open_cache(url, writable=False)


class ChainedCache:
    """A `storage.cache.contract.Cache`: the first one that has a key counts. What is put goes into the first one.

    Parameters
    ----------
    caches
        At least one.
    """

    def __init__(self, caches: Sequence[Cache]) -> None:
        self.caches = tuple(caches)
        """In the order in which they are asked."""
        self._first = self.caches[0]

    @property
    def damaged_count(self) -> int:
        """Entries that were found damaged."""
        return sum(cache.damaged_count for cache in self.caches)

    def get(self, key: str) -> bytes | None:
        """Value of a key; None if it is absent or damaged everywhere."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys."""
        values_by_key: dict[str, bytes] = {}
        for cache in self.caches:
            # Each is asked only for what those before it lack: a far one costs a request for each.
            lacking = [key for key in keys if key not in values_by_key]
            values = cache.get_many(lacking) if lacking else []
            pairs = zip(lacking, values, strict=True)
            values_by_key.update({key: value for key, value in pairs if value is not None})
        return [values_by_key.get(key) for key in keys]

    def put(self, key: str, value: bytes) -> bool:
        """Take a value if its key is absent."""
        return self._first.put(key, value)

    def put_all(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """`put` for many values."""
        return self._first.put_all(items)

    def commit(self) -> None:
        """Make durable what was put."""
        self._first.commit()

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values and commit."""
        return self._first.put_many(items)

    def close(self) -> None:
        """Close all of them."""
        for cache in self.caches:
            cache.close()
