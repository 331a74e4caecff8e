"""Loads variables of a cube's dataset, and says which one is damaged, where a chunk cannot be decoded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from evalcube.storage.cube.group import UNREADABLE, undecodable
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

if TYPE_CHECKING:
    import xarray as xr


def in_memory(dataset: xr.Dataset, space: Space) -> xr.Dataset:
    """The dataset with all of its variables in memory.

    Parameters
    ----------
    dataset
        As xarray opens the cube.
    space
        Where the cube is.

    Raises
    ------
    CubeDamagedError
        One cannot be decoded.
    """
    data = loaded(dataset.data_vars, space)
    return dataset.assign_coords(loaded(dataset.coords, space)).assign(data)


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
