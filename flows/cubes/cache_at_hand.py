"""Finds the cache that a reader of a cube may open without being told to: never one that only the cube names."""

from __future__ import annotations

from pathlib import Path

from flows.plan.trust import remembered_config
from storage.cache.cache import Cache, find_cache
from storage.cache.chain import ChainedCache
from storage.cache.folders import is_cache_without_links
from storage.cube.cube import Cube
from storage.urls import HTTP_SCHEMES, ICECHUNK, OBJECT_SCHEMES, REDIS_SCHEMES, resolved, scheme_of

_SLASHES_OF_A_BUCKET = 2


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
    if not isinstance(noted, str) or scheme_of(noted) in REDIS_SCHEMES:
        return None
    name = noted.rpartition("/")[2]
    if name in ("", ".", "..") or "\0" in name:
        return None
    if scheme_of(cube.url) in OBJECT_SCHEMES:
        return _beside_object(resolved(cube.url), noted, name)
    if scheme_of(cube.url) in (*HTTP_SCHEMES, ICECHUNK) or scheme_of(noted) in OBJECT_SCHEMES:
        return None
    beside = Path(resolved(cube.url)).parent / name
    return str(beside) if is_cache_without_links(beside) else None


def _beside_object(cube: str, noted: str, name: str) -> str | None:
    """The cache beside a cube in a bucket, if that is where the cube's notes say it is."""
    beside = f"{cube.rpartition('/')[0]}/{name}"
    # With a bucket at least: what is beside a cube that fills its bucket is another bucket.
    return beside if noted.rstrip("/") == beside and cube.count("/") > _SLASHES_OF_A_BUCKET else None


def replies_at_hand(cube: Cube, noted: object, named: str | Path | None = None) -> Cache | None:
    """The replies of a cube as they may be read without being named, or those of a named cache; None if there are none.

    Parameters
    ----------
    cube
        The cube.
    noted
        The address of a cache in its notes.
    named
        The address of a cache; then no other one is read.

    Returns
    -------
    Cache or None
        Of several caches, one that asks them in turn.
    """
    addresses = addresses_at_hand(cube, noted) if named is None else [str(named)]
    found = [cache for cache in map(find_cache, addresses) if cache is not None]
    return ChainedCache(found) if len(found) > 1 else next(iter(found), None)


def addresses_at_hand(cube: Cube, noted: object) -> list[str]:
    """Addresses of the caches of `replies_at_hand`: `cache_at_hand`, and the replies that came along with the cube.

    Parameters
    ----------
    cube
        The cube.
    noted
        The address of a cache in its notes.

    Returns
    -------
    list of str
        Each once, in the order in which they are read.
    """
    found = [cache_at_hand(cube, noted)]
    if scheme_of(cube.url) not in (*OBJECT_SCHEMES, *HTTP_SCHEMES, ICECHUNK):
        # A cube that was pulled and then measured further has replies in two places.
        path = Path(resolved(cube.url))
        beside = path.parent / replies_name(path.name)
        found += [str(beside)] if is_cache_without_links(beside) else []
    return list(dict.fromkeys(filter(None, found)))


def replies_name(cube: str) -> str:
    """Name of the cache beside a pulled copy that has the replies which came along with it.

    Parameters
    ----------
    cube
        The last part of the copy's address.

    Returns
    -------
    str
        The last part of the cache's address, which is otherwise the same.

    Examples
    --------
    >>> replies_name("b.zarr")
    'b.replies'
    """
    return f"{cube.removesuffix('.zarr')}.replies"
