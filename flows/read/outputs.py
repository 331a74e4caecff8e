"""Files that users ask for: pages, tables and pictures, written whole; never anything else than a file."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from evalcube.flows.errors import SweepError
from evalcube.storage.errors import guarded
from evalcube.storage.files import replaced, sync_path, sync_tree


def check_output(path: Path, parameter: str = "output") -> Path:
    """The file that `path` stands for, symbolic links followed; it need not exist."""
    target = Path(os.path.realpath(path))
    with guarded(path, "look at the file to write"):
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            return target
    if stat.S_ISDIR(mode):
        raise SweepError(f"`{parameter}`: '{path}' is a directory", "Give the name of a file in it")
    if not stat.S_ISREG(mode):
        raise SweepError(
            f"`{parameter}`: '{path}' is not a regular file but a device, pipe or socket",
            "Give the name of a file to write",
        )
    return target


def write_output(path: Path, data: bytes, doing: str) -> None:
    """Write a file whole, with the folders above it; `doing` says what is tried, as in "write the report"."""
    with new_file(path, doing) as file:
        file.write(data)


@contextmanager
def new_file(path: Path, doing: str, parameter: str = "output") -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path`, on disk, once the block has ended well; else nothing changes."""
    target = check_output(path, parameter)
    with guarded(path, doing):
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as file:
            yield file


@contextmanager
def new_folder(path: Path, doing: str) -> Iterator[Path]:
    """A folder to fill that appears at `path`, on disk, once the block has ended well; else nothing does."""
    if os.path.lexists(path):
        raise SweepError(f"`output`: '{path}' is there already", "Give a new name, or move it away")
    with guarded(path, doing):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        temporary.mkdir()
        try:
            yield temporary
            sync_tree(temporary)
            temporary.rename(path)  # of two that export to one place, the second is refused
            sync_path(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_picture(path: Path) -> None:
    """Raise SweepError if a picture could not be written there, before the work is done."""
    if path.suffix.lower() != ".svg":
        raise SweepError(
            f"`plot`: '{path}' does not end in .svg, the one form of pictures",
            f"Give '{path.with_suffix('.svg')}'; rsvg-convert or Inkscape makes PNG and PDF of it",
        )
    check_output(path, "plot")
