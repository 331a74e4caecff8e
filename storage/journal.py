"""Entries of a cache that may still be in memory only in; their copy, safe from a power cut, out.

Syncing a small file costs several times what writing it does. So an entry's own file is not synced when it
is written; a batch of entries is appended to the process's journal, which is synced once. A journal is
retired, and deleted, after its entries' own files are synced: in bulk, long after, when the kernel has
written most of them anyway. A journal whose process is gone is replayed by the next one that opens the cache.

``journal/<token>.log`` has a heading, which names its process, and records: length, checksum, key, content
of the entry's file. What follows the first torn record was never acknowledged. The owner holds an advisory
lock on the file as long as it lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from storage.files import locked, make_directory, sync_file_system, sync_path, write_all_at
from storage.processes import ProcessIdentity, is_gone, machine_id, same_kernel, this_process

ROTATE_BYTES = 64 * 2**20
"""Size from which a journal is retired. Greater: more to replay after a crash; less: more files that the
kernel has not written yet when they are synced."""

FOREIGN_SECONDS = 7 * 86400.0
"""Age from which a journal of another machine, of which nothing can be known from here, is replayed."""

_MAGIC = b"EVJ1"
_HEADING = struct.Struct("<4sII")
_RECORD = struct.Struct("<II32s")
_MAX_RECORD = 66 * 2**20
_MAX_HEADING = 1 << 16
_SYNC_GROUP = 4096
_STALE_SECONDS = 3600.0
_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that writes a journal."""

    process: ProcessIdentity
    machine: str
    """Machine id, which host names that are the same everywhere are told apart by; may be empty."""


class _Log:
    """One journal file of this process, open and locked."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder, f"{secrets.token_hex(12)}.log")
        self.keys = bytearray()
        self.size = 0
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        # Before the heading is there, so that nobody sees a journal with a heading and without its lock.
        with suppress(OSError):  # a file system without locks
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def append(self, records: list[bytes]) -> bool:
        """Write and sync; False if somebody deleted the file, which then protects nothing."""
        first = self.size == 0
        data = b"".join([_heading(Owner(this_process(), machine_id())), *records] if first else records)
        # At the size that is known to be synced: what an append that failed has left is written over.
        write_all_at(self._descriptor, data, self.size)
        os.fsync(self._descriptor)
        if first:
            sync_path(self.path.parent)
        if os.fstat(self._descriptor).st_nlink == 0:
            return False
        self.size += len(data)
        for record in records:
            self.keys += record[_RECORD.size - 32 : _RECORD.size]
        return True

    def retire(self, root: str) -> None:
        """Have the entries on disk in their own files, then delete the journal."""
        sync_entries(root, (self.keys[at : at + 32].hex() for at in range(0, len(self.keys), 32)))
        self.path.unlink(missing_ok=True)
        self.drop()

    def drop(self) -> None:
        os.close(self._descriptor)


class Journal:
    """The journal of one object of one process; threads may share it.

    Parameters
    ----------
    root
        The cache's directory; the journal's own is ``journal`` in it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._folder = f"{root}/journal"
        make_directory(Path(self._folder))
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pending: list[bytes] = []
        self._waiting = 0
        self._committing = threading.Lock()
        self._log: _Log | None = None
        self._retiring = threading.Lock()
        self._full: list[_Log] = []
        self._thread: threading.Thread | None = None

    def _own(self) -> None:
        """Leave a parent's journal to it: a fork has copies of its locks, its entries and its file."""
        if self._pid != os.getpid():
            for log in (self._log, *self._full):
                if log is not None:
                    log.drop()
            self._begin()

    def remember(self, key: str, data: bytes) -> None:
        """Have an entry, whose file has its name, in the next commit; commits if very much waits."""
        self._own()
        raw = bytes.fromhex(key)
        record = _RECORD.pack(len(data), zlib.crc32(data, zlib.crc32(raw)), raw) + data
        with self._lock:
            self._pending.append(record)
            self._waiting += len(record)
            much = self._waiting > ROTATE_BYTES
        if much:
            self.commit()

    def commit(self) -> None:
        """Have all that was remembered before the call on disk; after a failure it waits for the next one.

        Raises
        ------
        OSError
            As the operating system says.
        """
        self._own()
        # Held by a commit until its sync is over: one that comes later may rely on what that one took.
        with self._committing:
            with self._lock:
                taken, self._pending, self._waiting = self._pending, [], 0
            if not taken:
                return
            try:
                self._append(taken)
            except BaseException:
                with self._lock:
                    self._pending[:0] = taken
                    self._waiting += sum(map(len, taken))
                raise
            if self._log is not None and self._log.size > ROTATE_BYTES:
                self._rotate(self._log)

    def _append(self, records: list[bytes]) -> None:
        if self._log is None:
            self._log = _Log(self._folder)
        if not self._log.append(records):
            # Somebody took this process for dead, replayed its journal and deleted it: begin another.
            self._log.drop()
            self._log = None
            self._append(records)

    def _rotate(self, log: _Log) -> None:
        """Retire in the background; not while another is retired: the journal then grows on meanwhile."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._full.append(log)
        self._log = None
        self._thread = threading.Thread(target=self._retire_quietly, name="evalcube-journal", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # too many threads, or the interpreter ends: `close` retires it
            self._thread = None

    def _retire_quietly(self) -> None:
        with suppress(OSError):  # the journal stays; the next rotation or `close` tries again and says so
            self._retire()

    def _retire(self) -> None:
        with self._retiring:
            while self._full:
                self._full[0].retire(self._root)
                self._full.pop(0)

    def close(self) -> None:
        """Commit, have all entries on disk in their own files and leave no journal; usable again after it.

        Raises
        ------
        OSError
            As the operating system says; journals that protect entries stay.
        """
        self._own()
        self.commit()
        with self._committing:
            if self._log is not None:
                self._full.append(self._log)
                self._log = None
        self._retire()


def sync_entries(root: str, keys: Iterable[str]) -> None:
    """Have the files of entries, and their names, on disk; those that are gone were taken away on purpose."""
    shards = set()
    # One call makes the kernel write all of them in bulk; after it, each sync costs a quarter as much.
    sync_file_system(root)
    for key in keys:
        try:
            sync_path(f"{root}/{key[:2]}/{key[2:]}")
        except FileNotFoundError:
            continue
        shards.add(key[:2])
    for shard in sorted(shards):
        sync_path(f"{root}/{shard}")


def recover(root: str, heal: Callable[[str, bytes], None]) -> None:
    """Replay and delete the journals of processes that are gone.

    Parameters
    ----------
    root
        The cache's directory.
    heal
        Gets the key and the content of every whole record; stores it if the entry is missing or damaged.

    Raises
    ------
    OSError
        As the operating system says; the journals that are not done stay.
    """
    folder = Path(root, "journal")
    if not any(_abandoned(path) for path in folder.glob("*.log")):
        return
    with ExitStack() as stack:
        # A second process waits for the first, so that it too finds the entries. Both at once do no harm.
        with suppress(OSError):
            stack.enter_context(locked(folder / "lock", _WAIT_SECONDS))
        for path in sorted(folder.glob("*.log")):
            if _abandoned(path):
                _replay(root, path, heal)


def _abandoned(path: Path) -> bool:
    """Tell whether a journal's process seems to be gone; its lock is not looked at."""
    file = _opened(path)
    if file is None:
        return False
    with file:
        return _gone(file, locks=True)


