"""What cubes hold and how their sweeps go: models, tasks and levels; what is done, how fast, and what fails."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Answerer, Json, Query, once
from evalcube.flows.read.reader import STATUSES
from evalcube.flows.read.trials.open_cube import MEASURED
from evalcube.flows.state.records import read_notes
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.selection import Key, keys
from evalcube.stages.reply.status import OUTCOMES
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger

WRONG = tuple(OUTCOMES)[1:]
"""Outcomes of finished trials without a right answer."""

_TOLD = ("trials", "done", "complete", "damaged", "running")
"""What pages show of a cube's status; the rest names machines, endpoints and caches."""

_MOST_LEVELS = 400
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")


def overview(explored: Explored, _: Query) -> Json:
    """Names of all that can be chosen, in the order of the cubes."""
    opened = explored.whole()
    dataset = opened.dataset
    table = keys(dataset)
    names = {name: axes.names(dataset, name) for name in ("model_name", "template", "sampler", "eval_id")}
    facets = [axes.facets(text) for text in axes.names(dataset, "facets")]
    return {
        "title": _title(explored),
        "cubes": list(explored.addresses),
        "stamp": explored.stamp(),
        "models": [
            {
                "label": label,
                **{name: values[model] for name, values in names.items()},
                "facets": facets[model],
            }
            for model, label in enumerate(explored.labels())
        ],
        "tasks": _tasks(dataset, table),
        "tiers": axes.names(dataset, "tier"),
        "facets": [_levels(name, key) for name, key in table.items() if name.startswith("facet_")],
        "repeats": axes.most_repeats(dataset),
        "statuses": list(STATUSES),
        "wrong": list(WRONG),
        "measured": list(MEASURED),
        "warnings": list(opened.warnings),
        "status": live(explored, Query()),
    }


def live(explored: Explored, _: Query) -> Json:
    """How far each cube is, and a stamp that changes when something new is recorded."""
    cubes = [{name: state[name] for name in _TOLD} for state in explored.status()]
    return {"stamp": explored.stamp(), "cubes": cubes}


def pulse(explored: Explored, _: Query) -> Json:
    """What a page looks at every few seconds: the stamp, whether a run is at work, and what it has graded so far."""
    running = explored.running()
    graded = explored.graded_trials() if running else None
    return {"stamp": explored.stamp(), "running": running, "graded": graded}


def _title(explored: Explored) -> str:
    titles = [str(read_notes(Cube.open(cube).records).get("name") or "") for cube in explored.cubes]
    return " + ".join(dict.fromkeys(name for name in titles if name)) or "evalcube"


def _tasks(dataset: xr.Dataset, table: dict[str, Key]) -> list[dict[str, Any]]:
    """Each task with the parameters in which its points differ, or that they have at all."""
    size = dataset.sizes["params"]
    tasks = []
    for number, task in enumerate(axes.names(dataset, "task")):
        mine = slice(number * size, (number + 1) * size)
        params = [
            _levels(name, Key(key.dims, key.values[mine]))
            for name, key in table.items()
            if name.startswith("param_") and any(value is not None for value in key.values[mine])
        ]
        tasks.append({"label": task, "params": params})
    return tasks


def _levels(name: str, key: Key) -> dict[str, Any]:
    there = [value for value in key.values if value is not None]
    texts = (json.dumps(value) if isinstance(value, list | dict) else value for value in there)
    levels = list(dict.fromkeys(texts))
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in levels)
    dated = all(isinstance(value, str) and _DATE.fullmatch(value) for value in levels)
    return {
        "name": name,
        "numeric": numeric and bool(levels),
        "dated": dated and bool(levels),
        "levels": (sorted(levels) if numeric else levels)[:_MOST_LEVELS],
    }


POINTS = 200
"""Points of the curve of what was recorded when."""
_LIMITS = ("connections", "requests_per_minute", "tokens_per_minute", "timeout", "retries")


def progress(explored: Explored, _: Query) -> Json:
    """Of each cube: its status, what a run that goes on says of itself, limits by model, and what was recorded when."""
    cubes = zip(explored.opened, explored.addresses, explored.status(), strict=True)
    return {"stamp": explored.stamp(), "cubes": [_cube(*cube) for cube in cubes]}


def _cube(cube: Cube, address: str, status: Json) -> Json:
    config = read_notes(cube.records).get("config")
    return {
        **{name: status[name] for name in (*_TOLD, "live", "spent")},
        "cube": address,
        "models": [
            {name: model[name] for name in ("model", "trials", "done", "transport", "missing", "causes")}
            for model in status["models"]
        ],
        "limits": limits(config),
        "recorded": recording_curve(cube),
    }


def limits(config: object) -> dict[str, dict[str, float | str]]:
    """How hard each model's endpoint may be worked, by the model's name, as the config beside the cube says."""
    models = config.get("models") if isinstance(config, Mapping) else None
    by_model: dict[str, dict[str, float | str]] = {}
    for model in models if isinstance(models, list | tuple) else ():
        own = model.get("limits") if isinstance(model, Mapping) else None
        if isinstance(own, Mapping):
            numbers = {name: own[name] for name in _LIMITS if isinstance(own.get(name), int | float)}
            by_model[str(model.get("name", ""))] = {"connections": "auto", **numbers}
    return by_model


def recording_curve(cube: Cube) -> dict[str, Any]:
    """How many trials were on record when, from the times of the newest receipts; empty if none has a time."""
    timed = sorted((receipt.at, receipt.finished) for receipt in Ledger(cube.records).newest().values())
    if not timed:
        return {"at": [], "trials": []}
    at, trials = np.array([time for time, _ in timed]), np.cumsum([count for _, count in timed])
    places = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS)).astype(int))
    return {"at": at[places], "trials": trials[places]}


ENDPOINTS = (
    Answerer("overview", overview, once),
    Answerer("pulse", pulse, kept=False),
    Answerer("progress", progress, once, kept=False),
)
