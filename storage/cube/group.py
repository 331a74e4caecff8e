"""The zarr arrays of a cube, read and written chunk by chunk.

All that knows zarr after creation is here. `storage.cube.cube` is the public face and checks what comes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from storage.cube.layout import ARRAY_CONFIG, RESERVED_ATTRS, consolidate
from storage.cube.schema import FORMAT, LAYERS, SHARED, VARIABLES, Variable
from storage.cube.space import Space, Version
from storage.errors import CubeDamagedError, CubeNotFoundError, CubeVersionError, guarded, storage_error

_METADATA = "zarr.json"
_REPAIR = "Restore it from a copy, or move it away and run the sweep again; its cache has the replies."
_REWRITE = "Write it again: resume the sweep without this region's receipt; the cache has the replies."


class CubeGroup:
    """The arrays of one cube, with the sizes that its consolidated metadata have.

    These metadata are the commit of every growth. The arrays' own metadata may be ahead of them after a kill, and are
    asked by the next growth only.

    Raises
    ------
    CubeNotFoundError
        Nothing there, or no cube.
    CubeVersionError
        Written by a newer version.
    CubeDamagedError
        Its metadata cannot be read or lack an array.
    """

    def __init__(self, space: Space, *, writable: bool) -> None:
        self.space = space
        where = space.address
        # The version of the very bytes that are read: a change after that is noticed as a change.
        raw, self._version = _read_metadata(space)
        _check_version(where, raw)
        try:
            self._group = zarr.open_group(space.zarr(), mode="r+" if writable else "r")
            present = set(self.names())  # layers are optional, and the arrays themselves say which there are
            self.layers = tuple(variable for name, variable in LAYERS.items() if name in present)
            self.sizes = self._checked_sizes()
        except (KeyError, TypeError, ValueError, AttributeError, FileNotFoundError) as error:
            raise CubeDamagedError(f"its metadata are damaged: {error}", where, _REPAIR) from error
        except OSError as error:
            raise storage_error(error, where, "open the cube") from error

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes given at creation, a copy."""
        return {key: value for key, value in self._group.attrs.asdict().items() if key not in RESERVED_ATTRS}

    @property
    def trial_arrays(self) -> dict[str, Variable]:
        """The arrays that a region has, in the order in which they are written: status last."""
        return {variable.name: variable for variable in (*self.layers, *VARIABLES.values())}

    @property
    def outdated(self) -> bool:
        """Whether the metadata were written again since this object read them."""
        with guarded(self.space.address, "open the cube"):
            return self.space.version(_METADATA) != self._version

    def names(self) -> list[str]:
        """Names of all arrays, coordinates included."""
        return [name for name, _ in self._group.arrays()]

    def chunks(self, name: str) -> tuple[int, ...]:
        """Chunk shape of an array."""
        return tuple(self._array(name).chunks)

    def read(self, name: str, selection: tuple[slice, ...]) -> NDArray[Any]:
        """Values of a selection; cells never written hold the fill.

        Raises
        ------
        CubeDamagedError
            A chunk cannot be decoded.
        """
        with guarded(self.space.address, f"read {name}"):
            try:
                return np.asarray(self._array(name)[selection])
            except (RuntimeError, ValueError, TypeError) as error:
                what = f"a chunk of `{name}` cannot be decoded: {error}"
                raise CubeDamagedError(what, self.space.address, _REWRITE) from error

    def write_chunk(
        self, name: str, index: tuple[int, ...], selection: tuple[slice, ...], values: NDArray[Any]
    ) -> str:
        """Write one whole chunk; others see the old or the new.

        Parameters
        ----------
        name
            The array.
        index
            Chunk index along each dim.
        selection
            The cells of that chunk, as far as they are inside of the array.
        values
            Array of the selection's shape.

        Returns
        -------
        str
            The chunk's key, for `Space.sync`.

        Raises
        ------
        OSError
            It could not be written; the chunk is as before.
        """
        # Zarr forgets this setting on opening, and a chunk equal to the fill would then not be written.
        array = self._array(name).with_config(ARRAY_CONFIG)
        # A whole chunk: zarr need not read the old one, and two writers of neighbours never touch the same object.
        array[selection] = values
        return f"{name}/{array.metadata.encode_chunk_key(index)}"

    def resize(self, target: Mapping[str, int]) -> None:
        """Enlarge every array along the dims of `target`, then commit the sizes in the consolidated metadata.

        Arrays that an interrupted resize left larger decide: all end at the larger size.

        Raises
        ------
        OSError
            It could not be written; another call finishes it.
        """
        # Not the consolidated sizes: a driver that was killed in here may have enlarged some arrays already, and tasks
        # of a later one may have written there. Nothing ever shrinks.
        arrays = {name: self._uncommitted(name) for name in self.names()}
        found = [(dim, n) for a in arrays.values() for dim, n in zip(_dims(a), a.shape, strict=True)]
        goal = {dim: max(size, *(n for name, n in found if name == dim)) for dim, size in target.items()}
        for name, array in arrays.items():
            shape = tuple(goal.get(dim, n) for dim, n in zip(_dims(array), array.shape, strict=True))
            if shape != array.shape:
                array.resize(shape)
            # An index counts its cells. Its new ones may be missing after a kill, although its size is right.
            if name in goal and (shape != array.shape or not self._counts(name, goal[name])):
                array[...] = np.arange(goal[name])
        grown: list[str] = []
        for name, array in arrays.items():
            if not set(_dims(array)).isdisjoint(goal):
                grown += [f"{name}/zarr.json", f"{name}/c/"]
                if name in goal:
                    grown += self.space.list(f"{name}/c/")
        # The commit comes after all that it speaks of: a power cut between leaves a cube of the old size.
        self.space.sync(grown)
        # Nothing is rewritten for a growth that was finished before: readers' versions would go stale for nothing.
        if any(goal[dim] != self.sizes[dim] for dim in goal):
            consolidate(self.space.zarr())
            self.space.sync([_METADATA])

    def _counts(self, name: str, size: int) -> bool:
        return bool(np.array_equal(np.asarray(self._uncommitted(name)[...]), np.arange(size)))

    def _array(self, name: str) -> zarr.Array[Any]:
        array = self._group[name]
        if not isinstance(array, zarr.Array):
            raise KeyError(name)
        return array

    def _uncommitted(self, name: str) -> zarr.Array[Any]:
        """An array with the shape in its own metadata, not in the consolidated ones."""
        array = zarr.open_array(self.space.zarr(), path=name, mode="r+")
        return array.with_config(ARRAY_CONFIG)

    def _checked_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        # Of all arrays, at each opening: whoever wrote into one of another shape would write past its region.
        for variable in (*self.trial_arrays.values(), *SHARED):
            array = self._array(variable.name)
            if _dims(array) != variable.dims or array.dtype != np.dtype(variable.dtype):
                raise ValueError(f"array {variable.name!r} is {array.dtype} {_dims(array)}")
        for name, array in self._group.arrays():
            for dim, size in zip(_dims(array), array.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise ValueError(f"array {name!r} has {size} along {dim}, others {sizes[dim]}")
        return sizes


def _dims(array: zarr.Array[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in getattr(array.metadata, "dimension_names", None) or ())


def _check_version(where: str, raw: Mapping[str, Any]) -> None:
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


def _read_metadata(space: Space) -> tuple[dict[str, Any], Version]:
    """Content of the group's metadata, with their version."""
    where, remedy = space.address, "Check the path's spelling, or run the sweep that creates it."
    with guarded(where, "open the cube"):
        found = space.get(_METADATA)
        # A cube appears whole, with this object: without it there is none, whatever else there is.
        if found is None and not space.is_there():
            raise CubeNotFoundError("there is no cube", where, remedy)
    if found is None:
        raise CubeNotFoundError("this is not a cube: it has no zarr.json", where, remedy)
    try:
        raw = json.loads(found.data)
    except ValueError as error:
        raise CubeDamagedError(f"its zarr.json is damaged: {error}", where, _REPAIR) from error
    if not isinstance(raw, dict):
        raise CubeDamagedError("its zarr.json is damaged: not an object", where, _REPAIR)
    return raw, found.version
