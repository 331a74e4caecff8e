"""Open a JSONL, CSV or Parquet file whose content has a known digest, to read its rows by number."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import os
import stat
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader, BytesIO
from itertools import chain
from pathlib import Path

from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.dataset.hub.address import Address, is_hub
from evalcube.stages.generate.dataset.kept import copied_blocks
from evalcube.stages.generate.dataset.tables import LineTable, ParquetTable, index_csv, index_jsonl
from evalcube.stages.generate.errors import TaskError, file_error

ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""Ending of a file's name -> its format."""

_BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
_MOST_UNPACKED = 16 << 30
"""Bytes that a .gz file may unpack to."""
_HELD = 16 << 20
"""Bytes of content up to which it is kept in memory."""
_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_ZIP, _OLE = b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1")
"""How a spreadsheet's file begins, whatever its name says."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_SHEET = (
    "is a spreadsheet, and not a text; in its program, save the sheet with the questions as CSV (UTF-8)"
)


Table = LineTable | ParquetTable
"""Rows of a file, read one by one."""


def format_of(path: str, declared: str) -> str:
    """The format of a file, as declared or by its name's ending.

    Examples
    --------
    >>> format_of("questions.jsonl.gz", "auto")
    'jsonl'
    """
    if declared != "auto":
        return declared
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings[-1:] == [".gz"]:
        endings.pop()
    if endings and endings[-1] in ENDINGS:
        return ENDINGS[endings[-1]]
    if endings and endings[-1] in _SHEETS:
        raise file_error(path, _NO_SHEET)
    raise file_error(
        path,
        f"does not tell its format; known endings are {', '.join(ENDINGS)}, each also with .gz. Rename it, or give "
        "`format`",
    )


def file_state(path: str) -> tuple[int, ...]:
    """The file system's own marks of a file; any change of its content changes one of them, too.

    The time of the last status change is among them, as a program may set the time of the last write back.
    """
    status = _Content(path).status()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def file_digest(path: str) -> str:
    """A file's SHA-256, 64 hex digits."""
    return _Content(path).sha256()


def open_table(path: str, form: str, sha256: str) -> Table:
    """Open a file whose digest is known."""
    content = _with_digest(path, sha256)
    if path.lower().endswith(".gz") and not is_hub(path):
        content = content.unpack()
    head = content.read(0, 8)
    if form != "parquet" and head.startswith((_ZIP, _OLE)):
        raise file_error(path, _NO_SHEET)
    wide = form != "parquet" and head.startswith(_UTF_16)
    if wide:
        content = content.as_utf8()
    try:
        table = _index(content, form)
    except (ValueError, OSError) as error:
        raise TaskError(f"{path}: {error}", field="file", value=path) from error
    if len(table) == 0:
        raise file_error(path, "has no rows; give a file with at least one")
    if wide:
        table.notes = ("it is UTF-16", *table.notes)
    return table


def whole_file(path: str, sha256: str) -> BufferedReader | BytesIO:
    """The content of a file whose digest is known, as it is on the disk; raises as `open_table`."""
    return _open_unchanged(path, sha256).stream()


def _with_digest(path: str, sha256: str) -> _Content:
    """The file if it is what it was; else the copy that a cube keeps, whatever has become of the file."""
    try:
        return _open_unchanged(path, sha256)
    except TaskError:
        copy = copied_blocks(sha256)
        if copy is None:
            raise
    content = _Content.from_blocks(path, copy)
    if content.sha256() != sha256:
        raise file_error(
            path,
            f"is not here any more, and the copy in the cube is damaged: it has not the SHA-256 {sha256}. Restore the "
            "file, or take the cube from a copy",
        )
    return content


def _open_unchanged(path: str, sha256: str) -> _Content:
    # Opened once, then hashed and read through that descriptor: what is read is what was hashed.
    content = _Content(path, _open_fetched(path, sha256) if is_hub(path) else None)
    digest = content.sha256()
    if digest != sha256:
        raise file_error(
            path,
            f"has changed: its SHA-256 was {sha256} and is now {digest}, and no cube at hand keeps a copy of it as it "
            "was. Restore the file; where a config gives `sha256`, correct that",
        )
    return content


def _open_fetched(address: str, sha256: str) -> int:
    """A descriptor of what was fetched from the hub."""
    path = shelf.content(sha256)
    if path is None:
        raise Address.parse(address).problem(
            f"is not on this machine, and no cube at hand keeps a copy of it; run: evalcube data fetch '{address}'"
        )
    return _open(str(path))


