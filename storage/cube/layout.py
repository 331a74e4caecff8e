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
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store
from zarr.api.asynchronous import create_group
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.core.array_spec import ArrayConfigParams
from zarr.core.sync import sync
from zarr.errors import ZarrUserWarning

from evalcube._together import Together
from evalcube.storage.cube.schema import (
    COUNTER_LABELS,
    COUNTERS,
    DIMS,
    DUPLICATE,
    FORMAT,
    LAYERS,
    PLANNED,
    SHARED,
    TRIAL_DIMS,
    VARIABLES,
    Variable,
)
from evalcube.storage.cube.space import METADATA, Space
from evalcube.storage.errors import CubeMismatchError, guarded

SIDE = "_evalcube"
"""Folder inside the cube for ledger, lease and plan; an empty Zarr group to other programs."""

SHAPES = "region_shapes"
"""Attribute of a cube that has grown along other dims than trial and repeat: see `Cube.shapes`."""

LABELS = "coordinates"
"""Attribute with the names of labels, as netCDF has it."""
RESERVED_ATTRS = (LABELS, "evalcube_format", SHAPES)
MODELS_PER_COUNTER_CHUNK = 25
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


def create_cube(
    space: Space,
    *,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int],
    coordinates: Sequence[Coordinate],
    counters: Sequence[str],
    attrs: Mapping[str, object],
    layers: Sequence[str] = (),
    fill: Callable[[Space], None] | None = None,
) -> None:
    """Make a cube in a space: others see all of it or nothing. It is empty, or holds what `fill` puts into it.

    Raises
    ------
    CubeMismatchError
        Sizes, chunks, coordinates or attrs do not fit together.
    CubeExistsError
        The space is taken.
    StorageError
        The space cannot be written.
    """
    where = space.address
    everything = _with_indexes(coordinates, sizes, counters)
    dims = _checked_dims(where, sizes, chunks, everything, counters)
    check_coordinates(where, everything, dims)
    variables = [*VARIABLES.values(), *_checked_layers(where, layers, dims)]
    _check_attrs(where, attrs)
    # All that may be refused is refused before anything is written.
    with guarded(where, "create the cube"):

        def assemble(draft: Space) -> None:
            _build(draft.zarr(), dims, chunks, everything, attrs, variables)
            if fill is not None:
                fill(draft)

        space.assemble(assemble)


def consolidate(store: Store) -> None:
    """Write the consolidated metadata of the group in a store."""
    with expected_warnings():
        zarr.consolidate_metadata(store)


@contextmanager
def _expected() -> Iterator[None]:
    with warnings.catch_warnings():
        for message in _KNOWN:
            warnings.filterwarnings("ignore", message=message, category=ZarrUserWarning)
        yield


expected_warnings = Together(_expected)
"""A context in which zarr does not warn of what is so by design."""


def _with_indexes(
    coordinates: Sequence[Coordinate], sizes: Mapping[str, int], counters: Sequence[str]
) -> list[Coordinate]:
    """Coordinates, with an index for params, trial, repeat and counter where the caller gave none."""
    given = {coordinate.name for coordinate in coordinates}
    made = [
        Coordinate(name, (name,), np.arange(sizes.get(name, 0)), {"long_name": long_name})
        for name, long_name in (("params", "slot"), ("trial", "trial"), ("repeat", "repeat"))
    ]
    comment = "; ".join(f"{label}: {COUNTER_LABELS.get(label, 'a sum')}" for label in counters)
    attrs = {"long_name": "counter", "comment": comment}
    made.append(Coordinate("counter", ("counter",), np.array(list(counters), dtype=object), attrs))
    return [*coordinates, *(coordinate for coordinate in made if coordinate.name not in given)]


def _mismatch(where: str, what: str) -> CubeMismatchError:
    return CubeMismatchError(what, where, "Correct the arguments of `Cube.create`.")


def _checked_dims(
    where: str,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int],
    coordinates: Sequence[Coordinate],
    counters: Sequence[str],
) -> dict[str, int]:
    dims = {"counter": len(counters), **{name: int(size) for name, size in sizes.items()}}
    for coordinate in coordinates:
        if coordinate.name == "tier" and coordinate.values.ndim == 1:
            dims.setdefault("tier", coordinate.values.size)
    if unknown := sorted(set(dims) - set(DIMS)):
        raise _mismatch(where, f"`sizes` has unknown dims {unknown}; known are {list(DIMS)}")
    needed = [("sizes", dims, name) for name in (*TRIAL_DIMS, "counter")]
    needed += [("chunks", {"model": 1, **chunks}, name) for name in ("model", "trial", "repeat")]
    for what, given, name in needed:
        if given.get(name, 0) < 1:
            raise _mismatch(where, f"`{what}` needs at least 1 along {name}, got {given.get(name)}")
    if dims["counter"] != len(counters) or len(set(counters)) != len(counters):
        raise _mismatch(where, f"`counters` must be {dims['counter']} different labels, got {list(counters)}")
    return dims


