"""Finds the cache that a reader of a cube may open without being told to: never one that only the cube names."""

from __future__ import annotations

from pathlib import Path

from flows.plan.trust import remembered_config
from storage.cache.folders import is_cache_without_links
from storage.cube.cube import Cube
from storage.urls import OBJECT_SCHEMES, REDIS_SCHEMES, directory_of, scheme_of


def cache_at_hand(cube: Cube, noted: object) -> str | None:
    """Address of the cache that may be read without being named; None if there is none.

    It is that of this user's own run, or else a cache beside the cube with the name that the cube's notes give, which
    are believed in nothing but that name.

    Parameters
    ----------
    cube
        The cube.
    noted
        The address in its notes.

    Returns
    -------
    str or None
        The address to read from.
    """
    own = remembered_config(cube)
    if own is not None and isinstance(own.get("cache"), str):
        return str(own["cache"])
    if not isinstance(noted, str) or scheme_of(noted) in (*OBJECT_SCHEMES, *REDIS_SCHEMES):
        return None
    name = Path(noted).name
    if name in ("", ".", "..") or "\0" in name:
        return None
    beside = directory_of(cube.url).resolve().parent / name
    return str(beside) if is_cache_without_links(beside) else None
