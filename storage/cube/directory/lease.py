"""A file that is renewed by its time, and taken, taken over and withdrawn under a lock."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from evalcube.storage.cube.space import Renewed
from evalcube.storage.files import link_new, locked, make_directory, sync_path, write_new

_MOST_LEASE = 65536


class DirectoryLease:
    """The file of a lease; see `evalcube.storage.cube.space.LeaseRecord`.

    Its content never changes, and its modification time, set from the holder's clock, is the last renewal. Taking,
    taking over and withdrawing happen under an advisory lock on ``<file>.lock``, which stays. Of several processes that
    find the same lease expired, the first to get the lock replaces the file, and the others, which read it again under
    the lock, find a fresh one. The kernel frees the lock of a process that dies, so that no lock goes stale.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Renewed | None:
        """Content and modification time, both of the same file; None if there is none."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            return Renewed(file.read(_MOST_LEASE), status.st_mtime, status.st_ctime)

    def take(self, successor: Callable[[Renewed | None], Renewed]) -> HeldFile:
        """Replace the file under the lock, or make it, with its directory, where there is none.

        Raises
        ------
        OSError
            Another holds the lock for a long time, or the file system has no locks: then there can be no lease.
        """
        make_directory(self._path.parent)
        with locked(_lock_of(self._path)):
            # Read under the lock: what was read before may have been taken over since.
            found = self.read()
            try:
                return self._placed(successor(found), absent=found is None)
            except FileExistsError:
                # The link is a second guard where a mount only pretends to lock: another one was faster.
                found = self.read()
                if found is None:
                    raise
                return self._placed(successor(found), absent=False)

    def _placed(self, record: Renewed, *, absent: bool) -> HeldFile:
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
        except FileNotFoundError:
            return False
        except OSError as error:
            # What NFS says of a file that another machine replaced.
            if error.errno == errno.ESTALE:
                return False
            raise

    def renew(self, now: float, *, late: bool = False) -> bool:
        """Set the modification time, to this one: a file system's own may have too few digits to be seen to change."""
        # In time, nobody may take over, so that no lock is needed. Late, one may be taking over at this moment.
        with locked(_lock_of(self._path)) if late else nullcontext():
            mine = self.is_mine()
            if mine:
                os.utime(self._descriptor, (now, now))
            return mine

    def withdraw(self) -> None:
        """Delete the file if it is this one."""
        # Under the lock, so that nobody takes over between the question whose it is and its removal.
        with locked(_lock_of(self._path)):
            if self.is_mine():
                self._path.unlink()
                sync_path(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _lock_of(path: Path) -> Path:
    # A file of its own: the lease's file is replaced, and a lock on it would go with the old one.
    return path.with_name(f"{path.name}.lock")
