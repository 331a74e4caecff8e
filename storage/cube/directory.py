"""A cube's space in a directory, local or on NFS: each object is a file under its key.

What others may see of a file is never half of it: it is written under a name of its own, put on disk, and renamed.
Names that begin with a dot or end in ``.partial`` are such files on their way, and no objects.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storage.cube.space import Found, LogConflictError, Version, When
from storage.errors import CubeExistsError
from storage.files import (
    locked,
    make_directory,
    sync_path,
    sync_paths,
    sync_tree,
    write_all,
    write_synced,
)
from storage.processes import ProcessIdentity, is_gone, this_process

if TYPE_CHECKING:
    from zarr.abc.store import Store

_STALE_SECONDS = 3600.0
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_MOST_LEASE = 65536
_WINDOW = 1024


@dataclass(frozen=True, slots=True)
class Directory:
    """A `storage.cube.space.Space` in a directory; it need not exist yet."""

    path: Path

    @property
    def address(self) -> str:
        """The directory's path."""
        return str(self.path)

    def at(self, name: str) -> Directory:
        """A directory inside this one."""
        return Directory(self.path / name)

    def is_there(self) -> bool:
        """Whether the path exists, as whatever."""
        return self.path.exists()

    def is_writable(self) -> bool:
        """Whether files can be made in the directory."""
        return os.access(self.path, os.W_OK | os.X_OK)

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A file's content, or its first `most` bytes; None if there is none."""
        try:
            with (self.path / key).open("rb") as file:
                # Of the open file, so that content and version belong together although it may be replaced meanwhile.
                return Found(file.read(-1 if most is None else most), _version(os.fstat(file.fileno())))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def version(self, key: str) -> Version | None:
        """Which file it is, and when it was written; None if there is none."""
        try:
            return _version((self.path / key).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(
        self, key: str, data: bytes, *, when: When | Version = When.ALWAYS, durable: bool = True
    ) -> Version | None:
        """Give a file its content in one step; see `storage.cube.space.Space.put`."""
        path = self.path / key
        if path.parent != self.path and not path.parent.is_dir():
            # Not the space itself: whoever has deleted a cube does not want its folder back with one record in it.
            self.path.stat()
            make_directory(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        if durable:
            write_synced(temporary, data)
        else:
            temporary.write_bytes(data)
        try:
            # Taken before the file has its name: from then on others may replace it. A rename changes neither of both.
            version = _version(temporary.stat())
            if not self._name(temporary, path, when):
                return None
        finally:
            temporary.unlink(missing_ok=True)
        if durable:
            sync_path(path.parent)
        return version

    def _name(self, temporary: Path, path: Path, when: When | Version) -> bool:
        """Give a file that is on its way its name, if the condition holds."""
        if when is When.ALWAYS:
            temporary.replace(path)
            return True
        if when is When.ABSENT:
            try:
                # A rename would replace what another one put a moment ago; a hard link fails then.
                if _linked(temporary, path):
                    return True
            except FileExistsError:
                return False
        # No system call replaces a file only if it is a certain one. So all who put on a condition take a lock, which
        # the kernel frees if they are killed.
        with locked(path.with_name(f".{path.name}.lock")):
            found = self.version(path.relative_to(self.path).as_posix())
            if found != (None if when is When.ABSENT else when):
                return False
            temporary.replace(path)
            return True

    def delete(self, key: str, *, durable: bool = True) -> None:
        """Delete a file, if it is there."""
        path = self.path / key
        try:
            path.unlink()
        except FileNotFoundError:
            return
        if durable:
            sync_path(path.parent)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Files below a folder, by their keys, in no order."""
        folders = [prefix]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(self.path / folder))
            except (FileNotFoundError, NotADirectoryError):  # also one that somebody cleared meanwhile
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}{entry.name}/")
                elif not entry.name.startswith(".") and not entry.name.endswith(".partial"):
                    yield folder + entry.name

    def clear(self, prefix: str) -> None:
        """Delete a folder with all that is in it, as far as that is possible."""
        shutil.rmtree(self.path / prefix, ignore_errors=True)

    def sync(self, keys: Iterable[str]) -> None:
        """Wait until files are on disk, and the entries of the folders that lead to them."""
        paths: set[Path] = set()
        for key in keys:
            path = self.path / key
            if not key.endswith("/"):
                paths.add(path)
                # An object at the top is renamed into the directory itself; for those below, it does not change.
                paths.add(path.parent)
            elif path.is_dir():
                paths.add(path)
            paths.update(parent for parent in path.parents if self.path in parent.parents)
        # In any order: nothing is acknowledged before all of them are on disk.
        sync_paths(sorted(paths, reverse=True))

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of a directory, which writes a file under another name and renames it."""
        from zarr.storage import LocalStore  # takes a while, and ledgers and leases need none

        return LocalStore(self.path, read_only=read_only)

    def create(self, build: Callable[[Store], None]) -> None:
        """Make the directory beside its place, put it on disk, rename it: a kill leaves no half cube.

        Raises
        ------
        CubeExistsError
            The path is taken.
        """
        path = self.path
        make_directory(path.parent)
        _sweep_creations(path)
        _refuse_taken(path)
        temporary = _temporary(path)
        try:
            build(Directory(temporary).zarr())
            # Before the rename: a power cut after it must not find a cube with empty files.
            sync_tree(temporary)
            _publish(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Count, or delete, temporary files of killed writers, from an age that no living writer's has."""
        stale = [file for file in self._partial_files(prefixes) if _age(file) > older_than]
        for file in stale if delete else ():
            file.unlink(missing_ok=True)  # another one may sweep at the same time
        return len(stale)

    def _partial_files(self, prefixes: Iterable[str]) -> Iterator[Path]:
        yield from self.path.glob("*.partial")
        for prefix in prefixes:
            yield from (self.path / prefix).rglob("*.partial")

    def log(self, key: str) -> DirectoryLog:
        """A file that grows by lines."""
        return DirectoryLog(self.path / key)

    def lease(self, key: str) -> DirectoryLease:
        """A lease's file."""
        return DirectoryLease(self.path / key)


class DirectoryLog:
    """A file of lines; see `storage.cube.space.Log`. It has one end that counts: the last line break."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._end = 0

    def lines(self) -> Iterator[bytes]:
        """All lines; a torn last one comes without its line break, and stays where it is."""
        try:
            file = self._path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return
        with file:
            yield from file

    def append(self, line: bytes) -> None:
        """Add a line; it is on disk on return, and a failure leaves the file as it was.

        Raises
        ------
        LogConflictError
            The file has grown since this object wrote its last line.
        """
        descriptor = self._opened()
        # Its writer holds the lease, so that nobody else appends: this notices one who lost it and did not see that.
        if os.fstat(descriptor).st_size != self._end:
            raise LogConflictError
        try:
            os.lseek(descriptor, self._end, os.SEEK_SET)
            write_all(descriptor, line)
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

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.close()

    def _opened(self) -> int:
        """Descriptor for appending, any torn last line cut off."""
        if self._descriptor is None:
            make_directory(self._path.parent)
            new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if new:
                    # The name of a new file is on disk with its folder only.
                    sync_path(self._path.parent)
                size = os.fstat(descriptor).st_size
                self._end = _whole(descriptor, size)
                if self._end != size:
                    # On disk before an append: after a power cut a new line must not follow a torn one.
                    os.ftruncate(descriptor, self._end)
                    os.fsync(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
        return self._descriptor


class DirectoryLease:
    """The file of a lease; see `storage.cube.space.LeaseRecord`.

    Its content never changes, and its modification time, set from the holder's clock, is the last renewal. Taking,
    taking over and withdrawing happen under an advisory lock on ``<file>.lock``, which stays. Of several processes that
    find the same lease expired, the first to get the lock replaces the file, and the others, which read it again under
    the lock, find a fresh one. The kernel frees the lock of a process that dies, so that no lock goes stale.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[bytes, float] | None:
        """Content and modification time, both of the same file; None if there is none."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_MOST_LEASE), os.fstat(descriptor).st_mtime

    @contextmanager
    def alone(self, *, create: bool = False) -> Iterator[None]:
        """Hold the lock; `create` makes a directory that is missing.

        Raises
        ------
        OSError
            Another holds it for a long time, or the file system has no locks: then there can be no lease.
        """
        if create:
            make_directory(self._path.parent)
        # A file of its own: the lease's file is replaced, and a lock on it would go with the old one.
        with locked(self._path.with_name(f"{self._path.name}.lock")):
            yield

    def take(self, data: bytes, now: float, *, absent: bool) -> HeldFile:
        """Put a new file in place, by a hard link where there was none."""
        path = self._path
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        write_synced(temporary, data)
        try:
            # Opened under a name that only this process knows: whatever becomes of the lease's name, this is ours.
            descriptor = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.utime(descriptor, (now, now))
                # The link is a second guard where a mount only pretends to lock.
                if not absent or not _linked(temporary, path):
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

    def renew(self, now: float) -> None:
        """Set the modification time, from this clock: a server's own may differ from those of its clients."""
        os.utime(self._descriptor, (now, now))

    def withdraw(self) -> None:
        """Delete the file."""
        self._path.unlink()
        sync_path(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _version(status: os.stat_result) -> Version:
    # Two files that exist at the same time have two inodes; one that is freed may come again, at a later time.
    return Version(f"{status.st_ino:x}.{status.st_mtime_ns:x}")


def _whole(descriptor: int, size: int) -> int:
    """Offset after the last line break among the first `size` bytes."""
    end = size
    while end > 0:
        start = max(0, end - _WINDOW)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _linked(temporary: Path, path: Path) -> bool:
    """Give a file a second name, if that is free: `FileExistsError` if not; False where there are no hard links."""
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _machine(process: ProcessIdentity) -> str:
    return hashlib.blake2b(f"{process.host} {process.boot}".encode(), digest_size=6).hexdigest()


def _temporary(path: Path) -> Path:
    """A name beside `path` that says who makes it, so that others can find out whether that process is gone."""
    me = this_process()
    mark = f"{_machine(me)}-{me.pid}-{me.start}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name}.{mark}.creating")


def _publish(temporary: Path, path: Path) -> None:
    # Renaming onto a directory works only if that is empty, so that of two creators one wins.
    try:
        temporary.rename(path)
    except OSError:
        _refuse_taken(path)
        raise
    sync_path(path.parent)


def _refuse_taken(path: Path) -> None:
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return
    kind = "a cube" if (path / "zarr.json").exists() else "something else"
    raise CubeExistsError(
        f"cannot create the cube: {kind} is already there",
        path,
        "Open it, move it away, or choose another path.",
    )


def _sweep_creations(path: Path) -> None:
    """Remove what killed creations of this cube left: their process is gone, or they are an hour old."""
    me = this_process()
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.creating"):
        machine, *numbers = stale.name.removesuffix(".creating").rpartition(".")[2].split("-")
        gone = False
        # Process ids mean something on their own machine only; for others, age decides.
        if machine == _machine(me) and len(numbers) == 3:
            gone = is_gone(ProcessIdentity(me.host, me.boot, int(numbers[0]), int(numbers[1])))
        if gone or _age(stale) > _STALE_SECONDS:
            shutil.rmtree(stale, ignore_errors=True)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:  # it has its name by now, or is gone
        return 0.0
