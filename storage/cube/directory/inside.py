"""Paths that stay inside of a directory: a link out of a cube would have other files read or written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evalcube.storage.errors import CubeDamagedError

_REMEDY = (
    "Whoever made the cube put it there: look where it leads, and copy what you trust into its place. The cube itself "
    "may be a link."
)


def inside(root: Path, path: Path) -> Path:
    """A path below `root`, unless a link leads out of `root`, or there is something else than a file or a folder.

    The root itself may be a link. Files may be missing.

    Raises
    ------
    CubeDamagedError
        A part of the path is such a link, or a device, a pipe or a socket, whose reader might wait for ever.
    """
    at = root
    for part in path.relative_to(root).parts:
        at = at / part
        try:
            mode = at.lstat().st_mode
        except OSError:  # missing: the rest is, too; any other failure meets whoever opens it
            return path
        if stat.S_ISLNK(mode):
            _refuse_outside(root, at)
        elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise CubeDamagedError("a part of the cube is neither a file nor a folder", at, _REMEDY)
    return path


def _refuse_outside(root: Path, link: Path) -> None:
    # Both may pass through other links, such as a scratch disk's.
    real = Path(os.path.realpath(link))
    if not real.is_relative_to(os.path.realpath(root)) or not (real.is_file() or real.is_dir()):
        raise CubeDamagedError("a part of the cube is a link that leads out of it", link, _REMEDY)
