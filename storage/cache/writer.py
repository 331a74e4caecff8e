"""What this process stores: entries appended to packs of its own, safe from a power cut after a commit.

Appends wait for no disk, and commits of several threads share their syncs.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import partial

from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.pack_index import PackIndex
from evalcube.storage.cache.pack_writer import PackWriter
from evalcube.storage.cache.packs import new_token

SEAL_BYTES = 2**30
SEAL_RECORDS = 2**18
"""Size, and number of records, from which a pack is sealed and another one begun."""


class Writer:
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

    def append(self, key: bytes, content: bytes, *, unless_known: bool) -> bool:
        """Write an entry, visible to all when the call returns; a failure leaves nothing of it.

        Parameters
        ----------
        unless_known
            Whether nothing is written if another thread has just put the key.

        Raises
        ------
        OSError
            As the operating system says.
        """
        with self._lock:
            # Asked again under the lock: another thread may have put the key since the caller found nothing.
            if unless_known and self._index.is_recent(key):
                return False
            if self._pack is None:
                self._pack = self._new_pack()
            self._index.indexed(self._pack.token, key, self._pack.append(key, content, time.time()))
            much = self._pack.size > 2 * SEAL_BYTES or len(self._pack) > 2 * SEAL_RECORDS
        if much:  # nobody commits
            self.commit()
        return True

    def commit(self) -> None:
        """Have all that was appended before the call on disk.

        Raises
        ------
        OSError
            As the operating system says; the next commit tries again.
        """
        self.detach_from_parent()
        # The lock is not held while disks are waited for, so that appends go on.
        with self._lock:
            packs = [*self._full, *([self._pack] if self._pack else [])]
        for pack in packs:
            if not pack.sync():
                self._move(pack)
            elif pack is self._pack and (pack.size > SEAL_BYTES or len(pack) > SEAL_RECORDS):
                self._retire(pack)
                with suppress(OSError):  # `close` tries again and says so
                    self._seal()

    def close(self) -> None:
        """Commit, and write the indexes that readers find entries by; usable again after it.

        Raises
        ------
        OSError
            As the operating system says; what was committed stays.
        """
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
            self._index.sealed(token, 0)
            raise
        self._index.opened(pack)
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
                    self._index.sealed(pack.token, pack.size)
                    self._full.remove(pack)
                else:
                    self._move(pack)

    def _move(self, pack: PackWriter) -> None:
        """Write a pack anew whose file is gone: somebody took this process for dead, and rewrote its packs."""
        with self._lock:
            if self._pack is pack:
                self._pack = None
            elif pack in self._full:
                self._full.remove(pack)
            else:
                return
            self._index.sealed(pack.token, pack.size)
        # Also what was committed: whoever deleted the pack copied it before, but perhaps without the newest records.
        for key, content, _ in pack.contents():
            self.append(key, content, unless_known=False)
        self.commit()
