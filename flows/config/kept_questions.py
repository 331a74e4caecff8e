"""The copies of data files that a cube keeps, each under the digest of its content, and which of them a config means.

A config names a file, and its rules look at the rows: where the file is gone, those that its cube has asked stand in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

import zstandard

from evalcube.stages.generate.dataset.hub.address import is_hub, source_of
from evalcube.stages.generate.dataset.kept import offer_copy, offer_version
from evalcube.stages.generate.errors import TaskError
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded


def nodes(value: object) -> Iterator[object]:
    """The value itself and all that it has in it, in order; a list or mapping that stands in many places once."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, (Mapping, list, tuple)):
            if id(node) in seen:
                continue
            seen.add(id(node))
            waiting += reversed(list(node.values()) if isinstance(node, Mapping) else node)
        yield node


def mappings(value: object) -> Iterator[Mapping[str, object]]:
    """The mappings among them."""
    return (node for node in nodes(value) if isinstance(node, Mapping))


MOST_BYTES = 512 * 2**20
"""Of a data file: larger ones are not kept. A copy is compressed in memory."""
_FOLDER = "questions"
_KEPT = ("file", "format", "sha256")
_BLOCK = 2**20
_WINDOW = 8 * 2**20
"""What unpacking may ask of the memory; what keeping them takes is no larger."""


def key_of(sha256: str) -> str:
    """Key of a copy among the records of a cube."""
    return f"{_FOLDER}/{sha256}.zst"


def read_copy(records: Space, sha256: str) -> Iterator[bytes] | None:
    """The content of a copy among a cube's records, whatever it is by now; None if there is none."""
    with guarded(records.address, "read the questions that the cube keeps"):
        content = records.get(key_of(sha256), MOST_BYTES)
    return None if content is None else unpack_blocks(content.data)


def unpack_blocks(packed: bytes) -> Iterator[bytes]:
    """The content of a copy, which anyone may have written; it ends where it is damaged or too long."""
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed)
    total = 0
    try:
        while (block := reader.read(_BLOCK)) and total <= MOST_BYTES:
            total += len(block)
            yield block
    except zstandard.ZstdError:
        return  # who reads on compares the digest


def offer_missing(tasks: object, cube: str) -> None:
    """Have the files that a config's tasks name, and that are gone, read from the cube, where it has asked them."""
    missing = {source_of(file) for file in _files(tasks) if not os.path.lexists(file)}
    versions: dict[str, dict[str, str]] = {}
    with suppress(StorageError):  # whoever opens the cube says what is wrong with it
        if missing and Cube.exists(cube):
            opened = Cube.open(cube)
            versions = _versions(opened.attrs.get("spec"))
            for sha256 in (point["sha256"] for point in versions.values()):
                offer_copy(sha256, partial(read_copy, opened.records, sha256))
    # Examples may be from another split of what is named on the hub.
    named = {file.partition("?")[0] for file in missing if is_hub(file)}
    for file in missing | {file for file in versions if file.partition("?")[0] in named}:
        offer_version(file, versions.get(file))


def _files(tasks: object) -> Iterator[str]:
    for params in mappings(tasks):
        named = params.get("file")
        files = (file for file in (named if isinstance(named, list) else [named]) if isinstance(file, str))
        yield from (file for file in files if _is_local_or_readable(file))


def _is_local_or_readable(file: str) -> bool:
    """Whether a file is no address, or one that can be read: the others are told of with the rest of a config."""
    with suppress(TaskError):
        source_of(file)
        return True
    return False


def _versions(spec: object) -> dict[str, dict[str, str]]:
    """Source of each data file that a cube's description names -> file, format and digest of what was asked last."""
    versions: dict[str, dict[str, str]] = {}
    for point in sorted(mappings(spec), key=lambda point: not point.get("older")):
        for params in mappings(point.get("params")):
            fields = {name: text for name in _KEPT if isinstance(text := params.get(name), str)}
            if len(fields) == len(_KEPT) and fields["file"] and _is_local_or_readable(fields["file"]):
                versions[source_of(fields["file"])] = fields
    return versions
