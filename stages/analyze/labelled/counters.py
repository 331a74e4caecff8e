"""Sums of a cube's counters, labelled, over the points of a tier or a task, each weighed by the base design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, Labelled, variable
from evalcube.stages.analyze.formulas import design, stratified
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.bootstrap import DRAWN
from evalcube.stages.analyze.formulas.estimators import token_error
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import CELL_DIMS, base_design, most_repeats, names
from evalcube.stages.analyze.labelled.clustering import answers_to_questions
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import Status

_MODELS = 64
"""Evaluations whose moments are made at once: those of all points take several times what their counters do."""
_UNEVEN = 1e-3
"""Relative difference of factors from which points are said to be weighed; one lost request is not worth saying."""


def counter_cells(ds: Dataset) -> Labelled:
    """`counters` without coordinates: a dataset has dozens, and each operation would carry all of them along."""
    if "counters" not in getattr(ds, "variables", ()) or set(ds.variables["counters"].dims) != set(CELL_DIMS):
        raise ArgumentError(
            f"the dataset has no array `counters` with dims {CELL_DIMS}; open it with `Cube.dataset()`"
        )
    absent = [name for name in ("model_name", "task", "tier", "in_tier", "counter") if name not in ds.coords]
    if absent:
        raise ArgumentError(f"the dataset lacks the coordinates {absent}; a cube written by a sweep has them")
    return ds.variables["counters"].transpose(*CELL_DIMS)


def with_unasked(dataset: Dataset) -> Dataset:
    """The dataset with all planned trials that were not run in the counter ``missing``.

    A run counts what is missing of the regions that it has written; of the others a cube only knows the plan.
    """
    if not {"counters", "planned_trials", "planned_repeats"} <= set(dataset):
        return dataset
    cells = counter_cells(dataset)
    labels = names(dataset, "counter")
    trials, repeats = (
        dataset.variables[f"planned_{name}"].transpose(*CELL_DIMS[:-1]).values
        for name in ("trials", "repeats")
    )
    values = cells.values
    missing = labels.index("missing")
    answered, failed = (values[..., labels.index(name)] for name in ("trials", "transport"))
    unasked = trials * repeats - (answered + failed)
    if cells.chunks is None and (values[..., missing] >= unasked).all():
        return dataset
    values = values.copy()
    values[..., missing] = np.maximum(values[..., missing], unasked)
    return dataset.assign(counters=variable(cells.dims, values, cells.attrs))


def planned_trials(cells: Floats, labels: Sequence[str]) -> Floats:
    """Trials that were asked for, or are to be, as far as counters (..., counter) have them: shape (...)."""
    asked = ("trials", "transport", "missing")
    return np.asarray(sum(column(cells, name, labels) for name in asked if name in labels))


def planned_mask(ds: Dataset) -> NDArray[np.bool_]:
    """Which trials are planned, shape (model, task, params, trial, repeat)."""
    trials, repeats = (
        ds.variables[f"planned_{dim}s"].transpose(*CELL_DIMS[:-1]).values[..., np.newaxis, np.newaxis]
        for dim in ("trial", "repeat")
    )
    trial = np.arange(ds.sizes["trial"])[:, np.newaxis] < trials
    selected = ds.variables["asked"].values[..., np.newaxis] if "asked" in ds.variables else True
    return np.asarray(trial & (np.arange(ds.sizes["repeat"]) < repeats) & selected)


def point_factors(ds: Dataset) -> Floats:
    """Factor of each cell's counters, shape (model, task, params), largest 1 in each model; needs them in memory."""
    cells, labels = counter_cells(ds).values, names(ds, "counter")
    used = (column(cells, "trials", labels) > 0) & members(ds).any(axis=0)
    return design.normalise(design.design_factors(cells, base_design(ds), labels=labels), used, axis=(1, 2))


