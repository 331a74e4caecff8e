"""Estimates of any groups of a cube's cells, labelled, with the counters they rest on.

A group's estimate is the mean over its tasks of the means over their points, each weighing as in the base design; a
group of several evaluations is the mean of theirs. `weigh` asks for another mean. As on a leaderboard, points in no
tier have no right answer and count in no estimate, and evaluations are compared on points that they have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, dataset_like, variable
from evalcube.stages.analyze.formulas import design, estimators, stratified
from evalcube.stages.analyze.formulas.arguments import column, one_of
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import Bounds, Mode
from evalcube.stages.analyze.formulas.intervals import Floats, quantile
from evalcube.stages.analyze.labelled import selection
from evalcube.stages.analyze.labelled.axes import base_design, names
from evalcube.stages.analyze.labelled.clustering import family_effects, question_effects, questions_once
from evalcube.stages.analyze.labelled.counters import (
    counter_cells,
    members,
    planned_questions,
    planned_trials,
)
from evalcube.stages.analyze.labelled.points import common_in_groups, planned_points
from evalcube.stages.analyze.labelled.selection import CELL, MODEL, CellSelection, Groups, Key, Where
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import BASE

Interval = Literal["exact", "wilson"]

_BOUNDS = ("point", "lower", "upper")


def aggregate(
    ds: DatasetT,
    *,
    by: str | Sequence[str] = (),
    where: Where | None = None,
    mode: Mode = "C_P",
    weigh: Weigh = "tasks",
    confidence: float = 0.95,
    interval: Interval = "exact",
) -> DatasetT:
    """Estimates and intervals of groups of cells.

    Parameters
    ----------
    ds
        Dataset with ``counters`` (model, task, params, counter), lazy or not, and the cube's coordinates.
    by
        Names to group by, which become the dims of the result in this order: model, task, params, tier, any
        coordinate along them (model_name, template, sampler, difficulty, param_<name>, ...), or
        facet_<key> for a key of the models' facets. Groups of tiers overlap: a point counts in each of its
        tiers. A cell or model to which a name does not apply is in no group. Nothing: all cells are one group.
    where
        Conditions by the same names, all to be fulfilled: a value, a list of values, a pair (low, high) with
        both ends included and None for open, or a function of a value.
    mode
        Estimator: "E_I", "E_P", "E_O" (share right) or "C_I", "C_P", "C_O" (corrected for guessing). Truncated trials
        are left out (I), wrong (P) or right (O).
    weigh
        "tasks": tasks have equal weight; within a task, points weigh by the trials that the cube's first run planned
        (``base_trials``). "points": all points have equal weight. "trials": all trials have: the formula is applied to
        the plain sum of counters, so points with more trials weigh more.
    confidence
        Confidence level of the intervals, between 0 and 1; 0.95 uses z = 1.96.
    interval
        "exact": covers the truth with any number of trials, and accounts for the randomness of guessing. "wilson": the
        intervals of ReasonScape. If questions were asked several times and the dataset has ``status``, exact intervals
        count all answers to one question as one.

    Returns
    -------
    Dataset with ``point``, ``lower`` and ``upper`` (by...), NaN where a group has no value; ``counters``
    (by..., counter), the sums; ``per_trial`` (by..., counter), each of them per finished trial, points weighing as in
    the estimate; ``points`` with trials and ``points_planned``, counts of cells of models: a
    mean over points rests on the former, but for those in no tier and those that only some evaluations were asked. How
    it was computed is in the attributes: in ``left_out`` which points estimates leave out, in ``lacking`` which
    evaluations were not asked all others.

    Raises
    ------
    ValueError
        If a name, mode or option is unknown, the selection is empty, or counters contradict each other.
    """
    table = selection.keys(ds)
    wanted = checked_by(by, table)
    _check_options(mode, weigh, confidence)
    one_of(interval, "interval", get_args(Interval))
    chosen = selection.select(ds, where, table)
    models, cells = (selection.group(ds, wanted, dims, chosen, table) for dims in (MODEL, CELL))
    exact = interval == "exact"
    values, labels = _selected_counters(ds, chosen), names(ds, "counter")
    once = ds if weigh == "trials" else questions_once(ds)
    effect = _effects(once, models) if exact else np.ones(values.shape[:2])
    share = base_design(ds) if weigh == "tasks" else np.ones(values.shape[1:3])
    usable, words = _common_points(ds, values, chosen, cells)
    sums = group_sums(
        *(values, share, effect, usable, (models, cells)),
        labels=labels,
        mode=mode,
        weigh=weigh,
        units=planned_questions(ds),
        once=_selected_counters(once, chosen),
    )
    dims = [*models.names, *cells.names]
    order = [dims.index(name) for name in wanted]
    sums = GroupSums(*(np.moveaxis(part, order, range(len(order))) for part in sums))
    counted, weight = sums.counted, sums.weighed[..., -1:]
    arrays: dict[str, Any] = dict(
        zip(_BOUNDS, _finish(sums, labels, mode, _level(confidence), weigh, exact=exact), strict=True)
    )
    arrays["points"], arrays["points_planned"] = np.moveaxis(counted[..., -2:], -1, 0).astype(np.int64)
    variables: dict[str, Any] = {name: (wanted, array) for name, array in arrays.items()}
    variables["counters"] = ((*wanted, "counter"), counted[..., :-2])
    each_trial = sums.weighed[..., :-1] / np.where(weight > 0, weight, np.nan)
    variables["per_trial"] = ((*wanted, "counter"), each_trial)
    coords = {"counter": variable(("counter",), np.array(labels)), **labels_of_groups(ds, (models, cells))}
    result = dataset_like(ds, variables).assign_coords(coords)
    attributes = _attributes(mode, weigh, confidence, exact=exact)
    return result.assign_attrs(attributes | {"base_design": "known" if BASE in ds.variables else ""} | words)


def points(
    ds: DatasetT,
    *,
    where: Where | None = None,
    mode: Mode = "C_I",
    confidence: float = 0.95,
    interval: Interval = "exact",
) -> DatasetT:
    """Estimates and intervals of single cells.

    Parameters
    ----------
    ds
        Dataset with ``counters`` (model, task, params, counter), lazy or not, and the cube's coordinates.
    where
        Conditions on models and cells, as for `aggregate`; None means all.
    mode
        Estimator: "E_I", "E_P", "E_O" (share right) or "C_I", "C_P", "C_O" (corrected for guessing). Truncated trials
        are left out (I), wrong (P) or right (O).
    confidence
        Confidence level of the intervals, between 0 and 1; 0.95 uses z = 1.96.
    interval
        As for `aggregate`.

    Returns
    -------
    Dataset with ``point``, ``lower``, ``upper`` (model, task, params), NaN where a cell has no value or is not
    selected, and ``counters``, with all coordinates. Models, tasks and positions of points without a
    selected cell are left out.

    Raises
    ------
    ValueError
        As `aggregate`.
    """
    table = selection.keys(ds)
    _check_options(mode, "trials", confidence)
    one_of(interval, "interval", get_args(Interval))
    chosen = selection.select(ds, where, table)
    values = _selected_counters(ds, chosen)
    options: dict[str, Any] = {"labels": names(ds, "counter"), "mode": mode, "confidence": _level(confidence)}
    exact = interval == "exact"
    if exact:
        once = questions_once(ds)
        values, effects = _selected_counters(once, chosen), question_effects(once, by_point=True)
        bounds = stratified.exact_estimate(values, effect=1.0 if effects is None else effects, **options)
    else:
        bounds = estimators.estimate(values, **options)
    cell = (*MODEL, *CELL)
    variables: dict[str, Any] = {name: (cell, part) for name, part in zip(_BOUNDS, bounds, strict=True)}
    estimates = dataset_like(ds, variables | {"counters": ((*cell, "counter"), values)}, ds.coords)
    selected = {"model": chosen.models, "task": chosen.cells.any(axis=1), "params": chosen.cells.any(axis=0)}
    estimates = estimates.isel({dim: np.flatnonzero(inside) for dim, inside in selected.items()})
    return estimates.assign_attrs(_attributes(mode, "trials", confidence, exact=exact))


def checked_by(by: str | Sequence[str], table: dict[str, Key]) -> list[str]:
    """Return the names to group by as a list, all known and none twice."""
    wanted = [by] if isinstance(by, str) else list(by)
    for name in wanted:
        selection.check_name(table, name, "by")
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(f"`by` names something twice: {wanted}; name each once")
    return wanted


def _check_options(mode: str, weigh: str, confidence: float) -> None:
    """Refuse unknown options now, even if the dataset is computed later."""
    estimators.checked_mode(mode)
    quantile(confidence)
    one_of(weigh, "weigh", get_args(Weigh))


def _level(confidence: float) -> float | None:
    return None if confidence == 0.95 else confidence


def _attributes(mode: str, weigh: str, confidence: float, *, exact: bool) -> dict[str, Any]:
    interval = "wilson" if weigh == "trials" else "wilson at the effective number of trials"
    if exact:
        interval = "exact at the effective number of trials"
    return {"mode": mode, "weigh": weigh, "interval": interval, "confidence": confidence}


def _selected_counters(ds: Dataset, chosen: CellSelection) -> Floats:
    """Counters (model, task, params, counter), zero where not selected."""
    inside = chosen.models[:, np.newaxis, np.newaxis] & chosen.cells
    return np.where(inside[..., np.newaxis], counter_cells(ds).values.astype(np.float64, copy=False), 0.0)


def _common_points(
    ds: Dataset, values: Floats, chosen: CellSelection, cells: Groups
) -> tuple[NDArray[np.int8], dict[str, Any]]:
    """Which points means rest on, 1, and estimates, 2, shape (model, task, params), and what to say of the others."""
    inside = members(ds).any(axis=0) & chosen.cells & chosen.models[:, np.newaxis, np.newaxis]
    asked = inside & planned_points(ds, column(values, "trials", names(ds, "counter")) > 0)
    common, words = common_in_groups(asked, (indices for _, indices in cells.members()), names(ds, "task"))
    return common.astype(np.int8) + (common & inside), words


def _effects(ds: Dataset, models: Groups) -> Floats:
    """Trials of a model and a task that are worth one independent one, in a mean over the models of its group."""
    effects = question_effects(ds)
    several = [members for _, members in models.members() if len(members) > 1]
    if effects is not None and not several:
        return effects
    alike = family_effects(ds, several)
    return alike if effects is None else alike * effects


def _finish(
    groups: GroupSums, labels: list[str], mode: str, confidence: float | None, weigh: str, *, exact: bool
) -> Bounds:
    if weigh != "trials":
        return stratified.combine(groups.moments, confidence=confidence, exact=exact)
    sums, effects = groups.moments[..., :-1], groups.moments[..., -1]
    if not exact:
        return estimators.estimate(sums, labels=labels, mode=mode, confidence=confidence)
    trials = column(sums, "trials", labels)
    effect = np.where(trials > 0, effects, 1.0) / np.where(trials > 0, trials, 1.0)
    return stratified.exact_estimate(sums, labels=labels, mode=mode, confidence=confidence, effect=effect)


def labels_of_groups(ds: Dataset, groups: Sequence[Groups]) -> dict[str, Any]:
    """The groups' values as coordinates; groups by model keep all that is known of a model."""
    coords: dict[str, Any] = {}
    for name, values in (pair for item in groups for pair in zip(item.names, item.levels, strict=True)):
        same = len({type(value) for value in values}) <= 1
        coords[name] = variable((name,), np.array(values, dtype=None if same else object))
        if name == "model":
            mine = ds[[key for key in ds.coords if ds.variables[key].dims == MODEL]]
            models = ds["model"].values.tolist()
            rows = mine.isel(model=[models.index(level) for level in values])
            coords |= {str(key): item.variable for key, item in rows.coords.items() if item.dims == MODEL}
    return coords


