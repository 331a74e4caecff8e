"""A directory with a file for each entry, as earlier versions made it, in; its entries, in packs, out.

An entry was ``<2 hex>/<62 hex>``, and what a power cut would have taken was in ``journal/<token>.log`` as well.
"""

from __future__ import annotations

import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from storage.cache.contract import EntryInfo
from storage.cache.entry import is_whole
from storage.cache.folders import Folders
from storage.cache.owners import is_abandoned, read_heading
from storage.cache.pack_writer import PackWriter
from storage.cache.packs import MOST_BYTES, OpenFile, new_token

_SHARD = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(r"[0-9a-f]{62}")
_JOURNAL_MAGIC = b"EVJ1"
_RECORD = struct.Struct("<II32s")
_BATCH_BYTES = 32 * 2**20
_BATCH_FILES = 4096
_PACK_BYTES = 2**30
_PACK_RECORDS = 2**18
_OLDEST = "0" * 16


class OldLayout:
    """The entries of a cache that are not in packs yet."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def is_there(self) -> bool:
        """Whether there may be any."""
        return bool(self._shards() or self._journals())

    def content(self, key: str) -> bytes | None:
        """What is in an entry's file, unverified."""
        return _read(self._folders.root / key[:2] / key[2:])

    def entries(self) -> Iterator[EntryInfo]:
        """List the entries by key."""
        for shard in self._shards():
            found = []
            for file in self._files(shard):
                with suppress(FileNotFoundError):
                    status = file.stat()
                    found.append(EntryInfo(shard.name + file.name, status.st_size, status.st_mtime))
            yield from sorted(found, key=lambda info: info.key)

    def remove(self, keys: Iterable[str]) -> None:
        """Delete entries."""
        for key in keys:
            (self._folders.root / key[:2] / key[2:]).unlink(missing_ok=True)

    def migrate(self) -> None:
        """Move all entries into packs, and damaged ones away; one that is killed is continued by the next.

        Raises
        ------
        OSError
            As the operating system says; what is not moved stays.
        """
        mover = _Mover(self._folders)
        for journal in self._journals():
            handle = OpenFile(journal, os.O_RDWR)
            if is_abandoned(handle.descriptor, _JOURNAL_MAGIC, take=True):
                for key, content in _journaled(journal):
                    found = self.content(key)
                    if is_whole(key, content) and not (found is not None and is_whole(key, found)):
                        mover.take(key, content, time.time(), None)
                mover.finish()
                journal.unlink(missing_ok=True)
        for shard in self._shards():
            for file in self._files(shard):
                self._move(mover, shard.name + file.name, file)
        mover.finish()
        for shard in self._shards():
            with suppress(OSError):  # something else is in it
                shard.rmdir()
        with suppress(OSError):
            (self._folders.root / "journal" / "lock").unlink(missing_ok=True)
            (self._folders.root / "journal").rmdir()

    def _move(self, mover: _Mover, key: str, file: Path) -> None:
        with suppress(FileNotFoundError):
            content, modified = _read(file), file.stat().st_mtime
            if content is not None and is_whole(key, content):
                mover.take(key, content, modified, file)
            else:
                file.rename(self._folders.damaged / f"{key}.old")

    def _shards(self) -> list[Path]:
        with suppress(FileNotFoundError):
            return sorted(path for path in self._folders.root.iterdir() if _SHARD.fullmatch(path.name))
        return []

    def _files(self, shard: Path) -> list[Path]:
        with suppress(FileNotFoundError):
            return sorted(path for path in shard.iterdir() if _NAME.fullmatch(path.name))
        return []

    def _journals(self) -> list[Path]:
        return sorted((self._folders.root / "journal").glob("*.log"))


class _Mover:
    """Writes entries into packs, and deletes their files once they are on disk there."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._pack: PackWriter | None = None
        self._files: list[Path] = []
        self._bytes = 0

    def take(self, key: str, content: bytes, when: float, file: Path | None) -> None:
        if self._pack is None:
            # Sorts before all others, so that the first of each entry stays the first.
            self._pack = PackWriter(self._folders, new_token(like=_OLDEST))
        self._pack.append(bytes.fromhex(key), content, when)
        self._bytes += len(content)
        if file is not None:
            self._files.append(file)
        if self._bytes > _BATCH_BYTES or len(self._files) > _BATCH_FILES:
            self.flush()
        if self._pack.size > _PACK_BYTES or len(self._pack) > _PACK_RECORDS:
            self.finish()

    def flush(self) -> None:
        if self._pack is not None:
            self._pack.sync()
        for file in self._files:
            file.unlink(missing_ok=True)
        self._files.clear()
        self._bytes = 0

    def finish(self) -> None:
        self.flush()
        if self._pack is not None:
            self._pack.seal()
            self._pack = None


def _read(file: Path) -> bytes | None:
    """Bytes of a file, None if there is none; of a file too large for an entry no more than shows it."""
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES)
    except FileNotFoundError:
        return None


def _journaled(path: Path) -> Iterator[tuple[str, bytes]]:
    """Key and content of every record before the first torn one."""
    with path.open("rb") as file:
        known = read_heading(file.fileno(), _JOURNAL_MAGIC)
        if known is None:
            return
        file.seek(known[1])
        while len(head := file.read(_RECORD.size)) == _RECORD.size:
            length, check, key = _RECORD.unpack(head)
            content = file.read(length) if length <= MOST_BYTES else b""
            if len(content) != length or zlib.crc32(content, zlib.crc32(key)) != check:
                return
            yield key.hex(), content
