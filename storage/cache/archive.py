"""A cache's entries in one file, to be moved and shared, and read back with every byte checked.

The file is a tar archive in a Zstandard frame: ``<2 hex>/<62 hex>`` for each entry, with the content that it has in a
directory, then ``evalcube-cache.json`` with their number, without which the file is torn. Both ways stream: only one
entry is in memory at a time. The reader takes regular files with such names and sizes and nothing else, so that no
archive, wherever it comes from, can name another path or fill the memory.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

import zstandard

from evalcube.storage.cache.contract import MOST_BYTES, Contexts, decode
from evalcube.storage.errors import StorageError, guarded

_FORMAT = 1
_LAST = "evalcube-cache.json"
_NAME = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})")
_BLOCK = tarfile.BLOCKSIZE
_LEVEL = 3
_WINDOW = 8 * 2**20


def write_archive(file: BinaryIO, entries: Iterable[tuple[str, bytes]]) -> int:
    """Write entries, given by key and content, in their order; equal entries give equal bytes."""
    count = 0
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with compressor.stream_writer(file, closefd=False) as stream:
        for key, content in entries:
            _write_member(stream, f"{key[:2]}/{key[2:]}", content)
            count += 1
        # Last, so that a file that was cut off anywhere lacks it.
        _write_member(stream, _LAST, json.dumps({"format": _FORMAT, "entries": count}).encode())
        stream.write(bytes(2 * _BLOCK))
    return count


def read_archive(file: BinaryIO, where: str | Path) -> Iterator[tuple[str, bytes]]:
    """Key and value of every entry, verified."""
    # Bounded, as a frame may ask for a window of gigabytes whatever it holds.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    contexts, count = Contexts(), 0
    try:
        with decompressor.stream_reader(file, closefd=False) as stream:
            while True:
                name, content = _read_member(stream, where)
                if name == _LAST:
                    _check_last(content, count, where)
                    return
                key = name.replace("/", "")
                value = decode(key, content, contexts.decompressor)
                if value is None:
                    raise _archive_error(f"the entry {key} does not pass its check", where)
                yield key, value
                count += 1
    except zstandard.ZstdError as error:
        raise _archive_error(f"it cannot be decompressed ({error})", where) from None


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """A file to read."""
    with guarded(path, "read the archive"), path.open("rb") as file:
        yield file


def _write_member(stream: IO[bytes], name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    # Neither time nor owner: equal entries give equal bytes wherever they are written.
    info.size, info.mode = len(content), 0o644
    stream.write(info.tobuf(tarfile.USTAR_FORMAT))
    stream.write(content)
    stream.write(bytes(-len(content) % _BLOCK))


def _read_member(stream: IO[bytes], where: str | Path) -> tuple[str, bytes]:
    """Name and content of the next member. `tarfile` itself would read headers of any size into memory."""
    try:
        info = tarfile.TarInfo.frombuf(_read_exactly(stream, _BLOCK, where), "ascii", "strict")
    except (tarfile.HeaderError, UnicodeError):
        raise _archive_error("it is not a tar archive, or it is truncated", where) from None
    if not info.isreg() or not (_NAME.fullmatch(info.name) or info.name == _LAST):
        raise _archive_error(f"it holds {info.name[:80]!r}, which is no entry", where)
    if not 0 <= info.size <= MOST_BYTES:
        raise _archive_error(f"{info.name} is said to have {info.size} bytes", where)
    content = _read_exactly(stream, info.size, where)
    _read_exactly(stream, -info.size % _BLOCK, where)
    return info.name, content


def _read_exactly(stream: IO[bytes], size: int, where: str | Path) -> bytes:
    parts, left = [], size
    while left > 0:
        # In pieces: no memory is set aside for a size that a header only claims.
        part = stream.read(min(left, 1 << 20))
        if not part:
            raise _archive_error("it is truncated", where)
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _check_last(content: bytes, count: int, where: str | Path) -> None:
    try:
        fields = json.loads(content)
        fits = fields == {"format": _FORMAT, "entries": count}
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise _archive_error(f"it holds {count} entries, and its end says something else, or is newer", where)


def _archive_error(what: str, where: str | Path) -> StorageError:
    remedy = "Use a file that `evalcube cache export` wrote, and copy it again if it was cut."
    return StorageError(f"this is not an archive of a cache: {what}", where, remedy)
