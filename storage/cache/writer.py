"""What this process stores: entries appended to packs of its own, safe from a power cut after a commit.

Appends wait for no disk, and commits of several threads share their syncs.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, compress
from typing import NamedTuple

import numpy as np

from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.pack_index import PackIndex
from evalcube.storage.cache.packs import (
    PACK_MAGIC,
    Columns,
    OpenFile,
    make_record,
    new_token,
    salt_of,
    write_index,
)
from evalcube.storage.files import sync_path, write_all_at
from evalcube.storage.processes import heading, lock, this_owner

_CHUNK = 1 << 20


class PackWriter:
    """A pack of this process, open and locked. One thread at a time may append; any may sync.

    Parameters
    ----------
    token
        Its name, which must be new.
    """

    def __init__(self, folders: Folders, token: str) -> None:
        self.token = token
        self.path = folders.pack(token)
        self._index = folders.index(token)
        self._temporaries = folders.temporaries
        self._salt = salt_of(token)
        self._handle = OpenFile(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.descriptor = self._handle.descriptor
        """Of its file, which may lose its name."""
        # Before the heading is there, so that nobody sees a pack with a heading and without its lock.
        lock(self.descriptor)
        self.size = 0
        self._synced = 0
        self._named = False  # whether the folder's entry is on disk
        self._suspect = False  # whether a sync has failed, so that what the kernel calls written may not be
        self._syncing = threading.Lock()
        self._keys = bytearray()
        self._offsets = array("Q")
        self._lengths = array("I")
        self._times = array("d")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, records: Sequence[tuple[bytes, bytes]], when: float) -> list[int]:
        """Write records, keys with contents, and return their offsets; a failure leaves none of them."""
        # The heading comes with the first record, in one write: a pack without records has no owner either, and is
        # deleted after an hour (`evalcube.storage.processes`).
        first = heading(PACK_MAGIC, this_owner()) if self.size == 0 else b""
        data = [make_record(key, content, when, self._salt) for key, content in records]
        try:
            # At an offset, not at the file's position, which a fork would share with its parent.
            write_all_at(self.descriptor, b"".join((first, *data)), self.size)
        except BaseException:
            with suppress(OSError):  # the next record is written over it, and what is torn is no record
                os.ftruncate(self.descriptor, self.size)
            raise
        offsets = list(accumulate(map(len, data), initial=self.size + len(first)))
        self.size = offsets.pop()
        # The columns last, and times last of them: `columns`, called by another thread, counts by these.
        for (key, content), offset in zip(records, offsets, strict=True):
            self._keys += key
            self._offsets.append(offset)
            self._lengths.append(len(content))
            self._times.append(when)
        return offsets

    def sync(self) -> bool:
        """Have all records that were appended before the call on disk; False if somebody deleted the pack."""
        size = self.size
        # One sync at a time: those that wait find their records synced by it, and return at once.
        with self._syncing:
            if self._synced >= size:
                return True
            size = self.size  # all that came while another sync was under way shares this one
            try:
                if self._suspect:
                    self._write_again(size)
                os.fsync(self.descriptor)
                if not self._named:
                    sync_path(self.path.parent)
            except BaseException:
                self._suspect = True
                raise
            self._named, self._suspect = True, False
            # A process that took this one for dead may have rewritten the pack and deleted it: what is in a file
            # without a name is lost with this process, so that it must not count as durable.
            if os.fstat(self.descriptor).st_nlink == 0:
                return False
            self._synced = size
            return True

    def _write_again(self, size: int) -> None:
        """After a failed sync the kernel takes what it could not write for written, but still has it in memory."""
        for at in range(self._synced, size, _CHUNK):
            part = os.pread(self.descriptor, min(_CHUNK, size - at), at)
            write_all_at(self.descriptor, part, at)

    def columns(self) -> Columns:
        """All records."""
        count = len(self._times)  # the last column that an append writes to
        return Columns(
            np.frombuffer(bytes(self._keys[: 32 * count]), np.uint8).reshape(-1, 32),
            np.array(self._offsets[:count], np.uint64),
            np.array(self._lengths[:count], np.uint32),
            np.array(self._times[:count], np.float64),
        )

    def seal(self, is_corrupt: Callable[[int], bool] = lambda _: False) -> bool:
        """Sync, and write the index of all records but the corrupt ones; nothing is appended after it.

        False if somebody deleted the pack.
        """
        if not self.sync():
            return False
        columns = self.columns().without(is_corrupt)
        write_index(self._index, columns, self.size, self._temporaries)
        return True


SEAL_BYTES = 2**30
SEAL_RECORDS = 2**18
"""Size, and number of records, from which a pack is sealed and another one begun."""


class NewEntry(NamedTuple):
    """What is to be written."""

    key: bytes
    content: bytes
    unless_known: bool
    """Whether nothing is written if another thread has just put the key."""


class PackWriters:
    """Writes one pack at a time, which it makes at its first entry; threads may share it.

    Parameters
    ----------
    index
        Is notified of all that is written.
    """

    def __init__(self, folders: Folders, index: PackIndex) -> None:
        self._folders = folders
        self._index = index
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        # Reentrant: sealing may find a pack deleted, and writing that anew commits.
        self._sealing = threading.RLock()
        self._pack: PackWriter | None = None
        self._full: list[PackWriter] = []

    def detach_from_parent(self) -> None:
        """Leave a parent's packs to it: a fork has copies of its locks, its entries and its files."""
        # Asked at each call, since a process id is cheap, and hooks on fork run where threads hold these locks.
        if self._pid != os.getpid():
            self._begin()
            self._index.begin()

    def append(self, *entries: NewEntry) -> list[bool]:
        """Write entries in one go, visible to all when the call returns; a failure leaves nothing of them."""
        with self._lock:
            # Asked again under the lock: another thread may have put a key since the caller found nothing.
            first, written = set(), []
            for entry in entries:
                there = entry.unless_known and self._index.is_recent(entry.key)
                written.append(entry.key not in first and not there)
                first.add(entry.key)
            records = [(entry.key, entry.content) for entry in compress(entries, written)]
            if not records:
                return written
            if self._pack is None:
                self._pack = self._new_pack()
            pack = self._pack
            self._index.add_records(
                pack.token, [key for key, _ in records], pack.append(records, time.time())
            )
            much = pack.size > 2 * SEAL_BYTES or len(pack) > 2 * SEAL_RECORDS
        if much:  # nobody commits
            self.commit()
        return written

    def commit(self) -> None:
        """Have all that was appended before the call on disk."""
        self.detach_from_parent()
        # The lock is not held while disks are waited for, so that appends go on.
        with self._lock:
            packs = [*self._full, *filter(None, [self._pack])]
        for pack in packs:
            if not pack.sync():
                self._move(pack)
            elif pack is self._pack and (pack.size > SEAL_BYTES or len(pack) > SEAL_RECORDS):
                self._retire(pack)
                with suppress(OSError):  # `close` tries again and says so
                    self._seal()

    def close(self) -> None:
        """Commit, and write the indexes that readers find entries by; usable again after it."""
        self.detach_from_parent()
        self.commit()
        self._retire(self._pack)
        self._seal()

    def _new_pack(self) -> PackWriter:
        token = new_token()
        # Registered first, so that no refresh takes the file for another process's before it is known as own.
        self._index.register(token)
        try:
            pack = PackWriter(self._folders, token)
        except BaseException:
            self._index.mark_sealed(token, 0)
            raise
        self._index.attach_writer(pack)
        return pack

    def _retire(self, pack: PackWriter | None) -> None:
        with self._lock:
            if pack is not None and pack is self._pack:
                self._full.append(pack)
                self._pack = None

    def _seal(self) -> None:
        with self._sealing:
            while self._full:
                pack = self._full[0]
                if pack.seal(partial(self._index.is_corrupt, pack.token)):
                    self._index.mark_sealed(pack.token, pack.size)
                    self._full.remove(pack)
                else:
                    self._move(pack)

    def _move(self, pack: PackWriter) -> None:
        """Write a pack anew whose file is gone: somebody took this process for dead, and rewrote its packs."""
        self._retire(pack)
        with self._lock:
            if pack not in self._full:
                return
            self._full.remove(pack)
            self._index.mark_sealed(pack.token, pack.size)
        # Also what was committed: whoever deleted the pack copied it before, but perhaps without the newest records.
        try:
            for key, content, _ in pack.columns().contents(pack.descriptor):
                self.append(NewEntry(key, content, unless_known=False))
        except BaseException:
            with self._lock:  # the next commit tries again, as some of it is in no file with a name
                self._full.append(pack)
            raise
        self.commit()
