"""Loads variables of a cube's dataset, and says which one is damaged, where a chunk cannot be decoded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

from evalcube._arrays import Dataset, variable
from evalcube.storage.cube.group import UNREADABLE, CubeGroup, undecodable
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

if TYPE_CHECKING:
    import xarray as xr


def in_memory(group: CubeGroup) -> xr.Dataset:
    """What a cube holds beside its trial arrays, in memory, without xarray.

    Parameters
    ----------
    group
        The cube's arrays.

    Returns
    -------
    Dataset
        One of `evalcube._arrays`, which has what analyses use of xarray's.

    Raises
    ------
    CubeDamagedError
        One cannot be decoded.
    """
    labels, found = group.labels, {}
    for name in group.names():
        dims = group.dims(name)
        # Labels of single trials can be many, and say nothing of cells.
        if name not in group.trial_arrays and not (name in labels and "trial" in dims and len(dims) > 1):
            found[name] = variable(dims, group.read(name, (...,)), group.array_attrs(name))
    coords = {name: one for name, one in found.items() if name in labels}
    data = {name: one for name, one in found.items() if name not in labels}
    return cast("xr.Dataset", Dataset(data, coords, group.all_attrs))


def loaded(variables: Mapping[Any, xr.DataArray], space: Space) -> dict[Hashable, xr.Variable]:
    """Variables in memory, by name.

    Parameters
    ----------
    variables
        Of a dataset that xarray opened.
    space
        Where the cube is.

    Raises
    ------
    CubeDamagedError
        One cannot be decoded.
    """
    found = {}
    for name, array in variables.items():
        try:
            with guarded(space.address, f"read {name}"):
                found[name] = array.variable.load()
        except UNREADABLE as error:
            raise undecodable(str(name), space.address, error) from error
    return found
