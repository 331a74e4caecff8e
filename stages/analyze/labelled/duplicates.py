"""Which trials ask a question that is new in their cell, as far as questions have been compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import names
from evalcube.stages.analyze.labelled.counters import raw_task_counters

if TYPE_CHECKING:
    import xarray as xr

_UNKNOWN = 255
"""A question that has not been compared with the others of its cell."""


def unique_shares(ds: xr.Dataset) -> Floats:
    """Share of finished trials whose question is new in its cell, shape (model, task).

    NaN without trials, and for a task of which it is not known whether a planned question occurred before.
    """
    summed, labels = raw_task_counters(ds).values, names(ds, "counter")
    if "duplicates" not in labels or "duplicate" not in ds:
        return np.full(summed.shape[:2], np.nan)
    trials = column(summed, "trials", labels)
    with np.errstate(all="ignore"):
        share = 1.0 - column(summed, "duplicates", labels) / np.where(trials > 0, trials, np.nan)
    return np.where(unmarked_tasks(ds), np.nan, share)


def unmarked_tasks(ds: xr.Dataset) -> NDArray[np.bool_]:
    """Booleans (task,): whether a planned question has not been compared with the others of its cell yet."""
    flags = ds.variables["duplicate"].transpose("task", "params", "trial").values
    planned = np.full(flags.shape[:2], flags.shape[2])
    if "planned_trials" in ds:
        planned = ds.variables["planned_trials"].transpose("model", "task", "params").values.max(axis=0)
    unknown = (flags == _UNKNOWN) & (np.arange(flags.shape[2]) < planned[..., np.newaxis])
    return np.asarray(unknown.any(axis=(1, 2)))