def check_coordinates(where: str, coordinates: Sequence[Coordinate], dims: Mapping[str, int]) -> None:
    """Refuse coordinates that do not fit the sizes, or that no cube can have.

    Raises
    ------
    CubeMismatchError
        One does not.
    """
    taken = {*VARIABLES, *LAYERS, *(variable.name for variable in SHARED), SIDE, METADATA}
    for coordinate in coordinates:
        name = coordinate.name
        if name in taken or not name or name.startswith(".") or any(c.isspace() or c == "/" for c in name):
            raise _mismatch(where, f"coordinate name {name!r} is taken, or not one plain word")
        taken.add(name)
        if unknown := [dim for dim in coordinate.dims if dim not in dims]:
            raise _mismatch(where, f"coordinate {name!r} has dims {unknown} of unknown size")
        shape = tuple(dims[dim] for dim in coordinate.dims)
        if coordinate.values.shape != shape:
            raise _mismatch(
                where, f"coordinate {name!r} must have shape {shape}, got {coordinate.values.shape}"
            )
        if coordinate.values.dtype.kind in "OUT":
            _check_texts(where, name, coordinate.values)
        elif coordinate.values.dtype.kind not in "biuf":
            raise _mismatch(where, f"coordinate {name!r} has dtype {coordinate.values.dtype}")
        # A growth writes them anew, without asking anybody for labels.
        if name in ("trial", "repeat") and not np.array_equal(coordinate.values, np.arange(shape[0])):
            raise _mismatch(where, f"coordinate {name!r} must count 0, 1, 2, ..., so that it can grow")
        _check_attrs(where, coordinate.attrs)


def _checked_layers(where: str, names: Sequence[str], dims: Mapping[str, int]) -> list[Variable]:
    """The layers of these names, whose dims must all have a size."""
    if unknown := [name for name in names if name not in LAYERS]:
        raise _mismatch(where, f"`layers` has unknown arrays {unknown}; known are {list(LAYERS)}")
    for name in names:
        if lacking := [dim for dim in LAYERS[name].dims if dims.get(dim, 0) < 1]:
            raise _mismatch(where, f"`sizes` needs at least 1 along {', '.join(lacking)} for `{name}`")
    return [LAYERS[name] for name in LAYERS if name in names]


def _check_texts(where: str, name: str, values: NDArray[Any]) -> None:
    for value in values.ravel():
        if not isinstance(value, str):
            raise _mismatch(where, f"coordinate {name!r} mixes text with {value!r}")
        # Zarr would fail on it in the middle of the creation.
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise _mismatch(where, f"coordinate {name!r} has text that is no valid Unicode: {value!r}")


def _check_attrs(where: str, attrs: Mapping[str, object]) -> None:
    if reserved := sorted(set(attrs) & {*RESERVED_ATTRS, "_FillValue"}):
        raise _mismatch(where, f"attrs {reserved} are reserved")
    try:
        json.dumps(dict(attrs), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _mismatch(where, f"attrs must be JSON: {error}") from error


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
    together = int(chunks.get("model", MODELS_PER_COUNTER_CHUNK))
    arrays = [
        *((variable, whole) for variable in variables),
        (COUNTERS, {**dims, "model": min(dims["model"], together)}),
        *((variable, dims) for variable in PLANNED.values()),
        (DUPLICATE, {**whole, "task": 1}),
    ]

    async def build() -> None:
        group = await create_group(
            store=store,
            zarr_format=3,
            attributes={**_json(attrs), "evalcube_format": FORMAT, LABELS: labels},
        )
        await asyncio.gather(
            *(create_variable(group, variable, dims, parts) for variable, parts in arrays),
            *(create_coordinate(group, coordinate, dims) for coordinate in coordinates),
            group.create_group(SIDE, attributes={"comment": "evalcube's ledger, lease and plan"}),
        )

    sync(build())  # at once: each call of zarr's from outside its loop costs two switches of threads
    # Last: until these metadata are there, no reader takes what is in the store for a cube.
    consolidate(store)


def _json(attrs: Mapping[str, object]) -> dict[str, Any]:
    """A copy as JSON keeps it: tuples become lists."""
    return dict(json.loads(json.dumps(dict(attrs))))


def _codecs() -> tuple[BloscCodec, Crc32cCodec]:
    # Smallest of those measured on trial arrays, at no loss of speed; Blosc gives changed bytes back without a word.
    return BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle"), Crc32cCodec()


async def create_variable(
    group: zarr.AsyncGroup,
    variable: Variable,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int],
    separator: str = "/",
) -> zarr.AsyncArray[Any]:
    """Make one of the schema's arrays, which holds its fill.

    Parameters
    ----------
    group
        Where.
    variable
        Which one.
    sizes, chunks
        Cells of the array and of its chunks along each of its dims, at least.
    separator
        What divides the indices in the keys of its chunks.
    """
    return await group.create_array(
        variable.name,
        shape=tuple(sizes[dim] for dim in variable.dims),
        chunks=tuple(chunks[dim] for dim in variable.dims),
        dtype=variable.dtype,
        fill_value=variable.fill,
        compressors=_codecs(),
        dimension_names=variable.dims,
        attributes=_json(variable.attributes),
        chunk_key_encoding={"name": "default", "separator": separator},
        config=ARRAY_CONFIG,
    )


async def create_coordinate(
    group: zarr.AsyncGroup,
    coordinate: Coordinate,
    sizes: Mapping[str, int],
    separator: str = "/",
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
        dimension_names=dims,
        attributes=_json(coordinate.attrs),
        chunk_key_encoding={"name": "default", "separator": separator},
        config=ARRAY_CONFIG,
    )
    await array.setitem(..., coordinate.values.astype(object) if text else coordinate.values)
