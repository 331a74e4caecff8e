"""A directory that appears whole or not at all: made beside its place, put on disk, and renamed.

The name beside it says which process makes it, so that the next creation can remove what a killed one left.
"""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evalcube.storage.clocks import older_files
from evalcube.storage.errors import CubeExistsError
from evalcube.storage.files import make_directory, sync_path, sync_tree
from evalcube.storage.processes import Life, ProcessIdentity, life_of, this_process

_STALE_SECONDS = 3600.0


def create_directory(path: Path, build: Callable[[Path], None]) -> None:
    """Make a directory with what `build` puts into the one that it gets: a kill leaves no half of it."""
    make_directory(path.parent)
    sweep_creations(path)
    _refuse_taken(path)
    temporary = temporary_beside(path)
    try:
        build(temporary)
        # Before the rename: a power cut after it must not find a cube with empty files.
        sync_tree(temporary)
        # Renaming onto a directory works only if that is empty, so that of two creators one wins.
        try:
            temporary.rename(path)
        except OSError:
            _refuse_taken(path)
            raise
        sync_path(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_directory(path: Path) -> bool:
    """Remove a directory in one step; a kill leaves what the next creation there sweeps away."""
    temporary = temporary_beside(path)
    with suppress(OSError):
        path.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)
        return True
    return False


def _machine(process: ProcessIdentity) -> str:
    return hashlib.blake2b(f"{process.host} {process.boot}".encode(), digest_size=6).hexdigest()


def temporary_beside(path: Path) -> Path:
    """A name beside `path` that says who makes it, so that others can find out whether that process is gone."""
    me = this_process()
    mark = f"{_machine(me)}-{me.pid}-{me.start}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name}.{mark}.creating")


def _refuse_taken(path: Path) -> None:
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return
    kind = "a cube" if (path / "zarr.json").exists() else "something else"
    problem = f"cannot create the cube: {kind} is already there"
    raise CubeExistsError(problem, path, "Open it, move it away, or choose another path.")


def sweep_creations(path: Path) -> None:
    """Remove what killed creations of this cube left: their process is gone, or not known and they are an hour old."""
    me = this_process()
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.creating"):
        machine, *numbers = stale.name.removesuffix(".creating").rpartition(".")[2].split("-")
        life = Life.UNKNOWN
        # Process ids mean something on their own machine only; for others, age decides, by the file system's clock.
        if machine == _machine(me) and len(numbers) == 3:
            with suppress(ValueError):  # anybody may have made it
                life = life_of(ProcessIdentity(me.host, me.boot, int(numbers[0]), int(numbers[1])))
        old = life is Life.UNKNOWN and any(older_files([stale], path.parent, _STALE_SECONDS, sure=True))
        if old or life is Life.ENDED:
            shutil.rmtree(stale, ignore_errors=True)
