"""A cube's dataset whose lazy variables say which array is damaged, where a chunk cannot be decoded, or is gone."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import zarr
from dask.base import tokenize
from numpy.typing import NDArray

from evalcube.storage.cube.group import UNREADABLE, undecodable
from evalcube.storage.cube.schema import LAYERS, VARIABLES
from evalcube.storage.cube.shared_arrays import loaded
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.storage.cube.integrity import Recorded


def checked(dataset: xr.Dataset, space: Space, names: Collection[str]) -> xr.Dataset:
    """The dataset with its labels in memory, and some variables read through `StoredArray`.

    Parameters
    ----------
    dataset
        As xarray opens the cube.
    space
        Where the cube is.
    names
        Variables to replace: they are stored as they are meant, with nothing for xarray to decode.

    Raises
    ------
    CubeDamagedError
        Labels cannot be decoded.
    """
    dataset = dataset.assign_coords(loaded(dataset.coords, space))
    stored = {}
    for name in names:
        lazy = dataset.variables[name]
        array = da.from_array(
            StoredArray(space, name, dataset.variables[name].shape, lazy.dtype),
            chunks=lazy.chunks,
            name=f"{name}-{tokenize(lazy.data.name)}",
            meta=np.empty((0,) * lazy.ndim, lazy.dtype),
            inline_array=True,
        )
        stored[name] = lazy.copy(data=array)
    return dataset.assign(stored)  # at once: xarray aligns what comes with all that is there


class StoredArray:
    """An array of a cube, read on demand; it can be pickled, and reads the same on other machines."""

    def __init__(self, space: Space, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._space, self._name = space, name
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self._array: zarr.Array[Any] | None = None
        self._recorded: Recorded | None = None

    def __getitem__(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        with guarded(self._space.address, f"read {self._name}"):
            try:
                if self._array is None:
                    self._array = self._open()
                values = np.asarray(self._array[selection])
            except UNREADABLE as error:
                raise undecodable(self._name, self._space.address, error) from error
            self._refuse_lost(values, selection)
            return values

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredArray, (self._space, self._name, self.shape, self.dtype)

    def _refuse_lost(self, values: NDArray[Any], selection: tuple[Any, ...]) -> None:
        """Refuse what reads as fill since its chunk is gone, though a receipt says that it was written."""
        variable = VARIABLES.get(self._name, LAYERS.get(self._name))
        # A store keeps what it has: only in a folder anybody deletes single files.
        if self._space.trusted or variable is None or not _all_fill(values, variable.fill):
            return
        from evalcube.storage.cube.integrity import Recorded  # which knows cubes, that need this module

        self._recorded = self._recorded or Recorded(self._space)
        places = [np.unique(np.arange(size)[part]) for size, part in zip(self.shape, selection, strict=True)]
        self._recorded.refuse_lost(self._name, places)

    def _open(self) -> zarr.Array[Any]:
        array = zarr.open_group(self._space.zarr(read_only=True), mode="r")[self._name]
        if not isinstance(array, zarr.Array):
            raise KeyError(self._name)
        return array


def _all_fill(values: NDArray[Any], fill: float) -> bool:
    fills = np.isnan if np.isnan(fill) else partial(np.equal, fill)
    return values.size > 0 and bool(fills(values.flat[0])) and bool(fills(values).all())
