"""The index of a pack that nobody writes any more: a file that finds the pack's records by key.

It has a header (magic, checksum of the rest, number of records, size of the pack that it covers) and columns, sorted by
key: first 8 bytes of the keys, offsets, lengths, times, other 24 bytes of the keys. It is made anew from its pack when
it is missing or damaged, and has its name only once it is whole.
"""

from __future__ import annotations

import errno
import os
import secrets
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.storage.cache.packs import Columns, OpenFile
from evalcube.storage.files import sync_path, write_new

_MAGIC = b"EVX1"
_HEADER = struct.Struct("<4sIQQ")
_UNCHECKED = 8
_CHUNK = 1 << 20
_HELD_ROWS = 1 << 16

_HEADS, _OFFSETS, _LENGTHS, _TIMES, _TAILS = range(5)
_TYPES = ("<u8", "<u8", "<u4", "<f8", "V24")
_ROW = sum(np.dtype(name).itemsize for name in _TYPES)


def heads_of(keys: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """First 8 bytes of keys of shape (n, 32), as numbers that sort as the keys do."""
    first: npt.NDArray[np.uint64] = np.ascontiguousarray(keys[:, :8]).view(">u8")[:, 0].astype(np.uint64)
    return first


def write_index(path: Path, columns: Columns, covered: int, temporaries: Path) -> None:
    """Write a pack's index; it has its name, and both are on disk, when the call returns.

    Parameters
    ----------
    covered
        Size of the pack up to which the index holds its records.
    temporaries
        Folder on the same file system for the file on its way.

    Raises
    ------
    OSError
        As the operating system says; there is no index, or the one before.
    """
    heads = heads_of(columns.keys)
    order = np.argsort(heads, kind="stable")
    tails = np.ascontiguousarray(columns.keys[order, 8:])
    parts = [
        heads[order].astype("<u8").tobytes(),
        columns.offsets[order].astype("<u8").tobytes(),
        columns.lengths[order].astype("<u4").tobytes(),
        columns.times[order].astype("<f8").tobytes(),
        tails.tobytes(),
    ]
    body = b"".join(parts)
    header = _HEADER.pack(_MAGIC, 0, len(order), covered)
    check = zlib.crc32(body, zlib.crc32(header[_UNCHECKED:]))
    # On disk before it has its name: a power cut must not leave a pack whose index is empty.
    temporary = temporaries / f"{path.name}.{secrets.token_hex(8)}"
    write_new(temporary, _HEADER.pack(_MAGIC, check, len(order), covered) + body)
    try:
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_path(path.parent)


class SealedIndex:
    """An index that passed its check; a large one is read in parts, from a file that stays open."""

    def __init__(self, handle: OpenFile, count: int, covered: int, body: bytes | None) -> None:
        self._handle = handle if body is None else None
        self._body = body or b""
        self.count = count
        self.covered = covered

    @classmethod
    def open(cls, path: Path | str) -> SealedIndex | None:
        """The index of a pack; None if it is missing or damaged.

        Raises
        ------
        OSError
            As the operating system says.
        """
        try:
            handle = OpenFile(path)
        except FileNotFoundError:
            return None
        header = os.pread(handle.descriptor, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return None
        magic, check, count, covered = _HEADER.unpack(header)
        size = count * _ROW
        if magic != _MAGIC or os.fstat(handle.descriptor).st_size != _HEADER.size + size:
            return None
        body = b"" if count <= _HELD_ROWS else None
        found = zlib.crc32(header[_UNCHECKED:])
        # All of it is read once and checked here, so that later reads of a part need no check.
        for at in range(0, size, _CHUNK):
            part = os.pread(handle.descriptor, min(_CHUNK, size - at), _HEADER.size + at)
            found = zlib.crc32(part, found)
            if body is not None:
                body += part
        return cls(handle, count, covered, body) if found == check else None

    def heads(self) -> npt.NDArray[np.uint64]:
        """First 8 bytes of all keys, sorted."""
        return self._column(_HEADS, 0, self.count)

    def offsets(self) -> npt.NDArray[np.uint64]:
        """Offsets of all records, in the order of their keys."""
        return self._column(_OFFSETS, 0, self.count)

    def columns(self, start: int = 0, stop: int | None = None) -> Columns:
        """Records `start` to `stop` in the order of their keys."""
        stop = self.count if stop is None else stop
        keys = np.empty((stop - start, 32), np.uint8)
        keys[:, :8] = self._column(_HEADS, start, stop).astype(">u8").view(np.uint8).reshape(-1, 8)
        keys[:, 8:] = self._column(_TAILS, start, stop).view(np.uint8).reshape(-1, 24)
        return Columns(
            keys,
            self._column(_OFFSETS, start, stop),
            self._column(_LENGTHS, start, stop),
            self._column(_TIMES, start, stop),
        )

    def _column(self, number: int, start: int, stop: int) -> npt.NDArray[Any]:
        kind = np.dtype(_TYPES[number])
        before = self.count * sum(np.dtype(name).itemsize for name in _TYPES[:number])
        at, size = before + start * kind.itemsize, (stop - start) * kind.itemsize
        if self._handle is None:
            return np.frombuffer(self._body, kind, stop - start, at)
        data, done = bytearray(size), 0
        with memoryview(data) as view:
            while done < size:
                count = os.preadv(self._handle.descriptor, [view[done:]], _HEADER.size + at + done)
                if count == 0:
                    raise OSError(errno.EIO, "the file became shorter while it was read")
                done += count
        return np.frombuffer(data, kind)
