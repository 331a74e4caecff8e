"""What a new cube consists of: the arrays, coordinates and attributes that are made from its sizes and labels.

A plain Zarr v3 group. Its consolidated metadata is the commit point of every change of shape: a reader of the
consolidated metadata, such as ``xarray.open_zarr(url)``, sees the cube before or after it, never half of it.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store
from zarr.api.asynchronous import create_group
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.core.array_spec import ArrayConfigParams
from zarr.core.buffer import Buffer
from zarr.core.sync import sync
from zarr.errors import ZarrUserWarning
from zarr.storage import MemoryStore

from evalcube._together import Together
from evalcube.storage.cube.schema import (
    COUNTER_LABELS,
    COUNTERS,
    DUPLICATE,
    FORMAT,
    LAYERS,
    PLANNED,
    TRIAL_DIMS,
    VARIABLES,
    Variable,
)
from evalcube.storage.cube.space import METADATA
from evalcube.storage.errors import CubeMismatchError

SIDE = "_evalcube"
"""Folder inside the cube for ledger, lease and plan; an empty Zarr group to other programs."""

SHAPES = "region_shapes"
"""Attribute of a cube that has grown along other dims than trial and repeat: see `Cube.shapes`."""

LABELS = "coordinates"
"""Attribute with the names of labels, as netCDF has it."""
RESERVED_ATTRS = (LABELS, "evalcube_format", SHAPES)
MODELS_PER_COUNTER_CHUNK = 25
SEPARATOR = "."
"""Between the numbers of a chunk's key: with a slash, as cubes of earlier versions have it, each region makes up to 28
folders in a directory. Each array's metadata say which it has."""
_INDEX_CHUNK = 4096
ARRAY_CONFIG: ArrayConfigParams = {"write_empty_chunks": True}
"""A chunk of fills is written, too: else zarr would delete its object, and there would be nothing to sync."""
_KNOWN = (
    # Zarr-Python says so on each call; the layout is what it and xarray read.
    "Consolidated metadata is currently not part in the Zarr format 3 specification",
    # Files of ours in the side folder, and what a killed writer left behind.
    "Object at .* is not recognized as a component of a Zarr hierarchy",
)


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the cube."""

    name: str
    """Name of the array; equal to its only dim for an index."""
    dims: tuple[str, ...]
    values: NDArray[Any]
    """Text, booleans, integers or floats of the shape that the dims say."""
    attrs: Mapping[str, object] = field(default_factory=dict)
    """Attributes (JSON values), such as long_name, units, comment."""


def builder(
    where: str,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int],
    coordinates: Sequence[Coordinate],
    counters: Sequence[str],
    attrs: Mapping[str, object],
    layers: Sequence[str],
) -> Callable[[Store], None]:
    """What makes an empty cube in a store; arguments are those of `Cube.create`."""
    everything = _with_indexes(coordinates, sizes, counters)
    tiers = {label.name: label.values.size for label in everything if label.dims == ("tier",)}
    dims = {"counter": len(counters), **tiers, **sizes}
    short = [name for name in (*TRIAL_DIMS, "counter") if dims.get(name, 0) < 1]
    short += [f"{name} in a region" for name in ("trial", "repeat") if chunks.get(name, 0) < 1]
    if short:
        raise CubeMismatchError(f"it has no cells along {', '.join(short)}", where, "Give it at least one.")
    check_labels(where, everything, dims, attrs)
    variables = [*VARIABLES.values(), *(LAYERS[name] for name in LAYERS if name in layers)]
    return partial(_build, dims=dims, chunks=chunks, coordinates=everything, attrs=attrs, variables=variables)


def consolidate(store: Store) -> None:
    """Write the consolidated metadata of the group in a store."""
    with expected_warnings():
        zarr.consolidate_metadata(store)


@contextmanager
def _ignore_known_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        for message in _KNOWN:
            warnings.filterwarnings("ignore", message=message, category=ZarrUserWarning)
        yield


expected_warnings = Together(_ignore_known_warnings)
"""A context in which zarr does not warn of what is so by design."""


def _with_indexes(
    coordinates: Sequence[Coordinate], sizes: Mapping[str, int], counters: Sequence[str]
) -> list[Coordinate]:
    """Coordinates, with an index for params, trial, repeat and counter where the caller gave none."""
    given_names = {coordinate.name for coordinate in coordinates}
    indexes = [
        Coordinate(name, (name,), np.arange(sizes.get(name, 0)), {"long_name": long_name})
        for name, long_name in (("params", "slot"), ("trial", "trial"), ("repeat", "repeat"))
    ]
    comment = "; ".join(f"{label}: {COUNTER_LABELS.get(label, 'a sum')}" for label in counters)
    attrs = {"long_name": "counter", "comment": comment}
    indexes.append(Coordinate("counter", ("counter",), np.array(list(counters), dtype=object), attrs))
    return [*coordinates, *(coordinate for coordinate in indexes if coordinate.name not in given_names)]


def check_labels(
    where: str, coordinates: Sequence[Coordinate], dims: Mapping[str, int], attrs: Mapping[str, object]
) -> None:
    """Refuse coordinates that do not fit the sizes, and attributes that not every program reads."""
    if not _is_json(attrs):
        raise CubeMismatchError("its attributes are no JSON", where, "Give texts and finite numbers.")
    for label in coordinates:
        shape = tuple(dims.get(dim) for dim in label.dims)
        if label.values.shape != shape:
            problem = f"must have shape {shape}, got {label.values.shape}"
        elif label.values.dtype.kind in "OUT" and (bad := [v for v in label.values.flat if not _is_text(v)]):
            problem = f"has something else than valid text: {bad[0]!r}"
        elif not _is_json(label.attrs):
            problem = "has attributes that are no JSON"
        else:
            continue
        raise CubeMismatchError(f"coordinate {label.name!r} {problem}", where, "Correct the values.")


def _is_text(value: object) -> bool:
    """Whether it is text that is valid Unicode: zarr would fail on another one in the middle of the creation."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_json(attrs: Mapping[str, object]) -> bool:
    """Whether attributes can be written so that all programs read them: JSON has no NaN."""
    try:
        json.dumps(dict(attrs), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _build(
    store: Store,
    dims: Mapping[str, int],
    chunks: Mapping[str, int],
    coordinates: Sequence[Coordinate],
    attrs: Mapping[str, object],
    variables: Sequence[Variable],
) -> None:
    auxiliary = [coordinate.name for coordinate in coordinates if coordinate.dims != (coordinate.name,)]
    labels = " ".join(auxiliary)
    # One chunk is one region of one array: its writer owns the whole chunk, so that no two tasks share one.
    whole = {**dims, "model": 1, "trial": int(chunks["trial"]), "repeat": int(chunks["repeat"])}
    arrays = [
        *((variable, whole) for variable in variables),
        (COUNTERS, {**dims, "model": min(dims["model"], MODELS_PER_COUNTER_CHUNK)}),
        *((variable, dims) for variable in PLANNED.values()),
        (DUPLICATE, {**whole, "task": 1}),
    ]

    # In memory first: zarr looks for each object several times before and after it makes it.
    objects: dict[str, Buffer] = {}
    draft = MemoryStore(objects)

    async def build() -> None:
        own = {**_json(attrs), "evalcube_format": FORMAT, LABELS: labels}
        group = await create_group(store=draft, zarr_format=3, attributes=own)
        await asyncio.gather(
            *(create_variable(group, variable, dims, parts) for variable, parts in arrays),
            *(create_coordinate(group, coordinate, dims) for coordinate in coordinates),
            group.create_group(SIDE, attributes={"comment": "evalcube's ledger, lease and plan"}),
        )

    async def put() -> None:
        # Last: until these metadata are there, no reader takes what is in the store for a cube.
        for key in sorted(objects, key=lambda key: key == METADATA):
            await store.set(key, objects[key])

    sync(build())  # at once: each call of zarr's from outside its loop costs two switches of threads
    consolidate(draft)
    sync(put())


def _json(attrs: Mapping[str, object]) -> dict[str, Any]:
    """A copy as JSON keeps it: tuples become lists."""
    return dict(json.loads(json.dumps(dict(attrs))))


async def create_variable(
    group: zarr.AsyncGroup,
    variable: Variable,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int],
    separator: str = SEPARATOR,
) -> zarr.AsyncArray[Any]:
    """Make one of the schema's arrays, which holds its fill."""
    return await group.create_array(
        variable.name,
        shape=tuple(sizes[dim] for dim in variable.dims),
        chunks=tuple(chunks[dim] for dim in variable.dims),
        dtype=variable.dtype,
        fill_value=variable.fill,
        # Smallest of those measured, at no loss of speed; Blosc alone gives changed bytes back without a word.
        compressors=(BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle"), Crc32cCodec()),
        **_of_all(variable.dims, variable.attributes, separator),
    )


def _of_all(dims: Sequence[str], attributes: Mapping[str, object], separator: str) -> dict[str, Any]:
    """What arrays of all kinds are created with."""
    keys = {"name": "default", "separator": separator}
    named = {"dimension_names": dims, "attributes": _json(attributes)}
    return {**named, "chunk_key_encoding": keys, "config": ARRAY_CONFIG}


async def create_coordinate(
    group: zarr.AsyncGroup, coordinate: Coordinate, sizes: Mapping[str, int], separator: str = SEPARATOR
) -> None:
    """Make the array of a coordinate, with its values; arguments are those of `create_variable`."""
    dims = coordinate.dims
    text = coordinate.values.dtype.kind in "OUT"
    # Those of trials grow with the cube: in large chunks they stay one object for thousands of trials.
    parts = tuple(_INDEX_CHUNK if dim in ("trial", "repeat") else sizes[dim] for dim in dims)
    array = await group.create_array(
        coordinate.name,
        shape=coordinate.values.shape,
        chunks=parts,
        dtype=str if text else coordinate.values.dtype.newbyteorder("="),
        fill_value=float("nan") if coordinate.values.dtype.kind == "f" else None,
        compressors=ZstdCodec(checksum=True),
        **_of_all(dims, coordinate.attrs, separator),
    )
    await array.setitem(..., coordinate.values.astype(object) if text else coordinate.values)
