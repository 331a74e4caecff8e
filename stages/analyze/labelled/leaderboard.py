"""The leaderboard of a cube: every evaluation scored, with intervals, and ranked by what is honest at its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube._arrays import Dataset, Labelled, variable
from evalcube.stages.analyze.formulas import estimators, reasonscore, stratified
from evalcube.stages.analyze.formulas.arguments import column, one_of
from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals
from evalcube.stages.analyze.formulas.estimators import PLAIN, Bounds, Mode
from evalcube.stages.analyze.formulas.intervals import Floats, quantile
from evalcube.stages.analyze.formulas.reasonscore import Basis
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH
from evalcube.stages.analyze.labelled.axes import CELL_DIMS, facets, most_repeats, names
from evalcube.stages.analyze.labelled.clustering import question_effects, questions_once, token_effects
from evalcube.stages.analyze.labelled.columns import by_lead
from evalcube.stages.analyze.labelled.counters import (
    counter_cells,
    members,
    per_trial,
    planned_trials,
    task_moments,
    tier_counters,
    unique_shares,
    usd_of,
    weighing,
)
from evalcube.stages.analyze.labelled.points import (
    Common,
    Shortfall,
    cautions,
    common_part,
    common_points,
    contradicting,
    planned_points,
    shortfall,
    weighing_notes,
)
from evalcube.stages.analyze.labelled.results import BEHIND, Estimate, Leaderboard, Row, TierEstimate
from evalcube.stages.analyze.labelled.scores import (
    VERSIONS,
    BoardScores,
    How,
    Version,
    draw_means,
    per_token,
    posterior,
    resample_scores,
)
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import BASE

_NAMES = ("model_name", "template", "sampler", "eval_id", "revision")
"""Coordinates that rows are labelled by."""
BoardWeigh = Literal["tasks", "trials"]


def leaderboard(
    ds: Dataset,
    *,
    version: Version = "auto",
    mode: Mode | Literal["auto"] = "auto",
    basis: Basis = "completed",
    seed: int = 0,
    draws: int = 2000,
    confidence: float = 0.95,
    selection: str = "",
    weigh: BoardWeigh = "tasks",
) -> Leaderboard:
    """All evaluations of a cube ranked by ReasonScore or, of data sets or few trials, by accuracy; with intervals."""
    one_of(version, "version", VERSIONS)
    if draws < 1:
        raise ArgumentError(f"`draws` must be at least 1, got {draws}")
    quantile(confidence)
    one_of(weigh, "weigh", get_args(BoardWeigh))
    ds, cells = _with_weights(ds, weigh)
    effects = question_effects(ds)
    used = ("counters", "duplicate", "planned_trials", "planned_repeats")
    loaded = ds.drop_vars([name for name in ds.data_vars if name not in used]).assign(counters=cells)
    part, planned = common_part(loaded)
    published = _data_sets_only(ds, planned)
    chosen: Mode = mode if mode != "auto" else PLAIN if published else "C_P"
    plain = weigh == "trials"
    how = How(version, chosen, basis, seed, draws, confidence, effects, token_effects(ds), plain)
    common = common_points(planned & members(ds).any(axis=0), names(ds, "task"))
    short = shortfall(ds.assign(counters=cells), planned)
    scored = _score(part, loaded, how, common, short, published=published)
    having = np.array([not text for text in common.lacks], dtype=bool)
    apart = contradicting(ds, planned & common.points & having[:, np.newaxis, np.newaxis])
    board = Leaderboard(
        rows=scored.rows,
        tiers=tuple(names(ds, "tier")),
        tasks=tuple(names(ds, "task")),
        basis=basis,
        confidence=confidence,
        draws=draws,
        seed=seed,
        version=version,
        lead=scored.lead,
        size=scored.size,
        enough=ENOUGH,
        data_sets=published,
        mode=chosen,
        uneven=_uneven(loaded),
        weighed=weighing(loaded),
        repeats=most_repeats(ds),
        clustered=effects is not None,
        selection=selection,
        ceiling=scored.ceiling,
        cautions=cautions(scored.rows, common.left_out, apart),
    )
    board = by_lead(board)
    return replace(board, cautions=(*board.cautions, *_weighing_remarks(board, weigh)))


def _with_weights(ds: Dataset, weigh: BoardWeigh) -> tuple[Dataset, Labelled]:
    """Return the dataset that is counted, and its counters: each question once, or points weighing by their trials."""
    if weigh == "tasks":
        ds = questions_once(ds)
    cells = variable(CELL_DIMS, np.asarray(counter_cells(ds).values, dtype=np.float64))
    if weigh == "trials":
        trials = column(cells.values, "trials", names(ds, "counter"))
        ds = ds.assign_coords({BASE: variable(CELL_DIMS[:-1], trials)})
    return ds, cells


def _weighing_remarks(board: Leaderboard, weigh: BoardWeigh) -> tuple[str, ...]:
    """Return what a reader should know of the weights of points."""
    if weigh == "trials":
        return (
            "All trials have equal weight, whatever their task: adding trials to some changes the results.",
        )
    differ = board.uneven or bool(board.weighed)
    published = board.rows if board.data_sets else ()
    return weighing_notes(published, differ=differ, unclustered=0 if board.clustered else board.repeats)


@dataclass(frozen=True)
class _Scored:
    rows: tuple[Row, ...]
    lead: str
    size: float
    ceiling: float


def _data_sets_only(ds: Dataset, planned: NDArray[np.bool_]) -> bool:
    """Whether all that was asked is of data sets, which have no difficulty to be scored by."""
    if "data_set" not in ds.coords:
        return False
    asked = planned.any(axis=(0, 2))
    return bool(asked.any() and ds.variables["data_set"].values[asked].all())


def _guesser(how: How, grouped: Floats, labels: Sequence[str], expected: ArrayLike) -> list[float]:
    """Return the score that guessing alone would reach; only version 1 has one."""
    if how.version != "v1":
        return [math.nan] * len(grouped)
    guesses = reasonscore.guesser_score(grouped, labels=labels, basis=how.basis, expected=expected)
    return list(reasonscore.mean_score(guesses.score).tolist())


def _score(
    ds: Dataset, whole: Dataset, how: How, common: Common, short: Shortfall, *, published: bool
) -> _Scored:
    """Rows on the part that they are ranked on; what was done, and what it cost, is of the whole."""
    labels = names(ds, "counter")
    cells = ds.variables["counters"].values
    member = members(ds)
    estimators.counts(cells, labels=labels)
    grouped = tier_counters(ds)
    there = column(cells, "trials", labels) > 0
    planned = planned_points(ds, there)
    expected = (planned[:, np.newaxis] & member).any(axis=-1)
    present = np.einsum("gkp,mkp->mg", member.astype(np.int64), there.astype(np.int64))
    due = np.einsum("gkp,mkp->mg", member.astype(np.int64), planned.astype(np.int64))
    behind, lacking = _behind(cells, labels), np.array([bool(text) for text in common.lacks], dtype=bool)
    unranked = (present < due).any(axis=1) | lacking | behind | (np.array(short.thin) > 0)
    tokens = reasonscore.tier_tokens(grouped, labels=labels)
    tokens = np.where(tokens > 0, tokens, np.nan)  # every reply has some: 0 was not counted
    spent = reasonscore.mean_score(tokens)
    effect = how.effect((cells.shape[0], cells.shape[1]))
    sizes = column(grouped, "trials", labels) / effect[:, np.newaxis]
    size = float(np.where(sizes > 0, sizes, np.inf)[~behind].min(initial=np.inf))
    scores = posterior(ds, how, member) if how.version == "auto" else None
    lead = "rate" if how.version == "auto" and (published or not size >= ENOUGH) else "score"
    if scores is None:
        scores = resample_scores(ds, how, grouped, member)
    ranked = np.asarray(member.any(axis=0))
    moments = partial(task_moments, ds, effect=effect, together=True, plain=how.plain)
    overall = moments(ranked, how.mode)
    draws = scores.draws if lead == "score" else draw_means(ds, how, overall)
    accuracy = stratified.combine(moments(ranked, "E_P"), confidence=how.level, exact=True)
    rates = stratified.combine(moments(member, how.mode), confidence=how.level, exact=True)
    first = reasonscore.tier_score(grouped, labels=labels, basis=how.basis, expected=expected)
    columns = {
        **{name: names(ds, name) for name in _NAMES},
        "facets": [facets(text) for text in names(ds, "facets")],
        "score": _estimates(scores.mean),
        "tiers": _tiers(ds, scores, rates, first, present, due, tokens),
        "score_per_token": _estimates(per_token(ds, how, scores.mean, spent)),
        "correct_per_1000_tokens": _estimates(
            1000.0 * per_token(ds, how, np.stack(accuracy, axis=-1), spent)
        ),
        "tokens_per_trial": spent.tolist(),
        "score_v1": reasonscore.mean_score(first.score).tolist(),
        "accuracy": _estimates(np.stack(accuracy, axis=-1)),
        "pooled": per_trial(ds, ranked, plain=True)[:, labels.index("correct")].tolist(),
        "rate": _estimates(np.stack(stratified.combine(overall, confidence=how.level, exact=True), axis=-1)),
        "guesser": _guesser(how, grouped, labels, expected),
        "rank_interval": _estimates(_ranks(np.where(unranked[:, np.newaxis], np.nan, draws), how)),
        "behind": behind.tolist(),
        "others": common.lacks,
        "thin": short.thin,
        "bounds": short.bounds,
        **_count_columns(whole, per_trial(ds, plain=how.plain)),
    }
    asked = planned.any(axis=(1, 2)) if planned.any() else np.ones(len(cells), dtype=bool)
    rows = tuple(
        Row(rank=None, **{name: values[index] for name, values in columns.items()})
        for index in np.flatnonzero(asked).tolist()
    )
    return _Scored(rows, lead, size if np.isfinite(size) else math.nan, scores.ceiling)


def _count_columns(ds: Dataset, each: Floats) -> dict[str, Any]:
    """Return the rows' fields that follow from counters, by model: sums of what was done, and means over tasks."""
    labels, cells = names(ds, "counter"), ds.variables["counters"].values
    totals = dict(zip(labels, cells.sum(axis=(1, 2)).T, strict=True))
    shares = dict(zip(labels, each.T, strict=True))
    nothing = np.zeros(len(cells))
    limits = ds.variables["max_tokens"].values.tolist() if "max_tokens" in ds.coords else [0] * len(cells)
    cost, each_cost = (
        usd_of(ds, part.get("cost_sum", nothing), part["prompt_tokens_sum"], part["tokens_sum"])
        for part in (totals, shares)
    )
    return {
        **{name: shares[name].tolist() for name in ("truncated", "invalid", "refused")},
        **{
            name: totals.get(name, nothing).astype(int).tolist()
            for name in ("trials", "transport", "missing")
        },
        "cost": cost.tolist(),
        "cost_per_1000": (1000 * each_cost).tolist(),
        "unique": unique_shares(ds, "model").tolist(),
        "max_tokens": [int(limit) if limit > 0 else None for limit in limits],
    }


