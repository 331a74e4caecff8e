"""The part of a cube that fulfils conditions, as if nothing else existed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import variable
from evalcube.stages.analyze.labelled.selection import CELL, Where, keys, select
from evalcube.stages.reply.status import QUESTION_MOMENTS, Status

if TYPE_CHECKING:
    import xarray as xr

_NOTHING = {
    "counters": 0.0,
    QUESTION_MOMENTS: 0.0,
    "status": np.uint8(Status.MISSING),
    "planned_trials": np.int32(0),
    "planned_repeats": np.int32(0),
}
"""What stands in the arrays of cells that are not meant."""


def restrict(ds: xr.Dataset, where: Where | None) -> xr.Dataset:
    """The part of a dataset that fulfils all conditions, for any analysis of the whole.

    Models, tasks, slots and tiers of which nothing is left are gone. Cells inside that are not meant have no
    counters, no outcomes, no label and no tier, like padding.

    Parameters
    ----------
    ds
        Dataset with the cube's coordinates, lazy or not.
    where
        As for `evalcube.stages.analyze.labelled.aggregate.aggregate`.

    Returns
    -------
    The smaller dataset, lazy where `ds` is; `ds` itself without a condition.

    Raises
    ------
    ValueError
        As `evalcube.stages.analyze.labelled.selection.select`.
    """
    if not where:
        return ds
    chosen = select(ds, where, keys(ds))
    used = {"task": _places(chosen.cells.any(axis=1)), "params": _places(chosen.cells.any(axis=0))}
    part = ds.isel({"model": _places(chosen.models), **used, "tier": list(chosen.tiers)})
    inside = variable(CELL, chosen.cells).isel(used)
    # Variables, and no arrays with all of the dataset's coordinates: pages ask for parts again and again.
    cells = {"in_tier": within(part.variables["in_tier"], inside, False)}
    if "cell_id" in part.coords:
        cells["cell_id"] = within(part.variables["cell_id"], inside, "")
    values = {
        name: within(part.variables[name], inside, none) for name, none in _NOTHING.items() if name in part
    }
    return part.assign_coords(cells).assign(values)


def _places(kept: NDArray[Any] | np.bool_) -> slice | NDArray[np.intp]:
    """Where something is kept; a slice where that is in one piece, which copies nothing."""
    found = np.flatnonzero(kept)
    first, last = int(found[0]), int(found[-1]) + 1
    return slice(first, last) if last - first == len(found) else found


def within(values: xr.Variable, inside: xr.Variable, nothing: Any) -> xr.Variable:  # noqa: ANN401 - a value
    """Values of the cells that are meant; lazy if they are."""
    if values.chunks is not None:
        import xarray as xr

        return xr.DataArray(values).where(xr.DataArray(inside.values, dims=inside.dims), nothing).variable
    order = [dim for dim in values.dims if dim in CELL]
    shape = [size if dim in CELL else 1 for dim, size in zip(values.dims, values.shape, strict=True)]
    kept = np.where(inside.transpose(*order).values.reshape(shape), values.values, nothing)
    return variable(values.dims, kept.astype(values.dtype, copy=False), values.attrs)
