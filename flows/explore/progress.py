"""How a sweep goes: what is done, how fast, what fails, and which limits hold it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Endpoint, Json, Query, once
from evalcube.flows.state.records import read_notes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger

POINTS = 200
"""Points of the curve of what was recorded when."""
_LIMITS = ("connections", "requests_per_minute", "tokens_per_minute", "timeout", "retries")


def progress(explored: Explored, _: Query) -> Json:
    """Of each cube: its status, what a run that goes on says of itself, limits by model, and what was recorded when."""
    cubes = zip(explored.opened, explored.addresses, explored.status(), strict=True)
    return {"stamp": explored.stamp(), "cubes": [_cube(*one) for one in cubes]}


def _cube(cube: Cube, address: str, status: Json) -> Json:
    config = read_notes(cube.records).get("config")
    return {
        **{
            name: status[name]
            for name in ("trials", "done", "complete", "damaged", "running", "live", "spent")
        },
        "cube": address,
        "models": [
            {name: model[name] for name in ("model", "trials", "done", "transport", "missing", "causes")}
            for model in status["models"]
        ],
        "limits": limits(config),
        "recorded": recorded(cube),
    }


def limits(config: object) -> dict[str, dict[str, float | str]]:
    """How hard each model's endpoint may be worked, by the model's name, as the config beside the cube says.

    Parameters
    ----------
    config
        What was noted; anything may stand there.

    Returns
    -------
    dict
        Numbers by model and limit, and ``auto`` for connections that are found out; empty where nothing is known.
    """
    models = config.get("models") if isinstance(config, Mapping) else None
    found: dict[str, dict[str, float | str]] = {}
    for model in models if isinstance(models, list | tuple) else ():
        own = model.get("limits") if isinstance(model, Mapping) else None
        if isinstance(own, Mapping):
            numbers = {name: own[name] for name in _LIMITS if isinstance(own.get(name), int | float)}
            found[str(model.get("name", ""))] = {"connections": "auto", **numbers}
    return found


def recorded(cube: Cube) -> dict[str, Any]:
    """How many trials were on record when, from the times of the newest receipts; empty if none has a time.

    Returns
    -------
    dict
        ``at``, seconds since the epoch, and ``trials``, at most `POINTS` of both.
    """
    timed = sorted((one.at, one.finished) for one in Ledger(cube.records).newest().values())
    if not timed:
        return {"at": [], "trials": []}
    at, trials = np.array([time for time, _ in timed]), np.cumsum([count for _, count in timed])
    places = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS)).astype(int))
    return {"at": at[places], "trials": trials[places]}


ENDPOINTS = (Endpoint("progress", progress, once, kept=False),)
