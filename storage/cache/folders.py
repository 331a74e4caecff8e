"""The directory of a cache in; where things are in it, and what is made or tidied up in it, out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from storage.cache.packs import OpenFile
from storage.files import locked

_STALE_SECONDS = 3600.0
_WAIT_SECONDS = 60.0
_SETTLED_SECONDS = 2.0


class Folders:
    """Places in the directory of a cache: ``packs/``, ``tmp/`` for files on their way, ``damaged/``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packs = root / "packs"
        self.temporaries = root / "tmp"
        self.damaged = root / "damaged"

    def pack(self, token: str) -> Path:
        """File of a pack."""
        return self.packs / f"{token}.pack"

    def index(self, token: str) -> Path:
        """Index of a pack."""
        return self.packs / f"{token}.idx"

    def names(self) -> set[str]:
        """Names of the packs and their indexes."""
        try:
            return set(os.listdir(self.packs))  # noqa: PTH208 (a Path for each costs more than the listing)
        except FileNotFoundError:  # somebody deleted the cache: it holds nothing
            return set()

    @contextmanager
    def exclusive(self, seconds: float = _WAIT_SECONDS) -> Iterator[None]:
        """Be the only one that deletes or replaces packs, where the file system has locks.

        Raises
        ------
        OSError
            `TimeoutError` if another one does so all that time.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.temporaries / "lock", seconds))
            except TimeoutError:
                raise
            except OSError:
                if not os.access(self.temporaries, os.W_OK):
                    raise
            yield


class Listing:
    """The names in a directory, which are listed again only if it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.forget()

    def forget(self) -> None:
        """List again in any case."""
        self._modified, self._since, self._settled = -1, 0.0, False

    def names(self) -> set[str]:
        """All names."""
        self.forget()
        return self.changed() or set()

    def changed(self) -> set[str] | None:
        """All names; None if they are surely the same as at the last call."""
        try:
            handle = OpenFile(self._path)
        except FileNotFoundError:  # somebody deleted the cache: it holds nothing
            return set()
        modified, now = os.fstat(handle.descriptor).st_mtime_ns, time.monotonic()
        if modified != self._modified:
            self._modified, self._since, self._settled = modified, now, False
        elif self._settled:
            return None
        # Two changes within one tick of the file system's clock leave the same time behind.
        self._settled = now - self._since > _SETTLED_SECONDS
        return set(os.listdir(handle.descriptor))  # noqa: PTH208


def is_cache(path: Path) -> bool:
    """Tell whether a directory is a cache's."""
    return all((path / folder).is_dir() for folder in ("packs", "tmp", "damaged"))


def sweep_files(folder: Path, *, delete: bool) -> int:
    """Count, or delete, what killed writers left an hour ago or earlier."""
    before, found = time.time() - _STALE_SECONDS, 0
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # its writer lives and has removed it
            if file.name != "lock" and file.stat().st_mtime < before:
                found += 1
                if delete:
                    file.unlink()
    return found
