"""Sums over groups of a cube's cells, of what their estimates are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import variable
from evalcube.stages.analyze.formulas import design, estimators, stratified
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import applied
from evalcube.stages.analyze.labelled.counters import planned_trials
from evalcube.stages.analyze.labelled.selection import CELL, MODEL, Groups

if TYPE_CHECKING:
    import xarray as xr

_GROUP = "group_"


def _columns(
    values: Floats,
    share: Floats,
    effect: Floats | float,
    kept: NDArray[np.int8],
    *,
    labels: list[str],
    mode: str,
    weigh: str,
) -> Floats:
    """What a cell adds to a group: its counters, whether it has trials and is planned, and what is weighed.

    Parameters
    ----------
    share
        Base design of the cell, or its weight among all.
    kept
        1 if means of counters rest on it, 2 if estimates do, too.
    """
    estimators.counts(values, labels=labels)
    trials = column(values, "trials", labels)
    there = trials > 0
    meant = planned_trials(values, labels) > 0
    worth = np.asarray(effect, dtype=float)
    among = design.ratios(share, there & (kept > 0)) if weigh == "tasks" else share
    weight = (trials if weigh == "trials" else among * there) * (kept > 0)
    each = values * (weight / np.where(there, trials, 1.0))[..., np.newaxis]
    parts = [
        values,
        there[..., np.newaxis],
        meant[..., np.newaxis],
        each,
        weight[..., np.newaxis],
    ]
    inside = kept > 1
    counted = values * inside[..., np.newaxis]
    if weigh == "trials":
        parts += [counted, (trials * inside * worth)[..., np.newaxis]]
    else:
        share = design.ratios(share, there & inside) if weigh == "tasks" else share
        parts.append(stratified.moments(counted / worth[..., np.newaxis], share, labels=labels, mode=mode))
    return np.concatenate(parts, axis=-1)


def _standard(sums: Floats, labels: list[str]) -> Floats:
    """Sums of `_columns` brought to a weight of 1, but for what is counted."""
    counted, moments = len(labels) + 2, len(stratified.MOMENTS)
    weighed = sums[..., counted:-moments]
    weight = weighed[..., -1:]
    return np.concatenate(
        [
            sums[..., :counted],
            weighed / np.where(weight > 0, weight, 1.0),
            stratified.standard(sums[..., -moments:]),
        ],
        axis=-1,
    )


def group_sums(
    parts: tuple[xr.Variable, ...],
    groups: tuple[Groups, Groups],
    columns: int,
    kwargs: dict[str, Any],
) -> xr.Variable:
    """Sums of `_columns` over the members of each group of models and of cells: dims (names of both, column)."""
    models, cells = groups
    (by_model,) = applied(
        _cell_sums,
        list(zip(parts, ((*CELL, "counter"), CELL, ("task",), CELL), strict=True)),
        [{**_inner(cells), "column": columns}],
        {**kwargs, "groups": cells},
    )
    (summed,) = applied(_model_sums, [(by_model, MODEL)], [_inner(models)], {"groups": models})
    return variable([str(dim).removeprefix(_GROUP) for dim in summed.dims], summed.data)


def _inner(groups: Groups) -> dict[str, int]:
    """Dims of groups with their sizes, under names that are none of the dims that they replace."""
    return {f"{_GROUP}{name}": size for name, size in zip(groups.names, groups.shape, strict=True)}


def _cell_sums(
    values: Floats,
    share: Floats,
    effect: Floats,
    kept: NDArray[np.int8],
    *,
    groups: Groups,
    labels: list[str],
    mode: str,
    weigh: str,
) -> Floats:
    """Sums of `_columns` over cells: counters (..., task, params, counter) -> (..., names of groups, column).

    Of weight 1 but for sums of trials, so that evaluations weigh alike; those of each task before they are summed, if
    tasks are to weigh alike.
    """
    each = _columns(values, share, effect[..., np.newaxis], kept, labels=labels, mode=mode, weigh=weigh)
    tasks, slots = each.shape[-3:-1]
    flat = each.reshape(*each.shape[:-3], -1, each.shape[-1])
    if weigh == "trials":
        return groups.sums(flat)
    if weigh == "points":
        return _standard(groups.sums(flat), labels)
    parts, groups = groups.split(np.repeat(np.arange(tasks), slots))
    return _standard(groups.sums(_standard(parts.sums(flat), labels)), labels)


def _model_sums(values: Floats, *, groups: Groups) -> Floats:
    """Sums over models: (..., model) -> (..., names of groups)."""
    first = np.moveaxis(values, -1, 0)
    summed = groups.sums(first.reshape(len(first), -1)).reshape(*groups.shape, *first.shape[1:])
    levels = len(groups.shape)
    return np.moveaxis(summed, range(levels), range(-levels, 0))