def open_packed(path: str) -> Iterator[bytes]:
    """What a .gz file unpacks to; raises as `open_table`."""
    return _Content(path).unpacked_blocks()


def _index(content: _Content, form: str) -> Table:
    content.hold()
    if form == "parquet":
        return ParquetTable(content.stream(), content.unchanged)
    if form == "jsonl":
        return index_jsonl(content.stream(), content.read, content.unchanged)
    return index_csv(content.stream(), content.read, content.unchanged, "\t" if form == "tsv" else "")


class _Content:
    """The bytes of a file that stays open, so that a file put in its place changes nothing.

    Read by position, not mapped into memory: a mapped file that is cut short kills the process.
    """

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        self._path = path
        self._descriptor = _open(path) if descriptor is None else descriptor
        # Not __del__: a finalizer also runs when the interpreter ends, and never twice.
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._now()
        self._held: bytes | None = None

    def status(self) -> os.stat_result:
        """The file system's record of the open file."""
        return os.fstat(self._descriptor)

    def _now(self) -> tuple[int, int]:
        status = self.status()
        return status.st_size, status.st_mtime_ns

    def hold(self) -> None:
        """Keep what is small in memory: then no row costs a look at the file, and no change of it matters."""
        if self._state[0] <= _HELD:
            with self.stream() as file:
                held = file.read()
            self._held = held if self.unchanged() else None

    def unchanged(self) -> bool:
        """Whether the content is kept, or size and time of the open file are what they were."""
        return self._held is not None or self._now() == self._state

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`; safe from several threads, as `pread` moves no position."""
        if self._held is not None:
            return self._held[start:end]
        return os.pread(self._descriptor, end - start, start)

    def stream(self) -> BufferedReader | BytesIO:
        """The content from its beginning; one at a time, as duplicates share a position."""
        if self._held is not None:
            return BytesIO(self._held)
        copy = os.dup(self._descriptor)
        os.lseek(copy, 0, os.SEEK_SET)
        return open(copy, "rb")  # noqa: PTH123 - a descriptor has no path, and the caller closes it

    def sha256(self) -> str:
        """Digest of the content, 64 hex digits."""
        with self.stream() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def unpack(self) -> _Content:
        """The content of this .gz file."""
        return _Content.from_blocks(self._path, self.unpacked_blocks())

    def as_utf8(self) -> _Content:
        """The content of this UTF-16 file as UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-16")()
        with self.stream() as file:
            blocks = chain(iter(lambda: file.read(_BLOCK), b""), [b""])
            try:
                return _Content.from_blocks(
                    self._path, (decoder.decode(block, not block).encode() for block in blocks)
                )
            except UnicodeError as error:
                raise file_error(self._path, "begins as UTF-16 and is none; save it as UTF-8") from error

    @classmethod
    def from_blocks(cls, path: str, blocks: Iterable[bytes]) -> _Content:
        """Content in a file without a name, which goes with the process however it ends."""
        with tempfile.TemporaryFile() as target:
            for block in blocks:
                target.write(block)
            target.flush()
            return cls(path, os.dup(target.fileno()))

    def unpacked_blocks(self) -> Iterator[bytes]:
        """What this .gz file unpacks to, up to a limit."""
        # Counted while unpacking: what a .gz file says about its size is no promise, and a small one can hold a disk.
        total = 0
        with self.stream() as packed, gzip.open(packed) as file:
            while True:
                try:
                    block = file.read(_BLOCK)
                except (OSError, EOFError, zlib.error) as error:
                    raise file_error(self._path, f"is no whole gzip file ({error}); pack it again") from error
                if not block:
                    return
                total += len(block)
                if total > _MOST_UNPACKED:
                    raise file_error(self._path, f"unpacks to more than {_MOST_UNPACKED >> 30} GiB; split it")
                yield block


def _open(path: str) -> int:
    """A descriptor of a regular file."""
    try:
        # not blocking: a named pipe without a writer would wait for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        near = "" if Path(path).is_absolute() else f"(relative to {Path.cwd()}) "
        why = f"{near}cannot be opened: {error.strerror}; correct the path or restore the file"
        raise file_error(path, why) from error
    # Of the descriptor, not of the path: between two looks at a path another file may have taken its place.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        with suppress(OSError):
            os.close(descriptor)
        raise file_error(path, "is no regular file; give one file with all rows")
    return descriptor
