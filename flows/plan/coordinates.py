"""The coordinates of a plan's cube."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.plan import Plan
from evalcube.stages.generate import Cell
from evalcube.stages.generate.stream import canonical_json
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS, READER
from evalcube.storage.cube.cube import Coordinate, Cube

ROW_ID = "row_id"
"""Coordinate (dataset, trial); ``dataset`` counts the points whose rows have ids: few of a cube's."""

IN_TIER_ATTRS = {
    "long_name": "membership of the point in the tier",
    "comment": "False for points without right answers, which no score counts",
}
ROW_ID_ATTRS = {
    "long_name": "id of the row that the trial asks",
    "comment": "Empty beyond the rows of the data set.",
}


def row_id_coordinate(plan: Plan) -> Coordinate:
    """`ROW_ID` of a plan's cube; raises as `row_ids`."""
    return Coordinate(ROW_ID, ("dataset", "trial"), row_ids(plan, plan.trials), ROW_ID_ATTRS)


def row_ids(plan: Plan, trials: int) -> npt.NDArray[np.object_]:
    """Ids of the rows that the first trials of each named point ask, shape (dataset, trial); empty beyond the rows."""
    return _complete_ids(plan, trials, {})


def lacks_row_ids(cube: Cube, plan: Plan) -> bool:
    """Whether a cube with row ids lacks those of trials that it has: they are damaged, or it has grown since."""
    if not plan.named_points:
        return False
    if cube.label_problems([ROW_ID]):
        return True
    stored = cube.read_label(ROW_ID)
    return any(
        (row[: _count(cell, len(row))] == "").any() for row, cell in zip(stored, _cells(plan), strict=True)
    )


def label_rows(cube: Cube, plan: Plan) -> None:
    """Write the row ids of a cube anew where some are lacking; only the holder of the lease may."""
    if lacks_row_ids(cube, plan):
        cube.write_label(ROW_ID, _complete_ids(plan, cube.sizes["trial"], _read_ids(cube, plan)))


def grown_row_ids(cube: Cube, before: Plan, plan: Plan) -> Coordinate | None:
    """`ROW_ID` of a cube whose sweep has grown; None if it has none."""
    if not plan.named_points:
        return None
    row_ids = _complete_ids(plan, cube.sizes["trial"], _read_ids(cube, before) if before.named_points else {})
    return Coordinate(ROW_ID, ("dataset", "trial"), row_ids, ROW_ID_ATTRS)


def _read_ids(cube: Cube, plan: Plan) -> Mapping[tuple[str, str], npt.NDArray[np.object_]]:
    """The ids that a cube has, by the points of its plan; none where they are damaged."""
    if cube.label_problems([ROW_ID]):
        return {}
    return dict(zip(_places(plan), cube.read_label(ROW_ID), strict=True))


def _places(plan: Plan) -> list[tuple[str, str]]:
    """What the points that have row ids are known by."""
    points = ((plan.tasks[task], slot) for task, slot in plan.named_points)
    return [(task.label, task.cells[slot].cell.id) for task, slot in points]


def _complete_ids(
    plan: Plan, trials: int, stored: Mapping[tuple[str, str], npt.NDArray[np.object_]]
) -> npt.NDArray[np.object_]:
    """Ids of the rows: those that are stored, and of points that lack some, from their files."""
    row_ids = np.full((len(plan.named_points), trials), "", dtype=object)
    for row, position, cell in zip(row_ids, _places(plan), _cells(plan), strict=True):
        count, ids = _count(cell, trials), stored.get(position)
        if ids is not None and len(ids) == trials and (ids[:count] != "").all():
            row[:] = ids
        else:
            row[:count] = [cell.row_id(trial) for trial in range(count)]
    return row_ids


def _cells(plan: Plan) -> list[Cell]:
    return [plan.tasks[task].cells[slot].cell for task, slot in plan.named_points]


def _count(cell: Cell, trials: int) -> int:
    """Trials of a point, of so many that a cube has."""
    return trials if cell.size is None else min(trials, cell.size)


OF_CODE = ("difficulty", "in_tier")
"""Labels of points that the task's code tells, and no description of a cube."""


def coordinates(plan: Plan) -> list[Coordinate]:
    """All coordinates of a plan's cube; reads its data sets if their rows have names."""
    return [*labels(plan), row_id_coordinate(plan)] if plan.named_points else labels(plan)


def labels(plan: Plan) -> list[Coordinate]:
    """The coordinates of a plan's cube that are no labels of single trials."""
    names = _texts((*COUNTERS, *QUESTION_COUNTERS))
    counter = Coordinate("counter", ("counter",), names, {"long_name": "counter"})
    of_cells = [*_of_models(plan), *_of_points(plan), *_of_params(plan)]
    return [counter, *of_cells, *_of_readers(plan), *_of_judges(plan), *_of_named_points(plan)]