def _opened(path: Path, buffering: int = -1) -> BinaryIO | None:
    """A journal, open for reading and for its lock; None if it is done, or another user's."""
    try:
        return path.open("r+b", buffering=buffering)
    except (FileNotFoundError, PermissionError):
        return None


def _free(file: BinaryIO) -> bool:
    """Take the lock of a journal and tell whether its process is gone."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # it lives, on whatever machine
    except OSError:
        return _gone(file, locks=False)
    return True


def _gone(file: BinaryIO, *, locks: bool) -> bool:
    """Tell whether the process in a journal's heading has ended, False whenever that is in doubt.

    With `locks` it is enough that it may have ended, as its lock will tell.
    """
    age = time.time() - os.fstat(file.fileno()).st_mtime
    file.seek(0)
    owner, here = _owner(file), this_process()
    if owner is None:
        return age > _STALE_SECONDS  # nothing in it was ever acknowledged
    process = owner.process
    if process.boot and same_kernel(process, here):
        # Of another container of this machine only the lock can tell.
        return is_gone(process) or (locks and process.boot != here.boot)
    if process.boot and here.boot and (process.host, owner.machine) == (here.host, machine_id()):
        return True  # this machine before it started anew
    return is_gone(process) or age > FOREIGN_SECONDS


def _replay(root: str, path: Path, heal: Callable[[str, bytes], None]) -> None:
    file = _opened(path, 1 << 20)
    if file is None:
        return
    with file:
        if not _free(file):
            return
        file.seek(0)
        found = _records(file)
        while group := [_healed(heal, *record) for record in islice(found, _SYNC_GROUP)]:
            sync_entries(root, group)
        path.unlink(missing_ok=True)


def _healed(heal: Callable[[str, bytes], None], key: str, data: bytes) -> str:
    heal(key, data)
    return key


def _heading(owner: Owner) -> bytes:
    text = json.dumps({"machine": owner.machine, **asdict(owner.process)}).encode()
    return _HEADING.pack(_MAGIC, len(text), zlib.crc32(text)) + text


def _owner(file: BinaryIO) -> Owner | None:
    """Owner in a journal's heading; None if that is torn. Leaves the file at the first record."""
    head = file.read(_HEADING.size)
    if len(head) < _HEADING.size:
        return None
    magic, length, check = _HEADING.unpack(head)
    text = file.read(min(length, _MAX_HEADING))
    if magic != _MAGIC or len(text) != length or zlib.crc32(text) != check:
        return None
    try:
        fields = json.loads(text)
        return Owner(machine=fields.pop("machine"), process=ProcessIdentity(**fields))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _records(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Key and content of every record before the first torn one, one at a time."""
    if _owner(file) is None:
        return
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        length, check, raw = _RECORD.unpack(head)
        data = file.read(length) if length <= _MAX_RECORD else b""
        if len(data) != length or zlib.crc32(data, zlib.crc32(raw)) != check:
            return
        yield raw.hex(), data
