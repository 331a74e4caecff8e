"""Finds the cache that a reader of a cube may open without being told to: never one that only the cube names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalcube.flows.errors import SweepError, no_bare_text
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.trust import remember_caches, remembered_caches, remembered_config
from evalcube.storage.cache.cache import Cache, ChainedCache, find_cache
from evalcube.storage.cache.folders import is_cache_without_links
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import Kind, beside, has_folders, is_directory, kind_of, resolved


def default_cache_address(cube: Cube, noted: object) -> str | None:
    """Address of the cache that may be read without being named; None if there is none.

    It is that of this user's own run, or else a cache beside the cube with the name that the cube's notes give, which
    are believed in nothing but that name.
    """
    own = remembered_config(cube)
    if own is not None and isinstance(own.get("cache"), str):
        return str(own["cache"])
    if not isinstance(noted, str) or not has_folders(noted):
        return None
    name = noted.rpartition("/")[2]
    if name in ("", ".", "..") or "\0" in name:
        return None
    path = beside(cube.url, name)
    if not is_directory(cube.url):
        # In a bucket, whose owner the notes may not choose, only where they say it is.
        return path if path and noted.rstrip("/") == path else None
    return path if kind_of(noted) is not Kind.BUCKET and is_cache_without_links(Path(path)) else None


def find_replies(
    cube: Cube,
    noted: object,
    named: str | Path | Sequence[str | Path] | None = None,
    *,
    away: list[str] | None = None,
) -> Cache | None:
    """The replies of a cube as they may be read without being named, or those of caches that are named."""
    if named is None:
        addresses = default_cache_addresses(cube, noted)
    else:
        several = [named] if isinstance(named, str | Path) else named
        no_bare_text(cache=several)
        addresses = list(map(str, several))
    caches = []
    for address in addresses:
        try:
            caches.append(find_cache(address))
        except StorageError as error:
            if away is None or named is not None:
                raise
            away.append(f"without the replies of a cache that does not answer: {error}")
    there = [cache for cache in caches if cache is not None]
    return ChainedCache(there) if len(there) > 1 else next(iter(there), None)


def needed_replies(cube: Cube, noted: object, named: str | Path | None) -> Cache:
    """As `find_replies`; none is refused."""
    caches = find_replies(cube, noted, named)
    if caches is None:
        raise SweepError(
            f"the replies of cube '{cube.url}' are not found", "Give the address of its cache with `cache`"
        )
    return caches


def remember_merged(output: str, cubes: Sequence[str], *, newer: bool) -> None:
    """Note for this user that the replies of a merged cube are in the caches of those that it was made of."""
    caches = []
    opened = [Cube.open(cube) for cube in cubes]
    for cube in sorted(opened, key=_last_written, reverse=True) if newer else opened:
        addresses = default_cache_addresses(cube, read_notes(cube.records).get("cache"))
        caches += [resolved(address) if is_directory(address) else address for address in addresses]
    remember_caches(Cube.open(output), list(dict.fromkeys(caches)))


def _last_written(cube: Cube) -> int:
    with Ledger(cube.records) as ledger:
        return max((receipt.at for receipt in ledger.newest().values()), default=0)


def default_cache_addresses(cube: Cube, noted: object) -> list[str]:
    """Addresses of the caches of `find_replies`: `default_cache_address`, and those of what was merged or came along.

    A merge notes, for the user whose it is, where the replies of its cubes are; a pulled copy has them beside it.
    """
    addresses = [default_cache_address(cube, noted)]
    if is_directory(cube.url):
        # A cube that was pulled and then measured further has replies in two places.
        path = Path(resolved(cube.url))
        replies = path.with_name(replies_name(path.name))
        addresses += [str(replies)] if is_cache_without_links(replies) else []
    # Last, as they may be of a like cube elsewhere, in which another answer to the same request was kept.
    addresses += remembered_caches(cube)
    return list(dict.fromkeys(filter(None, addresses)))


def replies_name(cube: str) -> str:
    """Name of the cache beside a pulled copy that has the replies which came along with it.

    Examples
    --------
    >>> replies_name("b.zarr")
    'b.replies'
    """
    return f"{cube.removesuffix('.zarr')}.replies"
