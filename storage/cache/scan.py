"""All entries of a cache, sorted by key and each once, some ten thousand at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.pack_index import PackIndex
from evalcube.storage.cache.packs import Columns, OpenFile, first_record, salt_of, tokens_in, walk
from evalcube.storage.cache.sealed_index import SealedIndex, heads_of

_SHARD_ROWS = 1 << 16
_ATTEMPTS = 5


class _Held:
    """Records of a pack that has no index."""

    def __init__(self, columns: Columns) -> None:
        heads = heads_of(columns.keys)
        order = np.argsort(heads, kind="stable")
        self._heads, self._columns = heads[order], columns.take(order)

    def heads(self) -> npt.NDArray[np.uint64]:
        """As `SealedIndex.heads`."""
        return self._heads

    def columns(self, start: int, stop: int) -> Columns:
        """As `SealedIndex.columns`."""
        return self._columns.take(np.arange(start, stop))


def scan_packs(folders: Folders, index: PackIndex) -> Iterator[Columns]:
    """Entries that are there at the call, of each key the one that readers take, but for damaged ones that are known.

    Raises
    ------
    OSError
        As the operating system says.
    """
    return _scan(_sources(folders, index), index)


def _scan(sources: list[tuple[str, SealedIndex | _Held]], index: PackIndex) -> Iterator[Columns]:
    heads = [source.heads() for _, source in sources]
    shards = max(1, sum(map(len, heads)) // _SHARD_ROWS)
    bounds = [np.uint64(shard * 2**64 // shards) for shard in range(shards)]
    cuts = [[*np.searchsorted(known, bounds).tolist(), len(known)] for known in heads]
    for shard in range(shards):
        parts = [
            _good(token, source.columns(cut[shard], cut[shard + 1]), index)
            for (token, source), cut in zip(sources, cuts, strict=True)
        ]
        if parts:
            yield _first_of_each(parts)


def _sources(folders: Folders, index: PackIndex) -> list[tuple[str, SealedIndex | _Held]]:
    for attempt in range(_ATTEMPTS):
        try:
            return [(token, _source(folders, index, token)) for token in tokens_in(folders.names())]
        except FileNotFoundError:  # rewritten meanwhile
            if attempt == _ATTEMPTS - 1:
                raise
    return []


def _source(folders: Folders, index: PackIndex, token: str) -> SealedIndex | _Held:
    own = index.own_columns(token)
    if own is not None:
        return _Held(own)
    sealed = SealedIndex.open(folders.index(token))
    if sealed is not None:
        return sealed
    handle = OpenFile(folders.pack(token))
    size, start = os.fstat(handle.descriptor).st_size, first_record(handle.descriptor)
    return _Held(Columns.of(list(walk(handle.descriptor, start, size, salt_of(token), resume=True))))


def _good(token: str, columns: Columns, index: PackIndex) -> Columns:
    if not index.corrupt:
        return columns
    offsets = columns.offsets.tolist()
    return columns.take(np.array([not index.is_corrupt(token, offset) for offset in offsets], bool))


def _first_of_each(parts: list[Columns]) -> Columns:
    """Records by key; of equal keys the first in the order of the parts, and within a part of the offsets."""
    joined = Columns.joined(parts)
    ranks = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    whole = np.ascontiguousarray(joined.keys).view("S32")[:, 0]
    order = np.lexsort((joined.offsets, ranks, whole))
    names = whole[order]
    first = np.ones(len(order), bool)
    first[1:] = names[1:] != names[:-1]
    return joined.take(order[first])
