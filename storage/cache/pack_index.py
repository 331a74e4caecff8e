"""Where the records of a key are, in all packs of a cache, also in those that other processes write now.

Each object reads the sealed indexes, and the packs that have none yet, once, and then only what is new.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.key_index import MOST_ROWS, KeyIndex, Location, Pack, Part
from evalcube.storage.cache.packs import (
    PACK_MAGIC,
    Columns,
    OpenFile,
    PackRecord,
    SealedIndex,
    first_record,
    intact_records,
    read_content,
    tokens_in,
    walk,
)
from evalcube.storage.processes import is_abandoned

if TYPE_CHECKING:
    from evalcube.storage.cache.writer import PackWriter

_OPEN_FILES = 64
_SETTLED_SECONDS = 2.0


class PackIndex:
    """Finds records; threads may share it.

    Raises
    ------
    OSError
        As the operating system says.
    """

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._corrupt: set[tuple[str, int]] = set()
        self.begin()

    def begin(self) -> None:
        """Start again with nothing known, while no other thread uses the object: when it is made, or after a fork."""
        # `find` takes none of these locks, so that a reader never waits for a refresh.
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._opening = threading.Lock()
        self._own: dict[str, PackWriter | None] = {}
        self._open: deque[Pack] = deque()
        self._key_index = KeyIndex()
        self._growing: list[Pack] = []
        self._complete = False
        self.broken: set[str] = set()
        self._directory = Listing(self._folders.packs)
        self.reload()

    def find(self, key: bytes) -> list[Location]:
        """Records that may be the key's, the one to take first; of those that are known."""
        return self._key_index.find(key)

    def find_many(self, keys: bytes) -> dict[int, list[Location]]:
        """`find` for many keys, given one behind another: what is found, by their number."""
        return self._key_index.find_many(keys)

    def content(self, location: Location, key: bytes) -> bytes | None:
        """Content of a record, unverified; None if it is another key's."""
        # Taken once: another thread may close the pack's file, and this reference keeps it open until it is read.
        pack = location.pack
        handle = pack.handle or self._keep(pack, OpenFile(self._folders.pack(pack.token)))
        return read_content(handle.descriptor, location.offset, key, pack.salt)

    def mark_corrupt(self, location: Location) -> bool:
        """Remember that a record is damaged; False if that was known."""
        mark = (location.pack.token, location.offset)
        with self._lock:
            new = mark not in self._corrupt
            self._corrupt.add(mark)
        return new

    def is_corrupt(self, token: str, offset: int) -> bool:
        """Whether a record was found to be damaged."""
        return (token, offset) in self._corrupt

    @property
    def corrupt(self) -> int:
        """Number of records that were found to be damaged."""
        return len(self._corrupt)

    def is_recent(self, key: bytes) -> bool:
        """Whether a key came a moment ago."""
        return key in self._key_index.recent

    def register(self, token: str) -> None:
        """A pack of this object is about to be made."""
        # Before its file exists: a refresh that found the file first would take it for another process's, and scan it.
        with self._lock:
            self._own[token] = None
            self._key_index.pack(token).own = True

    def attach_writer(self, pack: PackWriter) -> None:
        """The pack's file is there, and its writer answers for its records."""
        self._own[pack.token] = pack

    def add_records(self, token: str, keys: Sequence[bytes], offsets: Sequence[int]) -> None:
        """Records are in the pack."""
        with self._lock:
            key_index = self._key_index
            pack = key_index.pack(token)
            for key, offset in zip(keys, offsets, strict=True):
                key_index.add(pack, key, offset)

    def mark_sealed(self, token: str, size: int) -> None:
        """The pack has its index, or will never be there."""
        with self._lock:
            self._own.pop(token, None)
            pack = self._key_index.pack(token)
            pack.own, pack.indexed, pack.seen = False, True, size

    def own_columns(self, token: str) -> Columns | None:
        """Records of a pack that this object writes; None if it does not write it."""
        pack = self._own.get(token)
        return None if pack is None else pack.columns()

    def refresh(self) -> bool:
        """Take up new packs and what others have written since; True if there was anything.

        Costs, if there is nothing, opening the directory and each pack that another process writes.
        """
        with self._refreshing:
            names = self._directory.names_if_changed()
            # A pack that is gone was merged or rewritten: its records are elsewhere now, and only a new start finds
            # them all. Own packs may be registered and not made yet.
            gone = names is not None and not self._key_index.tokens.keys() <= {*tokens_in(names), *self._own}
            if gone or not self._complete:
                self._reload(self._directory.names() if names is None else names)
                return True
            return self._absorb(self._key_index, names)

    def reload(self) -> None:
        """Forget packs that are gone."""
        with self._refreshing:
            self._reload(self._directory.names())

    def _reload(self, names: set[str]) -> None:
        self.broken.clear()
        key_index, own = KeyIndex(), dict(self._own)
        for token in own:
            key_index.pack(token).own = True
        self._absorb(key_index, names)
        # Under the lock, which `add_records` takes as well: what this object writes meanwhile is in the old index or,
        # by the columns of its writer, in the new one, and so are packs that were begun or sealed during the scan.
        with self._lock:
            for token, writing in {**own, **self._own}.items():
                if writing is None:
                    continue
                pack, columns = key_index.pack(token), writing.columns()
                key_index.push([key_index.rows(pack, columns.keys, columns.offsets)])
                pack.own = token in self._own
                pack.indexed = not pack.own
            self._key_index = key_index

    def _absorb(self, key_index: KeyIndex, names: set[str] | None) -> bool:
        """Take what is new into a key index."""
        # Should reading fail, what it has read so far is in no table, and only a new start finds it again.
        self._complete = False
        if names is not None:
            with self._lock:
                for token in tokens_in(names):
                    key_index.pack(token)  # numbered in the order of names; `find` sorts by name in any case
                self._growing = [pack for pack in key_index.packs if not (pack.own or pack.indexed)]
        any_new, parts = False, []
        for pack in self._growing:
            parts += [part for part in self._new_records(key_index, pack, names) if len(part[0])]
            any_new = any_new or bool(parts)
            # Not all at once: a table is sorted in memory.
            if sum(len(part[0]) for part in parts) >= MOST_ROWS or pack is self._growing[-1]:
                with self._lock:
                    key_index.push(parts)
                parts = []
        self._complete = True
        return any_new

    def _new_records(self, key_index: KeyIndex, pack: Pack, names: set[str] | None) -> list[Part]:
        """Records of a pack that were not known."""
        try:
            handle = OpenFile(self._folders.pack(pack.token))
            parts = self._sealed_records(key_index, pack, handle, names)
        except FileNotFoundError:
            self._directory.forget()  # it is gone: the next refresh finds out where its records are
            return []
        # After the index: a pack that grows although it has one, since its writer was taken for dead, is scanned on.
        size = os.fstat(handle.descriptor).st_size
        if size > pack.seen:
            columns = Columns.of(self._scanned_records(pack, handle.descriptor, size))
            parts.append(key_index.rows(pack, columns.keys, columns.offsets))
        if not pack.indexed and any(len(part[0]) for part in parts):
            self._keep(pack, handle)  # an older one may not see what is new, on NFS
        return parts

    def _sealed_records(
        self, key_index: KeyIndex, pack: Pack, handle: OpenFile, names: set[str] | None
    ) -> list[Part]:
        """Records of an index that was not there before."""
        if names is None or f"{pack.token}.idx" not in names:
            return []
        index = SealedIndex.open(self._folders.index(pack.token))
        if index is None:
            # Its pack is scanned instead; who may write the cache makes the index anew (`DirectoryCache`).
            self.broken.add(pack.token)
            return []
        heads, locations = index.heads(), index.offsets()
        if pack.seen:
            new = locations >= pack.seen
            heads, locations = heads[new], locations[new]
        pack.seen = max(pack.seen, index.covered)
        pack.indexed = os.fstat(handle.descriptor).st_size <= index.covered
        return [(heads, locations | key_index.base(pack))]

    def _scanned_records(self, pack: Pack, descriptor: int, size: int) -> list[PackRecord]:
        start = pack.seen or first_record(descriptor)
        # The end of a pack that lives may be half written: the walk stops there, and goes on from there the next time.
        # Nobody finishes the end of one whose writer is gone. Whether that is so is asked once for each size.
        sealed = pack.token in self.broken
        if sealed or (size != pack.checked_size and is_abandoned(descriptor, PACK_MAGIC)):
            records = intact_records(descriptor, start, size, pack.salt)
        else:
            records = list(walk(descriptor, start, size, pack.salt, resume=False))
        pack.checked_size = size
        if records:
            pack.seen = records[-1].end
        return records

    def _keep(self, pack: Pack, handle: OpenFile) -> OpenFile:
        with self._opening:
            if pack.handle is None:
                self._open.append(pack)
            pack.handle = handle
            if len(self._open) > _OPEN_FILES:
                # Closed when the last reader lets go of it, not now: see `content`.
                self._open.popleft().handle = None
        return handle


class Listing:
    """The names in a directory, which is listed again only when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.forget()

    def forget(self) -> None:
        """List again in any case."""
        self._modified, self._since, self._settled = -1, 0.0, False

    def names(self) -> set[str]:
        """All names."""
        self.forget()
        return self.names_if_changed() or set()

    def names_if_changed(self) -> set[str] | None:
        """All names; None if they are surely the same as at the last call."""
        try:
            handle = OpenFile(self._path)
        except FileNotFoundError:  # somebody deleted the cache: it holds nothing
            return set()
        modified, now = os.fstat(handle.descriptor).st_mtime_ns, time.monotonic()
        if modified != self._modified:
            self._modified, self._since, self._settled = modified, now, False
        elif self._settled:
            return None
        # Two changes within one tick of the file system's clock leave the same time behind: the time is believed
        # only once it is older than any tick.
        self._settled = now - self._since > _SETTLED_SECONDS
        return set(os.listdir(handle.descriptor))  # noqa: PTH208
