"""The space that a cube's address means: the one place that chooses an implementation of `storage.cube.space.Space`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.cube.directory import Directory
from storage.urls import directory_of

if TYPE_CHECKING:
    from pathlib import Path

    from storage.cube.space import Space


def space_of(url: str | Path) -> Space:
    """The space that an address means; today that is a directory.

    Raises
    ------
    UnsupportedUrlError
        The address is of another kind, or malformed.
    """
    return Directory(directory_of(url))
