"""The numbers behind the report's figures, per model and task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.points import common_part
from evalcube.stages.analyze.labelled.results import LACKING, Estimate
from evalcube.stages.reply.status import COMPLETED, COUNTED, OUTCOMES

if TYPE_CHECKING:
    import xarray as xr


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
    found = aggregate(ds, by=("model", "task"), mode=mode, weigh=weigh, confidence=confidence)
    found = found.isel(model=list(order)).sel(task=axes.names(ds, "task"))
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

    Points of equal difficulty are one, weighing by the base design.
    """
    if "difficulty" not in ds.coords or not len(order):
        return []
    found = aggregate(ds, by=("model", "task", "difficulty"), mode=mode, confidence=confidence)
    found = found.isel(model=list(order))
    bounds = np.stack([found[name].values for name in ("point", "lower", "upper")], axis=-1)
    cut = column(found["per_trial"].values, "truncated", axes.names(ds, "counter"))
    levels = np.array(found["difficulty"].values, dtype=float)
    views = []
    for place, task in enumerate(axes.names(found, "task")):
        used = np.flatnonzero(~np.isnan(cut[:, place]).all(axis=0) & (levels > 0) & np.isfinite(levels))
        if len(used):
            accuracy = tuple(tuple(map(Estimate.of, row)) for row in bounds[:, place, used])
            truncated = tuple(map(tuple, cut[:, place, used].tolist()))
            views.append(CurveView(task, tuple(levels[used].tolist()), accuracy, truncated))
    return views
