"""Sums of a cube's counters, labelled, over the points of a tier or a task."""

from __future__ import annotations

import numpy as np
import xarray as xr

CELL_DIMS = ("model", "task", "params", "counter")


def counters(ds: xr.Dataset) -> xr.DataArray:
    """The cube's counters with dims (model, task, params, counter), lazy if the dataset is.

    Raises
    ------
    ValueError
        If the dataset has no such array, or lacks a coordinate that names its parts.
    """
    if "counters" not in ds or set(ds["counters"].dims) != set(CELL_DIMS):
        raise ValueError(
            f"the dataset has no array `counters` with dims {CELL_DIMS}; open it with `Cube.dataset()`"
        )
    absent = [name for name in ("model_name", "task", "tier", "in_tier", "counter") if name not in ds.coords]
    if absent:
        raise ValueError(f"the dataset lacks the coordinates {absent}; a cube written by a sweep has them")
    return ds["counters"].transpose(*CELL_DIMS)


def tier_counters(ds: xr.Dataset) -> xr.DataArray:
    """Counters summed over each task's points in each tier: dims (model, tier, task, counter).

    Lazy if `ds` is. A point that belongs to several tiers counts in each of them.
    """
    member = ds["in_tier"].astype(np.float64)
    summed: xr.DataArray = xr.dot(counters(ds), member, dim="params")
    return summed.transpose("model", "tier", "task", "counter")


def task_counters(ds: xr.Dataset) -> xr.DataArray:
    """Counters summed over all points of each task, each once: (model, task, counter); lazy if `ds` is."""
    return counters(ds).sum("params")


def within_tiers(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with the counters of points in no tier set to zero: these have no right or wrong answer."""
    member = ds["in_tier"].any("tier")
    return ds if bool(member.all()) else ds.assign(counters=counters(ds).where(member, 0.0))
