"""How much answers to one question are alike: the trials that are worth one independent trial, by model and task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.clustering import cluster_effect, cluster_moments
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.applied import applied
from evalcube.stages.analyze.labelled.axes import most_repeats, names
from evalcube.stages.reply.status import QUESTION_COUNTERS, QUESTION_MOMENTS

_QUESTION = ("params", "trial", "repeat")


def with_question_moments(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with `QUESTION_MOMENTS` apart from ``counters``, which keeps those of trials; lazy if it is.

    Parameters
    ----------
    ds
        As a cube is read; one of an earlier version counts no questions, and is returned as it is.
    """
    if "counters" not in ds or "counter" not in ds.coords:
        return ds
    labels = names(ds, "counter")
    if not set(QUESTION_COUNTERS) <= set(labels):
        return ds
    trials = [label for label in labels if label not in QUESTION_COUNTERS]
    counters = ds["counters"].variable
    chosen = counters.isel(
        counter=[labels.index(label) for label in ("correct", "trials", *QUESTION_COUNTERS)]
    )
    dims = ["moment" if dim == "counter" else dim for dim in chosen.dims]
    parts = {
        "counters": counters.isel(counter=[labels.index(label) for label in trials]),
        QUESTION_MOMENTS: xr.Variable(dims, chosen.data, fastpath=True),
    }
    attrs = ds["counter"].attrs
    kept = ds.drop_vars(["counters", "counter"]).assign(parts)
    # On the fast path, as xarray imports Dask's arrays to look at the values.
    return kept.assign_coords(counter=xr.Variable("counter", np.array(trials), attrs, fastpath=True))


def question_effects(ds: xr.Dataset) -> xr.DataArray | None:
    """Design effect of each model and task, dims (model, task), at least 1; None where trials tell nothing of it.

    Reads what a cube counts of questions; where it does not, the outcomes model by model, and none where no question
    was asked twice. Lazy if they are.

    Parameters
    ----------
    ds
        With `QUESTION_MOMENTS`, or ``status`` (model, task, params, trial, repeat), lazy or not.
    """
    if QUESTION_MOMENTS in ds:
        moments = ds[QUESTION_MOMENTS].variable.transpose("model", "task", "params", "moment")
        return _by_task(cluster_effect, moments, ("params", "moment"))
    if "status" not in ds and most_repeats(ds) > 1:
        return None
    if "status" not in ds or ds.sizes["repeat"] < 2:
        ones = np.ones((ds.sizes["model"], ds.sizes["task"]))
        return xr.DataArray(xr.Variable(("model", "task"), ones, fastpath=True))
    return _by_task(_effects, ds["status"].variable, _QUESTION)


def _by_task(
    function: Callable[[NDArray[Any]], Floats], values: xr.Variable, core: tuple[str, ...]
) -> xr.DataArray:
    """A function over all of `core` at once: (model, task)."""
    (found,) = applied(function, [(values, core)], [{}], {})
    return xr.DataArray(found.transpose("model", "task"))


def _effects(status: NDArray[np.uint8]) -> Floats:
    return cluster_effect(cluster_moments(status))
