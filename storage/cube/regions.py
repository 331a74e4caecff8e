"""The unit of writing: the same stretch of every trial array, its address, its shape and the digest of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube.storage.cube.schema import LAYERS, REGION_DIMS, VARIABLES, Variable

_UNTIMED = ("latency", "first_token")  # differ between equal runs


@dataclass(frozen=True, order=True, slots=True)
class Region:
    """One model, all tasks and params, a run of trials and repeats: whole chunks of every trial array."""

    model: int
    """Index along ``model`` (chunks of one)."""
    trial: int
    """Chunk index along ``trial``."""
    repeat: int
    """Chunk index along ``repeat``."""


@dataclass(frozen=True)
class RegionShape:
    """What regions consist of, trials and repeats aside: all alike in a cube until it grows along other dims.

    A cube only grows at the ends of its dims, so that a region as it was recorded is the beginning of what it is now.
    """

    sizes: Mapping[str, int]
    """Cells along task and params, and along the dims of judges' readings where there are any."""
    layers: tuple[str, ...]
    """Names of the arrays that it has beside those of every region."""

    def crop(self, arrays: Mapping[str, NDArray[Any]], trials: int, repeats: int) -> dict[str, NDArray[Any]]:
        """The cells of a region's arrays that a region of this shape has, of so many trials and repeats."""
        long = {**self.sizes, "trial": trials, "repeat": repeats}
        return {
            name: values[tuple(slice(long[dim]) for dim in dims_of(name))]
            for name, values in arrays.items()
            if name in VARIABLES or name in self.layers
        }


def shapes_from(
    attribute: object, sizes: Mapping[str, int], layers: Sequence[Variable]
) -> tuple[RegionShape, ...]:
    """The shapes that a cube's regions have had, of which the last is today's."""
    names = tuple(variable.name for variable in layers)
    dims = sorted({dim for name in ("status", *names) for dim in dims_of(name)} - {"trial", "repeat"})
    today = RegionShape({dim: sizes[dim] for dim in dims}, names)
    if attribute is None:
        return (today,)
    shapes = []
    listed: Any = attribute
    for item in listed:
        shape = RegionShape(dict(item["sizes"]), tuple(item["layers"]))
        needed = {dim for name in ("status", *shape.layers) for dim in dims_of(name)} - {"trial", "repeat"}
        fits = needed == set(shape.sizes) and set(shape.layers) <= set(names)
        if not fits or not all(type(n) is int and 0 < n <= sizes[dim] for dim, n in shape.sizes.items()):
            raise ValueError(f"no region of the cube has had the shape {item}")
        shapes.append(shape)
    if not shapes or shapes[-1] != today:
        raise ValueError("the last of the shapes that its regions have had is not today's")
    return tuple(shapes)


def dims_of(name: str) -> tuple[str, ...]:
    """Dims of a trial array within a region."""
    variable = VARIABLES[name] if name in VARIABLES else LAYERS[name]
    return (*REGION_DIMS, *variable.dims[len(REGION_DIMS) + 1 :])


def region_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Digest of a region's content: BLAKE2b of names, shapes and little-endian bytes, times left out."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(set(arrays) - set(_UNTIMED)):
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name}:{little.dtype.str}:{array.shape};".encode())
        digest.update(little.tobytes())
    return digest.hexdigest()
