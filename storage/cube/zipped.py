"""A cube in one zip file, to be mailed and read where it lies.

Only members that are stored or deflated are read, each of them up to a bound, and nothing is ever unpacked to a path.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from evalcube.storage.cube.bounds import MOST_OBJECT
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.directory.creation import sweep_creations, temporary_beside
from evalcube.storage.cube.read_only import FinishedLog, NobodysLease, ReadOnly, copied_lines
from evalcube.storage.cube.space import Found, Space, Version
from evalcube.storage.errors import CubeDamagedError, CubeExistsError, NotWritableError
from evalcube.storage.files import link_new, make_directory, sync_path

if TYPE_CHECKING:
    from zarr.abc.store import Store

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_TIME = (1980, 1, 1, 0, 0, 0)
"""The same for all members: equal cubes are equal files."""


@dataclass(frozen=True, slots=True)
class ZippedFiles(ReadOnly):
    """A `storage.cube.space.Space` in a zip file, whose names begin with its keys, or with those below one folder."""

    path: Path | str
    """The file's path."""
    prefix: str = ""
    """Of the keys, empty or with a slash at its end."""

    @property
    def address(self) -> str:
        """The file's path, and the part inside."""
        return f"{self.path}/{self.prefix}".rstrip("/")

    def at(self, name: str) -> ZippedFiles:
        """The members below a folder."""
        return replace(self, prefix=f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a file, be it a zip file or not."""
        return Path(self.path).exists()

    def members(self) -> Members:
        """What is in the file; another one in its place is opened anew."""
        path = Path(self.path)
        status = path.stat()
        return _opened(path, (status.st_ino, status.st_mtime_ns, status.st_size, os.getpid()))

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A member, or its first `most` bytes; None if there is none.

        Raises
        ------
        CubeDamagedError
            The file is no zip file, or the member is cut off, changed, or of a kind or size that no cube has.
        """
        if not self.is_there():
            return None
        members = self._members()
        info = members.infos.get(self.prefix + key)
        if info is None:
            return None
        try:
            with members.file.open(info) as member:
                data = member.read(info.file_size if most is None else most)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise self._damaged(f"{key} cannot be read: {error}") from error
        return Found(data, _version(info), info.file_size)

    def version(self, key: str) -> Version | None:
        """Checksum and size of a member; None if there is none."""
        info = self._members().infos.get(self.prefix + key) if self.is_there() else None
        return None if info is None else _version(info)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys that begin with a prefix."""
        if not self.is_there():
            return iter(())
        begin = self.prefix + prefix
        return (name.removeprefix(self.prefix) for name in self._members().infos if name.startswith(begin))

    def zarr(self, *, read_only: bool = False) -> Store:  # noqa: ARG002 - it is
        """Zarr's store of the members."""
        return _store(self)

    def log(self, key: str) -> FinishedLog:
        """A log, in the one file of a directory or in the numbered objects of a bucket."""
        return FinishedLog(self, lambda: copied_lines(self, key))

    def lease(self, key: str) -> NobodysLease:  # noqa: ARG002
        """Nobody works in a file that was packed."""
        return NobodysLease(self)

    def assemble(self, fill: Callable[[Space], None]) -> None:
        """Make the file of what `fill` puts into a directory beside it: others see all of it or nothing.

        Raises
        ------
        CubeExistsError
            Something is there already.
        """
        path = Path(self.path)
        make_directory(path.parent)
        sweep_creations(path)
        _refuse_taken(path)
        temporary = temporary_beside(path)
        try:
            draft = Directory(temporary / "cube", draft=True)
            make_directory(draft.path)
            fill(draft)
            _pack(draft, temporary / "packed")
            try:
                # Of two at once, one finds the name taken; where there are no links, that is looked at first.
                if not link_new(temporary / "packed", path):
                    _refuse_taken(path)
                    (temporary / "packed").rename(path)
            except FileExistsError:
                _refuse_taken(path)
                raise
            sync_path(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def refusal(self) -> NotWritableError:
        """See `ReadOnly.refusal`."""
        remedy = f"Make a copy that can be written: evalcube pull {self.path} DIRECTORY."
        return NotWritableError("a cube in a zip file can only be read", self.path, remedy)

    def _members(self) -> Members:
        try:
            return self.members()
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> CubeDamagedError:
        return CubeDamagedError(f"the zip file is damaged: {what}", self.path, "Get it once more.")


@dataclass(frozen=True, eq=False)
class Members:
    """A zip file that is open."""

    file: zipfile.ZipFile
    infos: dict[str, zipfile.ZipInfo]
    """By key, whatever folder all of them are in."""


@lru_cache(maxsize=16)
def _opened(path: Path, _identity: tuple[int, ...]) -> Members:
    return members_of(zipfile.ZipFile(path))


def members_of(file: zipfile.ZipFile) -> Members:
    """The file and its members; several threads may read them at once.

    Parameters
    ----------
    file
        Open.

    Raises
    ------
    ValueError
        One is of a kind or size that no cube has.
    """
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in file.infolist():
        if info.is_dir():
            continue
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS or info.file_size > MOST_OBJECT:
            raise ValueError(f"{info.filename!r} is encrypted, too large, or packed as no cube is")
        if info.filename in infos:
            raise ValueError(f"{info.filename!r} is in it twice")
        infos[info.filename] = info
    folder = _folder(infos)
    return Members(
        file, {name[len(folder) :]: info for name, info in infos.items() if name.startswith(folder)}
    )


def _folder(names: Iterable[str]) -> str:
    """The folder that a cube is in, where somebody has packed its directory with another program."""
    names = set(names)
    tops = {name.partition("/")[0] for name in names}
    top = f"{next(iter(tops))}/" if len(tops) == 1 else ""
    return top if top.strip("./") and f"{top}zarr.json" in names else ""


def _version(info: zipfile.ZipInfo) -> Version:
    return Version(f"{info.CRC:08x}.{info.file_size:x}.{info.header_offset:x}")


def _store(space: ZippedFiles) -> Store:
    from evalcube.storage.cube.read_store import ReadStore  # with zarr, which takes a while

    return ReadStore(space)


def _pack(source: Space, path: Path) -> None:
    """Write all objects of a space into a new zip file; equal objects give equal files."""
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


def _refuse_taken(path: Path) -> None:
    if os.path.lexists(path):
        raise CubeExistsError("something is already there", path, "Move it away, or choose another path.")
