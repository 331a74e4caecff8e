"""Where things are in a cache's directory, and what keeps two processes from deleting in it at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evalcube.storage.clocks import sweep_old_files
from evalcube.storage.files import locking

_LOCK = "lock"
STALE_SECONDS = 3600.0
_WAIT_SECONDS = 60.0


class Folders:
    """The paths in a cache: ``packs/``, ``tmp/`` for files on their way, ``damaged/`` for what failed its check."""

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
        """Be the only one that deletes or replaces packs, where the file system has locks."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locking(self.temporaries / _LOCK, seconds))
            except TimeoutError:
                raise
            except OSError:
                # A file system without locks. Reading and writing need none, and no acknowledged entry is lost if two
                # merge at once: both copy before they delete. Who may not write must hear of it, though.
                if not os.access(self.temporaries, os.W_OK):
                    raise
            yield


_FOLDERS = ("packs", "tmp", "damaged")


def is_cache(path: Path) -> bool:
    """Whether a directory is a cache's."""
    return all((path / folder).is_dir() for folder in _FOLDERS)


def is_cache_without_links(path: Path) -> bool:
    """Whether a directory is a cache's, and neither it nor a folder of it is a link, which could lead anywhere."""
    try:
        return all(stat.S_ISDIR(os.lstat(path / folder).st_mode) for folder in ("", *_FOLDERS))
    except OSError:
        return False


def sweep_files(folder: Path, *, delete: bool) -> int:
    """Count, or delete, what killed writers left an hour ago or earlier."""
    if folder.is_symlink():
        return 0  # whatever is there, no writer of this cache left it
    files = (file for file in folder.iterdir() if file.name != _LOCK)
    return sweep_old_files(files, folder, STALE_SECONDS, delete=delete)
