"""The points that evaluations are ranked on, as enough of them were asked, who lacks some, and what they are short of.

A cube may hold what several configs asked for. Evaluations are ranked on points that they have in common; one that was
asked too few of these is not compared with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, variable
from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import CELL_DIMS, base_design, count_text, names, plain
from evalcube.stages.analyze.labelled.counters import counter_cells, members
from evalcube.stages.analyze.labelled.remarks import first_few, label_rows
from evalcube.stages.analyze.labelled.results import Row

Points = NDArray[np.bool_]


_ALONE = "has no point in common with the others"


@dataclass(frozen=True)
class Common:
    """What evaluations are ranked on."""

    points: Points
    """Shape (task, params)."""
    lacks: tuple[str, ...]
    """By evaluation, which of them it was not asked; empty for those that have all, or were asked nothing."""
    left_out: str
    """Points that only some of those that have all were asked, in words."""

    @property
    def points_of_each(self) -> Points:
        """All points of an evaluation that lacks some, else those in common: shape (model, task, params)."""
        lacking = np.array([bool(text) for text in self.lacks], dtype=bool)
        return np.asarray(self.points | lacking[:, np.newaxis, np.newaxis])


def common_points(planned: Points, tasks: Sequence[str]) -> Common:
    """The points that more than half of the evaluations were asked; whatever their order is.

    If less than half, or only one of several, was asked all of these, those that so many more were asked that it is
    half; so one lost cell each does not take the ranks from a class.

    Examples
    --------
    >>> asked = np.array([[[1, 1], [1, 0]], [[1, 1], [1, 1]], [[1, 0], [0, 0]]], dtype=bool)
    >>> common = common_points(asked, ["sort", "letters"])
    >>> common.lacks, common.left_out
    (('', '', 'lacks 1 point of sort and letters'), '1 point of letters')
    """
    asked = planned[planned.any(axis=(1, 2))]
    times, number = asked.sum(axis=0), len(asked)
    points = most = 2 * times > number
    for least in range(number // 2 + 1, number + 1):
        points = times >= least
        if _having(asked, points).sum() >= max(min(2, number), (number + 1) // 2):
            break
    else:
        points = most
    having = _having(planned, points)
    lacks = tuple(
        ""
        if has or not row.any()
        else _words(points & ~row, points, tasks, "lacks ")
        or ("has no point that most others were asked" if (times[row] > 1).any() else _ALONE)
        for has, row in zip(having, planned, strict=True)
    )
    return Common(points, lacks, _words(planned[having].any(axis=0) & ~points, points, tasks, ""))


def planned_points(ds: Dataset, there: Points | None) -> Points:
    """Points at which each evaluation is to be measured, or was, shape (model, task, params)."""
    if "planned_trials" not in ds:
        return np.ones(tuple(ds.sizes[dim] for dim in ("model", "task", "params")), dtype=bool)
    planned = ds.variables["planned_trials"].transpose("model", "task", "params").values > 0
    return np.asarray(planned if there is None else planned | there)


def common_in_groups(
    planned: Points, groups: Iterable[NDArray[np.intp]], tasks: Sequence[str]
) -> tuple[Points, dict[str, Any]]:
    """The points that estimates of groups of points rest on, so that evaluations are compared on common ones."""
    flat = planned.reshape(len(planned), int(np.prod(planned.shape[1:])))
    asked = flat[flat.any(axis=1)]
    uneven: Points = np.asarray(asked.any(axis=0) & ~asked.all(axis=0))
    common, lacking = np.ones_like(flat), np.zeros(len(flat), dtype=bool)
    common[:, uneven] = False
    for points in groups:
        if uneven[points].any():
            shared = common_points(flat[:, np.newaxis, points], [""])
            common[:, points] |= shared.points_of_each[:, 0]
            lacking |= np.array([bool(text) for text in shared.lacks])
    beyond: Points = np.asarray((planned & ~common.reshape(planned.shape)).any(axis=0))
    left_out = _words(beyond, np.asarray(planned.any(axis=0) & ~beyond), tasks, "")
    return common.reshape(planned.shape), {"left_out": left_out, "lacking": np.flatnonzero(lacking).tolist()}


def common_part(ds: DatasetT, *, by_task: bool = False) -> tuple[DatasetT, Points]:
    """Keep the points to compare evaluations on: the common ones, or all of an evaluation that lacks some."""
    cells, labels = np.asarray(counter_cells(ds).values), names(ds, "counter")
    planned = planned_points(ds, column(cells, "trials", labels) > 0)
    ranked = np.asarray(members(ds).any(axis=0))
    groups = np.arange(ranked.size).reshape(len(ranked) if by_task else 1, -1)
    common = common_in_groups(planned & ranked, groups, names(ds, "task"))[0] | ~ranked
    if (common | ~planned).all():
        return ds, planned
    parts = {"counters": variable(CELL_DIMS, np.where(common[..., np.newaxis], cells, 0.0))}
    if "planned_trials" in ds:
        trials = ds.variables["planned_trials"].transpose(*CELL_DIMS[:-1]).values
        parts["planned_trials"] = variable(CELL_DIMS[:-1], np.where(common, trials, 0))
    return ds.assign(parts), planned


def told_of_points(words: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """Return the warnings about points to read before comparing estimates, a sentence each."""
    sentences = []
    if words["left_out"]:
        sentences.append(f"Left out, as not all of those compared were asked: {words['left_out']}.")
    if words["lacking"]:
        named = ", ".join(labels[model] for model in words["lacking"])
        sentences.append(f"Not comparable with the others, as not asked all of their points: {named}.")
    return sentences


def _having(planned: Points, points: Points) -> Points:
    return np.asarray((planned | ~points).all(axis=(1, 2)) & points.any())


def _words(chosen: Points, points: Points, tasks: Sequence[str], verb: str) -> str:
    named = []
    for task, row, common in zip(tasks, chosen, points, strict=True):
        if row.any():
            whole = not (common & ~row).any()
            named.append(("" if whole else f"{count_text(row.sum(), 'point')} of ") + plain(task))
    if not named:
        return ""
    return f"{verb}{', '.join(named[:-1])}{' and ' if len(named) > 1 else ''}{named[-1]}"


LOST = 0.05
"""Share of a point's trials without a reply above which the accuracy is bounded by the worst that they may hide."""
LEAST = 0.5
"""An evaluation that has less than this share of the trials due at a point of it is not ranked."""


