"""The numbers behind the report's figures, per model and task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalcube._arrays import Dataset, variable
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.clustering import questions_once
from evalcube.stages.analyze.labelled.points import common_part
from evalcube.stages.analyze.labelled.results import LACKING, Estimate
from evalcube.stages.analyze.labelled.selection import CELL
from evalcube.stages.reply.status import COMPLETED, COUNTED, OUTCOMES

MOST_POINTS = 12
"""A curve with more difficulties than this is drawn with neighbours pooled."""


@dataclass(frozen=True)
class TaskView:
    """What a model did in one task."""

    accuracy: Estimate
    trials: int
    truncated: float
    """Share of finished trials, points weighing as in the accuracy; so are the tokens."""
    tokens: float
    """Completion tokens per finished trial."""
    points: int
    """Points with a finished trial."""
    points_planned: int
    planned: int
    """Trials that were asked for, or are to be."""

    @property
    def partial(self) -> bool:
        """True if there is something, but not all of the planned points, or too few of the planned trials."""
        lacking = self.planned - self.trials > LACKING * self.planned
        return self.points > 0 and (self.points < self.points_planned or lacking)


@dataclass(frozen=True)
class CurveView:
    """Accuracy of all models against the difficulty of one task."""

    task: str
    difficulty: tuple[float, ...]
    """Elementary steps, ascending."""
    accuracy: tuple[tuple[Estimate, ...], ...]
    """Per model in the board's order, per difficulty."""
    truncated: tuple[tuple[float, ...], ...]
    """Share of finished trials, in the same order."""


def task_views(
    ds: Dataset, order: Sequence[int], *, mode: Mode = "C_P", weigh: Weigh = "tasks", confidence: float = 0.95
) -> list[list[TaskView]]:
    """Return the results of each model in each task, models in the given order."""
    if not len(order):
        return []
    table = aggregate(ds, by=("model", "task"), mode=mode, weigh=weigh, confidence=confidence)
    groups = axes.names(table, "task")
    table = table.isel(model=list(order), task=[groups.index(name) for name in axes.names(ds, "task")])
    labels = axes.names(ds, "counter")
    summed = table["counters"].values
    accuracy = np.stack([table[name].values for name in ("point", "lower", "upper")])
    trials = column(summed, "trials", labels)
    planned = counters.planned_trials(summed, labels)
    each = table["per_trial"].values
    truncated, tokens = column(each, "truncated", labels), column(each, "tokens_sum", labels).copy()
    tokens[tokens == 0] = np.nan  # no reply is without one: nobody has counted them
    return [
        [
            TaskView(
                Estimate.of(accuracy[:, model, task]),
                int(trials[model, task]),
                float(truncated[model, task]),
                float(tokens[model, task]),
                int(table["points"].values[model, task]),
                int(table["points_planned"].values[model, task]),
                int(planned[model, task]),
            )
            for task in range(summed.shape[1])
        ]
        for model in range(summed.shape[0])
    ]


def outcome_shares(ds: Dataset, order: Sequence[int]) -> list[dict[str, float]]:
    """Share of each of `OUTCOMES` in the finished trials of each model, a mean over tasks as the board's accuracy is.

    Empty for a model without any.
    """
    labels = axes.names(ds, "counter")
    ranked = np.asarray(counters.members(ds).any(axis=0))
    each = counters.per_trial(common_part(questions_once(ds))[0], ranked)[list(order)]
    rows = []
    for values in each:
        count = {label: float(value) for label, value in zip(labels, values, strict=True)}
        named = sum(count[name] for name in COUNTED if OUTCOMES.get(name) in COMPLETED)
        every = {**count, "incorrect": count["completed"] - named}
        rows.append({name: every[name] for name in OUTCOMES} if count["trials"] > 0 else {})
    return rows


def curve_views(
    ds: Dataset, order: Sequence[int], *, mode: Mode = "C_P", confidence: float = 0.95
) -> list[CurveView]:
    """Accuracy against difficulty of every task; empty if the dataset has no ``difficulty`` coordinate.

    Points of equal difficulty are one, weighing by the base design; so are neighbours, in equal steps of log2, where a
    task has more than `MOST_POINTS` difficulties.
    """
    if "difficulty" not in ds.coords or not len(order):
        return []
    labels = axes.names(ds, "counter")
    run = (column(counters.counter_cells(ds).values[list(order)], "trials", labels) > 0).any(axis=0)
    difficulty = ds["difficulty"].transpose(*CELL).values.astype(float)
    measured = run & (difficulty > 0) & np.isfinite(difficulty)
    views = []
    # One task at a time: each has difficulties of its own.
    for task in np.flatnonzero(measured.any(axis=1)).tolist():
        levels = np.full((1, difficulty.shape[1]), np.nan)
        levels[0, measured[task]] = _pool(difficulty[task, measured[task]])
        part = ds.isel(task=[task]).assign_coords(difficulty=variable(CELL, levels))
        table = aggregate(part, by=("model", "difficulty"), mode=mode, confidence=confidence)
        table = table.isel(model=list(order))
        bounds = np.stack([table[name].values for name in ("point", "lower", "upper")], axis=-1)
        cut = column(table["per_trial"].values, "truncated", labels)
        used = np.flatnonzero(~np.isnan(bounds).any(axis=-1).all(axis=0))
        if len(used):
            accuracy = tuple(tuple(map(Estimate.of, row)) for row in bounds[:, used])
            where = tuple(table["difficulty"].values[used].tolist())
            truncated = tuple(map(tuple, cut[:, used].tolist()))
            views.append(CurveView(axes.names(part, "task")[0], where, accuracy, truncated))
    return views


def _pool(difficulty: Floats) -> Floats:
    """The difficulties, or if there are too many the middle of the step of log2 that each is in."""
    if len(np.unique(difficulty)) <= MOST_POINTS:
        return difficulty
    logs = np.log2(difficulty)
    group = np.digitize(logs, np.linspace(logs.min(), logs.max(), MOST_POINTS + 1)[1:-1])
    means = np.bincount(group, logs) / np.maximum(np.bincount(group), 1)
    return np.asarray(2.0 ** means[group])
