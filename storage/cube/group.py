"""The directory of a cube in; its zarr arrays, read and written chunk by chunk, out.

All that knows zarr after creation. `storage.cube.cube` is the public face and checks what comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.storage import LocalStore

from storage.cube.layout import ARRAY_CONFIG, RESERVED_ATTRS, consolidate
from storage.cube.schema import FORMAT, LAYERS, SHARED, VARIABLES, Variable
from storage.errors import CubeDamagedError, CubeNotFoundError, CubeVersionError, guarded, storage_error
from storage.files import sync_path, sync_paths

_REPAIR = "Restore it from a copy, or move it away and run the sweep again; its cache has the replies."
_REWRITE = "Write it again: resume the sweep without this region's receipt; the cache has the replies."


class CubeGroup:
    """The arrays of one cube, with the sizes that its consolidated metadata say.

    Raises
    ------
    CubeNotFoundError
        Nothing there, or no cube.
    CubeVersionError
        Written by a newer version.
    CubeDamagedError
        Its metadata cannot be read or lack an array.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._stamp, raw = _read_metadata(path)
        _check_version(path, raw)
        try:
            self._group = zarr.open_group(LocalStore(path), mode="r+" if writable else "r")
            present = set(self.names())
            self.layers = tuple(variable for name, variable in LAYERS.items() if name in present)
            self.sizes = self._checked_sizes()
        except (KeyError, TypeError, ValueError, AttributeError, FileNotFoundError) as error:
            raise CubeDamagedError(f"its metadata are damaged: {error}", path, _REPAIR) from error
        except OSError as error:
            raise storage_error(error, path, "open the cube") from error

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
        return _stamp(self.path) != self._stamp

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
        with guarded(self.path, f"read {name}"):
            try:
                return np.asarray(self._array(name)[selection])
            except (RuntimeError, ValueError, TypeError) as error:
                raise CubeDamagedError(
                    f"a chunk of `{name}` cannot be decoded: {error}", self.path, _REWRITE
                ) from error

    def write_chunk(
        self, name: str, index: tuple[int, ...], selection: tuple[slice, ...], values: NDArray[Any]
    ) -> Path:
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
        Path
            The chunk's file, for `sync_chunks`.

        Raises
        ------
        OSError
            It could not be written; the chunk is as before.
        """
        # Zarr forgets this setting on opening, and a chunk equal to the fill would then not be written.
        array = self._array(name).with_config(ARRAY_CONFIG)
        array[selection] = values
        return self.path / name / array.metadata.encode_chunk_key(index)

    def sync_chunks(self, files: Iterable[Path]) -> None:
        """Put chunks on disk, with the folders that lead to them; zarr's rename saves from kills only."""
        paths = {path for file in files for path in (file, *file.parents) if self.path in path.parents}
        sync_paths(sorted(paths, reverse=True))

    def resize(self, target: Mapping[str, int]) -> None:
        """Enlarge every array along the dims of `target`, then commit the sizes in the consolidated metadata.

        Arrays that an interrupted resize left larger decide: all end at the larger size.

        Raises
        ------
        OSError
            It could not be written; another call finishes it.
        """
        arrays = {name: self._uncommitted(name) for name in self.names()}
        found = [(dim, n) for a in arrays.values() for dim, n in zip(_dims(a), a.shape, strict=True)]
        goal = {dim: max(size, *(n for name, n in found if name == dim)) for dim, size in target.items()}
        for name, array in arrays.items():
            shape = tuple(goal.get(dim, n) for dim, n in zip(_dims(array), array.shape, strict=True))
            if shape != array.shape:
                array.resize(shape)
            if name in goal and (shape != array.shape or not self._counts(name, goal[name])):
                array[...] = np.arange(goal[name])
        for name, array in arrays.items():
            if not set(_dims(array)).isdisjoint(goal):
                _sync_shallow(self.path / name)
                _sync_shallow(self.path / name / "c", deep=name in goal)
        if any(goal[dim] != self.sizes[dim] for dim in goal):
            consolidate(self.path)

    def _counts(self, name: str, size: int) -> bool:
        return bool(np.array_equal(np.asarray(self._uncommitted(name)[...]), np.arange(size)))

    def _array(self, name: str) -> zarr.Array[Any]:
        array = self._group[name]
        if not isinstance(array, zarr.Array):
            raise KeyError(name)
        return array

    def _uncommitted(self, name: str) -> zarr.Array[Any]:
        """An array with the shape that its own metadata say, not the consolidated ones."""
        array = zarr.open_array(LocalStore(self.path), path=name, mode="r+")
        return array.with_config(ARRAY_CONFIG)

    def _checked_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
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


def _sync_shallow(folder: Path, *, deep: bool = True) -> None:
    """Put a folder's own files on disk, and its entries; `deep` False leaves the files out."""
    if not folder.is_dir():
        return
    for file in folder.iterdir() if deep else ():
        if file.is_file():
            sync_path(file)
    sync_path(folder)


def _stamp(path: Path) -> tuple[int, int]:
    with guarded(path, "open the cube"):
        status = (path / "zarr.json").stat()
    return status.st_ino, status.st_mtime_ns


def _check_version(path: Path, raw: Mapping[str, Any]) -> None:
    attributes = raw.get("attributes")
    version = attributes.get("evalcube_format") if isinstance(attributes, dict) else None
    if not isinstance(version, int):
        raise CubeNotFoundError(
            "a Zarr group, but not a cube of evalcube", path, "Check the path's spelling."
        )
    if version > FORMAT:
        raise CubeVersionError(
            f"the cube has format {version}, this version reads up to {FORMAT}", path, "Update evalcube."
        )


def _read_metadata(path: Path) -> tuple[tuple[int, int], dict[str, Any]]:
    """Stamp and content of the group's zarr.json."""
    remedy = "Check the path's spelling, or run the sweep that creates it."
    file = path / "zarr.json"
    if not path.exists():
        raise CubeNotFoundError("there is no cube", path, remedy)
    if not file.exists():
        raise CubeNotFoundError("this is not a cube: it has no zarr.json", path, remedy)
    # The stamp first: a change between the two is then noticed as one more change.
    stamp = _stamp(path)
    try:
        raw = json.loads(file.read_bytes())
    except OSError as error:
        raise storage_error(error, path, "open the cube") from error
    except ValueError as error:
        raise CubeDamagedError(f"its zarr.json is damaged: {error}", path, _REPAIR) from error
    if not isinstance(raw, dict):
        raise CubeDamagedError("its zarr.json is damaged: not an object", path, _REPAIR)
    return stamp, raw