def planned_questions(ds: Dataset) -> Floats:
    """Questions that each point was planned with, shape (model, task, params); needs counters in memory, if any.

    Without them those that are planned, or that any evaluation has, be it without a reply.
    """
    if "counters" not in ds.variables and "planned_trials" in ds:
        return np.asarray(ds.variables["planned_trials"].transpose(*CELL_DIMS[:-1]).values, dtype=np.float64)
    if "counters" not in ds.variables:
        status = ds["status"].variable.transpose(*CELL_DIMS[:-1], "trial", "repeat").data
        asked = np.asarray((status != int(Status.MISSING)).any(axis=(0, -1)).sum(axis=-1), dtype=np.float64)
        return np.broadcast_to(asked, (ds.sizes["model"], *asked.shape))
    asked = planned_trials(counter_cells(ds).values.astype(float), names(ds, "counter"))
    times: Any = most_repeats(ds)
    if "planned_repeats" in ds:
        times = ds.variables["planned_repeats"].transpose(*CELL_DIMS[:-1]).values
    return np.asarray(asked / np.maximum(times, 1))


def task_moments(
    ds: Dataset,
    member: NDArray[np.bool_],
    mode: str,
    effect: Floats | None = None,
    *,
    together: bool = False,
    plain: bool = False,
) -> Floats:
    """Moments by part of the mean rate of each task: (model, [tier,] task, part, moment); needs counters in memory.

    Tasks weigh the same and points as in the base design, or if `plain` all trials alike.
    """
    labels = names(ds, "counter")
    cells = counter_cells(ds).values[..., [labels.index(name) for name in DRAWN]].astype(float)
    share = cells[..., 0].copy() if plain else design.ratios(base_design(ds), cells[..., 0] > 0)
    if effect is not None:
        cells /= effect[..., np.newaxis, np.newaxis]
    questions = planned_questions(ds)
    pieces = []
    for models in (slice(start, start + _MODELS) for start in range(0, max(1, len(cells)), _MODELS)):
        each = stratified.moments(cells[models], share[models], labels=DRAWN, mode=mode)
        weight = np.einsum("mkp,...kp->m...k", each[..., 1], member.astype(float))
        # Of each tier its own points only: all points in every tier would be most of what a reader holds.
        there = each[..., 3] > 0
        where = np.nonzero((there[:, np.newaxis] if member.ndim == 3 else there) & member)
        point = where[0], where[-2], where[-1]
        rows = stratified.weigh(each[point], 1.0 if plain else 1.0 / weight[where[:-1]])
        shape = weight.shape[:-1] if together else weight.shape
        owner = np.ravel_multi_index(where[: len(shape)], shape)
        sums = stratified.parts_of(rows, questions[models][point], owner, int(np.prod(shape)))
        pieces.append(sums.reshape(*shape, *sums.shape[1:]))
    parts = max(piece.shape[-2] for piece in pieces)
    joined = np.zeros((len(cells), *pieces[0].shape[1:-2], parts, len(stratified.MOMENTS)))
    for turn, piece in enumerate(pieces):
        joined[turn * _MODELS :][: len(piece), ..., : piece.shape[-2], :] = piece
    return joined


def point_weights(ds: Dataset, member: NDArray[np.bool_] | None = None) -> Floats:
    """Weights of points as in `task_moments`, 1 for each task of which there are trials: (model, task, params)."""
    there = column(counter_cells(ds).values, "trials", names(ds, "counter")) > 0
    return design.task_weights(base_design(ds), there & (True if member is None else member))


def mean_weights(ds: Dataset) -> Floats:
    """Weights of points in the mean over tiers of the means over their tasks, up to a factor: (model, task, params)."""
    each = np.array([point_weights(ds, inside) for inside in members(ds)])
    total = each.sum(axis=(2, 3), keepdims=True)
    return np.asarray((each / np.where(total > 0, total, 1.0)).sum(axis=0))


def per_trial(
    ds: Dataset, member: NDArray[np.bool_] | None = None, *, by_task: bool = False, plain: bool = False
) -> Floats:
    """Counters per finished trial, mean over tasks of points by `point_weights`, or `plain`: (model, counter)."""
    cells, labels = counter_cells(ds).values.astype(float), names(ds, "counter")
    trials = column(cells, "trials", labels)
    share = trials * (True if member is None else member) if plain else point_weights(ds, member)
    axis = 2 if by_task else (1, 2)
    total = share.sum(axis=axis)[..., np.newaxis]
    each = cells * (share / np.where(trials > 0, trials, 1.0))[..., np.newaxis]
    return np.asarray(each.sum(axis=axis) / np.where(total > 0, total, np.nan))


