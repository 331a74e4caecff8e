"""What packs hold: values of keys, verified, and all entries in order. What fails its check is set aside."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import numpy as np

from evalcube.storage.cache.compaction import first_rows, unindex
from evalcube.storage.cache.contract import Contexts, decode, is_whole
from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.key_index import Location
from evalcube.storage.cache.pack_index import PackIndex
from evalcube.storage.cache.packs import Columns, SealedIndex, records_of, tokens_in
from evalcube.storage.files import write_new

_ATTEMPTS = 5
_T = TypeVar("_T")


class PackReader:
    """Reads entries; threads may share it.

    Parameters
    ----------
    writable
        Whether damaged contents are copied to ``damaged/`` and left out of indexes.
    """

    def __init__(self, folders: Folders, index: PackIndex, *, writable: bool) -> None:
        self._folders = folders
        self._index = index
        self._writable = writable
        self._contexts = Contexts()

    @property
    def damaged_count(self) -> int:
        """Records that were found to be damaged."""
        return self._index.corrupt

    def value(self, key: str, raw: bytes, locations: Sequence[Location]) -> bytes | None:
        """The first value that passes its check."""
        return self._read_with_retries(self._first_value, key, raw, locations)

    def content(self, key: str, raw: bytes, locations: Sequence[Location]) -> bytes | None:
        """The content that passes its check, if there are several, or the only one, unverified."""
        return self._read_with_retries(self._first_content, key, raw, locations)

    def holder(self, key: str, raw: bytes, locations: Sequence[Location]) -> tuple[bytes, bool] | None:
        """A whole content, and whether it is sure to outlive a power cut once this object has committed."""
        return self._read_with_retries(self._whole, key, raw, locations)

    def _read_with_retries(
        self,
        read: Callable[[str, bytes, Sequence[Location]], _T],
        key: str,
        raw: bytes,
        locations: Sequence[Location],
    ) -> _T:
        """Read, and again with what is known then if another process has just rewritten a pack."""
        for _ in range(_ATTEMPTS):
            try:
                return read(key, raw, locations)
            except OSError as error:
                # ESTALE is what NFS says of a file that another machine deleted.
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
            self._index.reload()
            locations = self._index.find(raw)
        return read(key, raw, locations)

    def _first_value(self, key: str, raw: bytes, locations: Sequence[Location]) -> bytes | None:
        for location in locations:
            content = self._index.content(location, raw)
            if content is not None:
                value = decode(key, content, self._contexts.decompressor)
                if value is not None:
                    return value
                self._set_corrupt_aside(key, location, content)
        return None

    def _first_content(self, key: str, raw: bytes, locations: Sequence[Location]) -> bytes | None:
        contents = []
        for location in locations:
            if not self._index.is_corrupt(location.pack.token, location.offset):
                content = self._index.content(location, raw)
                contents += [] if content is None else [content]
        whole = (content for content in contents if len(contents) == 1 or is_whole(key, content))
        return next(whole, contents[0] if contents else None)

    def _whole(self, key: str, raw: bytes, locations: Sequence[Location]) -> tuple[bytes, bool] | None:
        best: bytes | None = None
        for location in locations:
            content = self._index.content(location, raw)
            if content is None:
                continue
            if not is_whole(key, content):
                self._set_corrupt_aside(key, location, content)
            elif location.pack.own or location.pack.indexed:
                # A commit of this object syncs the one, and the other was synced before it got its index.
                return content, True
            else:
                best = best or content
        return None if best is None else (best, False)

    def _set_corrupt_aside(self, key: str, location: Location, content: bytes) -> None:
        """Count a damaged record, once, and set a copy aside; nobody changes a pack that another one writes."""
        pack = location.pack
        if not self._index.mark_corrupt(location) or not self._writable or not (pack.own or pack.indexed):
            return
        with suppress(FileExistsError):  # another process found it as well
            copy = f"{key}.{pack.token[-8:]}.{location.offset:x}"
            write_new(self._folders.damaged / copy, content)
        if pack.indexed:
            # While another one is at it, the record stays in the index: it is no more than found again.
            with suppress(TimeoutError), self._folders.exclusive(0):
                unindex(self._folders, pack.token, location.offset)


_SHARD_ROWS = 1 << 16
"""About how many records are compared at once; an index of no more is held in memory, and its file closed."""


def scan_packs(folders: Folders, index: PackIndex) -> Iterator[Columns]:
    """Yield the entries there are, of each key the one that readers take, without known damaged ones."""
    return _scan(_sources(folders, index), index)


def _scan(sources: list[tuple[str, SealedIndex | Columns]], index: PackIndex) -> Iterator[Columns]:
    heads = [source.heads() for _, source in sources]
    shards = max(1, sum(map(len, heads)) // _SHARD_ROWS)
    bounds = [np.uint64(shard * 2**64 // shards) for shard in range(shards)]
    cuts = [[*np.searchsorted(pack_heads, bounds).tolist(), len(pack_heads)] for pack_heads in heads]
    for shard in range(shards):
        parts = [
            source.columns(cut[shard], cut[shard + 1]).without(partial(index.is_corrupt, token))
            for (token, source), cut in zip(sources, cuts, strict=True)
        ]
        if parts:
            yield Columns.concatenate(parts).take(first_rows(parts))


def _sources(folders: Folders, index: PackIndex) -> list[tuple[str, SealedIndex | Columns]]:
    for attempt in range(_ATTEMPTS):
        try:
            return [(token, _source(folders, index, token)) for token in tokens_in(folders.names())]
        except FileNotFoundError:  # rewritten meanwhile
            if attempt == _ATTEMPTS - 1:
                raise
    return []


def _source(folders: Folders, index: PackIndex, token: str) -> SealedIndex | Columns:
    own = index.own_columns(token)
    if own is not None:
        return own.sort_by_head()
    sealed = SealedIndex.open(folders.index(token))
    if sealed is not None:
        return sealed.columns() if sealed.count <= _SHARD_ROWS else sealed
    return Columns.of(records_of(folders.pack(token), token)).sort_by_head()