def _estimates(bounds: Floats) -> list[Estimate]:
    """Of each model, from (model, 3)."""
    return [Estimate.of(parts) for parts in bounds]


def _behind(cells: Floats, labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which evaluations have far less of their planned trials than the furthest one, shape (model,)."""
    finished = column(cells, "trials", labels).sum(axis=(1, 2))
    planned = planned_trials(cells, labels).sum(axis=(1, 2))
    done = np.where(planned > 0, finished, 0.0) / np.where(planned > 0, planned, 1.0)
    return np.asarray(done < BEHIND * done.max(initial=0.0))


def _ranks(draws: Floats, how: How) -> Floats:
    """Mean rank, lower and upper, shape (model, 3)."""
    if len(draws) < 2:
        return np.where(np.isnan(draws[:, :1]), np.nan, np.ones((len(draws), 3)))
    ranks = rank_intervals(draws, confidence=how.confidence)
    return np.stack([ranks.expected, ranks.lower, ranks.upper], axis=-1)


def _uneven(ds: Dataset) -> bool:
    """Whether points of an evaluation were planned, or could be finished, with different numbers of trials."""
    cells = ds["counters"].values
    rows = planned_trials(cells, names(ds, "counter")).reshape(len(cells), int(np.prod(cells.shape[1:3])))
    least = np.where(rows > 0, rows, np.inf).min(axis=1, initial=np.inf)
    return bool((least < rows.max(axis=1, initial=0.0)).any())


def _tiers(
    ds: Dataset,
    scores: BoardScores,
    rates: Bounds,
    first: reasonscore.TierScores,
    present: NDArray[np.int64],
    due: NDArray[np.int64],
    tokens: Floats,
) -> list[tuple[TierEstimate, ...]]:
    """Return the estimates of each tier, by model; the arrays are (model, tier, ...)."""
    return [
        tuple(
            TierEstimate(
                tier=tier,
                score=Estimate.of(scores.tiers[index, column]),
                rate=Estimate.of(part[index, column] for part in rates),
                tasks_present=int(first.tasks_present[index, column]),
                tasks_expected=int(first.tasks_expected[index, column]),
                cells_present=int(present[index, column]),
                cells_expected=int(due[index, column]),
                tokens=float(tokens[index, column]),
            )
            for column, tier in enumerate(names(ds, "tier"))
        )
        for index in range(len(tokens))
    ]


def row_order(ds: Dataset, board: Leaderboard) -> list[int]:
    """Index in the dataset of each of the board's rows."""
    parts = [names(ds, name) for name in ("eval_id", "model_name", "template", "sampler")]
    free: dict[tuple[str, ...], list[int]] = {}
    for index, key in enumerate(zip(*parts, strict=True)):
        free.setdefault(key, []).append(index)
    order = []
    for row in board.rows:
        indices = free.get((row.eval_id, row.model_name, row.template, row.sampler))
        if not indices:
            raise ArgumentError(
                f"the leaderboard's row {row.model_name!r} (eval_id {row.eval_id!r}) is not in the dataset; "
                "make the leaderboard from the same dataset"
            )
        order.append(indices.pop(0))
    return order
