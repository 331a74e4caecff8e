"""How much answers to one question are alike: the trials that are worth one independent trial, by model and task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, variable
from evalcube.stages.analyze.formulas import design
from evalcube.stages.analyze.formulas.clustering import (
    cluster_effect,
    cluster_moments,
    cluster_units,
    unit_effect,
)
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import CELL_DIMS, base_design, most_repeats, names
from evalcube.stages.reply.status import LAST_FINISHED, QUESTION_COUNTERS, QUESTION_MOMENTS, Status

CLUSTER = "cluster"
"""Variable of a dataset with what questions have in common, which few cubes have."""

_QUESTION = ("params", "trial", "repeat")


def with_question_moments(ds: Dataset) -> Dataset:
    """The dataset with `QUESTION_MOMENTS` apart from ``counters``, which keeps those of trials; lazy if it is."""
    if "counters" not in ds or "counter" not in ds.coords:
        return ds
    labels = names(ds, "counter")
    if not set(QUESTION_COUNTERS) <= set(labels):
        return ds
    trials = [label for label in labels if label not in QUESTION_COUNTERS]
    counters = ds["counters"].variable
    chosen = counters.isel(counter=[labels.index(name) for name in ("correct", "trials", *QUESTION_COUNTERS)])
    dims = ["moment" if dim == "counter" else dim for dim in chosen.dims]
    parts = {
        "counters": counters.isel(counter=[labels.index(label) for label in trials]),
        QUESTION_MOMENTS: variable(dims, chosen.data),
    }
    attrs = ds["counter"].attrs
    parted = ds.drop_vars(["counters", "counter"]).assign(parts)
    return parted.assign_coords(counter=variable(("counter",), np.array(trials), attrs))


def answered_unevenly(ds: Dataset) -> NDArray[np.bool_]:
    """Points some of whose questions have more answers than others, (model, task, params), as far as that is known."""
    if QUESTION_MOMENTS not in ds and ("status" not in ds.variables or ds.sizes["repeat"] < 2):
        return np.zeros([ds.sizes[dim] for dim in CELL_DIMS[:-1]], dtype=bool)
    _, answers, questions, _, _, squares = np.moveaxis(_moments(ds), -1, 0)
    return np.asarray(squares * questions > answers**2 * (1.0 + 1e-9))


def questions_once(ds: DatasetT) -> DatasetT:
    """The dataset with counters in which each question of a point counts once, however often it was answered.

    Outcomes of points whose questions were answered unevenly often become those of even repeats, as many answers as
    there are; tokens, which were spent, stay. Without ``status`` it is returned as it is.
    """
    uneven = answered_unevenly(ds)
    if "status" not in ds.variables or not uneven.any():
        return ds
    moments, labels = _moments(ds), names(ds, "counter")
    answers = moments[..., 1]
    cells = np.array(ds.variables["counters"].transpose(*CELL_DIMS).values, dtype=np.float64)
    for model in np.flatnonzero(uneven.any(axis=(1, 2))).tolist():
        these, own = uneven[model], cells[model, uneven[model]]
        status = trials_of(ds, "status", model)[these]
        number, times = answers[model, these], moments[model, these]
        even = number / times[:, 2]
        share = even[:, np.newaxis] / np.maximum((status <= LAST_FINISHED).sum(axis=-1), 1)
        outcomes = {
            name: share * (status == int(Status[name.upper()])).sum(axis=-1)
            for name in ("correct", "invalid", "refused", "truncated")
        }
        for name, each in outcomes.items():
            own[:, labels.index(name)] = each.sum(axis=-1)
        completed = number - own[:, labels.index("truncated")]
        own[:, labels.index("guess_sum")] *= completed / np.maximum(own[:, labels.index("completed")], 1.0)
        own[:, labels.index("completed")] = completed
        cells[model, these] = own
        right = outcomes["correct"]
        total = right.sum(axis=-1)
        sums = (total, number, times[:, 2], (right**2).sum(axis=-1), even * total, even * number)
        moments[model, these] = np.stack(sums, axis=-1)
    return ds.assign(
        {
            "counters": variable(CELL_DIMS, cells),
            QUESTION_MOMENTS: variable((*CELL_DIMS[:-1], "moment"), moments),
        }
    )


def question_effects(ds: Dataset, *, by_point: bool = False) -> Floats | None:
    """Design effect of each model and task, shape (model, task), at least 1; None where trials tell nothing of it.

    With `by_point` of each point, shape (model, task, params): its own, and at least that of its task, since that of a
    few questions is often too low.

    Where questions have clusters, these are what is drawn, see `unit_effect`. Else it reads what a cube counts of
    questions; where it does not, the outcomes model by model, and none where no question was asked twice.
    """
    effects = _by_question(ds, by_point=by_point)
    if effects is None or not {CLUSTER, "status"} <= set(ds.variables):
        return effects
    return _cluster_effects(ds, "status", effects)


def token_effects(ds: Dataset) -> Floats | None:
    """Design effect of the tokens of each model and task where questions have clusters: (model, task); else None."""
    if not {CLUSTER, "status", "tokens"} <= set(ds.variables):
        return None
    return _cluster_effects(ds, "tokens", np.ones((ds.sizes["model"], ds.sizes["task"])))


def question_clusters(ds: Dataset, model: int) -> NDArray[np.int64]:
    """Clusters of the questions of a model, shape (task, params, trial); 0 where there is none."""
    clusters: NDArray[np.int64] = trials_of(ds, CLUSTER, model).max(axis=-1, initial=0)
    return clusters


def trials_of(ds: Dataset, name: str, model: int) -> NDArray[Any]:
    """An array of a model's trials, shape (task, params, trial, repeat)."""
    return np.asarray(ds[name].variable.isel(model=model).transpose("task", *_QUESTION).compute().values)


