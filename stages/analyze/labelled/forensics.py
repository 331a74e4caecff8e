"""Forensic tables of a cube as datasets: hazards and curves over tokens, compression, costs.

Trials are read one evaluation at a time, so that memory does not grow with the number of evaluations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, dataset_like, variable
from evalcube.stages.analyze.formulas import forensics
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.budget import budget_curve
from evalcube.stages.analyze.formulas.forensics import costs, pareto_front
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.stratified import combine
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.clustering import question_effects, questions_once, token_effects
from evalcube.stages.analyze.labelled.points import common_part
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.errors import ArgumentError, ArgumentTypeError
from evalcube.stages.reply.status import LAST_FINISHED, OUTCOMES, Status

BOUNDS = ("value", "lower", "upper")
"""Labels along the dim ``bound``."""

_NAMES = ("model_name", "template", "sampler", "eval_id")
_CELL = ("params", "trial", "repeat")


def hazard_table(
    ds: DatasetT, *, by_task: bool = False, width: int = forensics.WIDTH, confidence: float | None = None
) -> DatasetT:
    """After how many tokens trials end, by evaluation: life table, survival and incidence of right and wrong answers.

    Parameters
    ----------
    ds
        Dataset of `open_cube`, with ``status`` and ``tokens`` (model, task, params, trial, repeat), lazy or not.
    by_task
        Whether to separate tasks.
    width
        Number of tokens in a bin; 1 gives the curves at every number of tokens that occurs.
    confidence
        Confidence level of the bounds at each bin, between 0 and 1; None means z = 1.96 exactly.

    Returns
    -------
    Dataset
        ``ends`` (model[, task], bin, end), ``at_risk`` (…, bin), ``hazard`` and ``incidence`` (…, bin, cause,
        bound), ``survival`` and ``budget`` (…, bin, bound); coordinate ``tokens`` (bin) is the last number of tokens of
        a bin.

    Raises
    ------
    ValueError
        If an array is missing or `width` < 1.
    """
    counted, at_end = [], []
    for status, tokens in _trials(ds, ("status", "tokens"), by_task=by_task):
        counted.append(forensics.count_ends(status, tokens, width=width))
        last = np.where(tokens % width, np.uint8(Status.MISSING), status)
        at_end.append(forensics.count_ends(last, tokens, width=width, bins=counted[-1].shape[-2]))
    bins = max((item.shape[-2] for item in counted), default=1)
    ends, ends_last = (np.stack([_pad(item, bins) for item in items]) for items in (counted, at_end))
    groups = ("model", "task") if by_task else ("model",)
    effect = _cluster_effect(ds, by_task=by_task)[..., np.newaxis]
    worth, last_worth = ends / effect[..., np.newaxis], ends_last[..., -1] / effect
    curves = {
        "hazard": forensics.life_table(worth, confidence=confidence).hazard,
        "survival": forensics.kaplan_meier(worth, confidence=confidence),
        "incidence": forensics.aalen_johansen(worth, confidence=confidence),
        "budget": budget_curve(worth, last_worth, confidence=confidence),
    }
    variables: dict[str, Any] = {
        "ends": ((*groups, "bin", "end"), ends),
        "at_risk": ((*groups, "bin"), forensics.life_table(ends).at_risk),
    }
    for name, curve in curves.items():
        inner = ("cause",) if name in ("hazard", "incidence") else ()
        variables[name] = ((*groups, "bin", *inner, "bound"), _bounds(curve))
    edges = (np.arange(bins) + 1) * width
    inner_labels = {"end": forensics.ENDS, "cause": forensics.CAUSES, "bound": BOUNDS}
    coords = {"tokens": variable(("bin",), edges), **_labels(ds, groups, inner_labels)}
    return dataset_like(ds, variables, coords)


def compression_table(ds: DatasetT, *, by_task: bool = False, confidence: float | None = None) -> DatasetT:
    """How well reasoning traces compress, by evaluation and outcome.

    Parameters
    ----------
    ds
        Dataset of `open_cube`, with ``status``, ``tokens``, ``reasoning_bytes`` and ``compressed_bytes``, lazy or not.
    by_task
        Whether to separate tasks.
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.

    Returns
    -------
    Dataset
        ``traces`` (model[, task], outcome); ``ratio``, ``bytes_per_token`` and ``compressed_per_token`` (…, outcome,
        bound).

    Raises
    ------
    ValueError
        If an array is missing.
    """
    arrays = ("status", "tokens", "reasoning_bytes", "compressed_bytes")
    sums = np.stack([forensics.sum_traces(*items) for items in _trials(ds, arrays, by_task=by_task)])
    effect = _cluster_effect(ds, by_task=by_task)[..., np.newaxis, np.newaxis]
    ratios = forensics.compression(sums / effect, confidence=confidence)
    groups = ("model", "task") if by_task else ("model",)
    variables: dict[str, Any] = {"traces": ((*groups, "outcome"), forensics.compression(sums).traces)}
    for name in ("ratio", "bytes_per_token", "compressed_per_token"):
        variables[name] = ((*groups, "outcome", "bound"), _bounds(getattr(ratios, name)))
    return dataset_like(ds, variables, _labels(ds, groups, {"outcome": OUTCOMES, "bound": BOUNDS}))


def cost_table(ds: DatasetT, *, by_task: bool = False, confidence: float | None = None) -> DatasetT:
    """USD by evaluation: ``total``, ``per_trial``, ``per_correct`` and its bounds; dimensions ``model[, task]``.

    The total is what was spent; the others are means over tasks, with points weighted by the trials that the cube's
    first run planned. Their bounds assume that costs vary as completion tokens do.

    Parameters
    ----------
    ds
        Dataset of `open_cube`, with ``counters``. Prices are its coordinates ``price_prompt`` and ``price_completion``
        (USD per million tokens), else the counted cost is used; costs are NaN if neither is known.
    by_task
        Whether to separate tasks.
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.

    Returns
    -------
    Dataset
        ``total``, ``per_trial``, ``per_correct``, ``per_correct_lower`` and ``per_correct_upper``, each
        (model[, task]) and in USD.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1).
    """
    groups = ("model", "task") if by_task else ("model",)
    cells = counters.counter_cells(ds)
    names, loaded = axes.names(ds, "counter"), ds.assign(counters=cells.compute())
    summed = loaded["counters"].values.sum(axis=2 if by_task else (1, 2))

    def usd(values: Floats) -> Floats:
        parts = (column(values, name, names) for name in ("cost_sum", "prompt_tokens_sum", "tokens_sum"))
        return counters.usd_of(ds, *parts)

    loaded = questions_once(loaded)
    effects, ranked = question_effects(loaded), np.asarray(counters.members(ds).any(axis=0))
    part = common_part(loaded, by_task=by_task)[0]
    moments = counters.task_moments(part, ranked, "E_P", effects, together=not by_task)
    right = combine(moments, confidence=confidence, exact=True)
    weights = counters.point_weights(part, ranked)
    error = counters.tokens_error(part, weights, token_effects(ds), by_task=by_task)
    each, every = (counters.per_trial(part, some, by_task=by_task) for some in (ranked, None))
    table = costs(each, usd(each), labels=names, confidence=confidence, right=right, error=error)
    table = replace(table, total=usd(summed), per_trial=usd(every))
    variables = {field.name: (groups, getattr(table, field.name)) for field in fields(table)}
    return dataset_like(ds, variables, _labels(ds, groups, {}))


@dataclass(frozen=True)
class FrontRow:
    """One evaluation among the others: what it scores for what it spends."""

    model_name: str
    template: str
    sampler: str
    eval_id: str
    score: float
    tokens: float
    """Completion tokens per trial."""
    cost: float
    """USD per 1 000 trials; NaN if unknown."""
    on_token_front: bool
    """No other scores as high with as few tokens, and better in one of them."""
    on_cost_front: bool
    on_front: bool
    """The same with tokens and cost both; false where the cost is unknown."""


def pareto_rows(board: Leaderboard) -> tuple[FrontRow, ...]:
    """Rows of a leaderboard, and the Pareto fronts that each is on.

    Parameters
    ----------
    board
        A leaderboard, as `evalcube.leaderboard` returns it.

    Returns
    -------
    A row for each of the leaderboard's, in its order.

    Raises
    ------
    TypeError
        If `board` is not a leaderboard.
    """
    if not isinstance(board, Leaderboard):
        raise ArgumentTypeError(
            f"`board` is a {type(board).__name__}, and no Leaderboard; make it with `leaderboard`"
        )
    score = [row.score.value for row in board.rows]
    tokens = [row.tokens_per_trial for row in board.rows]
    cost = [row.cost_per_1000 for row in board.rows]
    fronts = [pareto_front(score, tokens), pareto_front(score, cost), pareto_front(score, tokens, cost)]
    return tuple(
        FrontRow(
            **{name: getattr(row, name) for name in _NAMES},
            score=row.score.value,
            tokens=row.tokens_per_trial,
            cost=row.cost_per_1000,
            on_token_front=bool(fronts[0][index]),
            on_cost_front=bool(fronts[1][index]),
            on_front=bool(fronts[2][index]),
        )
        for index, row in enumerate(board.rows)
    )


def _trials(ds: Dataset, arrays: tuple[str, ...], *, by_task: bool) -> Iterator[tuple[NDArray[Any], ...]]:
    """For each evaluation the arrays, with one axis of trials last, behind one of tasks if asked for."""
    if absent := [name for name in arrays if name not in getattr(ds, "variables", ())]:
        raise ArgumentError(f"the dataset lacks the trial arrays {absent}; open it with `Cube.dataset()`")
    for model in range(ds.sizes["model"]):
        evaluation = ds[list(arrays)].drop_vars(list(ds.coords), errors="ignore").isel(model=model).compute()
        loaded = [evaluation[name].transpose("task", *_CELL).values for name in arrays]
        yield tuple(
            item.reshape(len(item) if by_task else 1, -1)[slice(None) if by_task else 0] for item in loaded
        )


def _cluster_effect(ds: Dataset, *, by_task: bool) -> Floats:
    """Trials that are worth one, shape (model[, task]): 1 without clusters.

    Shares stay what they are where all counts are divided by it, and intervals become those of so many fewer trials.
    """
    tokens = token_effects(ds)
    right = None if tokens is None else question_effects(ds)
    if tokens is None or right is None:
        shape = (ds.sizes["model"], ds.sizes["task"])
        return np.ones(shape if by_task else shape[:1])
    effects = np.maximum(tokens, right)
    if by_task:
        return np.asarray(effects)
    status = ds["status"].variable.transpose("model", "task", *_CELL).data
    done = np.asarray((status <= LAST_FINISHED).sum(axis=(2, 3, 4)))
    return np.asarray((effects * done).sum(axis=1) / np.maximum(done.sum(axis=1), 1)).clip(1.0)


def _pad(ends: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    missing = [(0, 0)] * (ends.ndim - 2) + [(0, bins - ends.shape[-2]), (0, 0)]
    return np.pad(ends, missing)


def _bounds(curve: forensics.Curve) -> NDArray[np.float64]:
    return np.stack([curve.value, curve.lower, curve.upper], axis=-1)


def _labels(ds: Dataset, groups: tuple[str, ...], inner: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """The coordinates that name evaluations and tasks, and those of the inner dims."""
    outer = [(name, "model") for name in _NAMES if name in ds.coords]
    outer += [("task", "task")] if "task" in groups else []
    coordinates = {name: variable((dim,), np.array(axes.names(ds, name))) for name, dim in outer}
    return coordinates | {name: variable((name,), np.array(list(labels))) for name, labels in inner.items()}
