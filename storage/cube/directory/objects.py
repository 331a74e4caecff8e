"""Files under keys, put on a condition, listed, and made durable; no link is followed out of the cube."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from evalcube.storage.clocks import sweep_old_files
from evalcube.storage.cube.bounds import MOST_OBJECT, refuse_larger
from evalcube.storage.cube.directory.creation import create_directory, remove_directory
from evalcube.storage.cube.directory.records import DirectoryLease, DirectoryLog
from evalcube.storage.cube.space import Found, Log, Space, Version, When
from evalcube.storage.errors import CubeDamagedError
from evalcube.storage.files import inside, link_new, locking, make_directory, sync_path, sync_paths, write_new

if TYPE_CHECKING:
    from zarr.abc.store import Store


_TICK_NANOSECONDS = 4_000_000


@dataclass(frozen=True, slots=True)
class Directory:
    """A `evalcube.storage.cube.space.Space` in a directory; it need not exist yet."""

    path: Path
    root: Path | None = None
    """The directory of which this is a part, and out of which no link may lead; None means itself."""
    draft: bool = False
    """Whether it is put on disk as a whole, when it is finished, and so nothing in it one by one."""

    is_object_store = False

    @property
    def address(self) -> str:
        """The directory's path."""
        return str(self.path)

    def at(self, name: str) -> Directory:
        """A directory inside this one."""
        return replace(self, path=self.path / name, root=self.root or self.path)

    def _file(self, key: str) -> Path:
        """The path of a key, which no link leads out of the cube."""
        return inside(self.root or self.path, self.path / key)

    def is_there(self) -> bool:
        """Whether the path exists, as whatever."""
        return self.path.exists()

    def is_writable(self) -> bool:
        """Whether files can be made in the directory."""
        return os.access(self.path, os.W_OK | os.X_OK)

    def get(self, key: str, most: int | None = None) -> Found | None:
        """A file's content, or its first `most` bytes; None if there is none."""
        try:
            path = self._file(key)
            with open(path, "rb", opener=_open_at_once) as file:
                # Of the open file, so that content and version belong together although it may be replaced meanwhile.
                status = os.fstat(file.fileno())
                # It may have come into the place of a file since it was looked at.
                if not stat.S_ISREG(status.st_mode):
                    raise CubeDamagedError("a record of the cube is no file", path, "Remove it.")
                if most is None:
                    refuse_larger(status.st_size, MOST_OBJECT, path)
                # No more than there is: as many bytes are allocated as are asked for.
                data = file.read(status.st_size if most is None else min(status.st_size, most))
                return Found(data, _version(status), status.st_size)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def version(self, key: str) -> Version | None:
        """Which file it is, and when it was written; None if there is none."""
        try:
            return _version(self._file(key).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(
        self, key: str, data: bytes, *, when: When | Version = When.ALWAYS, durable: bool = True
    ) -> Version | None:
        """Give a file its content in one step; see `evalcube.storage.cube.space.Space.put`."""
        path, durable = self._file(key), durable and not self.draft
        if (self.draft or path.parent != self.path) and not path.parent.is_dir():
            # Not the space itself: whoever has deleted a cube does not want its folder back with one record in it.
            if not self.draft:
                self.path.stat()
            make_directory(path.parent, durable=durable)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        try:
            write_new(temporary, data, durable=durable)
            # The kernel's own times stand still for milliseconds, in which an inode may be freed and come again. They
            # are refined, not replaced: by them others see how old a file is.
            now = temporary.stat().st_mtime_ns + time.monotonic_ns() % _TICK_NANOSECONDS
            os.utime(temporary, ns=(now, now))
            # Taken before the file has its name: from then on others may replace it. A rename changes neither of both.
            version = _version(temporary.stat())
            if not self._name(temporary, path, when):
                return None
        finally:
            temporary.unlink(missing_ok=True)
        if durable:
            sync_path(path.parent)
        return version

    def _name(self, temporary: Path, path: Path, when: When | Version) -> bool:
        """Give a file that is on its way its name, if the condition holds."""
        if when is When.ALWAYS:
            temporary.replace(path)
            return True
        if when is When.ABSENT:
            try:
                # A rename would replace what another one put a moment ago; a hard link fails then.
                if link_new(temporary, path):
                    return True
            except FileExistsError:
                return False
        # No system call replaces a file only if it is a certain one. So all who put on a condition take a lock, which
        # the kernel frees if they are killed.
        with locking(path.with_name(f".{path.name}.lock")):
            current = self.version(path.relative_to(self.path).as_posix())
            if current != (None if when is When.ABSENT else when):
                return False
            temporary.replace(path)
            return True

    def delete(self, key: str, *, durable: bool = True) -> None:
        """Delete a file, if it is there."""
        path = self._file(key)
        with suppress(FileNotFoundError):
            path.unlink()
            if durable:
                sync_path(path.parent)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Files below a folder, by their keys, in no order."""
        folders = [prefix]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(self._file(folder)))
            except (FileNotFoundError, NotADirectoryError):  # also one that somebody cleared meanwhile
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}{entry.name}/")
                elif not entry.name.startswith(".") and not entry.name.endswith(".partial"):
                    yield folder + entry.name

    def clear(self, prefix: str) -> None:
        """Delete a folder with all that is in it, as far as that is possible."""
        shutil.rmtree(self._file(prefix), ignore_errors=True)

    def sync(self, keys: Iterable[str]) -> None:
        """Wait until files are on disk, and the entries of the folders that lead to them."""
        if self.draft:
            return
        paths: set[str] = set()
        for key in keys:
            path, folders = self._file(key), key.strip("/").split("/")[:-1]
            if not key.endswith("/") or path.is_dir():
                paths.add(str(path))
            if not folders:  # an object at the top is renamed into the directory itself
                paths.add(str(self.path))
            # Texts, not paths, which take longer: a region has many objects.
            paths.update(f"{self.path}/{folder}" for folder in accumulate(folders, "{}/{}".format))
        # In any order: nothing is acknowledged before all of them are on disk.
        sync_paths(sorted(paths, reverse=True))

    def fence(self, store: Store, keys: Sequence[str]) -> None:
        """Nothing: a file system has no such condition, and a write that was asked for is not late."""

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of the files, whose writes are durable after `sync`."""
        # Here, as it takes a while, and ledgers and leases need none.
        from evalcube.storage.cube.space_store import SpaceStore

        return SpaceStore(self, read_only=read_only)

    def assemble(self, fill: Callable[[Space], object]) -> None:
        """Make the directory beside its place, put it on disk, rename it: a kill leaves no half cube."""

        def build(temporary: Path) -> None:
            make_directory(temporary, durable=False)
            fill(Directory(temporary, draft=True))

        create_directory(self.path, build)

    def remove(self) -> bool:
        """Move the directory away under the name of an unfinished one, and delete it; a link is left as it is."""
        return not self.path.is_symlink() and remove_directory(self.path)

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Count, or delete, temporary files of killed writers, from an age that no living writer's has."""
        partial = [*self.path.glob("*.partial")]
        partial += [file for prefix in prefixes for file in self._file(prefix).rglob("*.partial")]
        return sweep_old_files(partial, self.path, older_than, delete=delete)

    def log(self, key: str) -> Log:
        """A file that grows by lines."""
        return DirectoryLog(self._file(key), durable=not self.draft)

    def lease(self, key: str) -> DirectoryLease:
        """A lease's file."""
        self._file(f"{key}.lock")
        return DirectoryLease(self._file(key))


def _open_at_once(path: str, flags: int) -> int:
    # Without this flag a pipe that nobody writes into is waited for, without end.
    return os.open(path, flags | os.O_NONBLOCK)


def _version(status: os.stat_result) -> Version:
    # Two files that exist at the same time have two inodes; one that is freed may come again, at a later time.
    return Version(f"{status.st_ino:x}.{status.st_mtime_ns:x}")
