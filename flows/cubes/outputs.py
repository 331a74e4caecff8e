"""A path that a user names and bytes -> the file; never anything else than a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from flows.errors import SweepError
from storage.errors import guarded
from storage.files import replace_synced


def check_output(path: Path) -> Path:
    """The file that `path` stands for, symbolic links followed; it need not exist.

    Raises
    ------
    SweepError
        If something other than a regular file is there: replacing a device or a pipe would destroy it.
    StorageError
        If the path cannot be looked at.
    """
    target = Path(os.path.realpath(path))
    with guarded(path, "look at the file to write"):
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            return target
    if stat.S_ISDIR(mode):
        raise SweepError(f"'{path}' is a directory", "Give the name of a file in it")
    if not stat.S_ISREG(mode):
        raise SweepError(
            f"'{path}' is not a regular file but a device, pipe or socket", "Give the name of a file to write"
        )
    return target


def write_output(path: Path, data: bytes, doing: str) -> None:
    """Write a file whole, with the folders above it; `doing` says what is tried, as in "write the report".

    Raises
    ------
    SweepError
        As `check_output`.
    StorageError
        If it cannot be written.
    """
    target = check_output(path)
    with guarded(path, doing):
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_synced(target, data)
