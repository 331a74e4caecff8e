"""The folders of a cache in a directory in; what is listed, made or tidied up in them out."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from storage.caches.contract import EntryInfo
from storage.files import sync_path

_NAME = re.compile(r"[0-9a-f]{62}")
_STALE_SECONDS = 3600.0


def is_cache(path: Path) -> bool:
    """Tell whether a directory is a cache's."""
    return all((path / folder).is_dir() for folder in ("tmp", "damaged"))


def make_shards(path: Path) -> None:
    """Create the directories of the first 2 hex digits once, so that no put has to."""
    missing = {f"{number:02x}" for number in range(256)}.difference(entry.name for entry in path.iterdir())
    for name in sorted(missing):
        (path / name).mkdir(exist_ok=True)
    if missing:
        sync_path(path)


def list_shard(folder: str, shard: str) -> list[EntryInfo]:
    """Entries of one shard by key; a file that goes away meanwhile is left out."""
    found = []
    with os.scandir(folder) as files:
        for file in files:
            if _NAME.fullmatch(file.name):
                with suppress(FileNotFoundError):
                    status = file.stat()
                    found.append(EntryInfo(shard + file.name, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.key)


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


def remove_file(file: str) -> None:
    """Delete a file, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(file)  # noqa: PTH108 (a Path costs as much as the call)
