"""A cube in one zip file in a bucket or behind a web server, read there: its directory first, then what is asked for.

A file is read in blocks, a few of which are kept. Servers that give out no parts of files give the whole one, up to a
bound.
"""

from __future__ import annotations

import os
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import obstore
from obstore import exceptions

from evalcube.storage import web
from evalcube.storage.cube.space import Space
from evalcube.storage.cube.zipped import Members, ZippedFiles, members_of
from evalcube.storage.errors import NotWritableError, StorageError
from evalcube.storage.object_stores import connected, first_bytes, translated
from evalcube.storage.urls import HTTP_SCHEMES, scheme_of

MOST_WHOLE_BYTES = 2**28
"""Of a file that a server does not give in parts."""

_BLOCK_BYTES = 2**16
_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class RemoteZip(ZippedFiles):
    """A `evalcube.storage.cube.space.Space` in a zip file at an address."""

    path: str
    """The file's address."""

    def is_there(self) -> bool:
        """Whether there is a file, be it a zip file or not."""
        return _is_there(self.path)

    def assemble(self, fill: Callable[[Space], None]) -> None:  # noqa: ARG002
        """Refuse."""
        raise self.refusal()

    def refusal(self) -> NotWritableError:
        """See `evalcube.storage.cube.read_only.ReadOnly.refusal`."""
        remedy = f"Make a copy that can be written: evalcube pull {self.path} DIRECTORY."
        return NotWritableError("a cube in a zip file can only be read", self.path, remedy)

    def members(self) -> Members:
        """What is in the file, which is taken to stay as it is while this process reads it."""
        return _opened(self.path, os.getpid())


def is_remote_zip(address: str) -> bool:
    """Whether an address of a store or server is that of a file with a zip file's name, and not of what is below it.

    Parameters
    ----------
    address
        As `evalcube.storage.urls.object_prefix` or `evalcube.storage.urls.http_address` gives it.
    """
    try:
        return _is_there(address)
    except StorageError:
        return False  # whoever asks for the cube is told why it cannot be read


def _is_there(address: str) -> bool:
    with translated(address, _doing(address)):
        try:
            _need(address, os.getpid())
        except FileNotFoundError:
            return False
    return True


@lru_cache(maxsize=16)
def _need(address: str, _process: int) -> None:
    """Raise if there is no file; that it is there is asked once, as each read wants to know."""
    if _looked(address) is None:
        raise FileNotFoundError(address)


@lru_cache(maxsize=16)
def _opened(address: str, _process: int) -> Members:
    with translated(address, _doing(address)):
        file = _Blocks(address)
    return members_of(zipfile.ZipFile(file))


class _Blocks:
    """A remote file as `zipfile` reads one: a position, and the bytes behind it."""

    def __init__(self, address: str) -> None:
        self._address = address
        found = _looked(address)
        if found is None:
            raise FileNotFoundError(address)
        self._size, self._tag = found
        self._position = 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._whole: bytes | None = None
        self._lock = threading.Lock()

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, begin + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._blocks.clear()

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        with self._lock:
            data = self._part(self._position, end) if self._position < end else b""
        self._position += len(data)
        return data

    def _part(self, begin: int, end: int) -> bytes:
        first, last = begin // _BLOCK_BYTES, (end - 1) // _BLOCK_BYTES
        found = {number: self._blocks[number] for number in range(first, last + 1) if number in self._blocks}
        lacking = [number for number in range(first, last + 1) if number not in found]
        if lacking:
            # One request for all that is between.
            start, stop = lacking[0] * _BLOCK_BYTES, min(self._size, (lacking[-1] + 1) * _BLOCK_BYTES)
            data = self._fetched(start, stop)
            for number in range(lacking[0], lacking[-1] + 1):
                offset = number * _BLOCK_BYTES - start
                found[number] = data[offset : offset + _BLOCK_BYTES]
        for number in sorted(found)[-_BLOCKS:]:
            self._blocks[number] = found[number]
            self._blocks.move_to_end(number)
        while len(self._blocks) > _BLOCKS:
            self._blocks.popitem(last=False)
        offset = begin - first * _BLOCK_BYTES
        return b"".join(found[number] for number in range(first, last + 1))[offset : offset + end - begin]

    def _fetched(self, begin: int, end: int) -> bytes:
        """A part of the file as it was when it was opened."""
        if self._whole is None:
            try:
                data, partial = _part_of(self._address, begin, end, self._tag, self._size)
            except web.ChangedError:
                _opened.cache_clear()
                text = "the file was replaced while it was read"
                raise StorageError(text, self._address, "Run this again.") from None
            if partial:
                return data
            self._whole = data
        return self._whole[begin:end]


def _looked(address: str) -> tuple[int, str] | None:
    """Size and tag of a file; None if there is none."""
    if scheme_of(address) in HTTP_SCHEMES:
        answer = web.look(address)
        return None if answer is None else (answer.size, answer.tag)
    place, name = _split(address)
    try:
        meta = obstore.head(connected(place), name)
    except FileNotFoundError:
        return None
    return meta["size"], meta["e_tag"] or ""


def _part_of(address: str, begin: int, end: int, tag: str, size: int) -> tuple[bytes, bool]:
    """A part of a file; or, with False, all of it from a server that gives out no parts."""
    if scheme_of(address) in HTTP_SCHEMES:
        # A server that heeds no range sends the whole file.
        answer = web.read(address, min(max(size, end - begin), MOST_WHOLE_BYTES), (begin, end), tag)
        if answer is None:
            raise web.ChangedError
        if not answer.partial and size > MOST_WHOLE_BYTES:
            raise StorageError(
                f"the server gives out no parts of files, and this one has {size:,} bytes",
                address,
                "Download it, and give the path of the file.",
            )
        return answer.data, answer.partial
    place, name = _split(address)
    options: obstore.GetOptions = {"range": (begin, end)}
    if tag:
        options["if_match"] = tag
    with translated(address, _doing(address)):
        try:
            return first_bytes(obstore.get(connected(place), name, options=options), end - begin), True
        except exceptions.PreconditionError:
            raise web.ChangedError from None


def _split(address: str) -> tuple[str, str]:
    """Address of the folder or bucket that a file is in, and its name there."""
    place, _, name = address.rstrip("/").rpartition("/")
    return place, name


def _doing(address: str) -> str:
    return "read from the server" if scheme_of(address) in HTTP_SCHEMES else "read from the store"
