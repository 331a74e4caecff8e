"""Files and directories that are whole and on disk when a call returns, and paths that stay inside of a directory."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from evalcube.storage.errors import CubeDamagedError

SYNC_THREADS = 4
"""Measured on ext4, small files written and synced in batches of 64: 0.35 ms each with 1 thread and 0.2 ms
with 4 on an idle disk; 6.7 ms with 1, 0.8 ms with 4 and 0.5 ms with 8 beside other writers; 8 cost more
processor time."""

_SHARED = stat.S_ISGID | stat.S_IWGRP
"""The mode of a folder of a group: what is made in it is the group's, who may write there."""
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def sync_path(path: Path | str) -> None:
    """Wait until a file's content, or a directory's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_paths(paths: Iterable[Path | str]) -> None:
    """`sync_path` for many, several at a time, so that they share the file system's commits."""
    # A task for each path would cost more than the path; threads may share a list's iterator.
    pending = iter([*paths])
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(lambda _: [*map(sync_path, pending)], range(SYNC_THREADS)))


def sync_tree(root: Path) -> None:
    """Wait until everything below `root`, and `root` itself, is on disk."""
    sync_paths(f"{folder}/{name}" for folder, _, names in os.walk(root) for name in ("", *names))


def share(path: Path | str, descriptor: int | None = None) -> None:
    """Let the group of a shared folder do with something new in it what its owner may, whatever the umask is.

    As git does in repositories that are shared with a group. A folder is shared if the group may write in it and its
    set-group-ID bit gives what is made there to the group; nothing is changed in others, nor for anybody else.
    """
    path = Path(path)
    # Whom this fails for has written all the same: it is the colleagues who are told, as they were without this.
    with suppress(OSError):
        folder = path.parent.stat()
        if folder.st_mode & _SHARED != _SHARED:
            return
        # By descriptor: a colleague could put a link to something else under the name meanwhile.
        opened = os.open(path, _LOOK) if descriptor is None else descriptor
        try:
            status = os.fstat(opened)
            mode = stat.S_IMODE(status.st_mode)
            wanted = mode | (mode & stat.S_IRWXU) >> 3 | (stat.S_ISGID if stat.S_ISDIR(status.st_mode) else 0)
            mine = status.st_uid == os.geteuid() and status.st_gid == folder.st_gid
            if mine and wanted != mode:
                os.fchmod(opened, wanted)
        finally:
            if descriptor is None:
                os.close(opened)


def make_directory(path: Path, *, durable: bool = True) -> None:
    """Create a directory and its parents, each one's name on disk before the call returns if that is wanted."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        share(folder)
        if durable:
            sync_path(folder.parent)


def write_all_at(descriptor: int, data: bytes, offset: int = 0) -> None:
    """Write all of `data` from `offset` on; a short write is continued."""
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, offset)
        view, offset = view[count:], offset + count


def write_new(path: Path | str, data: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Create the new file `path` with `data`, its content on disk unless not `durable`; a failure leaves no file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            if mode & stat.S_IRWXG:
                share(path, descriptor)
            write_all_at(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


@contextmanager
def replaced(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file to write that takes the place of `path`, on disk, once the block has ended well.

    Others see the old or the new, also after a power cut.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        write_new(temporary, b"", mode, durable=False)
        with temporary.open("r+b") as file:
            yield file
        # The content is on disk by now: a rename that outlives a power cut must not lead to an empty file.
        sync_path(temporary)
        temporary.replace(path)
        sync_path(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def replace_synced(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Give `path` the content `data`, as `replaced` does."""
    with replaced(path, mode) as file:
        file.write(data)


def link_new(temporary: Path, path: Path) -> bool:
    """Give a file a second name, if that is free; False where there are no hard links."""
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


@contextmanager
def locking(path: Path, timeout: float = 10.0) -> Iterator[None]:
    """Hold an advisory lock on the file `path`, which is created and stays.

    The kernel frees it when its holder ends in whatever way, so that there is no stale lock to break.
    """
    # Where somebody else made the folder, a link under this name could have a file made anywhere.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        share(path, descriptor)
        deadline = time.monotonic() + timeout
        while True:
            try:
                # Not waiting in the kernel, which knows no time limit.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the lock {path.name} was not free for {timeout:g} s") from None
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


_REMEDY = (
    "The cube came with it: see where it leads, and copy what you trust into its place. The cube itself may be a "
    "link."
)


def inside(root: Path, path: Path) -> Path:
    """A path below `root`, unless it or a link leads out of `root`, or there is neither a file nor a folder.

    The root itself may be a link. Files may be missing.
    """
    top, at = root.parts, str(root)
    parts = path.parts[len(top) :]
    if path.parts[: len(top)] != top or ".." in parts:
        raise CubeDamagedError("a name in the cube leads out of it", path, _REMEDY)
    for part in parts:
        at = f"{at}/{part}"  # each chunk's path comes here, and objects for its folders would cost more than the looks
        try:
            mode = os.lstat(at).st_mode
        except OSError:  # missing: the rest is, too; any other failure meets whoever opens it
            return path
        except ValueError:  # a zero byte, or half of a character
            raise CubeDamagedError("a name in the cube is none that a file can have", root, _REMEDY) from None
        if stat.S_ISLNK(mode):
            _refuse_outside(root, Path(at))
        elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise CubeDamagedError("a part of the cube is neither a file nor a folder", at, _REMEDY)
    return path


def _refuse_outside(root: Path, link: Path) -> None:
    # Both may pass through other links, such as a scratch disk's.
    real = Path(os.path.realpath(link))
    if not real.is_relative_to(os.path.realpath(root)) or not (real.is_file() or real.is_dir()):
        raise CubeDamagedError("a part of the cube is a link that leads out of it", link, _REMEDY)
