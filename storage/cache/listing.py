"""The packs of a cache in; all its entries, sorted by key and each once, out, some at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from storage.cache.folders import Folders
from storage.cache.index import Shelf
from storage.cache.packs import Columns, Handle, first_record, salt_of, tokens_in, walk
from storage.cache.sealed_index import Index, heads_of

_SHARD_ROWS = 1 << 16
_ATTEMPTS = 5


class _Held:
    """Records of a pack that has no index."""

    def __init__(self, columns: Columns) -> None:
        heads = heads_of(columns.keys)
        order = np.argsort(heads, kind="stable")
        self._heads, self._columns = heads[order], columns.take(order)

    def heads(self) -> npt.NDArray[np.uint64]:
        """As `Index.heads`."""
        return self._heads

    def columns(self, start: int, stop: int) -> Columns:
        """As `Index.columns`."""
        return self._columns.take(np.arange(start, stop))


def list_packs(folders: Folders, shelf: Shelf) -> Iterator[Columns]:
    """Entries, of each key the one that readers take; those that are known to be damaged are left out.

    Raises
    ------
    OSError
        As the operating system says.
    """
    sources = _sources(folders, shelf)
    heads = [source.heads() for _, source in sources]
    shards = max(1, sum(map(len, heads)) // _SHARD_ROWS)
    bounds = [np.uint64(shard * 2**64 // shards) for shard in range(shards)]
    cuts = [[*np.searchsorted(known, bounds).tolist(), len(known)] for known in heads]
    for shard in range(shards):
        parts = [
            _good(token, source.columns(cut[shard], cut[shard + 1]), shelf)
            for (token, source), cut in zip(sources, cuts, strict=True)
        ]
        if parts:
            yield _first_of_each(parts)


def _sources(folders: Folders, shelf: Shelf) -> list[tuple[str, Index | _Held]]:
    for attempt in range(_ATTEMPTS):
        try:
            return [(token, _source(folders, shelf, token)) for token in tokens_in(folders.names())]
        except FileNotFoundError:  # rewritten meanwhile
            if attempt == _ATTEMPTS - 1:
                raise
    return []


def _source(folders: Folders, shelf: Shelf, token: str) -> Index | _Held:
    own = shelf.own_columns(token)
    if own is not None:
        return _Held(own)
    index = Index.open(folders.index(token))
    if index is not None:
        return index
    handle = Handle(folders.pack(token))
    size, start = os.fstat(handle.descriptor).st_size, first_record(handle.descriptor)
    return _Held(Columns.of(list(walk(handle.descriptor, start, size, salt_of(token), resume=True))))


def _good(token: str, columns: Columns, shelf: Shelf) -> Columns:
    if not shelf.spoiled:
        return columns
    offsets = columns.offsets.tolist()
    return columns.take(np.array([not shelf.is_spoiled(token, offset) for offset in offsets], bool))


def _first_of_each(parts: list[Columns]) -> Columns:
    """Records by key; of equal keys the first in the order of the parts, and within a part of the offsets."""
    joined = Columns(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.times for part in parts]),
    )
    ranks = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    whole = np.ascontiguousarray(joined.keys).view("S32")[:, 0]
    order = np.lexsort((joined.offsets, ranks, whole))
    names = whole[order]
    first = np.ones(len(order), bool)
    first[1:] = names[1:] != names[:-1]
    return joined.take(order[first])
