"""What the points of a board are short of: trials that were due, replies that were lost, a design that all share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import names, plain
from evalcube.stages.analyze.labelled.counters import base_design, counter_cells, members
from evalcube.stages.analyze.labelled.results import Row, distinct_labels

if TYPE_CHECKING:
    import xarray as xr

LOST = 0.05
"""Share of a point's trials without a reply above which the accuracy is bounded by the worst that they may hide."""
LEAST = 0.5
"""An evaluation that has less than this share of the trials due at a point of it is not ranked."""
_NAMED = 3


@dataclass(frozen=True)
class Shortfall:
    """By evaluation."""

    thin: list[int]
    """Points with less than half of the trials that are due: those of the first plan, as far as the view has them."""
    bounds: list[tuple[float, float] | None]
    """Accuracy with all lost trials wrong, and right; None where no point lost many."""


def shortfall(ds: xr.Dataset, planned: NDArray[np.bool_]) -> Shortfall:
    """What points in tiers are short of.

    Parameters
    ----------
    ds
        With ``counters`` in memory, and what is planned.
    planned
        The points at which each evaluation is to be measured, shape (model, task, params).
    """
    cells, labels = counter_cells(ds).values, names(ds, "counter")
    meant = planned & members(ds).any(axis=0)
    trials, right = (column(cells, name, labels) for name in ("trials", "correct"))
    thin = (meant & (trials < LEAST * _due(ds))).sum(axis=(1, 2))
    lost = column(cells, "transport", labels) if "transport" in labels else np.zeros_like(trials)
    asked = trials + lost
    many = np.asarray((meant & (lost > LOST * asked)).any(axis=(1, 2)))
    share = design.task_weights(base_design(ds), meant & (asked > 0))
    total = share.sum(axis=(1, 2))
    each = share / np.where(asked > 0, asked, 1.0)
    low, high = (
        (each * part).sum(axis=(1, 2)) / np.where(total > 0, total, 1.0) for part in (right, right + lost)
    )
    bounds = [(float(a), float(b)) if there else None for a, b, there in zip(low, high, many, strict=True)]
    return Shortfall(thin.tolist(), bounds)


def _due(ds: xr.Dataset) -> Floats:
    """Trials that each point should have in this view, shape (model, task, params)."""
    due = base_design(ds)
    if {"planned_trials", "planned_repeats"} <= set(ds):
        trials, repeats = (
            ds.variables[f"planned_{name}"].transpose("model", "task", "params").values
            for name in ("trials", "repeats")
        )
        most = [ds.sizes.get(dim, np.inf) for dim in ("trial", "repeat")]
        due = np.minimum(due, np.minimum(trials, most[0]) * np.minimum(repeats, most[1]))
    return due


def contradicting(ds: xr.Dataset, used: NDArray[np.bool_]) -> tuple[str, ...]:
    """Tasks whose points evaluations weigh in other proportions, by their own first plans.

    Parameters
    ----------
    ds
        With base designs.
    used
        The points of each evaluation that is ranked, shape (model, task, params); others have none.
    """
    rows = used.any(axis=(1, 2))
    if not rows.any():
        return ()
    share = design.ratios(base_design(ds)[rows], used[rows].all(axis=0))
    apart = (share != share[:1]).any(axis=(0, 2))
    return tuple(plain(task) for task, other in zip(names(ds, "task"), apart, strict=True) if other)


def cautions(rows: Sequence[Row], left_out: str, apart: Sequence[str]) -> tuple[str, ...]:
    """What a reader must know of points before comparing rows, a sentence each.

    Parameters
    ----------
    rows
        Of a board.
    left_out
        Points that only some of the ranked ones were asked, in words.
    apart
        As of `contradicting`.
    """
    named = list(zip(rows, distinct_labels(rows), strict=True))
    found = []
    if left_out:
        found.append(
            f"Ranked on the points that all ranked ones were asked; left out, as only some were: {left_out}."
        )
    if thin := [f"{label} ({row.thin})" for row, label in named if row.thin]:
        found.append(
            "Not ranked (*), as points, whose number is in brackets, have less than half of their planned trials "
            f"here: {_first(thin)}."
        )
    if bounds := [
        f"{label} {100 * row.bounds[0]:.1f}–{100 * row.bounds[1]:.1f} %" for row, label in named if row.bounds
    ]:
        found.append(
            f"More than {100 * LOST:g} % of some points' trials were lost. Accuracy, with all lost ones wrong and with "
            f"all right: {_first(bounds)}."
        )
    if apart:
        found.append(
            f"The first plans of rows contradict in {', '.join(apart)}: each row weighs points by its own."
        )
    return tuple(found)


def weighing_notes(*, differ: bool, unclustered: int) -> tuple[str, ...]:
    """How points that differ in their trials weigh, and how repeats do, a sentence each.

    Parameters
    ----------
    differ
        Whether points differ in their trials, or have others than the first plan says.
    unclustered
        How often questions were asked if intervals do not go by question; else 0.
    """
    found = []
    if differ:
        found.append(
            "Points differ in their numbers of trials: tasks weigh the same, and the points of a task as in the first "
            "plan."
        )
    if unclustered > 1:
        found.append(
            f"Questions were asked up to {unclustered} times. Intervals here take answers as independent, since the "
            "dataset has no outcomes of trials."
        )
    return tuple(found)


def _first(said: Sequence[str]) -> str:
    more = f"; and {len(said) - _NAMED} more" if len(said) > _NAMED else ""
    return f"{'; '.join(said[:_NAMED])}{more}"
