"""A cube of answers to questions that were asked several times."""

import numpy as np
import xarray as xr

from evalcube.stages.reply.status import Status

SIZES = {"model": 2, "task": 3, "params": 4, "trial": 5, "repeat": 8}


def answered_questions():
    rng = np.random.default_rng(0)
    status = rng.integers(0, 5, tuple(SIZES.values())).astype(np.uint8)
    member = rng.integers(0, 2, (2, 3, 4)).astype(bool)
    member[0] = True
    return xr.Dataset(
        {"status": (tuple(SIZES), status)},
        coords={
            "model_name": ("model", ["a", "b"]),
            "task": ["x", "y", "z"],
            "tier": ["easy", "hard"],
            "in_tier": (("tier", "task", "params"), member),
        },
    )


def correct(ds, **where):
    return (ds["status"].isel(where).values == Status.CORRECT).reshape(-1, SIZES["repeat"])


def answered_points(status, asked):
    return xr.Dataset(
        {"status": (tuple(SIZES), np.where(asked, status, np.uint8(Status.MISSING)))},
        coords={
            "model_name": ("model", ["a"]),
            "task": ["x", "y"],
            "tier": ["easy"],
            "in_tier": (("tier", "task", "params"), np.ones((1, 2, 4), bool)),
            "base_trials": (("task", "params"), np.full((2, 4), 10)),
        },
    )