class GroupSums(NamedTuple):
    """Arrays (names of the models' groups, names of the cells' groups, column)."""

    counted: Floats
    """Counters, cells of models with trials, and planned ones."""
    weighed: Floats
    """Counters per trial by the weights of cells, and the sum of these."""
    moments: Floats
    """Of `stratified`, by part; for sums of all trials the counters that estimates rest on, and trials by effects."""


def group_sums(
    values: Floats,
    share: Floats,
    effect: Floats,
    usable: NDArray[np.int8],
    groups: tuple[Groups, Groups],
    *,
    labels: list[str],
    mode: str,
    weigh: str,
    units: Floats,
    once: Floats,
) -> GroupSums:
    """Sums over the members of each group of models and of cells.

    But for what is counted and for sums of trials, those of an evaluation have weight 1, so that evaluations weigh
    alike; those of each task before they are summed, if tasks are to weigh alike.
    """
    estimators.counts(values, labels=labels)
    trials = column(values, "trials", labels)
    there, worth = trials > 0, effect[..., np.newaxis]
    by_task, plain = weigh == "tasks", weigh == "trials"
    among = design.ratios(share, there & (usable > 0)) if by_task else share
    weight = (trials if plain else among * there) * (usable > 0)
    meant = planned_trials(values, labels) > 0
    each = once * (weight / np.where(there, trials, 1.0))[..., np.newaxis]
    counted = once * (usable > 1)[..., np.newaxis]
    if plain:
        moments = _sum_groups(_with(counted, trials * (usable > 1) * worth), groups)
    else:
        own = design.ratios(share, there & (usable > 1)) if by_task else share
        strata = stratified.moments(counted / worth[..., np.newaxis], own, labels=labels, mode=mode)
        moments = _group_parts(strata, units, groups, by_task=by_task)
    factor = None if plain else _factors(weight, groups[1], by_task=by_task)
    return GroupSums(
        _sum_groups(_with(values, there, meant), groups),
        _sum_groups(_with(each, weight), groups, factor),
        moments,
    )


