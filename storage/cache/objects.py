"""Entries as objects of S3, GCS or Azure, through obstore: put if absent.

An entry is ``<2 hex>/<62 hex>``; ``damaged/`` is for copies of damaged entries, ``tmp/`` for the probe at start.
Credentials come from the environment variables that the store's own tools use.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any, TypeVar

import obstore
from obstore import exceptions
from obstore.store import from_url

from evalcube.storage.cache.contract import EntryInfo
from evalcube.storage.cache.entry import MOST_BYTES
from evalcube.storage.cache.remote import Found
from evalcube.storage.errors import StorageError
from evalcube.storage.object_stores import RETRIES, has_no_place, translated
from evalcube.storage.urls import object_prefix

_T = TypeVar("_T")
_S = TypeVar("_S")

_ENTRY = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})")
_THREADS = 32
_STALE_SECONDS = 3600.0
_LIST_SIZE = 1000


class ObjectBackend:
    """An object store's prefix.

    Parameters
    ----------
    url
        ``s3://bucket/prefix``, ``gs://...`` or ``az://...``.
    writable
        True makes sure at once that the store takes objects, and only where there are none.

    Raises
    ------
    UnsupportedUrlError
        The address is malformed or holds credentials.
    StorageError
        The store cannot be reached, refuses, or ignores put-if-absent.
    """

    def __init__(self, url: str, *, writable: bool) -> None:
        self.address = object_prefix(url)
        with self._translated("open the cache"):
            self._store = from_url(self.address, retry_config=RETRIES)
        if writable:
            self._probe()

    def create(self, items: Mapping[str, bytes]) -> list[bool]:
        """Store what is absent; an acknowledged object is as durable as the store makes it."""
        return self._each(lambda item: self._put(_path(item[0]), item[1], "create"), list(items.items()))

    def read(self, keys: Sequence[str]) -> list[Found | None]:
        """Read entries, many at once; the version is the store's own."""
        return self._each(self._read, keys)

    def contains(self, key: str) -> bool:
        """Whether there is an object."""
        with self._translated("read the cache"):
            try:
                obstore.head(self._store, _path(key))
            except FileNotFoundError:
                return False
        return True

    def replace(self, key: str, seen: Found, content: bytes) -> bool:
        """Replace an object, if the store still has the version that was seen."""
        return self._put(_path(key), content, seen.version)

    def discard(self, key: str, seen: Found) -> bool:
        """Delete what was seen. Stores have no conditional delete: whoever heals it at this instant asks again."""
        if self._read(key) != seen:
            return False
        self._delete([_path(key)])
        return True

    def set_aside(self, key: str) -> None:
        """Copy an object to ``damaged/``, within the store."""
        with self._translated("copy a damaged entry"):
            obstore.copy(self._store, _path(key), f"damaged/{key}.{secrets.token_hex(4)}")

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:
        """List the entries by key, page by page; those that are there now are older than an object that is put now."""
        return self._entries(self._clock() if there_now else math.inf)

    def _entries(self, before: float) -> Iterator[EntryInfo]:
        for path, size, modified in self._list(None):
            # Stores count in whole seconds: what came in the same one stays for the next time.
            if modified < before and (match := _ENTRY.fullmatch(path)):
                yield EntryInfo(match[1] + match[2], size, modified)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete objects, and copies of damaged ones under the same keys."""
        self._delete([_path(key) for key in keys])
        wanted = set(keys)
        self._delete([path for path, _, _ in self._list("damaged") if path.rpartition("/")[2][:64] in wanted])

    def aside(self) -> int:
        """Number of objects below ``damaged/``."""
        return sum(1 for _ in self._list("damaged"))

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, probes that killed processes left."""
        # By the store's own clock: another process may be about to use its probe at this moment.
        before = (self._clock() if delete else time.time()) - _STALE_SECONDS
        stale = [path for path, _, modified in self._list("tmp") if modified < before]
        if delete:
            self._delete(stale)
        return len(stale)

    def close(self) -> None:
        """End the threads."""
        pool = self.__dict__.pop("_pool", None)
        if pool is not None:
            pool.shutdown()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-objects")

    def _each(self, function: Callable[[_S], _T], items: Sequence[_S]) -> list[_T]:
        if len(items) < 2:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def _put(self, path: str, content: bytes, mode: Any) -> bool:  # noqa: ANN401 - a store's version
        """Put on a condition: False if it does not hold."""
        with self._translated("write the cache"):
            try:
                obstore.put(self._store, path, content, mode=mode, use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return False
        return True

    def _read(self, key: str) -> Found | None:
        with self._translated("read the cache"):
            try:
                reply = obstore.get(self._store, _path(key))
            except FileNotFoundError as error:
                self._need_bucket(error)
                return None
            meta = reply.meta
            known = {"e_tag": meta["e_tag"], "version": meta["version"]}
            version = _Version({name: value for name, value in known.items() if value is not None})
            content = bytes(reply.bytes()) if meta["size"] <= MOST_BYTES else None
        return Found(content, version)

    def _list(self, prefix: str | None) -> Iterator[tuple[str, int, float]]:
        pages = iter(obstore.list(self._store, prefix, chunk_size=_LIST_SIZE))
        while True:
            with self._translated("list the cache"):
                page = next(pages, None)
            if page is None:
                return
            for item in page:
                yield item["path"], item["size"], item["last_modified"].timestamp()

    def _delete(self, paths: Iterable[str]) -> None:
        waiting = list(paths)
        with self._translated("delete from the cache"):
            try:
                if waiting:
                    obstore.delete(self._store, waiting)
            except FileNotFoundError:  # some stores say so of what is gone already, and stop there
                self._each(self._delete_one, waiting)

    def _delete_one(self, path: str) -> None:
        try:
            obstore.delete(self._store, path)
        except FileNotFoundError:
            return

    def _probe(self) -> None:
        """Find out whether a second put of the same name is refused, as S3, GCS and Azure do."""
        path = f"tmp/probe-{secrets.token_hex(12)}"
        # The first may be refused, too, where it was stored, its answer lost, and obstore has tried again.
        _, second = (self._put(path, text, "create") for text in (b"1", b"2"))
        with suppress(StorageError):  # not everybody who may write may delete; `evalcube cache gc` finds it
            self._delete([path])
        if second:
            raise StorageError(
                "the store ignores put-if-absent (If-None-Match), so that replies would be overwritten",
                self.address,
                "Use a store that honours it, such as S3, GCS, Azure or a current MinIO, or a directory.",
            )

    def _clock(self) -> float:
        """What time it is by the store's clock, which objects have their times by."""
        path = f"tmp/clock-{secrets.token_hex(12)}"
        self._put(path, b"", "create")
        with self._translated("read the cache"):
            now: float = obstore.head(self._store, path)["last_modified"].timestamp()
        with suppress(StorageError):
            self._delete([path])
        return now

    def _need_bucket(self, error: Exception) -> None:
        if has_no_place(error):
            raise error

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return translated(self.address, doing, "cache")


class _Version(dict[str, str]):
    """A store's version of an object: what obstore takes as the mode of a conditional put, and hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def _path(key: str) -> str:
    return f"{key[:2]}/{key[2:]}"
