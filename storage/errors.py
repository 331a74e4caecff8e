"""Errors of storage: each says what went wrong, where, and what to do about it.

The tree::

    StorageError
    ├── UnsupportedUrlError   an address whose form this version cannot open
    ├── NotWritableError      permissions, a read-only file system, a file where a directory is needed
    ├── DiskFullError         no space, no quota, a file size limit
    ├── CubeNotFoundError     nothing there
    ├── CubeExistsError       a cube, or something else, is already there
    ├── CubeDamagedError      there, but it cannot be read as a cube
    ├── CubeVersionError      written by a newer evalcube
    ├── CubeMismatchError     regions, arrays or sizes that do not fit the cube
    ├── LeaseHeldError        another process works on it
    └── LeaseLostError        another process took over while this one was stopped
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from evalcube import EvalcubeError


class StorageError(EvalcubeError):
    """A cube or cache that cannot be opened, read or written.

    Parameters
    ----------
    what
        The rule that was broken, with the offending value.
    where
        Path or address of the thing concerned.
    remedy
        What the reader can do, as a sentence.
    """

    def __init__(self, what: str, where: str | Path, remedy: str) -> None:
        super().__init__(f"{where}: {what}", remedy)
        self.what = what
        self.where = str(where)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel back from worker processes, and an exception is made again from its `args` by default.
        return type(self), (self.what, self.where, self.remedy)


class UnsupportedUrlError(StorageError, ValueError):
    """An address whose form this version cannot open."""


class NotWritableError(StorageError):
    """The path or address cannot be written."""


class DiskFullError(StorageError):
    """No room left for what had to be written."""


class CubeNotFoundError(StorageError):
    """There is no cube at the address."""


class CubeExistsError(StorageError):
    """The address of a new cube is taken."""


class CubeDamagedError(StorageError):
    """What is at the address cannot be read as a cube."""


class CubeVersionError(StorageError):
    """The cube was written by a newer version."""


class CubeMismatchError(StorageError):
    """A region, an array or a size does not fit the cube."""


class LeaseHeldError(StorageError):
    """Another process holds the lease."""


class LeaseLostError(StorageError):
    """The lease went to another process."""


_ROOM = "Free some space or choose a path on another disk; what was acknowledged before is safe, run again."
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would exceed the file size limit (`ulimit -f`)",
}
_NOT_WRITABLE = frozenset(
    getattr(errno, name)
    for name in "EACCES EPERM EROFS ENOTDIR EEXIST EISDIR ENAMETOOLONG ELOOP ENOENT".split()
)


def storage_error(error: OSError, path: str | Path, doing: str) -> StorageError:
    """Say what an ``OSError`` means to a user."""
    # The failing file may be one inside, such as a chunk, and helps whoever looks.
    inner = "" if error.filename in (None, str(path)) else f" ({error.filename})"
    kind: type[StorageError] = StorageError
    reason, remedy = (error.strerror or str(error)).lower(), "Check the disk or mount, then run again."
    if error.errno in _FULL:
        kind, reason, remedy = DiskFullError, _FULL[error.errno], _ROOM
    elif error.errno in _NOT_WRITABLE:
        kind, remedy = NotWritableError, "Choose another path, or see what is there and who may write it."
    elif error.errno == errno.EMFILE:
        remedy = "Raise the limit (`ulimit -n`)."
    return kind(f"cannot {doing}: {reason}{inner}", path, remedy)


@contextmanager
def guarded(path: str | Path, doing: str) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into a `StorageError` about `path`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path, doing) from error


def need_package(package: str, extra: str, thing: str, where: str) -> None:
    """Make sure that an optional package is installed."""
    try:
        is_installed = find_spec(package) is not None
    except ValueError:  # its entry in sys.modules is None
        is_installed = False
    if not is_installed:
        problem = f"{thing} here needs the package {package}, which is not installed"
        raise StorageError(problem, where, f'Install it, on workers too: pip install "evalcube[{extra}]".')