def tokens_error(
    ds: Dataset, weights: Floats, effect: Floats | None = None, *, by_task: bool = False
) -> Floats:
    """Relative standard error of the mean over points of their tokens per trial: (model,), or (model, task).

    Answers to one question are taken to be of one length, as counters do not say how much alike they are.
    """
    shape = weights.shape if by_task else (len(weights), int(np.prod(weights.shape[1:])))
    cells = np.asarray(counter_cells(ds).values, dtype=float)
    alike = answers_to_questions(ds)
    worth = alike if effect is None else np.maximum(alike, effect[..., np.newaxis])
    return token_error(
        cells.reshape(*shape, cells.shape[-1]),
        weights.reshape(shape),
        labels=names(ds, "counter"),
        effect=worth.reshape(shape),
    )


def weighing(ds: Dataset) -> str:
    """Whether points weigh otherwise than by their trials: "base", or empty."""
    factors = point_factors(ds)
    return "base" if (factors.min(axis=(1, 2), initial=1.0) < 1.0 - _UNEVEN).any() else ""


def members(ds: Dataset) -> NDArray[np.bool_]:
    """Membership of points in tiers, shape (tier, task, params)."""
    return np.asarray(ds.variables["in_tier"].transpose("tier", "task", "params").values, dtype=bool)


def tier_counters(ds: Dataset) -> Floats:
    """Counters summed over each task's points in each tier: shape (model, tier, task, counter).

    At their effective numbers where points weigh differently, see `evalcube.stages.analyze.formulas.design`. A point
    that belongs to several tiers counts in each of them.
    """
    member, labels = members(ds).astype(np.float64), names(ds, "counter")
    scaled, squares = design.design_moments(counter_cells(ds).values, point_factors(ds), labels=labels)
    sums = np.einsum("mkpc,gkp->mgkc", scaled, member)
    return design.effective(sums, np.einsum("mkp,gkp->mgk", squares, member), labels=labels)


def raw_task_counters(ds: Dataset) -> Floats:
    """Counters of each task as they were counted, whatever points weigh: (model, task, counter)."""
    return np.asarray(counter_cells(ds).values.sum(axis=2))


def usd_of(ds: Dataset, counted: Floats, prompt: Floats, completion: Floats) -> Floats:
    """USD of evaluations (model, ...) by their prices, else as they were counted; NaN where neither is known."""
    cost = np.where(counted > 0, counted, np.nan)
    if "price_prompt" not in ds.coords or "price_completion" not in ds.coords:
        return cost
    shape = (-1, *(1,) * (counted.ndim - 1))
    per_prompt, per_completion = (
        ds.variables[f"price_{kind}"].values.astype(float).reshape(shape) for kind in ("prompt", "completion")
    )
    # 0 is also what a cube has where none was declared.
    declared = per_prompt + per_completion > 0
    if "price_declared" in ds.coords:
        declared |= ds.variables["price_declared"].values.astype(bool).reshape(shape)
    total = (per_prompt * prompt + per_completion * completion) / 1e6
    return np.where(declared & (prompt + completion > 0), total, cost)


_UNKNOWN = 255
"""A question that has not been compared with the others of its cell."""


def unique_shares(ds: Dataset, dim: Literal["model", "task"]) -> Floats:
    """Share of finished trials whose question is new in its cell, of each model, or of each task over all models.

    NaN without trials, and where it is not known of a task whether a planned question occurred before.
    """
    summed, labels = raw_task_counters(ds).sum(axis=0 if dim == "task" else 1), names(ds, "counter")
    if "duplicates" not in labels or "duplicate" not in ds:
        return np.full(len(summed), np.nan)
    trials, unknown = column(summed, "trials", labels), unmarked_tasks(ds)
    with np.errstate(all="ignore"):
        share = 1.0 - column(summed, "duplicates", labels) / np.where(trials > 0, trials, np.nan)
    return np.where(unknown if dim == "task" else unknown.any(), np.nan, share)


def unmarked_tasks(ds: Dataset) -> NDArray[np.bool_]:
    """Booleans (task,): whether a planned question has not been compared with the others of its cell yet."""
    flags = ds.variables["duplicate"].transpose("task", "params", "trial").values
    planned = np.full(flags.shape[:2], flags.shape[2])
    if "planned_trials" in ds:
        planned = ds.variables["planned_trials"].transpose("model", "task", "params").values.max(axis=0)
    unknown = (flags == _UNKNOWN) & (np.arange(flags.shape[2]) < planned[..., np.newaxis])
    return np.asarray(unknown.any(axis=(1, 2)))
