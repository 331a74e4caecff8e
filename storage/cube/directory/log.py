"""A file that grows by lines, one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from evalcube.storage.cube.space import LogConflictError
from evalcube.storage.errors import CubeDamagedError
from evalcube.storage.files import make_directory, share, sync_path, write_all

_WINDOW = 1024
_LONGEST_LINE = 1 << 20


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
            while line := file.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    remedy = "Move the file away, and run the sweep again; its cache has the replies."
                    raise CubeDamagedError("a line is longer than any that is written", self._path, remedy)
                yield line

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

    def _opened(self) -> int:
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
