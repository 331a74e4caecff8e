"""The bytes of a pack: records, how they are found again when some are torn or damaged, and the index of a whole pack.

A pack has a heading (see `evalcube.storage.processes`) and records. Each record has a header of 48 bytes, with a
checksum of the rest of it, length of the content, time and key, and then the content of an entry, with a checksum of
its own. So a damaged content hides no other record. After a damaged header, the next whole one is searched for; the
checksum of headers begins with the pack's name, which no reply can know, so that no reply can pass for a record.

The index of a pack that nobody writes any more has a header (magic, checksum of the rest, number of records, size of
the pack that it covers) and columns, sorted by key: first 8 bytes of the keys, offsets, lengths, times, other 24 bytes
of the keys. It is made anew from its pack when it is missing or damaged, and has its name only once it is whole.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalcube.storage.cache.contract import MAGIC, MOST_BYTES, is_whole
from evalcube.storage.files import share, sync_path, write_new
from evalcube.storage.processes import read_heading

PACK_MAGIC = b"EVP1"
PACK_NAME = re.compile(r"([0-9a-f]{32})\.pack")

_CHECK = struct.Struct("<I")
_FIELDS = struct.Struct("<Id32s")
HEADER_BYTES = _CHECK.size + _FIELDS.size
_BLOCK = 1 << 20
_FIRST_READ = 4096


class PackRecord(NamedTuple):
    """Where a record is, and what its header says."""

    key: bytes
    offset: int
    length: int
    """Of its content."""
    when: float
    """Seconds since the epoch."""

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + HEADER_BYTES + self.length


@dataclass(frozen=True, slots=True)
class Columns:
    """Many records, a column for each field."""

    keys: npt.NDArray[np.uint8]
    """Of shape (records, 32)."""
    offsets: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint32]
    times: npt.NDArray[np.float64]

    @classmethod
    def of(cls, records: list[PackRecord]) -> Columns:
        """Columns of records."""
        return cls(
            np.frombuffer(b"".join(record.key for record in records), np.uint8).reshape(-1, 32),
            np.array([record.offset for record in records], np.uint64),
            np.array([record.length for record in records], np.uint32),
            np.array([record.when for record in records], np.float64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Columns]) -> Columns:
        """The records of several columns, one behind another."""
        names = ("keys", "offsets", "lengths", "times")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> Columns:
        """Some of the records."""
        return Columns(self.keys[rows], self.offsets[rows], self.lengths[rows], self.times[rows])

    def without(self, is_corrupt: Callable[[int], bool]) -> Columns:
        """Those whose offsets are not corrupt."""
        return self.take(np.array([not is_corrupt(offset) for offset in self.offsets.tolist()], bool))

    def sort_by_head(self) -> Columns:
        """The same in the order of the heads of their keys."""
        return self.take(np.argsort(heads_of(self.keys), kind="stable"))

    def heads(self) -> npt.NDArray[np.uint64]:
        """As `SealedIndex.heads`."""
        return heads_of(self.keys)

    def columns(self, start: int, stop: int) -> Columns:
        """As `SealedIndex.columns`."""
        return self.take(slice(start, stop))

    def contents(self, descriptor: int) -> Iterator[tuple[bytes, bytes, float]]:
        """Key, content and time of each record, unverified, from the pack that has them."""
        for row, (offset, length) in enumerate(
            zip(self.offsets.tolist(), self.lengths.tolist(), strict=True)
        ):
            content = os.pread(descriptor, length, offset + HEADER_BYTES)
            yield self.keys[row].tobytes(), content, float(self.times[row])

    def __len__(self) -> int:
        return len(self.offsets)


class OpenFile:
    """An open file or folder that closes when nobody uses it any more; a pipe is refused, not waited for."""

    __slots__ = ("descriptor",)

    def __init__(self, path: str | Path, flags: int = os.O_RDONLY) -> None:
        self.descriptor = -1
        # Without waiting: opening a pipe that lies under a pack's name would block until somebody writes into it.
        self.descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if flags & os.O_CREAT:
            share(path, self.descriptor)
        mode = os.fstat(self.descriptor).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "neither a file nor a folder", str(path))

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def new_token(like: str | None = None) -> str:
    """A name for a pack: names sort by time, or where `like` sorts."""
    return (like[:16] if like else f"{time.time_ns():016x}") + secrets.token_hex(8)


def tokens_in(names: Iterable[str]) -> list[str]:
    """The packs among names of files, sorted."""
    return sorted(name[:-5] for name in names if PACK_NAME.fullmatch(name))


def salt_of(token: str) -> int:
    """What the checksums of a pack's headers begin with."""
    return zlib.crc32(token.encode())


