"""A file that grows by lines, and one that is renewed by its time and taken, taken over and withdrawn under a lock."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

from evalcube.storage.cube.bounds import MOST_LEASE, lines_in
from evalcube.storage.cube.space import LeaseState, LogConflictError
from evalcube.storage.files import (
    link_new,
    locking,
    make_directory,
    share,
    sync_path,
    write_all_at,
    write_new,
)


class DirectoryLease:
    """The file of a lease; see `evalcube.storage.cube.space.LeaseRecord`.

    Its content never changes, and its modification time, set from the holder's clock, is the last renewal. Taking,
    taking over and withdrawing happen under an advisory lock on ``<file>.lock``, which stays. Of several processes that
    find the same lease expired, the first to get the lock replaces the file, and the others, which read it again under
    the lock, find a fresh one. The kernel frees the lock of a process that dies, so that no lock goes stale.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> LeaseState | None:
        """Content and modification time, both of the same file; None if there is none."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            return LeaseState(file.read(MOST_LEASE), status.st_mtime, status.st_ctime)
        return None

    def take(self, successor: Callable[[LeaseState | None], LeaseState]) -> HeldFile:
        """Replace the file under the lock, or make it, with its directory, where there is none."""
        make_directory(self._path.parent)
        with locking(_lock_of(self._path)):
            # Read under the lock: what was read before may have been taken over since.
            record = self.read()
            try:
                return self._place_file(successor(record), absent=record is None)
            except FileExistsError:
                # The link is a second guard where a mount only pretends to lock: another one was faster.
                record = self.read()
                if record is None:
                    raise
                return self._place_file(successor(record), absent=False)

    def _place_file(self, record: LeaseState, *, absent: bool) -> HeldFile:
        """Put a new file in place, by a hard link where there was none."""
        path = self._path
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        write_new(temporary, record.data)
        try:
            # Opened under a name that only this process knows: whatever becomes of the lease's name, this is ours.
            descriptor = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.utime(descriptor, (record.at, record.at))
                if not absent or not link_new(temporary, path):
                    temporary.replace(path)
                sync_path(path.parent)
            except BaseException:
                os.close(descriptor)
                raise
        finally:
            temporary.unlink(missing_ok=True)
        return HeldFile(path, descriptor)


class HeldFile:
    """The file of a lease that this process holds, kept open.

    It is renewed through the descriptor, so that a holder which was stopped and wakes up late touches its own, replaced
    file and never its successor's.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def is_mine(self) -> bool:
        """Whether the lease's name still leads to the file that is open here."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError as error:
            # ESTALE is what NFS says of a file that another machine replaced.
            if error.errno in (errno.ENOENT, errno.ESTALE):
                return False
            raise

    def renew(self, now: float, *, late: bool = False) -> bool:
        """Set the modification time, to this one: a file system's own may have too few digits to be seen to change."""
        # In time, nobody may take over, so that no lock is needed. Late, one may be taking over at this moment.
        with locking(_lock_of(self._path)) if late else nullcontext():
            mine = self.is_mine()
            if mine:
                os.utime(self._descriptor, (now, now))
            return mine

    def withdraw(self) -> None:
        """Delete the file if it is this one."""
        # Under the lock, so that nobody takes over between the question whose it is and its removal.
        with locking(_lock_of(self._path)):
            if self.is_mine():
                self._path.unlink()
                sync_path(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _lock_of(path: Path) -> Path:
    # A file of its own: the lease's file is replaced, and a lock on it would go with the old one.
    return path.with_name(f"{path.name}.lock")


_WINDOW = 1024


class DirectoryLog:
    """A file of lines; see `evalcube.storage.cube.space.Log`. It has one end that counts: the last line break."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self._path, self._durable = path, durable
        self._descriptor: int | None = None
        self._end = 0

    def lines(self) -> Iterator[bytes]:
        """All lines; a torn last one comes without its line break, and stays where it is."""
        try:
            file = self._path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return
        with file:
            yield from lines_in(file, self._path)

    def append(self, line: bytes) -> None:
        """Add a line; it is on disk on return, and a failure leaves the file as it was."""
        descriptor = self._open_for_append()
        # Its writer holds the lease, so that nobody else appends: this notices one who lost it and did not see that.
        if os.fstat(descriptor).st_size != self._end:
            raise LogConflictError
        try:
            write_all_at(descriptor, line, self._end)
            if self._durable:
                os.fsync(descriptor)
        except BaseException:
            # After an interrupt as well: a line whose append did not return must not count. Closed too: should the cut
            # fail, the next append begins with searching for a torn line.
            try:
                os.ftruncate(descriptor, self._end)
            finally:
                self.close()
            raise
        self._end += len(line)

    def flush(self, older_than: float = 0.0) -> None:
        """Nothing waits: each line is on disk once it is appended."""

    def claim(self) -> None:
        """Nothing: whoever appends sees by the file's size whether another one did."""

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.close()

    def _open_for_append(self) -> int:
        """Descriptor for appending, any torn last line cut off."""
        if self._descriptor is None:
            make_directory(self._path.parent)
            new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                share(self._path, descriptor)
                if new and self._durable:
                    # The name of a new file is on disk with its folder only.
                    sync_path(self._path.parent)
                size = os.fstat(descriptor).st_size
                self._end = _end_of_lines(descriptor, size)
                if self._end != size:
                    # On disk before an append: after a power cut a new line must not follow a torn one.
                    os.ftruncate(descriptor, self._end)
                    os.fsync(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
        return self._descriptor


def _end_of_lines(descriptor: int, size: int) -> int:
    """Offset after the last line break among the first `size` bytes."""
    end = size
    while end > 0:
        start = max(0, end - _WINDOW)
        line_break = os.pread(descriptor, end - start, start).rfind(b"\n")
        if line_break >= 0:
            return start + line_break + 1
        end = start
    return 0
