"""The metadata of a cube in one object, which commits a change of its shape, and those of its arrays beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from storage.cube.layout import SIDE
from storage.cube.schema import FORMAT
from storage.cube.space import Space, Version, When
from storage.errors import CubeDamagedError, CubeNotFoundError, CubeVersionError, StorageError, guarded

METADATA = "zarr.json"
REPAIR = "Restore it from a copy, or move it away and run the sweep again; its cache has the replies."
_METADATA_BYTES = 100_000_000


def read_metadata(space: Space) -> tuple[dict[str, Any], Version]:
    """Content of the group's metadata, with their version."""
    where = space.address
    with guarded(where, "open the cube"):
        found = space.get(METADATA, _METADATA_BYTES)
        # A cube appears whole, with this object: without it there is none, whatever else there is.
        if found is None and not space.is_there():
            remedy = "Check the path's spelling, or run the sweep that creates it."
            raise CubeNotFoundError("there is no cube", where, remedy)
        if found is None and any(True for _ in space.list(f"{SIDE}/")):
            raise CubeDamagedError("its zarr.json is gone", where, REPAIR)
    if found is None:
        remedy = "Check the path's spelling; a sweep makes its cube only where nothing is."
        raise CubeNotFoundError("this is not a cube: it has no zarr.json", where, remedy)
    try:
        raw = json.loads(found.data)
    except (ValueError, RecursionError) as error:
        raise CubeDamagedError(f"its zarr.json is damaged: {error}", where, REPAIR) from error
    if not isinstance(raw, dict):
        raise CubeDamagedError("its zarr.json is damaged: not an object", where, REPAIR)
    return raw, found.version


def check_version(where: str, raw: Mapping[str, Any]) -> None:
    """Raise for metadata that are no cube's, or of a newer version."""
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


def commit_sizes(space: Space, sizes: Mapping[str, int]) -> None:
    """Have the cube's metadata say new sizes, by dim; raises as `commit`."""
    document, version = read_metadata(space)
    for metadata in document["consolidated_metadata"]["metadata"].values():
        if metadata.get("node_type") == "array":
            pairs = zip(metadata["dimension_names"], metadata["shape"], strict=True)
            metadata["shape"] = [sizes.get(dim, size) for dim, size in pairs]
    commit(space, document, version)


def commit(space: Space, document: Mapping[str, Any], version: Version) -> None:
    """Replace the cube's metadata in one step, if nobody has done so since they were read.

    Raises
    ------
    StorageError
        Somebody has.
    """
    # Only the holder of the lease comes here, so that this finds who lost it. A directory could put on this condition
    # under a lock only, which would leave a file behind in every cube.
    same = space.version(METADATA) == version
    when = version if space.trusted else When.ALWAYS
    if not same or space.put(METADATA, json.dumps(document, indent=2).encode(), when=when) is None:
        raise StorageError(
            "another process has changed the cube's metadata meanwhile",
            space.address,
            "Run the same command again.",
        )


def put_own(space: Space, name: str, metadata: Mapping[str, Any]) -> bool:
    """Have an array's own metadata say what the cube's say of it; returns whether they did not.

    Those of an array that is longer along trial or repeat stay so: a growth along these was cut short, and the next one
    goes on from there.
    """
    key, wanted = f"{name}/{METADATA}", dict(metadata)
    found = space.get(key, _METADATA_BYTES)
    own = {} if found is None else _parsed(found.data)
    if own.get("dimension_names") == wanted["dimension_names"]:
        triples = zip(wanted["dimension_names"], wanted["shape"], own.get("shape", ()), strict=False)
        wanted["shape"] = [max(n, m) if dim in ("trial", "repeat") else n for dim, n, m in triples]
    if {**wanted, "consolidated_metadata": None} == {**own, "consolidated_metadata": None}:
        return False
    space.put(key, json.dumps(wanted, indent=2).encode())
    return True


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
