"""Compares regions with their receipts, at a glance or in full; a lazy dataset that says what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evalcube.storage.cube.group import UNREADABLE, heal, undecodable
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.cube.schema import LAYERS, VARIABLES
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError, guarded

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.storage.cube.cube import Cube
    from evalcube.storage.cube.group import CubeGroup

CONTENT = ""
"""In the place of an array's name where it is not known which array differs."""


class RecordedChunks:
    """What the ledger of a cube that is read says to be there."""

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        with Ledger(self._cube.records) as ledger:
            self._receipts = ledger.newest()

    def refuse_lost(self, name: str, places: Sequence[NDArray[np.int64]]) -> None:
        """Refuse a trial array of which a recorded region's chunk is gone.

        Parameters
        ----------
        name
            Of the array.
        places
            What was read of it: indices along model, task, params, trial and repeat.

        Raises
        ------
        CubeDamagedError
            One is gone.
        """
        chunks = self._cube.chunks
        trials, repeats = (
            np.unique(part // chunks[dim]) for dim, part in zip(("trial", "repeat"), places[3:5], strict=True)
        )
        for place in product(places[0].tolist(), trials.tolist(), repeats.tolist()):
            receipt = self._receipts.get(Region(*place))
            if receipt is None:
                continue
            problems = self._cube.chunk_problems(receipt.region, self._cube.shape_of(receipt), [name])
            if name in problems:
                where, numbers = self._cube.space.address, "/".join(map(str, place))
                what = f"region {numbers}: array '{name}' {problems[name]}"
                raise CubeDamagedError(what, where, heal(where))


def stored_problems(cube: Cube, receipt: Receipt) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """What is wrong with a recorded region, by array, and its arrays as far as they can be decoded.

    Parameters
    ----------
    cube
        The cube.
    receipt
        The region's newest receipt.

    Returns
    -------
    dict
        A few words by array; under `CONTENT` if all can be decoded and something differs from what was recorded.
        Digests leave ``latency`` out, which differs between equal runs: for it, the chunk's own checksum has to do.
    dict
        The arrays, shaped as the cube is now.
    """
    shape = cube.shape_of(receipt)
    problems = cube.chunk_problems(receipt.region, shape)
    known = cube.trial_arrays
    arrays = cube.stored_arrays(receipt.region, [name for name in known if name not in problems])
    for name, values in arrays.items():
        if known[name].allowed and not np.isin(values, known[name].allowed).all():
            problems[name] = "holds values that nobody writes"
    problems |= dict.fromkeys(known.keys() - problems.keys() - arrays.keys(), "cannot be decoded")
    recorded = shape.cropped(arrays, receipt.trials, receipt.repeats)
    if not problems and region_digest(recorded) != receipt.digest:
        problems[CONTENT] = "is not what was recorded"
    return problems, arrays


def lazy_dataset(group: CubeGroup, space: Space, opened: Callable[[], Cube]) -> xr.Dataset:
    """A cube with its labels in memory, and its other arrays read through `StoredArray`.

    Parameters
    ----------
    group
        The cube's arrays.
    space
        Where the cube is.
    opened
        Gives the cube to a reader on any machine.

    Raises
    ------
    CubeDamagedError
        Labels cannot be decoded.
    """
    import dask.array as da  # take a while, and regions are compared without them
    import xarray as xr
    from dask.base import tokenize

    names = group.names()
    labels = group.read_all({name: (...,) for name in names if name in group.labels})
    arrays: dict[str, Any] = dict(labels)
    for name in names:
        if name not in labels:
            shape, dtype = group.shape(name), group.dtype(name)
            arrays[name] = da.from_array(
                StoredArray(space, name, shape, dtype, opened),
                chunks=group.chunks(name),
                name=f"{name}-{tokenize(space, shape)}",
                meta=np.empty((0,) * len(shape), dtype),
                inline_array=True,
            )
    # Not by xarray's own reader: that opens the cube once more, and asks Dask for each label by itself.
    variables = {name: (group.dims(name), array, group.array_attrs(name)) for name, array in arrays.items()}
    coords = {name: variables.pop(name) for name in labels}
    return xr.Dataset(variables, coords, group.all_attrs)


class StoredArray:
    """An array of a cube, read on demand; it can be pickled, and reads the same on other machines."""

    def __init__(
        self,
        space: Space,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        opened: Callable[[], Cube],
    ) -> None:
        self._space, self._name, self._opened = space, name, opened
        self._variable = VARIABLES.get(name, LAYERS.get(name))
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self._array: zarr.Array[Any] | None = None
        self._recorded: RecordedChunks | None = None

    def __getitem__(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        with guarded(self._space.address, f"read {self._name}"):
            try:
                if self._array is None:
                    self._array = self._open()
                values = np.asarray(self._array[selection])
            except UNREADABLE as error:
                raise undecodable(self._name, self._space.address, error) from error
            self._refuse_lost(values, selection)
            return values if self._variable is None else self._variable.as_read(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredArray, (self._space, self._name, self.shape, self.dtype, self._opened)

    def _refuse_lost(self, values: NDArray[Any], selection: tuple[Any, ...]) -> None:
        """Refuse what reads as fill since its chunk is gone, though a receipt says that it was written."""
        # A store keeps what it has: only in a folder anybody deletes single files.
        if self._space.trusted or not self._variable or not _all_fill(values, self._variable.fill):
            return
        self._recorded = self._recorded or RecordedChunks(self._opened())
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