def _factors(weight: Floats, cells: Groups, *, by_task: bool) -> Floats:
    """By member of a group, what makes weights (model, task, params) sum to 1 in it, and tasks alike if asked."""
    owner, cell = cells.pairs
    tasks, groups = weight.shape[1], cells.matrix.shape[0]
    inner, inside = np.unique(owner * tasks + by_task * (cell // weight.shape[2]), return_inverse=True)
    factors = np.zeros((len(weight), len(cell)))
    for model, share in enumerate(weight.reshape(len(weight), -1)):
        total = np.bincount(inside, share[cell], len(inner))
        whole = (total * np.bincount(inner // tasks, total > 0, groups)[inner // tasks])[inside]
        factors[model] = (whole > 0) / np.where(whole > 0, whole, 1.0)
    return factors


def _group_parts(strata: Floats, units: Floats, groups: tuple[Groups, Groups], *, by_task: bool) -> Floats:
    """Moments by part of each group from those of cells (model, task, params, moment), models of weight 1."""
    (group, model), (owner, cell) = (item.pairs for item in groups)
    flat, planned = strata.reshape(len(strata), -1, strata.shape[-1]), units.reshape(len(strata), -1)
    rows = stratified.weigh(flat[:, cell], _factors(strata[..., 1], groups[1], by_task=by_task))
    inner, outer = (item.matrix.shape[0] for item in groups[::-1])
    parts = stratified.parts_of(
        rows[model].reshape(-1, rows.shape[-1]),
        planned[:, cell][model].ravel(),
        (group[:, np.newaxis] * inner + owner).ravel(),
        outer * inner,
    )
    return parts.reshape(*groups[0].shape, *groups[1].shape, *parts.shape[1:])


def _with(values: Floats, *columns: NDArray[np.generic]) -> Floats:
    return np.concatenate([values, *(item[..., np.newaxis] for item in columns)], axis=-1)


def _sum_groups(each: Floats, groups: tuple[Groups, Groups], factor: Floats | None = None) -> Floats:
    """Sums over cells (model, task, params, column), times a factor of each member of a group, and over models."""
    models, cells = groups
    # One product for each model: for all of them at once the array would have to be turned round.
    sums = np.array(
        [
            (cells.matrix if factor is None else cells.weigh(factor[model])) @ part
            for model, part in enumerate(each.reshape(len(each), -1, each.shape[-1]))
        ]
    )
    whole = models.matrix @ sums.reshape(len(sums), -1)
    return np.asarray(whole).reshape(*models.shape, *cells.shape, each.shape[-1])
