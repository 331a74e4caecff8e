"""The points that evaluations of a dataset are ranked on, as enough of them were asked, and who lacks some, in words.

A cube may hold what several configs asked for. Evaluations are ranked on points that they have in common; one that was
asked too few of these is not compared with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import variable
from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.labelled.axes import names, plain
from evalcube.stages.analyze.labelled.counters import CELL_DIMS, counter_cells, members

if TYPE_CHECKING:
    import xarray as xr

Points = NDArray[np.bool_]


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
    def kept(self) -> Points:
        """What is looked at, shape (model, task, params): all points of one that lacks some, else those in common."""
        lacking = np.array([bool(text) for text in self.lacks], dtype=bool)
        return np.asarray(self.points | lacking[:, np.newaxis, np.newaxis])


def common_points(planned: Points, tasks: Sequence[str]) -> Common:
    """The points that more than half of the evaluations were asked; whatever their order is.

    If nobody, or only one of several, was asked all of these, the points that all were asked.

    Parameters
    ----------
    planned
        The points at which each evaluation was or is to be measured, shape (model, task, params); of evaluations
        without any, nothing is said.
    tasks
        Their names.

    Examples
    --------
    >>> asked = np.array([[[1, 1], [1, 0]], [[1, 1], [1, 1]], [[1, 0], [0, 0]]], dtype=bool)
    >>> found = common_points(asked, ["sort", "letters"])
    >>> found.lacks, found.left_out
    (('', '', 'lacks 1 point of sort and letters'), '1 point of letters')
    """
    asked = planned[planned.any(axis=(1, 2))]
    points = 2 * asked.sum(axis=0) > len(asked)
    every = asked.all(axis=0)
    if _having(asked, points).sum() < min(2, len(asked)) and every.any():
        points = every
    having = _having(planned, points)
    lacks = tuple(
        "" if has or not row.any() else _words(points & ~row, points, tasks, "lacks ")
        for has, row in zip(having, planned, strict=True)
    )
    beyond = planned[having].any(axis=0) & ~points
    return Common(points, lacks, _words(beyond, points, tasks, ""))


def planned_points(ds: xr.Dataset, there: Points | None) -> Points:
    """Points at which each evaluation is to be measured, or was, shape (model, task, params).

    Parameters
    ----------
    ds
        With ``planned_trials``; without, all points are meant.
    there
        Those with trials, if that is known.
    """
    if "planned_trials" not in ds:
        return np.ones(tuple(ds.sizes[dim] for dim in ("model", "task", "params")), dtype=bool)
    planned = ds.variables["planned_trials"].transpose("model", "task", "params").values > 0
    return np.asarray(planned if there is None else planned | there)


def common_in_groups(
    planned: Points, groups: Iterable[NDArray[np.intp]], tasks: Sequence[str]
) -> tuple[Points, dict[str, Any]]:
    """The points that estimates of groups of points rest on, so that evaluations are compared on common ones.

    Parameters
    ----------
    planned, tasks
        As of `common_points`.
    groups
        Of each group its points, by their number in row-major order; a point of several groups counts in all of them
        where it does in one.

    Returns
    -------
    kept
        Shape (model, task, params).
    words
        ``left_out``: points that those with all common ones were asked besides, in words; ``lacking``: evaluations that
        were not asked all common points, whose estimates rest on all that they have.
    """
    flat = planned.reshape(len(planned), int(np.prod(planned.shape[1:])))
    asked = flat[flat.any(axis=1)]
    uneven: Points = np.asarray(asked.any(axis=0) & ~asked.all(axis=0))
    kept, lacking = np.ones_like(flat), np.zeros(len(flat), dtype=bool)
    kept[:, uneven] = False
    for points in groups:
        if uneven[points].any():
            found = common_points(flat[:, np.newaxis, points], [""])
            kept[:, points] |= found.kept[:, 0]
            lacking |= np.array([bool(text) for text in found.lacks])
    beyond: Points = np.asarray((planned & ~kept.reshape(planned.shape)).any(axis=0))
    left_out = _words(beyond, np.asarray(planned.any(axis=0) & ~beyond), tasks, "")
    return kept.reshape(planned.shape), {
        "left_out": left_out,
        "lacking": np.flatnonzero(lacking).tolist(),
    }


def common_part(ds: xr.Dataset, *, by_task: bool = False) -> tuple[xr.Dataset, Points]:
    """What evaluations are compared on: of those that have all common points only these, of others what they have.

    Parameters
    ----------
    ds
        With ``counters`` in memory.
    by_task
        Whether each task is compared by itself.

    Returns
    -------
    The dataset, and what was planned for each evaluation, shape (model, task, params).
    """
    cells, labels = np.asarray(counter_cells(ds).values), names(ds, "counter")
    planned, ranked = (
        planned_points(ds, column(cells, "trials", labels) > 0),
        np.asarray(members(ds).any(axis=0)),
    )
    groups = np.arange(ranked.size).reshape(len(ranked) if by_task else 1, -1)
    kept = common_in_groups(planned & ranked, groups, names(ds, "task"))[0] | ~ranked
    if (kept | ~planned).all():
        return ds, planned
    parts = {"counters": variable(CELL_DIMS, np.where(kept[..., np.newaxis], cells, 0.0))}
    if "planned_trials" in ds:
        trials = ds.variables["planned_trials"].transpose(*CELL_DIMS[:-1]).values
        parts["planned_trials"] = variable(CELL_DIMS[:-1], np.where(kept, trials, 0))
    return ds.assign(parts), planned


def told_of_points(words: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """What a reader of estimates must know of points before comparing them, a sentence each.

    Parameters
    ----------
    words
        Of `common_in_groups`.
    labels
        Of evaluations.
    """
    told = []
    if words["left_out"]:
        told.append(f"Left out, as only some of those compared were asked: {words['left_out']}.")
    if words["lacking"]:
        named = ", ".join(labels[place] for place in words["lacking"])
        told.append(f"Not comparable with the others, as not asked all of their points: {named}.")
    return told


def _having(planned: Points, points: Points) -> Points:
    return np.asarray((planned | ~points).all(axis=(1, 2)) & points.any())


def _words(chosen: Points, points: Points, tasks: Sequence[str], verb: str) -> str:
    named = []
    for task, row, known in zip(tasks, chosen, points, strict=True):
        count = int(row.sum())
        if count:
            whole = not (known & ~row).any()
            some = f"{count} point{'s' if count > 1 else ''} of "
            named.append(f"{'' if whole else some}{plain(task)}")
    if not named:
        return "has no point in common with the others" if verb else ""
    return f"{verb}{', '.join(named[:-1])}{' and ' if len(named) > 1 else ''}{named[-1]}"