@dataclass(frozen=True)
class Shortfall:
    """By evaluation."""

    thin: list[int]
    """Points with less than half of the trials that are due: those of the first plan, as far as the view has them."""
    bounds: list[tuple[float, float] | None]
    """Accuracy with all lost trials wrong, and right; None where no point lost many."""


def shortfall(ds: Dataset, planned: NDArray[np.bool_]) -> Shortfall:
    """Count the trials that points in tiers are short of."""
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


def _due(ds: Dataset) -> Floats:
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


def contradicting(ds: Dataset, used: NDArray[np.bool_]) -> tuple[str, ...]:
    """Tasks whose points evaluations weigh in other proportions, by their own first plans."""
    rows = used.any(axis=(1, 2))
    if not rows.any():
        return ()
    share = design.ratios(base_design(ds)[rows], used[rows].all(axis=0))
    apart = (share != share[:1]).any(axis=(0, 2))
    return tuple(plain(task) for task, differs in zip(names(ds, "task"), apart, strict=True) if differs)


def cautions(rows: Sequence[Row], left_out: str, apart: Sequence[str]) -> tuple[str, ...]:
    """Return the warnings about points to read before comparing rows, a sentence each."""
    named = list(zip(rows, label_rows(rows), strict=True))
    notes = []
    if left_out:
        notes.append(
            f"Ranked on the points that all ranked models were asked; left out, as only some were: {left_out}."
        )
    if thin := [f"{label} ({row.thin})" for row, label in named if row.thin]:
        notes.append(
            "Not ranked (*), as some points have less than half of their planned trials (in brackets, how many): "
            f"{first_few(thin)}."
        )
    if bounds := [
        f"{label} {100 * row.bounds[0]:.1f}–{100 * row.bounds[1]:.1f}%" for row, label in named if row.bounds
    ]:
        notes.append(
            f"More than {100 * LOST:g}% of some points' trials were lost. Accuracy, if all lost ones were wrong and if "
            f"all were right: {first_few(bounds)}. These rank first only if they do with all lost ones wrong."
        )
    if apart:
        notes.append(
            f"First runs planned the points of {', '.join(apart)} differently: each row's are weighted by its own."
        )
    return tuple(notes)


def weighing_notes(rows: Sequence[Row], *, differ: bool, unclustered: int) -> tuple[str, ...]:
    """How points that differ in their trials weigh, what papers would print, and how repeats weigh, a sentence each."""
    notes = []
    if differ:
        notes.append(f"Numbers of trials differ: {design.WEIGHING['tasks']}.")
    for row, label in zip(rows, label_rows(rows), strict=True):
        here, there = (f"{100 * share:.1f}%" for share in (row.accuracy.value, row.pooled))
        if here != there:
            notes.append(
                f"Papers print the mean over all trials, which is {there} for {label}; {here} is the mean over tasks. "
                "`evalcube leaderboard --weigh trials` shows the former."
            )
            break
    if unclustered > 1:
        notes.append(
            f"Questions were asked up to {unclustered} times. Intervals here treat answers as independent, since the "
            "dataset has no outcomes of trials."
        )
    return tuple(notes)
