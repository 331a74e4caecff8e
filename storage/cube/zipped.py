"""A cube in one zip file, to be mailed and read where it lies: packed here, or by whoever has its directory.

Members are read up to a bound, which Zarr's own `ZipStore` would not do, and nothing is ever unpacked to a path.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evalcube.storage.cube.bounds import MOST_OBJECT, refuse_larger
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.directory.creation import sweep_creations, temporary_beside
from evalcube.storage.cube.read_only import NobodysLease, ReadOnly
from evalcube.storage.cube.space import Found, Space, Version
from evalcube.storage.errors import CubeDamagedError, CubeExistsError, NotWritableError
from evalcube.storage.files import link_new, make_directory, sync_path

_TIME = (1980, 1, 1, 0, 0, 0)
"""The same for all members: equal cubes are equal files."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What `zipfile` unpacks no further than it is asked to; of others a kilobyte may become gigabytes at once."""


@dataclass(frozen=True, slots=True)
class ZippedFiles(ReadOnly):
    """A `storage.cube.space.Space` in a zip file, whose names begin with its keys."""

    path: Path
    prefix: str = ""
    """Of the keys, empty or with a slash at its end."""

    @property
    def address(self) -> str:
        """The file's path, and the part inside."""
        return f"{self.path}/{self.prefix}".rstrip("/")

    def at(self, name: str) -> ZippedFiles:
        """The members below a folder."""
        return ZippedFiles(self.path, f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a file, be it a zip file or not."""
        return self.path.exists()

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A member, or its first `most` bytes; None if there is none.

        Raises
        ------
        CubeDamagedError
            The file is no zip file, or the member is cut off, changed, or of a size that no cube has.
        """
        info = self._members().get(self.prefix + key)
        if info is None:
            return None
        if most is None:
            refuse_larger(info.file_size, MOST_OBJECT, f"{self.address}/{key}")
        if info.compress_type not in _METHODS:
            raise self._damaged(f"{key} is packed by method {info.compress_type}, and not stored or deflated")
        try:
            with _opened(*self._identity()).open(info) as member:
                data = member.read(info.file_size if most is None else most)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise self._damaged(f"{key} cannot be read: {error}") from error
        return Found(data, _version(info), info.file_size)

    def version(self, key: str) -> Version | None:
        """Checksum and size of a member; None if there is none."""
        info = self._members().get(self.prefix + key)
        return None if info is None else _version(info)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys that begin with a prefix."""
        begin = self.prefix + prefix
        return (name.removeprefix(self.prefix) for name in self._members() if name.startswith(begin))

    def lease(self, key: str) -> NobodysLease:  # noqa: ARG002
        """Nobody works in a file that was packed."""
        return NobodysLease(self)

    def assemble(self, fill: Callable[[Space], object]) -> None:
        """Make the file of what `fill` puts into a directory beside it: others see all of it or nothing.

        Raises
        ------
        CubeExistsError
            Something is there already.
        """
        make_directory(self.path.parent)
        sweep_creations(self.path)
        self._refuse_taken()
        temporary = temporary_beside(self.path)
        try:
            draft = Directory(temporary / "cube", draft=True)
            make_directory(draft.path)
            fill(draft)
            _pack(draft, temporary / "packed")
            # A link fails where another one was faster; a rename would take the place of his file.
            with suppress(FileExistsError):
                if link_new(temporary / "packed", self.path):
                    sync_path(self.path.parent)
                    return
            self._refuse_taken()
            (temporary / "packed").rename(self.path)
            sync_path(self.path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def refusal(self) -> NotWritableError:
        """See `ReadOnly.refusal`."""
        remedy = f"Make a copy that can be written: evalcube pull {self.path} DIRECTORY."
        return NotWritableError("a cube in a zip file can only be read", self.path, remedy)

    def _members(self) -> dict[str, zipfile.ZipInfo]:
        if not self.is_there():
            return {}
        try:
            return _opened(*self._identity()).NameToInfo
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise self._damaged(str(error)) from error

    def _identity(self) -> tuple[Path, tuple[int, ...]]:
        """By which another file in its place, and another process, open it anew."""
        status = self.path.stat()
        return self.path, (status.st_ino, status.st_mtime_ns, status.st_size, os.getpid())

    def _refuse_taken(self) -> None:
        if os.path.lexists(self.path):
            remedy = "Move it away, or choose another path."
            raise CubeExistsError("something is already there", self.path, remedy)

    def _damaged(self, what: str) -> CubeDamagedError:
        return CubeDamagedError(f"the zip file is damaged: {what}", self.path, "Get it once more.")


@lru_cache(maxsize=16)
def _opened(path: Path, _identity: tuple[int, ...]) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _version(info: zipfile.ZipInfo) -> Version:
    return Version(f"{info.CRC:08x}.{info.file_size:x}.{info.header_offset:x}")


def _pack(source: Space, path: Path) -> None:
    """Write all objects of a space into a new zip file, as Zarr's `ZipStore` reads it; equal ones give equal files."""
    with zipfile.ZipFile(path, "x", allowZip64=True) as file:
        for key in sorted(source.list()):
            found = source.get(key)
            if found is None:
                raise FileNotFoundError(key)
            info = zipfile.ZipInfo(key, _TIME)
            info.external_attr = 0o644 << 16
            # Chunks are compressed already, and are read sooner so.
            text = key.endswith((".json", ".jsonl", ".md"))
            info.compress_type = zipfile.ZIP_DEFLATED if text else zipfile.ZIP_STORED
            file.writestr(info, found.data)
    sync_path(path)