def pair_units(ds: Dataset, *models: int) -> NDArray[np.int64] | None:
    """Number of the cluster of each question of some models, as of `cluster_units`; None where there is none."""
    groups = all_clusters(ds, models)
    return None if groups is None else cluster_units(groups.reshape(ds.sizes["task"], -1, groups.shape[1]))


def all_clusters(ds: Dataset, models: Sequence[int] | None = None) -> NDArray[np.int64] | None:
    """Clusters of questions, shape (task * params, trial), as any of the models tells; None where there is none."""
    if CLUSTER not in ds:
        return None
    places = range(ds.sizes["model"]) if models is None else models
    clusters = np.maximum.reduce([question_clusters(ds, model) for model in places])
    return clusters.reshape(-1, clusters.shape[-1]) if clusters.any() else None


def _cluster_effects(ds: Dataset, name: str, effects: Floats) -> Floats:
    """Effects (model, task, ...), raised where clusters are drawn, read model by model; others stay.

    Of right answers (``status``) or of ``tokens``; a reply whose tokens nobody counted has none.
    """
    base, right = base_design(ds), name == "status"
    for model in range(ds.sizes["model"]):
        clusters = question_clusters(ds, model)
        if not clusters.any():
            continue
        status = trials_of(ds, "status", model)
        done = status <= LAST_FINISHED
        each = status == int(Status.CORRECT) if right else done * np.maximum(trials_of(ds, name, model), 0.0)
        asked, total, squares = (part.sum(axis=-1, dtype=np.float64) for part in (done, each, each**2))
        for task in np.flatnonzero(clusters.any(axis=(1, 2))):
            there = asked[task] > 0
            if there.any():
                values, spread, m = (part[task][there] for part in (total, squares, asked))
                units, cells = cluster_units(clusters[task])[there], np.nonzero(there)[0]
                weights = design.ratios(base[model, task], there.any(axis=-1))
                effect = unit_effect(values, spread, m, weights, units, cells=cells, prior=float(right))
                effects[model, task] = np.maximum(effects[model, task], effect)
    return effects


def _by_question(ds: Dataset, *, by_point: bool) -> Floats | None:
    """`question_effects` without clusters."""
    if QUESTION_MOMENTS not in ds and "status" not in ds and most_repeats(ds) > 1:
        return None
    if QUESTION_MOMENTS not in ds and ("status" not in ds or ds.sizes["repeat"] < 2):
        return np.ones([ds.sizes[dim] for dim in CELL_DIMS[: 3 if by_point else 2]])
    moments = _moments(ds)
    effects = cluster_effect(moments)
    if not by_point:
        return effects
    return np.maximum(effects[..., np.newaxis], cluster_effect(moments[..., np.newaxis, :]))


def _moments(ds: Dataset) -> Floats:
    """Sums over the questions of points (model, task, params, moment), as they were counted or from ``status``."""
    if QUESTION_MOMENTS in ds:
        return np.array(ds[QUESTION_MOMENTS].variable.transpose(*CELL_DIMS[:-1], "moment").values, float)
    return np.stack([cluster_moments(trials_of(ds, "status", model)) for model in range(ds.sizes["model"])])


def family_effects(ds: Dataset, groups: Sequence[NDArray[np.intp]]) -> Floats:
    """By how much the variance of a mean over models exceeds that of as many apart: shape (model, task), 1 for one.

    Models answer the same questions, and what is hard for one is hard for others. With the residuals r of a model's
    answers to a question, the sums of (Σr)² and of Σr² over the questions have that ratio. Where no trials are known,
    or all are right, it is the number of models.
    """
    effects = np.ones((ds.sizes["model"], ds.sizes["task"]))
    for task in range(ds.sizes["task"] if groups else 0):
        residuals = _residuals(ds, task) if "status" in ds else None
        for members in groups:
            ratio = np.inf
            if residuals is not None and (apart := (residuals[members] ** 2).sum()) > 0:
                ratio = (residuals[members].sum(axis=0) ** 2).sum() / apart
            effects[members, task] = np.clip(ratio, 1.0, len(members))
    return effects


def _residuals(ds: Dataset, task: int) -> Floats:
    """Of the models' answers to each question of a task: (model, params, trial)."""
    status = ds["status"].variable.isel(task=task).transpose("model", *_QUESTION).compute().values
    right, asked = (status == int(Status.CORRECT)).sum(axis=-1), (status <= LAST_FINISHED).sum(axis=-1)
    number = np.maximum(asked.sum(axis=-1, keepdims=True), 1)
    return np.asarray((right - asked * right.sum(axis=-1, keepdims=True) / number) / number)


def answers_to_questions(ds: Dataset) -> Floats:
    """Answers to each question of a point, the most that an answer's repeats can be alike: (model, task, params)."""
    if QUESTION_MOMENTS not in ds:
        return np.full([ds.sizes[dim] for dim in CELL_DIMS[:-1]], float(most_repeats(ds)))
    _, answers, questions, *_ = np.moveaxis(_moments(ds), -1, 0)
    return np.asarray(np.maximum(answers, 1.0) / np.maximum(questions, 1.0))
