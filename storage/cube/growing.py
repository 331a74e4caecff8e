"""How a cube becomes larger: more trials and repeats; more models, tasks, points, tiers and judges.

A cube only grows, and only at the ends of its dims, so that all that was written stays where it is and as it is. What
others see changes in one step, when the consolidated metadata are replaced; the arrays' own follow.

No chunk of a trial array is touched: their metadata alone change. Labels, counters and plans, which are small, are
written anew under other keys (those with slashes in the place of points, or the other way round), and so beside the
chunks that readers and a killed growth still need. The metadata say which of both are meant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.api.asynchronous import create_group
from zarr.core.buffer import Buffer
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from evalcube.storage.cube.group import CubeGroup
from evalcube.storage.cube.layout import (
    MODELS_PER_COUNTER_CHUNK,
    SEPARATOR,
    SHAPES,
    Coordinate,
    check_labels,
    create_coordinate,
    create_variable,
)
from evalcube.storage.cube.metadata import commit, put_own, read_metadata, set_sizes
from evalcube.storage.cube.regions import RegionShape
from evalcube.storage.cube.schema import COUNTERS, LAYERS, PLANNED, SHARED, VARIABLES, Variable
from evalcube.storage.cube.space import METADATA, Space
from evalcube.storage.errors import CubeDamagedError, CubeMismatchError

KEPT = ("trial", "repeat", "counter")
"""Indexes that stay as they are."""
_OF_LABELS = ("tier", "dataset")
_WHOLE = (COUNTERS, *PLANNED.values())


@dataclass(frozen=True)
class Enlargement:
    """What a cube is to have; see `evalcube.storage.cube.cube.Cube.extend`."""

    sizes: Mapping[str, int]
    coordinates: Sequence[Coordinate]
    attrs: Mapping[str, object]
    layers: Sequence[str]
    shared: Mapping[str, NDArray[Any]]


class Extension:
    """One growth of a cube."""

    def __init__(self, space: Space, group: CubeGroup, growth: Enlargement) -> None:
        self._space, self._group = space, group
        # Dims that only labels have are as long as these.
        pairs = [
            pair for label in growth.coordinates for pair in zip(label.dims, label.values.shape, strict=True)
        ]
        self._sizes = {**group.sizes, **growth.sizes, **{dim: n for dim, n in pairs if dim in _OF_LABELS}}
        self._changed = {dim for dim, size in self._sizes.items() if size != group.sizes.get(dim)}
        self._coordinates, self._attrs = list(growth.coordinates), growth.attrs
        self._layers = tuple(name for name in LAYERS if name in growth.layers)
        self._shared = growth.shared
        self._check(growth.sizes)

    def _check(self, sizes: Mapping[str, int]) -> None:
        where, present = self._space.address, self._group.sizes
        for dim, size in sizes.items():
            if size < present.get(dim, 0):
                problem = f"a cube never shrinks: {dim} is {present[dim]}, {size} was asked for"
                raise CubeMismatchError(problem, where, "Select when reading, or create another cube.")
        lost = {variable.name for variable in self._group.layers} - set(self._layers)
        if lost:
            raise CubeMismatchError(f"a cube never loses arrays: {sorted(lost)}", where, "Name them, too.")
        check_labels(where, self._coordinates, self._sizes, self._attrs)

    def write(self) -> None:
        """Write what is new, and make it the cube; the arrays' own metadata follow."""
        # Their version is the condition of the commit: a second driver that grows the cube at the same time is noticed.
        document, version = read_metadata(self._space)
        arrays = document["consolidated_metadata"]["metadata"]
        set_sizes(document, self._sizes)
        staged = self._stage_arrays(arrays)
        for key, data in staged.items():
            name, _, subkey = key.partition("/")
            # Metadata wait for the commit; chunks go under keys that neither readers nor the cube after a kill look at.
            if subkey == METADATA:
                arrays[name] = json.loads(data)
            else:
                self._space.put(key, data)
        attributes = document["attributes"]
        attributes.update(json.loads(json.dumps(dict(self._attrs))))
        auxiliary = [label.name for label in self._coordinates if label.dims != (label.name,)]
        label_names = attributes.get("coordinates", "").split()
        attributes["coordinates"] = " ".join(dict.fromkeys([*label_names, *auxiliary]))
        shapes = self._shapes()
        if len(shapes) > 1:
            attributes[SHAPES] = [{"sizes": dict(past.sizes), "layers": list(past.layers)} for past in shapes]
        # The growth happens here: whoever is killed before leaves the old cube, and who is killed later the new one.
        commit(self._space, document, version)
        # They may lag behind after a kill: the consolidated metadata overrule them, and `own_problem` knows such a lag.
        for name, metadata in arrays.items():
            if metadata.get("node_type") == "array":
                put_own(self._space, name, metadata)

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        more = len(self._layers) > len(self._group.layers)
        return bool(self._changed or self._attrs or self._shared or more)

    def _shape(self, dims: Sequence[str]) -> list[int]:
        return [self._sizes[dim] for dim in dims]

    def _shapes(self) -> list[RegionShape]:
        before = list(self._group.shapes)
        # Receipts name a shape by its number, so that shapes are only ever added.
        dims = list(before[-1].sizes)
        if "judge_readings" in self._layers:
            dims += [dim for dim in ("judge_name", "judge_repeat") if dim not in dims]
        after = RegionShape({dim: self._sizes[dim] for dim in sorted(dims)}, self._layers)
        return before if after == before[-1] else [*before, after]

    def _stage_arrays(self, arrays: Mapping[str, Any]) -> dict[str, bytes]:
        """Objects of the arrays that are made or written anew, by key."""
        # In memory: zarr makes the bytes, and the order in which they reach the space is decided here.
        held: dict[str, Buffer] = {}
        root = sync(create_group(store=MemoryStore(held), zarr_format=3))
        _, _, _, trial, repeat = self._group.chunks("status")
        for name in self._layers:
            if name not in arrays:
                chunks = {**self._sizes, "model": 1, "trial": trial, "repeat": repeat}
                sync(create_variable(root, LAYERS[name], self._sizes, chunks))
        for variable in _WHOLE:
            values = self._whole(variable)
            if values is not None:
                chunks = {**self._sizes}
                if variable is COUNTERS:
                    chunks["model"] = min(self._sizes["model"], MODELS_PER_COUNTER_CHUNK)
                separator = _other_separator(arrays.get(variable.name))
                array = sync(create_variable(root, variable, self._sizes, chunks, separator))
                sync(array.setitem(..., values))
        for coordinate in self._labels(arrays):
            if not self._is_there(coordinate):
                separator = _other_separator(arrays.get(coordinate.name))
                sync(create_coordinate(root, coordinate, self._sizes, separator))
        return {key: data.to_bytes() for key, data in held.items() if key != METADATA}

    def _whole(self, variable: Variable) -> NDArray[Any] | None:
        """Counters or plans as they are to be; None if they are so."""
        shape = tuple(self._shape(variable.dims))
        if variable.name in self._shared:
            return np.broadcast_to(self._shared[variable.name], shape)
        if self._changed.isdisjoint(variable.dims):
            return None
        return _pad(self._group.read(variable.name, (...,)), shape, variable.fill)

    def _labels(self, arrays: Mapping[str, Any]) -> list[Coordinate]:
        """The labels that are given, and others that the cube has, as they grow: empty for what is new."""
        given_names = {coordinate.name for coordinate in self._coordinates}
        settled_names = {*VARIABLES, *LAYERS, *(variable.name for variable in SHARED), *KEPT, *given_names}
        labels = list(self._coordinates)
        for name in self._group.names():
            dims = self._group.dims(name)
            if name not in settled_names and not self._changed.isdisjoint(dims):
                values = _pad(self._group.read(name, (...,)), tuple(self._shape(dims)))
                labels.append(Coordinate(name, dims, values, arrays[name]["attributes"]))
        return labels

    def _is_there(self, coordinate: Coordinate) -> bool:
        """Whether the cube has these labels already."""
        if coordinate.name not in self._group.names():
            return False
        try:
            old = self._group.read(coordinate.name, (...,))
        except CubeDamagedError:
            return False
        if old.shape != coordinate.values.shape:
            return False
        if old.dtype.kind in "OUT":
            return bool(old.tolist() == coordinate.values.tolist())
        return old.tobytes() == coordinate.values.astype(old.dtype).tobytes()


def _other_separator(metadata: Mapping[str, Any] | None) -> str:
    """The separator that an array's chunk keys do not have now."""
    now = metadata and metadata["chunk_key_encoding"]["configuration"]["separator"]
    return "/" if now == SEPARATOR else SEPARATOR


def _pad(old: NDArray[Any], shape: tuple[int, ...], fill: object = None) -> NDArray[Any]:
    if fill is None:
        fill = {"f": np.nan, "b": False, "i": 0, "u": 0}.get(old.dtype.kind, "")
    new = np.full(shape, fill, dtype=object if old.dtype.kind in "OUT" else old.dtype)
    new[tuple(map(slice, old.shape))] = old
    return new
