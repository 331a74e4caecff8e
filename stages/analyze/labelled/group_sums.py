"""Sums over groups of a cube's cells, of what their estimates are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas import design, estimators, stratified
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.counters import planned_trials
from evalcube.stages.analyze.labelled.selection import Groups


class GroupSums(NamedTuple):
    """Arrays (names of the models' groups, names of the cells' groups, column)."""

    counted: Floats
    """Counters, cells of models with trials, and planned ones."""
    weighed: Floats
    """Counters per trial by the weights of cells, and the sum of these."""
    moments: Floats
    """Of `stratified`; for the sum of all trials the counters that estimates rest on, and trials by their effects."""


def group_sums(
    values: Floats,
    share: Floats,
    effect: Floats,
    kept: NDArray[np.int8],
    groups: tuple[Groups, Groups],
    *,
    labels: list[str],
    mode: str,
    weigh: str,
) -> GroupSums:
    """Sums over the members of each group of models and of cells.

    But for what is counted and for sums of trials, those of an evaluation have weight 1, so that evaluations weigh
    alike; those of each task before they are summed, if tasks are to weigh alike.

    Parameters
    ----------
    values
        Counters (model, task, params, counter).
    share
        Base design of the cells, or their weights among all; broadcasts to (model, task, params).
    effect
        Trials that are worth one independent one, shape (model, task).
    kept
        Of cells (model, task, params): 1 if means of counters rest on it, 2 if estimates do, too.
    """
    estimators.counts(values, labels=labels)
    trials = column(values, "trials", labels)
    there, worth = trials > 0, effect[..., np.newaxis]
    by_task = weigh == "tasks"
    among = design.ratios(share, there & (kept > 0)) if by_task else share
    weight = (trials if weigh == "trials" else among * there) * (kept > 0)
    meant = planned_trials(values, labels) > 0
    each = values * (weight / np.where(there, trials, 1.0))[..., np.newaxis]
    counted = values * (kept > 1)[..., np.newaxis]
    if weigh == "trials":
        moments = _with(counted, trials * (kept > 1) * worth)
    else:
        own = design.ratios(share, there & (kept > 1)) if by_task else share
        moments = stratified.moments(counted / worth[..., np.newaxis], own, labels=labels, mode=mode)

    def summed(part: Floats, standard: Callable[[Floats], Floats] | None) -> Floats:
        return _summed(part, groups, standard, by_task=by_task)

    even = weigh != "trials"
    return GroupSums(
        summed(_with(values, there, meant), None),
        summed(_with(each, weight), _of_weight_one if even else None),
        summed(moments, stratified.standard if even else None),
    )


def _with(values: Floats, *columns: NDArray[np.generic]) -> Floats:
    return np.concatenate([values, *(one[..., np.newaxis] for one in columns)], axis=-1)


def _of_weight_one(sums: Floats) -> Floats:
    return sums / np.where(sums[..., -1:] > 0, sums[..., -1:], 1.0)


def _summed(
    each: Floats, groups: tuple[Groups, Groups], standard: Callable[[Floats], Floats] | None, *, by_task: bool
) -> Floats:
    """Sums over cells (model, task, params, column), brought to a standard before they are summed over models."""
    models, cells = groups
    flat = each.reshape(len(each), -1, each.shape[-1])
    if standard is None:
        found = cells.sums(flat)
    elif by_task:
        parts, whole = cells.split(np.repeat(np.arange(each.shape[1]), each.shape[2]))
        found = standard(whole.sums(standard(parts.sums(flat))))
    else:
        found = standard(cells.sums(flat))
    return (models.matrix @ found.reshape(len(found), -1)).reshape(*models.shape, *found.shape[1:])
