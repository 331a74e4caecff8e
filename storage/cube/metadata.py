"""The metadata of a cube in one object, which commits a change of its shape, and those of its arrays beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from evalcube.storage.cube.bounds import MOST_METADATA, parse_json
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.schema import FORMAT
from evalcube.storage.cube.space import METADATA, Space, Version, When
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeNotFoundError,
    CubeVersionError,
    StorageError,
    guarded,
)

LONGEST = 10**7
"""Cells along any dim: as many as a config may ask for."""
REPAIR = "Restore it from a copy, or move it away and run the sweep again; its cache has the replies."


def read_metadata(space: Space) -> tuple[dict[str, Any], Version]:
    """Content of the group's metadata, with their version."""
    where = space.address
    with guarded(where, "open the cube"):
        stored = space.get(METADATA, MOST_METADATA)
        # A cube appears whole, with this object: without it there is none, whatever else there is.
        if stored is None and not space.is_there():
            remedy = "Check the path's spelling, or run the sweep that creates it."
            raise CubeNotFoundError("there is no cube", where, remedy)
        if stored is None and any(True for _ in space.list(f"{SIDE}/")):
            raise CubeDamagedError("its zarr.json is gone", where, REPAIR)
    if stored is None:
        remedy = "Check the path's spelling; a sweep makes its cube only where nothing is."
        raise CubeNotFoundError("this is not a cube: it has no zarr.json", where, remedy)
    try:
        raw = parse_json(stored.data)
    except ValueError as error:
        raise CubeDamagedError(f"its zarr.json is damaged: {error}", where, REPAIR) from error
    if not isinstance(raw, dict):
        raise CubeDamagedError("its zarr.json is damaged: not an object", where, REPAIR)
    return raw, stored.version


def check_version(space: Space, raw: Mapping[str, Any]) -> None:
    """Raise for metadata that are no cube's, or of a newer version."""
    where = space.address
    attributes = raw.get("attributes")
    version = attributes.get("evalcube_format") if isinstance(attributes, dict) else None
    if not isinstance(version, int):
        raise CubeNotFoundError(
            "a Zarr group, but not a cube of evalcube", where, "Check the path's spelling."
        )
    if version > FORMAT:
        raise CubeVersionError(
            f"the cube has format {version}, this version reads up to {FORMAT}", where, "Update evalcube."
        )
    every = (raw.get("consolidated_metadata") or {}).get("metadata")
    if SIDE not in every if every else space.get(f"{SIDE}/{METADATA}", MOST_METADATA) is None:
        raise CubeNotFoundError(
            "a copy by xarray, which has a cube's results and not its ledger",
            where,
            "Read it in Python, as in evalcube.leaderboard(xarray.open_zarr(ADDRESS)), or use the cube itself.",
        )


def set_sizes(document: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Give the arrays of which a cube's metadata tell new sizes, by dim."""
    for metadata in document["consolidated_metadata"]["metadata"].values():
        if metadata.get("node_type") == "array":
            pairs = zip(metadata["dimension_names"], metadata["shape"], strict=True)
            metadata["shape"] = [sizes.get(dim, size) for dim, size in pairs]


def commit(space: Space, document: Mapping[str, Any], version: Version) -> None:
    """Replace the cube's metadata in one step, if nobody has done so since they were read."""
    # Only the holder of the lease comes here, so that this finds who lost it. A directory could put on this condition
    # under a lock only, which would leave a file behind in every cube.
    same = space.version(METADATA) == version
    when = version if space.is_object_store else When.ALWAYS
    if not same or space.put(METADATA, json.dumps(document, indent=2).encode(), when=when) is None:
        raise StorageError(
            "another process has changed the cube's metadata meanwhile",
            space.address,
            "Run the same command again.",
        )


def put_own(space: Space, name: str, metadata: Mapping[str, Any]) -> bool:
    """Have an array's own metadata say what the cube's say of it; returns whether they did not."""
    own = _own(space, name)
    if own is not None and _same(own, metadata):
        return False
    space.put(f"{name}/{METADATA}", json.dumps(metadata, indent=2).encode())
    return True


def own_problem(space: Space, name: str, metadata: Mapping[str, Any]) -> str | None:
    """What is wrong with an array's own metadata; None if nothing is, or a growth was killed before they followed."""
    own = _own(space, name)
    if own is None:
        return "is gone"
    if not metadata or _same(own, metadata) or _differs_in_size(own, metadata):
        return None
    return "differs from what the cube's zarr.json says of the array"


def _differs_in_size(own: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether they are of the same array, as it was before the cube grew and perhaps wrote it under other keys."""
    alike = ("zarr_format", "node_type", "data_type", "fill_value", "codecs", "dimension_names")
    shape, now, dims = own.get("shape"), metadata["shape"], metadata["dimension_names"]
    if not all(own.get(key) == metadata.get(key) for key in alike) or not _is_shape(shape):
        return False
    # Earlier versions enlarged arrays along trial and repeat before the cube said so.
    sizes = zip(dims, shape, now, strict=False)
    return len(shape) == len(now) and all(n <= m or dim in ("trial", "repeat") for dim, n, m in sizes)


def _is_shape(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(size) is int and 0 <= size <= LONGEST for size in value)


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return {**left, "consolidated_metadata": None} == {**right, "consolidated_metadata": None}


def _own(space: Space, name: str) -> dict[str, Any] | None:
    """What an array's own metadata say, nothing if that cannot be read; None if they are gone."""
    stored = space.get(f"{name}/{METADATA}", MOST_METADATA)
    if stored is None:
        return None
    try:
        document = parse_json(stored.data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