def _of_models(plan: Plan) -> list[Coordinate]:
    rows = plan.evaluations
    prices = plan.prices or ((0.0, 0.0),) * len(rows)
    facets = plan.facets or ({},) * len(rows)
    revisions = [row.revision for row in rows]

    def text(name: str, values: Sequence[str], comment: str) -> Coordinate:
        return Coordinate(name, ("model",), _texts(values), {"long_name": comment})

    return [
        # The index, so that plain xarray selects by it.
        text(
            "model", plan.labels, "evaluation: model, with template, sampler and revision where they differ"
        ),
        text("model_name", [row.model for row in rows], "label of the model"),
        text("template", [row.template.name for row in rows], "name of the prompt template"),
        text("sampler", [row.sampler.name for row in rows], "name of the sampler"),
        text("eval_id", [row.eval_id for row in rows], "digest of request model, template and sampler"),
        *([text("revision", revisions, "what tells models of one name apart")] if any(revisions) else []),
        text("facets", [json.dumps(dict(f), sort_keys=True) for f in facets], "free labels, JSON"),
        *(
            Coordinate(
                f"price_{kind}",
                ("model",),
                np.array([price[i] for price in prices], dtype=np.float64),
                {"long_name": f"price of {kind} tokens", "units": "USD per million tokens"},
            )
            for i, kind in enumerate(("prompt", "completion"))
        ),
    ]


def _of_points(plan: Plan) -> list[Coordinate]:
    shape = (len(plan.tasks), plan.slots)
    params = np.full(shape, "", dtype=object)
    ids = np.full(shape, "", dtype=object)
    difficulty = np.full(shape, np.nan)
    for i, task in enumerate(plan.tasks):
        for j, planned in enumerate(task.cells):
            cell = planned.cell
            params[i, j] = canonical_json(cell.params.canonical())
            ids[i, j] = cell.id
            difficulty[i, j] = cell.difficulty
    point = ("task", "params")
    return [
        Coordinate("task", ("task",), _texts(plan.task_names), {"long_name": "task"}),
        Coordinate("tier", ("tier",), _texts(plan.tiers), {"long_name": "difficulty tier"}),
        Coordinate(
            "params", ("params",), np.arange(plan.slots), {"long_name": "slot in the task's manifold"}
        ),
        Coordinate("params_json", point, params, {"long_name": "task parameters, JSON"}),
        Coordinate(
            "cell_id", point, ids, {"long_name": "digest of task, generator version, parameters, seed"}
        ),
        Coordinate(
            "difficulty", point, difficulty, {"long_name": "declared difficulty", "units": "elementary steps"}
        ),
        Coordinate("in_tier", ("tier", *point), plan.ranked, IN_TIER_ATTRS),
    ]


def _of_params(plan: Plan) -> list[Coordinate]:
    columns: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for i, task in enumerate(plan.tasks):
        for j, planned in enumerate(task.cells):
            for name, value in planned.cell.params.canonical().items():
                if isinstance(value, (int, float)):
                    column = columns.setdefault(name, np.full((len(plan.tasks), plan.slots), np.nan))
                    column[i, j] = float(value)
    return [
        Coordinate(f"param_{name}", ("task", "params"), column, {"long_name": f"task parameter {name}"})
        for name, column in sorted(columns.items())
    ]


def _of_readers(plan: Plan) -> list[Coordinate]:
    names = [plan.readers.get(name, "") for name in plan.task_names]
    attrs = {"long_name": "second reader of the task's replies", "comment": "Empty where there is none"}
    return [Coordinate(READER, ("task",), _texts(names), attrs)] if any(names) else []


def _of_judges(plan: Plan) -> list[Coordinate]:
    if not plan.judges:
        return []
    names, repeats = _texts([judge.name for judge in plan.judges]), np.arange(plan.sizes["judge_repeat"])
    return [
        Coordinate("judge_name", ("judge_name",), names, {"long_name": "judge"}),
        Coordinate("judge_repeat", ("judge_repeat",), repeats, {"long_name": "repeat of the judge"}),
    ]


def _of_named_points(plan: Plan) -> list[Coordinate]:
    if not plan.named_points:
        return []
    tasks = _texts([plan.tasks[task].label for task, _ in plan.named_points])
    slots = np.array([slot for _, slot in plan.named_points])
    return [
        Coordinate("dataset_task", ("dataset",), tasks, {"long_name": "task whose rows have ids"}),
        Coordinate("dataset_params", ("dataset",), slots, {"long_name": "slot whose rows have ids"}),
    ]


def _texts(values: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array(list(values), dtype=object)
