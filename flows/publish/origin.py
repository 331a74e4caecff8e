"""Where a copy came from: the publication that it was pulled from, and the replies that came with it."""

from __future__ import annotations

import json
from typing import Any

from storage.cache.folders import is_cache_without_links
from storage.cube.cube import Cube
from storage.cube.space import Space
from storage.errors import UnsupportedUrlError
from storage.urls import directory_of

ORIGIN = "pulled.json"
"""Key among a copy's records of what it was pulled from."""

_READ_BYTES = 1_000_000
_ENDING = ".replies"


def read_origin(records: Space) -> dict[str, Any]:
    """What a copy was pulled from; empty if it was not, or nobody knows.

    Parameters
    ----------
    records
        The cube's.
    """
    found = records.get(ORIGIN, _READ_BYTES)
    try:
        document = json.loads(found.data) if found else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or not isinstance(document.get("publication", {}), dict):
        return {}
    return document


def replies_name(cube: str) -> str:
    """Name of the cache beside a copy that has the replies which came with it.

    Examples
    --------
    >>> replies_name("/data/b.zarr")
    'b.replies'
    """
    return directory_of(cube).name.removesuffix(".zarr") + _ENDING


def replies_beside(cube: Cube) -> str | None:
    """Address of the replies that came with a copy; None if there are none beside it."""
    try:
        path = directory_of(cube.url).resolve()
    except UnsupportedUrlError:
        return None
    beside = path.parent / replies_name(str(path))
    return str(beside) if is_cache_without_links(beside) else None
