"""The response cache in a local or NFS directory: append-only packs, found by an index in memory.

Entries are appended to ``packs/<token>.pack``, one file for each process that writes, which gets an index,
``packs/<token>.idx``, when it is written no more. ``tmp/`` is for files on their way, ``damaged/`` for contents that
failed their check. No process writes to another one's pack, so that any number of them, also on NFS, need no lock to
read and write.

An entry is *visible* to every process, whole, once its put has returned, and outlives the death of its process. It is
*durable*, which is to outlive a power cut too, once a commit that began later has returned.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from evalcube.storage.cache import compaction
from evalcube.storage.cache.contract import CacheStats, Contexts, EntryInfo, check_key, check_value, encode
from evalcube.storage.cache.folders import Folders, is_cache, sweep_files
from evalcube.storage.cache.key_index import Location
from evalcube.storage.cache.pack_index import PackIndex
from evalcube.storage.cache.packs import Columns, tokens_in
from evalcube.storage.cache.reader import PackReader, scan_packs
from evalcube.storage.cache.writer import NewEntry, PackWriters
from evalcube.storage.errors import NotWritableError, StorageError, guarded, storage_error
from evalcube.storage.files import make_directory

"""How old what `get_many` knows of other processes' entries may be."""


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
        self._folders = Folders(self.path)
        self._contexts = Contexts()
        # Before the index is read: what is recovered here has its index then, and needs no scan.
        if writable:
            prepare_directory(self.path)
        elif not is_cache(self.path):
            remedy = "Check the spelling of the path; a sweep makes its cache when it runs."
            raise StorageError("there is no cache here", self.path, remedy)
        with guarded(self.path, "read the cache"):
            self._index = PackIndex(self._folders)
        self._reader = PackReader(self._folders, self._index, writable=writable)
        self._writer = PackWriters(self._folders, self._index)
        if writable:
            with guarded(self.path, "recover the cache after a crash"):
                self._repair()
            # The writer, not the cache: what is to be done at the end must not keep the cache alive.
            weakref.finalize(self, _close_quietly, self._writer)

    def _repair(self) -> None:
        """Make damaged indexes anew."""
        # No lock: two processes that do so at once write equal indexes, each in one step.
        for token in self._index.broken:
            compaction.recover(self._folders, token, was_sealed=True)
        if self._index.broken:
            self._index.reload()

    @property
    def damaged_count(self) -> int:
        """Entries that this object found damaged and copied to ``damaged/``."""
        return self._reader.damaged_count

    def get(self, key: str) -> bytes | None:
        """Value of a key."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for many keys."""
        raws = self._raws(keys)
        values: list[bytes | None] = [None] * len(keys)
        with guarded(self._root, "read the cache"):
            self._writer.detach_from_parent()
            self._fill(values, keys, raws, range(len(keys)))
            if None in values:
                # A miss costs a request, a refresh some microseconds: another process may have stored the entry just
                # now. One that finds nothing new says nothing: another thread's may have found it since the look above.
                self._index.refresh()
                missing = [number for number, value in enumerate(values) if value is None]
                self._fill(values, keys, raws, missing)
        return values

    def put(self, key: str, value: bytes) -> bool:
        """Store a value if its key is absent; visible to all when the call returns, durable after `commit`.

        Cheap, no waiting for the disk.
        """
        return self.put_all([(key, value)])[0]

    def put_all(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """`put` for many values, in one write; raises as that does, before any is stored or with none of them."""
        raws = [self._check_entry(key, value) for key, value in items]
        try:  # costs less than a context manager
            self._writer.detach_from_parent()
            stored, entries = [True] * len(items), {}
            for number, (raw, (key, value)) in enumerate(zip(raws, items, strict=True)):
                locations = self._index.find(raw)
                if locations and self._is_there(key, raw, locations):
                    stored[number] = False
                else:
                    content = encode(key, value, self._contexts.compressor)
                    entries[number] = NewEntry(raw, content, unless_known=not locations)
            for number, written in zip(entries, self._writer.append(*entries.values()), strict=True):
                stored[number] = written
        except OSError as error:
            raise storage_error(error, self._root, "write the cache") from error
        return stored

    def commit(self) -> None:
        """Make durable what this object put before the call; waits for the disk once, however much it is.

        Any number of threads may put and commit meanwhile.
        """
        with guarded(self._root, "write the cache"):
            self._writer.commit()

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Put all values and commit; all are durable when the call returns."""
        stored = self.put_all(items)
        self.commit()
        return stored

    def close(self) -> None:
        """Commit, and write the index of this process's pack.

        Without it that is done when the object is collected or the interpreter ends, or, should the process
        die before, by the next one that opens the cache. A put after it is allowed and begins another pack.
        """
        with guarded(self._root, "write the cache"):
            self._writer.close()

    def stats(self) -> CacheStats:
        """Count entries and their bytes, by listing them."""
        entries = size = 0
        with guarded(self._root, "read the cache"):
            for columns in scan_packs(self._folders, self._index):
                entries, size = entries + len(columns), size + int(columns.lengths.sum())
            damaged = sum(1 for _ in self._folders.damaged.iterdir())
            names = self._folders.names()
        unindexed = sum(f"{token}.idx" not in names for token in tokens_in(names))
        return CacheStats(entries, size, damaged, unindexed)

    def entries(self, *, there_now: bool = False) -> Iterator[EntryInfo]:  # noqa: ARG002 - no others are ever listed
        """List the entries that are there now, by key; holds some ten thousand of them in memory."""
        with guarded(self._root, "read the cache"):
            # At the call, not when the first one is wanted.
            return self._entry_infos(scan_packs(self._folders, self._index))

    def _entry_infos(self, scan: Iterator[Columns]) -> Iterator[EntryInfo]:
        with guarded(self._root, "read the cache"):
            for columns in scan:
                names = columns.keys.tobytes().hex()
                rows = zip(columns.lengths.tolist(), columns.times.tolist(), strict=True)
                for row, (length, when) in enumerate(rows):
                    yield EntryInfo(names[64 * row : 64 * row + 64], length, when)

    def contents(self, keys: Sequence[str]) -> list[bytes | None]:
        """What is stored under each key, unverified unless it is there twice; None where there is nothing."""
        raws = self._raws(keys)
        with guarded(self._root, "read the cache"):
            self._writer.detach_from_parent()
            stored = [self._content(key, raw) for key, raw in zip(keys, raws, strict=True)]
            if None in stored and self._index.refresh():
                stored = [self._content(key, raw) for key, raw in zip(keys, raws, strict=True)]
        return stored

    def quarantine(self, key: str) -> bool:
        """Copy an entry to ``damaged/`` and forget it if it is damaged; False if it is whole or absent."""
        before = self.damaged_count
        return self.get(key) is None and self.damaged_count > before

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries, by writing the packs that have them anew; best many at a time."""
        raws = self._raws(keys)
        with guarded(self._root, "delete entries"):
            # The own pack gets its index first: `remove` leaves packs that are being written.
            self._writer.close()
            with self._folders.exclusive():
                compaction.recover_all(self._folders)
                left = compaction.remove(self._folders, raws, self._index.is_corrupt)
                wanted = set(keys)
                for copy in self._folders.damaged.iterdir():
                    if copy.name[:64] in wanted:
                        copy.unlink(missing_ok=True)
            self._index.reload()
        return left

    def sweep(self, *, delete: bool) -> int:
        """Count, or delete, temporary files of killed writers, from an hour after they were written.

        If they are deleted, small packs become a few large ones as well.
        """
        with guarded(self._root, "tidy up the cache"):
            count = compaction.sweep(self._folders, delete=delete)
            if delete:
                self._writer.close()
                with self._folders.exclusive():
                    compaction.merge(self._folders)
                self._index.reload()
            return count

    def _raw(self, key: str) -> bytes:
        return bytes.fromhex(check_key(key, self._root))

    def _check_entry(self, key: str, value: bytes) -> bytes:
        raw = self._raw(key)
        check_value(value, self._root)
        if not self._writable:
            raise NotWritableError("the cache was opened for reading", self._root, "Open it for writing.")
        return raw

    def _raws(self, keys: Sequence[str]) -> list[bytes]:
        return [bytes.fromhex(check_key(key, self._root)) for key in keys]

    def _content(self, key: str, raw: bytes) -> bytes | None:
        return self._reader.content(key, raw, self._index.find(raw))

    def _is_there(self, key: str, raw: bytes, locations: Sequence[Location]) -> bool:
        """Whether a key has a whole entry; a commit is to make that durable as well."""
        holder = self._reader.holder(key, raw, locations)
        if holder is None and self._index.refresh():  # damaged, and healed by another process perhaps
            holder = self._reader.holder(key, raw, self._index.find(raw))
        if holder is None:
            return False
        content, safe = holder
        if not safe:  # its writer may not have committed it yet, and may never
            self._writer.append(NewEntry(raw, content, unless_known=False))
        return True

    def _fill(
        self, values: list[bytes | None], keys: Sequence[str], raws: Sequence[bytes], numbers: Sequence[int]
    ) -> None:
        """Set the values of some of the keys, as far as they are known."""
        matches = self._index.find_many(b"".join(raws[number] for number in numbers))
        for at, locations in matches.items():
            number = numbers[at]
            values[number] = self._reader.value(keys[number], raws[number], locations)


def prepare_directory(path: Path) -> None:
    """Make a cache that can be written, and finish what killed writers have begun; its index is not read."""
    folders = Folders(path)
    with guarded(path, "create the cache"):
        for folder in (folders.temporaries, folders.damaged, folders.packs):
            make_directory(folder)
            if not os.access(folder, os.W_OK | os.X_OK):
                remedy = "Give yourself write permission, or choose another path for the cache."
                raise NotWritableError("cannot write the cache: the directory is read-only", path, remedy)
        # What a killed process left on its way was acknowledged to nobody.
        sweep_files(folders.temporaries, delete=True)
    with guarded(path, "recover the cache after a crash"):
        compaction.recover_all(folders)


def _close_quietly(writer: PackWriters) -> None:
    with suppress(OSError):  # nobody would hear of it: entries that were committed stay
        writer.close()
