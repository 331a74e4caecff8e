"""The space that a cube's address means: the one place that chooses an implementation of `storage.cube.space.Space`."""

from __future__ import annotations

from pathlib import Path

from storage.cube.directory import Directory
from storage.cube.space import Space
from storage.urls import directory_of

Address = str | Path
"""What a user gives to say where a cube is."""


def space_of(url: Address) -> Space:
    """The space that an address means; today that is a directory.

    Raises
    ------
    UnsupportedUrlError
        The address is of another kind, or malformed.
    """
    return Directory(directory_of(url))
