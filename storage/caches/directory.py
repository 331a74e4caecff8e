"""Digests and response bytes in; the same bytes, verified, out, in this run or any later one. In a directory.

Entry ``<2 hex>/<62 hex>`` per key, ``tmp/`` for files on their way, ``damaged/`` for entries that failed their
check, ``journal/`` for what a power cut would take (see `storage.journal`). A file has the magic, a checksum
bound to its key, and a Zstandard frame. An entry never changes once it has its name, so that any number of
processes, also on NFS, need no lock to read and write.

An entry is *visible* to every process, whole, once its put has returned, and outlives the death of its
process. It is *durable*, which is to outlive a power cut too, once a commit that began later has returned.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from storage.caches.contract import CacheStats, EntryInfo, check_key, check_value
from storage.caches.folders import is_cache, list_shard, make_shards, remove_file, sweep_files
from storage.entry import MAX_VALUE, Contexts, decode, encode, is_whole, read_entry
from storage.errors import NotWritableError, StorageError, guarded
from storage.files import locked, make_directory, write_all
from storage.journal import Journal, recover

_SHARD = re.compile(r"[0-9a-f]{2}")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class DirectoryCache:
    """A cache in a directory, local or NFS; threads and processes may share it.

    Parameters
    ----------
    path
        The directory; created with its parents.
    writable
        False changes nothing: no entry is put or moved away. The directory must be a cache then.

    Raises
    ------
    NotWritableError
        It cannot be created or written.
    StorageError
        It is no cache, if it is not to be written.
    """

    def __init__(self, path: str | Path, *, writable: bool = True) -> None:
        self.path = Path(path).absolute()
        self._root = str(self.path)
        self._writable = writable
        self._lock = self.path / "tmp" / "lock"
        self._numbers = count()
        self._contexts = Contexts()
        self._counting = threading.Lock()
        self._damaged = 0
        if writable:
            self._prepare()
        elif not is_cache(self.path):
            remedy = "Check the spelling of the path; a sweep makes its cache when it runs."
            raise StorageError("there is no cache here", self.path, remedy)

    def _prepare(self) -> None:
        """Create what is missing, and finish what killed writers have begun."""
        with guarded(self.path, "create the cache"):
            for folder in ("tmp", "damaged"):
                make_directory(self.path / folder)
            if not os.access(self.path / "tmp", os.W_OK | os.X_OK):
                remedy = "Give yourself write permission, or choose another path for the cache."
                raise NotWritableError(
                    "cannot write the cache: the directory is read-only", self.path, remedy
                )
            make_shards(self.path)
            sweep_files(self.path / "tmp", delete=True)
            self._journal = Journal(self._root)
        self._incoming = str(self.path / "tmp" / secrets.token_hex(8))
        with guarded(self.path, "recover the cache after a crash"):
            recover(self._root, self._heal)
        # The journal, not the cache: what is to be done at the end must not keep the cache alive.
        weakref.finalize(self, _close_quietly, self._journal)

    @property
    def damaged(self) -> int:
        """Entries that this object found damaged and moved to ``damaged/``."""
        return self._damaged

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys."""
        return [self.get(key) for key in keys]

    def contains(self, key: str) -> bool:
        """Tell whether the key has an entry; it is not verified."""
        return os.path.exists(self._file(key))  # noqa: PTH110 (a Path costs as much as the call)

    def get(self, key: str) -> bytes | None:
        """Value of a key.

        Parameters
        ----------
        key
            64 hex digits in lower case.

        Returns
        -------
        bytes or None
            None if it is absent, or damaged: then the file was moved to ``damaged/`` and counted, so that the
            next put heals it.

        Raises
        ------
        StorageError
            The key is malformed, or the disk fails.
        """
        file = self._file(key)
        with guarded(self._root, "read the cache"):
            data = read_entry(file)
            if data is None:
                return None
            value = decode(key, data, self._contexts.decompressor)
            return self._quarantine(key, file) if value is None else value

    def put(self, key: str, value: bytes) -> bool:
        """Store a value if its key is absent; visible to all when the call returns, durable after `commit`.

        Cheap, no waiting for the disk.

        Parameters
        ----------
        key
            64 hex digits in lower case.
        value
            At most `MAX_VALUE` bytes.

        Returns
        -------
        bool
            True if the value was stored, False if the key was there; then the first value stays.

        Raises
        ------
        StorageError
            The key is malformed, the value too large, or the disk fails.
        """
        file = self._checked(key, value)
        with guarded(self._root, "write the cache"):
            data = encode(key, value, self._contexts.compressor)
            new = self._store(file, data)
            # The writer of one that was there may not have committed it yet, and may never.
            kept = data if new else read_entry(file)
            if kept is not None and (new or is_whole(key, kept)):
                self._journal.remember(key, kept)
        return new

    def commit(self) -> None:
        """Make durable what this object put before the call; waits for the disk once, however much it is.

        Any number of threads may put and commit meanwhile.

        Raises
        ------
        StorageError
            The disk fails or is full; the entries stay visible, and the next commit tries all of them again.
        """
        if self._writable:
            with guarded(self._root, "write the cache's journal"):
                self._journal.commit()

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values and commit; all are durable when the call returns.

        Parameters
        ----------
        items
            Pairs of key and value, as for `put`.

        Returns
        -------
        list of bool
            What `put` returned for each.

        Raises
        ------
        StorageError
            A key is malformed or a value too large (nothing is stored), or the disk fails (some may be).
        """
        for key, value in items:
            self._checked(key, value)
        stored = [self.put(key, value) for key, value in items]
        self.commit()
        return stored

    def close(self) -> None:
        """Commit, then have each entry on disk in its own file and delete the journal.

        Without it that is done when the object is collected or the interpreter ends, or, should the process
        die before, by the next one that opens the cache. Takes about 0.1 ms for each of the last entries that
        were put, at most some 10 s. A put after it is allowed and begins another journal.

        Raises
        ------
        StorageError
            The disk fails or is full.
        """
        if self._writable:
            with guarded(self._root, "write the cache"):
                self._journal.close()

    def stats(self) -> CacheStats:
        """Count entries and their bytes; one directory listing per 2 hex digits.

        Raises
        ------
        StorageError
            The directory cannot be read.
        """
        entries = size = 0
        for entry in self.entries():
            entries, size = entries + 1, size + entry.size
        with guarded(self._root, "read the cache"):
            damaged = sum(1 for _ in (self.path / "damaged").iterdir())
            journals = sum(1 for _ in self.path.glob("journal/*.log"))
        return CacheStats(entries, size, damaged, journals)

    def entries(self) -> Iterator[EntryInfo]:
        """List the entries by key; holds those of one first byte in memory.

        Raises
        ------
        StorageError
            The directory cannot be read.
        """
        with guarded(self._root, "read the cache"):
            shards = sorted(name for name in os.listdir(self._root) if _SHARD.fullmatch(name))  # noqa: PTH208
        for shard in shards:
            with guarded(self._root, "read the cache"):
                found = list_shard(f"{self._root}/{shard}", shard)
            yield from found

    def contents(self, keys: Sequence[str]) -> list[bytes | None]:
        """What is in each entry's file, unverified; None where there is none.

        Raises
        ------
        StorageError
            A key is malformed, or the disk fails.
        """
        files = [self._file(key) for key in keys]
        with guarded(self._root, "read the cache"):
            return [read_entry(file) for file in files]

    def quarantine(self, key: str) -> bool:
        """Move an entry to ``damaged/`` if it is damaged; False if it is whole or absent.

        Raises
        ------
        StorageError
            The key is malformed, or the disk fails.
        """
        file, before = self._file(key), self._damaged
        with guarded(self._root, "move a damaged entry"):
            self._quarantine(key, file)
        return self._damaged > before

    def remove(self, keys: Sequence[str]) -> None:
        """Delete entries; those that are not there are passed over.

        Raises
        ------
        StorageError
            A key is malformed, or the disk fails.
        """
        files = [self._file(key) for key in keys]
        with guarded(self._root, "delete entries"):
            for file in files:
                remove_file(file)

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, temporary files of killed writers, from an hour after they were written."""
        with guarded(self._root, "look for temporary files"):
            return sweep_files(self.path / "tmp", delete=delete)

    def _file(self, key: str) -> str:
        check_key(key, self._root)
        return f"{self._root}/{key[:2]}/{key[2:]}"

    def _checked(self, key: str, value: bytes) -> str:
        """File of an entry that may be put."""
        file = self._file(key)
        check_value(value, file, MAX_VALUE)
        if not self._writable:
            raise NotWritableError("the cache was opened for reading", self._root, "Open it for writing.")
        return file

    def _temporary(self, data: bytes) -> str:
        # Measured on ext4: an O_TMPFILE and its link cost as much as this, a link and an unlink.
        temporary = f"{self._incoming}.{os.getpid()}.{next(self._numbers)}"
        descriptor = os.open(temporary, _NEW, 0o666)
        try:
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)
        except BaseException:
            remove_file(temporary)
            raise
        return temporary

    def _store(self, file: str, data: bytes) -> bool:
        temporary = self._temporary(data)
        try:
            return self._name(temporary, file)
        finally:
            remove_file(temporary)

    def _name(self, temporary: str, file: str) -> bool:
        """Give a finished file its name unless that is taken."""
        try:
            try:
                os.link(temporary, file)
            except FileNotFoundError:
                make_directory(Path(file).parent)
                os.link(temporary, file)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return self._rename(temporary, file)
        return True

    def _rename(self, temporary: str, file: str) -> bool:
        """`_name` for file systems without hard links, where a lock makes test and rename one step."""
        make_directory(Path(file).parent)
        with locked(self._lock):
            if Path(file).exists():
                return False
            Path(temporary).rename(file)
        return True

    def _heal(self, key: str, data: bytes) -> None:
        """Store an entry's content from a journal unless a whole one is there; damage is written over."""
        file = self._file(key)
        found = read_entry(file)
        if (found is not None and is_whole(key, found)) or not is_whole(key, data):
            return
        if found is None and self._store(file, data):
            return
        temporary = self._temporary(data)
        try:
            with ExitStack() as stack:
                # As in a quarantine, what was read again is what is replaced; where there are no locks, almost.
                with suppress(OSError):
                    stack.enter_context(locked(self._lock))
                found = read_entry(file)
                if found is None or not is_whole(key, found):
                    Path(temporary).replace(file)
        finally:
            remove_file(temporary)

    def _quarantine(self, key: str, file: str) -> bytes | None:
        """Move a damaged entry away; its value after all if another process healed it meanwhile."""
        if not self._writable:
            self._count_damaged()
            return None
        # A put never replaces, so under the lock what was read again is what is moved.
        with locked(self._lock):
            data = read_entry(file)
            if data is None:
                return None
            value = decode(key, data, self._contexts.decompressor)
            if value is not None:
                return value
            Path(file).rename(self.path / "damaged" / f"{key}.{secrets.token_hex(4)}")
        self._count_damaged()
        return None

    def _count_damaged(self) -> None:
        with self._counting:
            self._damaged += 1


def _close_quietly(journal: Journal) -> None:
    with suppress(OSError):  # nobody to tell: entries that were committed stay in a journal
        journal.close()
