"""Compares regions with their receipts, at a glance or in full; a lazy dataset that says what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, PlainDataset
from evalcube.storage.cube.group import chunk_error
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.cube.schema import LAYERS, VARIABLES

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.storage.cube.cube import Cube

CONTENT = ""
"""In the place of an array's name where it is not known which array differs."""


class RecordedChunks:
    """What the ledger of a cube that is read says to be there."""

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        with Ledger(self._cube.records) as ledger:
            self._receipts = ledger.newest()
        cube.refresh()  # afterwards: a receipt never speaks of a growth that the cube's metadata do not have yet

    def refuse_lost(self, name: str, places: Sequence[NDArray[np.int64]]) -> None:
        """Refuse a trial array of which a recorded region's chunk is gone."""
        chunks = self._cube.chunks
        trials, repeats = (
            np.unique(part // chunks[dim]) for dim, part in zip(("trial", "repeat"), places[3:5], strict=True)
        )
        for region_index in product(places[0].tolist(), trials.tolist(), repeats.tolist()):
            receipt = self._receipts.get(Region(*region_index))
            if receipt is None:
                continue
            problems = self._cube.chunk_problems(receipt.region, self._cube.shape_of(receipt), [name])
            if name in problems:
                raise chunk_error(name, problems[name], self._cube.space.address)


def stored_problems(cube: Cube, receipt: Receipt) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """What is wrong with a recorded region, by array, and its arrays as far as they can be decoded."""
    shape = cube.shape_of(receipt)
    problems = cube.chunk_problems(receipt.region, shape)
    variables = cube.trial_arrays
    arrays = cube.stored_arrays(receipt.region, [name for name in variables if name not in problems])
    for name, values in arrays.items():
        if variables[name].allowed and not np.isin(values, variables[name].allowed).all():
            problems[name] = "holds invalid values"
    problems |= {name: "cannot be decoded" for name in variables if name not in problems | arrays}
    recorded = shape.crop(arrays, receipt.trials, receipt.repeats)
    if not problems and region_digest(recorded) != receipt.digest:
        problems[CONTENT] = "is not what was recorded"
    return problems, arrays


def lazy_dataset(cube: Cube, opened: Callable[[], Cube]) -> xr.Dataset:
    """A cube with its labels in memory, and its other arrays in Dask's, a chunk for each that is stored."""
    import dask.array as da  # take a while, and regions are compared without them
    import xarray as xr
    from dask.base import tokenize

    def lazy(array: StoredArray) -> Any:  # noqa: ANN401 - an array of Dask's
        return da.from_array(
            array,
            chunks=cube.group.chunks(array.name),
            name=f"{array.name}-{tokenize(cube.space, array.shape)}",
            meta=np.empty((0,) * array.ndim, array.dtype),
            inline_array=True,
        )

    # Not by xarray's own reader: that opens the cube once more, and asks Dask for each label by itself.
    return xr.Dataset(*_variables(cube, opened, lazy), cube.group.all_attrs)


def whole_dataset(cube: Cube) -> Dataset:
    """As `lazy_dataset`, all in memory and without xarray, as `evalcube.storage.cube.shared_arrays.in_memory`."""
    group = cube.group
    arrays = group.read_all(dict.fromkeys(sorted(set(group.names()) - group.labels), (...,)))
    data, coords = _variables(cube, lambda: cube, lambda array: array.checked_values(arrays[array.name]))
    return PlainDataset(data, coords, group.all_attrs)


def _variables(
    cube: Cube, opened: Callable[[], Cube], read: Callable[[StoredArray], Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Dims, values and attributes of arrays, and of labels, which are read at once; the others as `read` does."""
    group, once = cube.group, Once(opened)
    labels = group.read_all(dict.fromkeys(sorted(group.labels), (...,)))
    data, coords = dict[str, Any](), dict[str, Any]()
    for name in group.names():
        if name in labels:
            coords[name] = (group.dims(name), labels[name], group.array_attrs(name))
        else:
            array = StoredArray(once, name, group.shape(name), group.dtype(name))
            data[name] = (group.dims(name), read(array), group.array_attrs(name))
    return data, coords


class Once:
    """Gives what is made when it is first asked for, on each machine that it gets to."""

    def __init__(self, make: Callable[[], Cube]) -> None:
        self._make = make
        self._made: Cube | None = None

    def __call__(self) -> Cube:
        """What was made."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        return Once, (self._make,)


class StoredArray:
    """An array of a cube, read on demand; it can be pickled, and reads the same on other machines."""

    def __init__(
        self, opened: Callable[[], Cube], name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._opened, self.name = opened, name
        self._variable = VARIABLES.get(name, LAYERS.get(name))
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self._recorded: RecordedChunks | None = None

    def __getitem__(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        values = self._opened().group.read(self.name, selection)
        self._refuse_lost(values, selection)
        return values if self._variable is None else self._variable.as_read(values)

    def checked_values(self, values: NDArray[Any]) -> NDArray[Any]:
        """All of it, as it was read."""
        for _, cells in self._opened().group.grid(
            self.name
        ):  # a chunk by itself: that of one region may be gone
            self._refuse_lost(values[cells], cells)
        return values if self._variable is None else self._variable.as_read(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredArray, (self._opened, self.name, self.shape, self.dtype)

    def _refuse_lost(self, values: NDArray[Any], selection: tuple[Any, ...]) -> None:
        """Refuse what reads as fill since its chunk is gone, though a receipt says that it was written."""
        # A store keeps what it has: only in a folder anybody deletes single files.
        if not self._variable or self._opened().is_object_store or not _all_fill(values, self._variable.fill):
            return
        self._recorded = self._recorded or RecordedChunks(self._opened())
        places = [np.unique(np.arange(size)[part]) for size, part in zip(self.shape, selection, strict=True)]
        self._recorded.refuse_lost(self.name, places)


def _all_fill(values: NDArray[Any], fill: float) -> bool:
    fills = np.isnan if np.isnan(fill) else partial(np.equal, fill)
    return values.size > 0 and bool(fills(values.flat[0])) and bool(fills(values).all())
