"""How much answers to one question are alike: the trials that are worth one independent trial, by model and task."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from stages.analyze.formulas.clustering import cluster_effect, cluster_moments
from stages.analyze.formulas.intervals import Floats

_QUESTION = ("params", "trial", "repeat")


def question_effects(ds: xr.Dataset) -> xr.DataArray | None:
    """Design effect of each model and task, dims (model, task), at least 1; None where trials tell nothing of it.

    Reads the outcomes model by model, and none where no question was asked twice. Lazy if they are.

    Parameters
    ----------
    ds
        With ``status`` (model, task, params, trial, repeat), lazy or not.
    """
    if ds.sizes.get("repeat", 1) < 2:
        ones = np.ones((ds.sizes["model"], ds.sizes["task"]))
        return xr.DataArray(xr.Variable(("model", "task"), ones, fastpath=True))
    if "status" not in ds:
        return None
    status = xr.DataArray(ds["status"].variable)
    if status.chunks is not None:
        status = status.chunk(dict.fromkeys(_QUESTION, -1))
    found: xr.DataArray = xr.apply_ufunc(
        _effects, status, input_core_dims=[_QUESTION], dask="parallelized", output_dtypes=[np.float64]
    )
    return found.transpose("model", "task")


def _effects(status: NDArray[np.uint8]) -> Floats:
    return cluster_effect(cluster_moments(status))
