"""The part of a cube that fulfils conditions, as if nothing else existed."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stages.analyze.labelled.selection import CELL, Where, keys, select
from stages.reply.status import QUESTION_MOMENTS, Status


def restrict(ds: xr.Dataset, where: Where | None) -> xr.Dataset:
    """The part of a dataset that fulfils all conditions, for any analysis of the whole.

    Models, tasks, slots and tiers of which nothing is left are gone. Cells inside that are not meant have no
    counters, no outcomes, no label and no tier, like padding.

    Parameters
    ----------
    ds
        Dataset with the cube's coordinates, lazy or not.
    where
        As for `stages.analyze.labelled.aggregate.aggregate`.

    Returns
    -------
    The smaller dataset, lazy where `ds` is; `ds` itself without a condition.

    Raises
    ------
    ValueError
        As `stages.analyze.labelled.selection.select`.
    """
    if not where:
        return ds
    chosen = select(ds, where, keys(ds))
    inside = xr.DataArray(chosen.cells, dims=CELL)
    kept = ds.assign_coords(in_tier=ds["in_tier"] & inside)
    if "cell_id" in ds.coords:
        kept = kept.assign_coords(cell_id=(CELL, _blanked(ds["cell_id"], chosen.cells)))
    if "counters" in ds:
        kept["counters"] = ds["counters"].where(inside, 0.0)
    if QUESTION_MOMENTS in ds:
        kept[QUESTION_MOMENTS] = ds[QUESTION_MOMENTS].where(inside, 0.0)
    if "status" in ds:
        kept["status"] = ds["status"].where(inside, np.uint8(Status.MISSING))
    for name in ("planned_trials", "planned_repeats"):
        if name in ds:
            kept[name] = ds[name].where(inside, np.int32(0))
    places = {
        "model": np.flatnonzero(chosen.models),
        "task": np.flatnonzero(chosen.cells.any(axis=1)),
        "params": np.flatnonzero(chosen.cells.any(axis=0)),
        "tier": list(chosen.tiers),
    }
    return kept.isel(places)


def _blanked(cell_id: xr.DataArray, inside: np.ndarray) -> np.ndarray:
    values = cell_id.transpose(*CELL).values.copy()
    values[~inside] = ""
    return np.asarray(values)