def make_record(key: bytes, content: bytes, when: float, salt: int) -> bytes:
    """A record's bytes."""
    fields = _FIELDS.pack(len(content), when, key)
    return _CHECK.pack(zlib.crc32(fields, salt)) + fields + content


def header_at(data: bytes, at: int, salt: int) -> tuple[int, float, bytes] | None:
    """Length, time and key in a header; None if it is damaged."""
    (check,) = _CHECK.unpack_from(data, at)
    if zlib.crc32(data[at + _CHECK.size : at + HEADER_BYTES], salt) != check:
        return None
    length, when, key = _FIELDS.unpack_from(data, at + _CHECK.size)
    # A checksum may be right by chance, and a wrong length would lead past whole records.
    return (length, when, key) if length <= MOST_BYTES else None


def read_content(descriptor: int, offset: int, key: bytes, salt: int) -> bytes | None:
    """Content of a key's record, unverified, some of it if the header is damaged; None if it is another key's."""
    # Most records are no longer: one call reads header and content.
    data = os.pread(descriptor, _FIRST_READ, offset)
    header = header_at(data, 0, salt) if len(data) >= HEADER_BYTES else None
    if header is None:
        return data[HEADER_BYTES:]
    # Heads of keys are 8 bytes, so that a look-up may lead to the record of another key.
    length, _, stored_key = header
    if stored_key != key:
        return None
    end = HEADER_BYTES + length
    return data[HEADER_BYTES:end] + _read_at(descriptor, end - len(data), offset + len(data))


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Bytes of a file; fewer only where it ends."""
    data = b""
    while len(data) < size and (part := os.pread(descriptor, size - len(data), offset + len(data))):
        data += part
    return data


def walk(descriptor: int, start: int, stop: int, salt: int, *, resume: bool) -> Iterator[PackRecord]:
    """Records of a part of a pack, one at a time; contents are not verified."""
    at, base, data = start, start, b""
    while at + HEADER_BYTES <= stop:
        if at + HEADER_BYTES > base + len(data):
            base, data = at, os.pread(descriptor, min(_BLOCK, stop - at), at)
            if len(data) < HEADER_BYTES:
                return
        header = header_at(data, at - base, salt)
        if header is None:
            next_offset = _next_header(descriptor, at + 1, stop, salt) if resume else None
            if next_offset is None:
                return
            at, base, data = next_offset, next_offset, b""
            continue
        record = PackRecord(header[2], at, header[0], header[1])
        # Torn by a kill, or being written at this moment.
        if record.end > stop:
            return
        yield record
        at = record.end


def records_of(path: Path, token: str) -> list[PackRecord]:
    """All records of a pack, of one that somebody writes, too."""
    handle = OpenFile(path)
    size, start = os.fstat(handle.descriptor).st_size, first_record(handle.descriptor)
    return list(walk(handle.descriptor, start, size, salt_of(token), resume=True))


def intact_records(descriptor: int, start: int, stop: int, salt: int) -> list[PackRecord]:
    """Records of a pack that nobody writes any more, without what is torn at its end."""
    records = list(walk(descriptor, start, stop, salt, resume=True))
    # From the end: what a power cut takes of a file is what was written last.
    while records and not _is_intact(descriptor, records[-1], salt):
        records.pop()
    return records


def first_record(descriptor: int) -> int:
    """Where the first record is; 0, where none is, if the heading is damaged."""
    heading = read_heading(descriptor, PACK_MAGIC)
    return 0 if heading is None else heading[1]


def _next_header(descriptor: int, at: int, stop: int, salt: int) -> int | None:
    """The next whole header: a content, which begins with its own magic, is behind it."""
    least = HEADER_BYTES + len(MAGIC)
    while len(data := os.pread(descriptor, min(_BLOCK, stop - at), at)) >= least:
        magic_at = data.find(MAGIC, HEADER_BYTES)
        while magic_at >= 0:
            if header_at(data, magic_at - HEADER_BYTES, salt) is not None:
                return at + magic_at - HEADER_BYTES
            magic_at = data.find(MAGIC, magic_at + 1)
        at += len(data) - least + 1
    return None


def _is_intact(descriptor: int, record: PackRecord, salt: int) -> bool:
    content = read_content(descriptor, record.offset, record.key, salt)
    return content is not None and is_whole(record.key.hex(), content)


_MAGIC = b"EVX1"
_HEADER = struct.Struct("<4sIQQ")
_UNCHECKED = 8
_CHUNK = 1 << 20

_HEADS, _OFFSETS, _LENGTHS, _TIMES, _TAILS = range(5)
_TYPES = ("<u8", "<u8", "<u4", "<f8", "V24")
_ROW = sum(np.dtype(name).itemsize for name in _TYPES)


def heads_of(keys: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """First 8 bytes of keys of shape (n, 32), as numbers that sort as the keys do."""
    first: npt.NDArray[np.uint64] = np.ascontiguousarray(keys[:, :8]).view(">u8")[:, 0].astype(np.uint64)
    return first


def write_index(path: Path, columns: Columns, covered: int, temporaries: Path) -> None:
    """Write a pack's index; it has its name, and both are on disk, when the call returns."""
    rows = columns.sort_by_head()
    parts = [
        rows.heads().astype("<u8"),
        rows.offsets.astype("<u8"),
        rows.lengths.astype("<u4"),
        rows.times.astype("<f8"),
        np.ascontiguousarray(rows.keys[:, 8:]),
    ]
    body = b"".join(part.tobytes() for part in parts)
    header = _HEADER.pack(_MAGIC, 0, len(rows), covered)
    check = zlib.crc32(body, zlib.crc32(header[_UNCHECKED:]))
    # On disk before it has its name: a power cut must not leave a pack whose index is empty.
    temporary = temporaries / f"{path.name}.{secrets.token_hex(8)}"
    write_new(temporary, _HEADER.pack(_MAGIC, check, len(rows), covered) + body)
    try:
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_path(path.parent)


