"""Entries as objects of S3, GCS or Azure, through the space that cubes have there: put if absent.

An entry is ``<2 hex>/<62 hex>``; ``damaged/`` is for copies of damaged entries. Credentials come from the environment
variables that the store's own tools use.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar, cast

import obstore

from evalcube.storage.cache.contract import MOST_BYTES, EntryInfo
from evalcube.storage.cache.remote import Stored
from evalcube.storage.cube.bucket.conditions import PROBES, probe_once
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.space import Version, When
from evalcube.storage.errors import StorageError
from evalcube.storage.object_stores import store_errors
from evalcube.storage.urls import object_prefix

_T = TypeVar("_T")
_S = TypeVar("_S")

_ENTRY = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})")
_ASIDE = "damaged/"
_THREADS = 32
_STALE_SECONDS = 3600.0


class ObjectBackend:
    """An object store's prefix.

    Parameters
    ----------
    url
        ``s3://bucket/prefix``, ``gs://...`` or ``az://...``.
    writable
        True makes sure at once that the store takes objects, and only on the conditions that it is given.

    Raises
    ------
    UnsupportedUrlError
        The address is malformed or holds credentials.
    StorageError
        The store cannot be reached, refuses, or ignores a condition.
    """

    def __init__(self, url: str, *, writable: bool) -> None:
        self.address = object_prefix(url)
        self._space = Bucket(self.address)
        if writable:
            # Some stores take conditions and ignore them: two processes would overwrite each other's replies.
            probe_once(self._space.store, self.address)

    def create(self, items: Mapping[str, bytes]) -> list[bool]:
        """Store what is absent; an acknowledged object is as durable as the store makes it."""
        put = partial(self._space.put, when=When.ABSENT)
        return self._each(lambda item: put(_path(item[0]), item[1]) is not None, list(items.items()))

    def read(self, keys: Sequence[str]) -> list[Stored | None]:
        """Read entries, many at once; the version is the store's own."""
        return self._each(self._read_entry, keys)

    def replace(self, key: str, seen: Stored, content: bytes) -> bool:
        """Replace an object, if the store still has the version that was seen."""
        return self._space.put(_path(key), content, when=cast("Version", seen.version)) is not None

    def discard(self, key: str, seen: Stored) -> bool:
        """Delete what was seen. Stores have no conditional delete: whoever heals it at this instant asks again."""
        if self._read_entry(key) != seen:
            return False
        self._space.delete(_path(key))
        return True

    def copy_aside(self, key: str) -> None:
        """Copy an object to ``damaged/``, within the store."""
        with store_errors(self.address, "copy a damaged entry"):
            obstore.copy(self._space.store, _path(key), f"{_ASIDE}{key}.{secrets.token_hex(4)}")

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:
        """List the entries by key, page by page; those that are there now are older than an object that is put now."""
        return self._entries(self._clock() if there_now else math.inf)

    def _entries(self, before: float) -> Iterator[EntryInfo]:
        for meta in self._space.list_objects():
            modified = meta["last_modified"].timestamp()
            # Stores count in whole seconds: what came in the same one stays for the next time.
            if modified < before and (match := _ENTRY.fullmatch(meta["path"])):
                yield EntryInfo(match[1] + match[2], meta["size"], modified)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete objects, and copies of damaged ones under the same keys."""
        wanted = set(keys)
        copies = [path for path in self._space.list(_ASIDE) if path.removeprefix(_ASIDE)[:64] in wanted]
        self._space.delete_each([*map(_path, keys), *copies])

    def count_aside(self) -> int:
        """Number of objects below ``damaged/``."""
        return sum(1 for _ in self._space.list(_ASIDE))

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, probes and the like that killed processes left."""
        # By the store's own clock: another process may be about to use its probe at this moment.
        before = (self._clock() if delete else time.time()) - _STALE_SECONDS
        metas = (meta for folder in ("tmp/", PROBES) for meta in self._space.list_objects(folder))
        stale = [meta["path"] for meta in metas if meta["last_modified"].timestamp() < before]
        if delete:
            self._space.delete_each(stale)
        return len(stale)

    def close(self) -> None:
        """Nothing is open."""

    def _each(self, function: Callable[[_S], _T], items: Sequence[_S]) -> list[_T]:
        if len(items) < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(min(_THREADS, len(items)), thread_name_prefix="evalcube-objects") as pool:
            return list(pool.map(function, items))

    def _read_entry(self, key: str) -> Stored | None:
        # A byte more than any entry has tells one that is too large from one of the largest.
        entry = self._space.get(_path(key), MOST_BYTES + 1)
        if entry is None:
            return None
        return Stored(entry.data if entry.size <= MOST_BYTES else None, entry.version)

    def _clock(self) -> float:
        """What time it is by the store's clock, which objects have their times by; before all where nobody knows."""
        key = f"{PROBES}{secrets.token_hex(12)}"
        self._space.put(key, b"")
        now = self._space.stored_at(key)
        with suppress(StorageError):  # not everybody who may write may delete; `evalcube cache gc` finds it
            self._space.delete(key)
        return -math.inf if now is None else now


def _path(key: str) -> str:
    return f"{key[:2]}/{key[2:]}"
