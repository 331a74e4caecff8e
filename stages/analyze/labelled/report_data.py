"""The numbers behind the report's figures, per model and task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.stratified import exact_estimate
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.clustering import question_effects
from evalcube.stages.analyze.labelled.points import common_part
from evalcube.stages.analyze.labelled.results import LACKING, Estimate
from evalcube.stages.reply.status import COMPLETED, COUNTED, OUTCOMES

if TYPE_CHECKING:
    import xarray as xr

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
    pooled: bool
    """True if neighbouring difficulties were pooled."""


def task_views(
    ds: xr.Dataset,
    order: Sequence[int],
    *,
    mode: Mode = "C_P",
    weigh: Weigh = "tasks",
    confidence: float = 0.95,
) -> list[list[TaskView]]:
    """What each model, in the order given, did in each task of the dataset.

    Parameters
    ----------
    ds
        In memory.
    order
        Indices of models.
    mode, weigh, confidence
        Of the accuracies, see `evalcube.stages.analyze.labelled.aggregate.aggregate`.
    """
    if not len(order):
        return []
    tasks = axes.names(ds, "task")

    found = aggregate(ds, by=("model", "task"), mode=mode, weigh=weigh, confidence=confidence)
    found = found.isel(model=list(order)).sel(task=tasks)
    labels = axes.names(ds, "counter")
    summed = found["counters"].values
    accuracy = np.stack([found[name].values for name in ("point", "lower", "upper")])
    trials = column(summed, "trials", labels)
    planned = counters.planned_trials(summed, labels)
    each = found["per_trial"].values
    truncated, tokens = column(each, "truncated", labels), column(each, "tokens_sum", labels).copy()
    tokens[tokens == 0] = np.nan  # no reply is without one: nobody has counted them
    return [
        [
            TaskView(
                Estimate.of(accuracy[:, model, task]),
                int(trials[model, task]),
                float(truncated[model, task]),
                float(tokens[model, task]),
                int(found["points"].values[model, task]),
                int(found["points_planned"].values[model, task]),
                int(planned[model, task]),
            )
            for task in range(summed.shape[1])
        ]
        for model in range(summed.shape[0])
    ]


def outcome_shares(ds: xr.Dataset, order: Sequence[int]) -> list[dict[str, float]]:
    """Share of each of `OUTCOMES` in the finished trials of each model, a mean over tasks as the board's accuracy is.

    Empty for a model without any.
    """
    labels = axes.names(ds, "counter")
    ranked = np.asarray(counters.members(ds).any(axis=0))
    each = counters.per_trial(common_part(ds)[0], ranked)[list(order)]
    rows = []
    for values in each:
        count = {label: float(value) for label, value in zip(labels, values, strict=True)}
        others = sum(count[name] for name in COUNTED if OUTCOMES.get(name) in COMPLETED)
        every = {**count, "incorrect": count["completed"] - others}
        rows.append({name: every[name] for name in OUTCOMES} if count["trials"] > 0 else {})
    return rows


def curve_views(
    ds: xr.Dataset, order: Sequence[int], *, mode: Mode = "C_P", confidence: float = 0.95
) -> list[CurveView]:
    """Accuracy against difficulty of every task; empty if the dataset has no ``difficulty`` coordinate.

    Points of equal difficulty are pooled; so are neighbours, in equal steps of log2, where a task has more
    than `MOST_POINTS` difficulties. Points weigh by the base design.
    """
    if "difficulty" not in ds.coords:
        return []
    labels = axes.names(ds, "counter")
    cells = counters.counters(ds).values[list(order)]
    factors = counters.point_factors(ds)[list(order)]
    effects = question_effects(ds)
    worth = None if effects is None else effects[list(order)]
    difficulty = ds["difficulty"].transpose("task", "params").values.astype(float)
    views = []
    for index, task in enumerate(axes.names(ds, "task")):
        run = (column(cells[:, index], "trials", labels) > 0).any(axis=0)
        used = np.flatnonzero(run & np.isfinite(difficulty[index]) & (difficulty[index] > 0))
        if len(used) == 0:
            continue
        where, group, pooled = _groups(difficulty[index, used])
        summed = np.zeros((cells.shape[0], len(where), cells.shape[-1]))
        for place in range(len(where)):
            here = used[group == place]
            parts = design.design_moments(cells[:, index, here], factors[:, index, here], labels=labels)
            summed[:, place] = design.effective(*(part.sum(axis=1) for part in parts), labels=labels)
        bounds = np.stack(
            exact_estimate(
                summed,
                labels=labels,
                mode=mode,
                confidence=None if confidence == 0.95 else confidence,
                effect=1.0 if worth is None else worth[:, index, np.newaxis],
            )
        )
        trials = column(summed, "trials", labels)
        cut = column(summed, "truncated", labels) / np.where(trials > 0, trials, 1.0)
        estimates = tuple(
            tuple(Estimate.of(bounds[:, model, place]) for place in range(len(where)))
            for model in range(cells.shape[0])
        )
        views.append(
            CurveView(
                task,
                tuple(float(value) for value in where),
                estimates,
                tuple(tuple(float(share) for share in row) for row in cut),
                pooled,
            )
        )
    return views


def _groups(difficulty: Floats) -> tuple[Floats, np.ndarray, bool]:
    """Positions, the group of each point, and whether different difficulties share a group."""
    unique, group = np.unique(difficulty, return_inverse=True)
    if len(unique) <= MOST_POINTS:
        return unique, group, False
    logs = np.log2(difficulty)
    edges = np.linspace(logs.min(), logs.max(), MOST_POINTS + 1)[1:-1]
    filled, group = np.unique(np.digitize(logs, edges), return_inverse=True)
    where = np.array([2.0 ** logs[group == place].mean() for place in range(len(filled))])
    return where, group, True
