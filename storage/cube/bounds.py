"""Bounds of what is read of a cube, whoever made it: of objects as they are stored, and of what they decode to."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import zstandard

from evalcube.storage.errors import CubeDamagedError

MOST_OBJECT = 2**30
"""Bytes of any object: chunks, records and archives of replies are far smaller."""
MOST_METADATA = 100_000_000
MOST_DECODED = 2**29
"""Bytes of a chunk in memory."""
MOST_LINES = 2**20
"""Bytes of a line of a log, and of an object of many lines."""
MOST_LEASE = 100_000
DEEPEST = 200
"""Levels of JSON: twice what a config or a log may nest, and far from what no program can copy or write again."""
MOST_ARRAY = 2**33
"""Bytes of an array that is read as a whole."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_TEXT_BYTES = 4  # of the number of texts in a chunk, and of the length of each
_BLOSC_HEADER = struct.Struct("<4xI")
_REMEDY = "No cube of evalcube has such an object: find out who made it."


def refuse_larger(size: int, most: int, where: str | Path) -> None:
    """Raise for an object of more bytes than any may have, before it is read."""
    if size > most:
        raise CubeDamagedError(f"an object has {size:,} bytes, and {most:,} are the most", where, _REMEDY)


def parse_json(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON, in any form
    """A document of JSON that anyone may have written."""
    with suppress(RecursionError):
        level = [document := json.loads(data)]
        for _ in range(DEEPEST):
            inner = (
                node.values() if isinstance(node, dict) else node
                for node in level
                if isinstance(node, dict | list)
            )
            level = list(chain.from_iterable(inner))
            if not level:
                return document
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def lines_in(file: IO[bytes], where: str | Path) -> Iterator[bytes]:
    """Lines of a log, one in memory at a time; a torn last one comes without its line break."""
    while line := file.readline(MOST_LINES):
        if len(line) == MOST_LINES:
            remedy = "Move the file away, and run the sweep again; its cache has the replies."
            raise CubeDamagedError("a line is longer than any that evalcube writes", where, remedy)
        yield line


def refuse_bomb(key: str, data: bytes | bytearray, where: str, *, texts: bool = False) -> None:
    """Raise for a chunk that would decode to more bytes than any has, by what its compressor's header says.

    Or to more texts than it has bytes for: room for all of them is made at once.
    """
    if key.endswith("zarr.json"):
        return
    head = bytes(data[:32])
    declared, count = 0, b""
    if head.startswith(_ZSTD):
        try:
            declared = zstandard.frame_content_size(head)
            count = zstandard.ZstdDecompressor().stream_reader(data).read(_TEXT_BYTES) if texts else b""
        except zstandard.ZstdError:
            return  # cut off: it will not be decoded
    elif len(head) >= _BLOSC_HEADER.size:
        (declared,) = _BLOSC_HEADER.unpack_from(head)
    if not 0 <= declared <= MOST_DECODED:
        size_text = f"{declared:,} bytes" if declared >= 0 else "an undeclared length"
        raise CubeDamagedError(
            f"{key} would decode to {size_text}, and {MOST_DECODED:,} bytes are the most", where, _REMEDY
        )
    if texts and _TEXT_BYTES * (1 + int.from_bytes(count, "little")) > declared:
        raise CubeDamagedError(f"{key} claims to hold more texts than it has bytes for", where, _REMEDY)
