"""Reads files that anyone may have made: every size has a bound, and what is wrong is one error that says where.

Nothing in a log is evaluated, and no path is taken from one. A ZIP is read here, not by `zipfile`, which knows no
Zstandard before Python 3.14 and has no bound on what a member unpacks to; `zipfile` reads its directory.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from evalcube.flows.errors import SweepError

MOST_DOCUMENT = 64 * 2**20
"""Bytes of one JSON document: a line, or a member of a ZIP. As Python objects it is some ten times as large."""
MOST_LOG = 512 * 2**20
"""Bytes of a log that is one JSON document."""
_MOST_UNPACKED = 4 * 2**30
_MOST_RATIO = 500
"""A ZIP unpacks to no more than the larger of these two: bytes, or times its own size."""
_WINDOW = 2**27
"""Greatest memory that a Zstandard frame may ask for; our and Inspect's own frames need less."""

_GREATEST = 3.4e38
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")

_STORED, _DEFLATED, _ZSTANDARD = 0, 8, 93
_LOCAL = struct.Struct("<4s5H3I2H")
"""The local header of a ZIP's member."""


def log_error(where: str, problem: str, remedy: str) -> SweepError:
    """Return the error for a position in a log; `where` names the file, and the line, the member or the field."""
    return SweepError(f"{where}: {problem}", remedy)


def parse(data: bytes | str, where: str) -> Any:  # noqa: ANN401 - any JSON, in any form
    """A JSON document."""
    try:
        written = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
        document = json.loads(written)
        if not _HALF.search(written):
            return document
        # Halves of surrogate pairs are no text: nothing could be written with them.
        return json.loads(_HALVES.sub("\ufffd", json.dumps(document, ensure_ascii=False)))
    except RecursionError:
        raise log_error(where, "the JSON is nested too deep", "Leave this log out") from None
    except ValueError as error:
        text = str(error).replace("\n", " ")[:200]
        raise log_error(
            where, f"this is no JSON: {text}", "Take the log from a copy, or leave it out"
        ) from None


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, which may be packed with gzip, with their numbers from 1; empty ones are passed over."""
    number = 0
    with open_log(path, unpacked=True) as file:
        while line := file.readline(MOST_DOCUMENT + 1):
            number += 1
            if len(line) > MOST_DOCUMENT:
                raise log_error(f"{path}, line {number}", _too_large(), "Leave this line out")
            if line.strip():
                yield number, line


def whole(path: Path, most: int = MOST_LOG) -> bytes:
    """All of a file."""
    with open_log(path, unpacked=True) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise log_error(
            str(path),
            f"a log that is one JSON document may have {most // 2**20} MiB",
            "Convert it: inspect log convert --to eval --output-dir DIR FILE",
        )
    return data


@contextmanager
def open_log(path: Path, *, unpacked: bool = False) -> Iterator[BinaryIO]:
    """Open a log for reading; every log is opened by this."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            _need_regular(file)
            yield gzip.GzipFile(fileobj=file) if unpacked and path.suffix == ".gz" else file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "Correct the path, or take the file from a copy"
        raise log_error(str(path), f"it cannot be read: {reason}", remedy) from None


def _need_regular(file: BinaryIO) -> None:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")


def _too_large() -> str:
    return f"a document may have {MOST_DOCUMENT // 2**20} MiB"


class Archive:
    """A ZIP whose members are read one at a time; close it by leaving its context."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            self._file = stack.enter_context(open_log(path))
            size = os.fstat(self._file.fileno()).st_size
            try:
                # Of members with equal names the last one counts, as for every reader of ZIPs.
                self._members = {info.filename: info for info in zipfile.ZipFile(self._file).infolist()}
            except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
                raise log_error(str(path), f"it is no ZIP: {error}", "Take the file from a copy") from None
            total = sum(info.file_size for info in self._members.values())
            if total > max(_MOST_UNPACKED, _MOST_RATIO * size):
                reason = f"it would unpack from {size:,} to {total:,} bytes"
                raise log_error(str(path), reason, "Leave it out: no tool writes that")
            self._close = stack.pop_all()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    @property
    def names(self) -> list[str]:
        """Names of the members, in the archive's order."""
        return list(self._members)

    def read_member(self, name: str) -> bytes:
        """A member's content, as large as the directory says and with the checksum that it has there."""
        where, info = f"{self.path}, {name}", self._members[name]
        if max(info.file_size, info.compress_size) > MOST_DOCUMENT:
            raise log_error(where, _too_large(), "Leave this log out")
        try:
            self._file.seek(info.header_offset)
            fields = _LOCAL.unpack(self._file.read(_LOCAL.size))
            self._file.seek(fields[-2] + fields[-1], 1)
            data = _unpack(self._file.read(info.compress_size), info.compress_type, info.file_size)
        except (OSError, ValueError, struct.error, zlib.error, zstandard.ZstdError) as error:
            raise log_error(where, f"it cannot be unpacked: {error}", "Take the log from a copy") from None
        if data is None:
            raise log_error(where, f"it is packed by method {info.compress_type}", "Write the log anew")
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise log_error(
                where, "it is damaged: its content is not what the directory says", "Take it from a copy"
            )
        return data


def _unpack(packed: bytes, method: int, size: int) -> bytes | None:
    """At most one byte more than `size`; None if the method is not known."""
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
    if method == _ZSTANDARD:
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        with unpacker.stream_reader(packed, read_across_frames=True) as reader:
            return reader.read(size + 1)
    return None


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def finite(value: object) -> float | None:
    """A number that is one: no truth value, not NaN, not infinite, not beyond a float of 32 bits, as cubes have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _GREATEST:
        return None
    return float(value)


def flatten(messages: object) -> str:
    """Return messages as one text: a single one as it is, several with their roles before them."""
    if isinstance(messages, str):
        return messages
    parts = [
        (text(message.get("role")), content_text(message.get("content")))
        for message in map(mapping, items(messages))
    ]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"{role}: {content}" if role else content for role, content in parts)


def content_text(content: object) -> str:
    """A message's content as text; images and the like leave a mark."""
    if isinstance(content, str):
        return content
    texts = []
    for part in items(content):
        fields = mapping(part)
        kind = text(fields.get("type"))
        if kind in ("reasoning", "thinking"):
            continue
        texts.append(text(fields.get("text")) or (f"[{kind}]" if kind not in ("", "text") else ""))
    return "\n".join(part for part in texts if part)
