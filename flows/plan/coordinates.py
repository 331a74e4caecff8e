"""The coordinates of a plan's cube."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.row_ids import row_id_coordinate
from evalcube.stages.generate.stream import canonical_json
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.cube import Coordinate

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
    return [counter, *of_cells, *_of_judges(plan), *_of_named_points(plan)]


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
            "difficulty",
            point,
            difficulty,
            {"long_name": "declared difficulty", "units": "elementary steps"},
        ),
        Coordinate(
            "in_tier",
            ("tier", *point),
            plan.ranked,
            {
                "long_name": "membership of the point in the tier",
                "comment": "False for points without right answers, which no score counts",
            },
        ),
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


def _of_judges(plan: Plan) -> list[Coordinate]:
    if not plan.judges:
        return []
    names = _texts([judge.name for judge in plan.judges])
    return [
        Coordinate("judge_name", ("judge_name",), names, {"long_name": "judge"}),
        Coordinate(
            "judge_repeat",
            ("judge_repeat",),
            np.arange(plan.sizes["judge_repeat"]),
            {"long_name": "repeat of the judge"},
        ),
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
