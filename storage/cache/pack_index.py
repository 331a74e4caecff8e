"""The packs of a cache in; where the records of a key are out, also those that other processes write now.

Each object reads the indexes, and the packs that have none yet, once, and then only what is new.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from storage.cache.folders import Folders, Listing
from storage.cache.key_index import KeyIndex, Location, Pack, Part
from storage.cache.owners import is_abandoned
from storage.cache.pack_writer import PackWriter
from storage.cache.packs import (
    PACK_MAGIC,
    Columns,
    OpenFile,
    Record,
    first_record,
    read_content,
    survey,
    tokens_in,
    walk,
)
from storage.cache.sealed_index import SealedIndex

_OPEN_FILES = 64


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
        """Know only what is read anew; for no other thread's eyes, as after a fork."""
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._opening = threading.Lock()
        self._own: dict[str, PackWriter | None] = {}
        self._open: deque[Pack] = deque()
        self._key_index = KeyIndex()
        self._growing: list[Pack] = []
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
        """Content of a record, unverified; None if it is another key's.

        Raises
        ------
        OSError
            `FileNotFoundError` if the pack is gone.
        """
        handle = location.pack.handle or self._open_pack(location.pack)
        return read_content(handle.descriptor, location.offset, key, location.pack.salt)

    def mark_corrupt(self, location: Location) -> bool:
        """Note that a record is damaged; False if that was known."""
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
        """A pack of this object will be there."""
        with self._lock:
            self._own[token] = None
            self._key_index.pack(token).own = True

    def opened(self, pack: PackWriter) -> None:
        """It is there."""
        self._own[pack.token] = pack

    def indexed(self, token: str, key: bytes, offset: int) -> None:
        """A record is in it."""
        with self._lock:
            key_index = self._key_index
            key_index.add(key_index.pack(token), key, offset)

    def sealed(self, token: str, size: int) -> None:
        """It is sealed, or will never be there."""
        with self._lock:
            self._own.pop(token, None)
            pack = self._key_index.pack(token)
            pack.own, pack.indexed, pack.seen = False, True, size

    def own_columns(self, token: str) -> Columns | None:
        """Records of a pack that this object writes; None if it does not write it."""
        pack = self._own.get(token)
        return None if pack is None else pack.columns()

    def refresh(self) -> bool:
        """Look for new packs and for what others have written; True if there was anything.

        Costs, if there is nothing, opening the directory and each pack that another process writes.
        """
        with self._refreshing:
            self.refreshed = time.monotonic()
            names = self._directory.changed()
            if names is not None and not self._key_index.tokens.keys() <= {*tokens_in(names), *self._own}:
                self._reload(names)
                return True
            return self._absorb(self._key_index, names)

    def reload(self) -> None:
        """Forget packs that are gone."""
        with self._refreshing:
            self.refreshed = time.monotonic()
            self._reload(self._directory.names())

    def _reload(self, names: set[str]) -> None:
        self.broken.clear()
        key_index, own = KeyIndex(), dict(self._own)
        for token in own:
            key_index.pack(token).own = True
        self._absorb(key_index, names)
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
        if names is not None:
            with self._lock:
                for token in tokens_in(names):
                    key_index.pack(token)
                self._growing = [pack for pack in key_index.packs if not (pack.own or pack.indexed)]
        parts = [part for pack in self._growing for part in self._new_records(key_index, pack, names)]
        found = [part for part in parts if len(part[0])]
        with self._lock:
            key_index.push(found)
        return bool(found)

    def _new_records(self, key_index: KeyIndex, pack: Pack, names: set[str] | None) -> list[Part]:
        """Records of a pack that were not known."""
        try:
            handle = OpenFile(self._folders.pack(pack.token))
            parts = self._sealed_records(key_index, pack, handle, names)
        except FileNotFoundError:
            self._directory.forget()  # it is gone: the next look finds out
            return []
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
            self.broken.add(pack.token)
            return []
        heads, locations = index.heads(), index.offsets()
        if pack.seen:
            new = locations >= pack.seen
            heads, locations = heads[new], locations[new]
        pack.seen = max(pack.seen, index.covered)
        pack.indexed = os.fstat(handle.descriptor).st_size <= index.covered
        return [(heads, locations | key_index.base(pack))]

    def _scanned_records(self, pack: Pack, descriptor: int, size: int) -> list[Record]:
        start = pack.seen or first_record(descriptor)
        sealed = pack.token in self.broken
        if sealed or (size != pack.checked_size and is_abandoned(descriptor, PACK_MAGIC)):
            records = survey(descriptor, start, size, pack.salt)
        else:
            records = list(walk(descriptor, start, size, pack.salt, resume=False))
        pack.checked_size = size
        if records:
            pack.seen = records[-1].end
        return records

    def _open_pack(self, pack: Pack) -> OpenFile:
        handle = OpenFile(self._folders.pack(pack.token))
        self._keep(pack, handle)
        return handle

    def _keep(self, pack: Pack, handle: OpenFile) -> None:
        with self._opening:
            if pack.handle is None:
                self._open.append(pack)
            pack.handle = handle
            if len(self._open) > _OPEN_FILES:
                self._open.popleft().handle = None