class SealedIndex:
    """An index that passed its check, read in parts from a file that stays open."""

    def __init__(self, handle: OpenFile, count: int, covered: int) -> None:
        self._handle = handle
        self.count = count
        self.covered = covered

    @classmethod
    def open(cls, path: Path | str) -> SealedIndex | None:
        """The index of a pack; None if it is missing or damaged."""
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
        crc = zlib.crc32(header[_UNCHECKED:])
        # All of it is read once and checked here, so that later reads of a part need no check.
        for at in range(0, size, _CHUNK):
            crc = zlib.crc32(os.pread(handle.descriptor, min(_CHUNK, size - at), _HEADER.size + at), crc)
        return cls(handle, count, covered) if crc == check else None

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
        return Columns(keys, *(self._column(number, start, stop) for number in (_OFFSETS, _LENGTHS, _TIMES)))

    def _column(self, number: int, start: int, stop: int) -> npt.NDArray[Any]:
        kind = np.dtype(_TYPES[number])
        before = self.count * sum(np.dtype(name).itemsize for name in _TYPES[:number])
        size = (stop - start) * kind.itemsize
        data = _read_at(self._handle.descriptor, size, _HEADER.size + before + start * kind.itemsize)
        if len(data) < size:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        return np.frombuffer(data, kind)
