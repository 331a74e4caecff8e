"""The record of cells that were taken out of a cube for good: no run plans or asks them again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.records import read_record
from evalcube.flows.plan.targets import SampleTargets
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

FORGOTTEN = "forgotten.json"
"""Its key among a cube's records."""

_BYTES = 100_000_000
BoolArray = npt.NDArray[np.bool_]


def forgotten_cells(plan: Plan, records: Space) -> BoolArray:
    """Which cells of a plan are not to be asked again, shape (model, task, params).

    Parameters
    ----------
    plan
        Cells are known by their identities, so that the plan may have grown since.
    records
        Of the cube.
    """
    found = np.zeros((len(plan.evaluations), *plan.sources.shape), dtype=bool)
    document = read_record(records, FORGOTTEN, _BYTES)
    listed = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return found
    models = {evaluation.eval_id: index for index, evaluation in enumerate(plan.evaluations)}
    points = {
        (task.label, planned.cell.id): (row, slot)
        for row, task in enumerate(plan.tasks)
        for slot, planned in enumerate(task.cells)
    }
    for item in listed:
        match item:
            case [str(model), str(task), str(cell)] if model in models and (task, cell) in points:
                found[models[model], *points[task, cell]] = True
    return found


def write_forgotten(plan: Plan, records: Space, cells: BoolArray) -> None:
    """Have these cells, shape (model, task, params), not be asked again, and no others; for the holder of the lease."""
    listed = [
        [plan.evaluations[model].eval_id, plan.tasks[task].label, plan.tasks[task].cells[slot].cell.id]
        for model, task, slot in np.argwhere(cells).tolist()
    ]
    with guarded(records.address, "note what is forgotten"):
        records.put(FORGOTTEN, json.dumps({"cells": listed}).encode())


def without(targets: SampleTargets, cells: BoolArray) -> SampleTargets:
    """The targets without these cells."""
    trials, repeats = (
        np.where(cells, 0, array).astype(np.int32) for array in (targets.trials, targets.repeats)
    )
    return replace(targets, trials=trials, repeats=repeats)
