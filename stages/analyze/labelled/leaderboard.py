"""The leaderboard of a cube: every evaluation scored, with intervals, and ranked by what is honest at its size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas import estimators, reasonscore, stratified
from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals
from evalcube.stages.analyze.formulas.estimators import Bounds, Mode
from evalcube.stages.analyze.formulas.intervals import Floats, quantile
from evalcube.stages.analyze.formulas.reasonscore import Basis
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH
from evalcube.stages.analyze.labelled.axes import facets, most_repeats, names
from evalcube.stages.analyze.labelled.clustering import question_effects
from evalcube.stages.analyze.labelled.counters import (
    CELL_DIMS,
    counter_cells,
    members,
    point_factors,
    priced,
    ranked_counters,
    tier_counters,
    weighing,
)
from evalcube.stages.analyze.labelled.duplicates import unmarked_tasks
from evalcube.stages.analyze.labelled.other_points import other_points
from evalcube.stages.analyze.labelled.results import BEHIND, Estimate, Leaderboard, Row, TierEstimate
from evalcube.stages.analyze.labelled.scores import (
    VERSIONS,
    How,
    Scores,
    Version,
    draw_means,
    mean_moments,
    posterior,
    resampled,
)
from evalcube.stages.analyze.labelled.sorting import by_lead

_NAMES = ("model_name", "template", "sampler", "eval_id", "facets", "revision", "tier")
"""Coordinates that rows are labelled by."""


def leaderboard(
    ds: xr.Dataset,
    *,
    version: Version = "auto",
    mode: Mode = "C_P",
    basis: Basis = "completed",
    seed: int = 0,
    draws: int = 2000,
    confidence: float = 0.95,
    selection: str = "",
) -> Leaderboard:
    """All evaluations of a cube ranked by ReasonScore or, where trials are few, by accuracy; with intervals.

    Parameters
    ----------
    ds
        Dataset with ``counters`` (model, task, params, counter), lazy or not, and the cube's coordinates. Points weigh
        by the coordinate ``base_trials``, see `evalcube.stages.analyze.formulas.design`. With ``status``, intervals go
        by question where questions were asked several times.
    version
        "auto" scores what the rates may be (`evalcube.stages.analyze.formulas.reasonscore_posterior`), and leads with
        the rate of `mode` where a task has fewer than `ENOUGH` trials in a tier; "v1" scores upper bounds
        (`evalcube.stages.analyze.formulas.reasonscore`), "v2" what was measured
        (`evalcube.stages.analyze.formulas.reasonscore_v2`), both at any size.
    mode
        Estimator of the column ``rate``, one of `evalcube.stages.analyze.formulas.estimators.MODES`.
    basis
        Denominator of version 1, see `evalcube.stages.analyze.formulas.reasonscore.adjusted`.
    seed
        Seed of the draws; a row's interval depends on it, on `eval_id` and on the row's own counters
        only.
    draws
        Number of draws behind the intervals of scores and ranks.
    confidence
        Level of all intervals, in (0, 1). The score itself always uses Wilson's bound at z = 1.96.
    selection
        What the dataset is a part of, in words, for the notes.

    Returns
    -------
    Leaderboard, complete rows by what leads it from high to low, then incomplete ones and those that were asked other
        points than most, which have no rank; rows without
    it last; equal ones by name. Evaluations of which nothing is planned or measured are left out.

    Raises
    ------
    ValueError
        If arrays or coordinates are missing, counters contradict each other, or an argument is out of range.
    """
    if version not in VERSIONS:
        raise ValueError(f"`version` must be one of {', '.join(VERSIONS)}, got {version!r}")
    if draws < 1:
        raise ValueError(f"`draws` must be at least 1, got {draws}")
    quantile(confidence)
    values = np.asarray(counter_cells(ds).values, dtype=np.float64)
    cells = xr.Variable(CELL_DIMS, values, fastpath=True)
    effects = question_effects(ds)
    used = ("counters", "duplicate", "planned_trials")
    loaded = ds.drop_vars([name for name in ds.data_vars if name not in used]).assign(counters=cells)
    worth = None if effects is None else np.asarray(effects.values, dtype=np.float64)
    how = How(version, mode, basis, seed, draws, confidence, worth)
    scored = _score(loaded, how)
    labels = {name: names(loaded, name) for name in _NAMES}
    rows = [_row(labels, scored, index) for index in np.flatnonzero(scored.asked).tolist()]
    board = Leaderboard(
        rows=tuple(rows),
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
        mode=mode,
        uneven=_uneven(loaded),
        weighed=weighing(loaded),
        repeats=most_repeats(ds),
        clustered=effects is not None,
        selection=selection,
        ceiling=scored.scores.ceiling,
    )
    return by_lead(board)


@dataclass(frozen=True)
class _Scored:
    """Arrays behind the rows, first axis model."""

    scores: Scores
    present: reasonscore.TierScores
    tokens: Floats
    lead: str
    size: float
    rates: Bounds
    """Shape (model,)."""
    tier_rates: Bounds
    """Shape (model, tier)."""
    accuracy: Bounds
    correct_by_token: Bounds
    """Accuracy by 1000 tokens, shape (model,)."""
    upper: Floats
    """Version 1 of the score, shape (model,)."""
    guesser: Floats
    ranks: Floats
    """Shape (model, 3): mean rank, lower and upper."""
    asked: Any
    """Shape (model,): whether anything of it is planned or measured."""
    behind: NDArray[np.bool_]
    others: Sequence[str]
    """By model, how the points that it was asked differ from those of most."""
    cells_present: Any
    """Shape (model, tier)."""
    cells_expected: Any
    """Shape (model, tier): points at which it is to be measured."""
    totals: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    """Counters summed with the weights of the points."""
    cost: Floats
    shared_cost: Floats
    unique: Floats
    limits: Sequence[int | None]


def _score(ds: xr.Dataset, how: How) -> _Scored:
    labels = names(ds, "counter")
    cells = ds.variables["counters"].values
    member = members(ds)
    estimators.counts(cells, labels=labels)
    grouped, factors = tier_counters(ds).values, point_factors(ds)
    there = column(cells, "trials", labels) > 0
    planned = _planned(ds, there)
    expected = (planned[:, np.newaxis] & member).any(axis=-1)
    present = np.einsum("gkp,mkp->mg", member.astype(np.int64), there.astype(np.int64))
    due = np.einsum("gkp,mkp->mg", member.astype(np.int64), planned.astype(np.int64))
    others = other_points(planned & member.any(axis=0), names(ds, "task"))
    behind = _behind(cells, labels)
    unranked = (present < due).any(axis=1) | np.array([bool(text) for text in others], dtype=bool) | behind
    tokens = _known(reasonscore.tier_tokens(grouped, labels=labels))
    totals = dict(zip(labels, cells.sum(axis=(1, 2)).T, strict=True))
    shares = dict(zip(labels, (cells * factors[..., np.newaxis]).sum(axis=(1, 2)).T, strict=True))
    effect = how.effect((cells.shape[0], cells.shape[1]))
    sizes = column(grouped, "trials", labels) / effect[:, np.newaxis]
    size = float(np.where(sizes > 0, sizes, np.inf)[~behind].min(initial=np.inf))
    scores = posterior(ds, how, grouped, member, tokens) if how.version == "auto" else None
    lead = "rate" if how.version == "auto" and not size >= ENOUGH else "score"
    if scores is None:
        scores = resampled(ds, how, grouped, member, tokens)
    every = ranked_counters(ds).values
    overall = mean_moments(every, effect, labels, how.mode)
    plain = mean_moments(every, effect, labels, "E_P")
    draws = scores.draws if lead == "score" else draw_means(ds, how, overall)
    guesser = np.full(len(cells), np.nan)
    if how.version == "v1":
        guesser = reasonscore.mean_score(
            reasonscore.guesser_score(grouped, labels=labels, basis=how.basis, expected=expected).score
        )
    accuracy = stratified.combine(plain, confidence=how.level, exact=True)
    first = reasonscore.tier_score(grouped, labels=labels, basis=how.basis, expected=expected)
    return _Scored(
        scores=scores,
        present=first,
        upper=reasonscore.mean_score(first.score),
        tokens=tokens,
        lead=lead,
        size=size if np.isfinite(size) else math.nan,
        rates=stratified.combine(overall, confidence=how.level, exact=True),
        tier_rates=stratified.combine(
            mean_moments(grouped, effect, labels, how.mode), confidence=how.level, exact=True
        ),
        accuracy=accuracy,
        correct_by_token=_by_token(accuracy, every, labels),
        guesser=guesser,
        ranks=_ranks(np.where(unranked[:, np.newaxis], np.nan, draws), how),
        behind=behind,
        others=others,
        asked=planned.any(axis=(1, 2)) if planned.any() else np.ones(len(cells), dtype=bool),
        cells_present=present,
        cells_expected=due,
        totals=totals,
        shares=shares,
        cost=_cost(ds, totals),
        shared_cost=_cost(ds, shares),
        unique=_unique(ds, totals),
        limits=_limits(ds),
    )


def _known(tokens: Floats | np.float64) -> Floats:
    """Tokens per trial; NaN for 0, as every reply has some: nobody has counted them."""
    return np.where(np.asarray(tokens) > 0, tokens, np.nan)


def _by_token(accuracy: Bounds, every: Floats, labels: list[str]) -> Bounds:
    """Accuracy by 1000 completion tokens per trial, which are the mean over the tasks as it is."""
    trials = column(every, "trials", labels)
    there = trials > 0
    tasks = np.where(there, column(every, "tokens_sum", labels) / np.where(there, trials, 1.0), 0.0)
    with np.errstate(all="ignore"):
        tokens = _known(tasks.sum(axis=1) / there.sum(axis=1))
    value, lower, upper = (1000.0 * part / tokens for part in accuracy)
    return value, lower, upper


def _behind(cells: Floats, labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which evaluations have far less of their planned trials than the furthest one, shape (model,)."""
    parts = [
        column(cells, name, labels).sum(axis=(1, 2))
        for name in ("trials", "transport", "missing")
        if name in labels
    ]
    planned = np.sum(parts, axis=0)
    done = np.where(planned > 0, parts[0], 0.0) / np.where(planned > 0, planned, 1.0)
    return np.asarray(done < BEHIND * done.max(initial=0.0))


def _planned(ds: xr.Dataset, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Points at which each evaluation is to be measured, or was, shape (model, task, params)."""
    if "planned_trials" not in ds:
        return np.ones_like(there)
    planned = ds.variables["planned_trials"].transpose("model", "task", "params").values > 0
    return np.asarray(planned | there)


def _ranks(draws: Floats, how: How) -> Floats:
    """Mean rank, lower and upper, shape (model, 3)."""
    if len(draws) < 2:
        return np.where(np.isnan(draws[:, :1]), np.nan, np.ones((len(draws), 3)))
    ranks = rank_intervals(draws, confidence=how.confidence)
    return np.stack([ranks.expected, ranks.lower, ranks.upper], axis=-1)


def _unique(ds: xr.Dataset, totals: Mapping[str, Floats]) -> Floats:
    """Share of unique trials of each model over the tasks together; NaN if that of a task is not known."""
    if "duplicates" not in totals or "duplicate" not in ds or unmarked_tasks(ds).any():
        return np.full(ds.sizes["model"], np.nan)
    with np.errstate(all="ignore"):
        return 1.0 - totals["duplicates"] / np.where(totals["trials"] > 0, totals["trials"], np.nan)


def _uneven(ds: xr.Dataset) -> bool:
    """Whether points of an evaluation were planned, or could be finished, with different numbers of trials."""
    cells, labels = ds["counters"].values, names(ds, "counter")
    planned = sum(
        column(cells, name, labels) for name in ("trials", "transport", "missing") if name in labels
    )
    rows = np.asarray(planned).reshape(len(cells), int(np.prod(cells.shape[1:3])))
    least = np.where(rows > 0, rows, np.inf).min(axis=1, initial=np.inf)
    return bool((least < rows.max(axis=1, initial=0.0)).any())


def _cost(ds: xr.Dataset, totals: Mapping[str, Floats]) -> Floats:
    counted = totals.get("cost_sum", np.zeros(ds.sizes["model"]))
    return priced(ds, counted, totals["prompt_tokens_sum"], totals["tokens_sum"])


def _row(labels: Mapping[str, Sequence[str]], scored: _Scored, index: int) -> Row:
    totals = {label: float(values[index]) for label, values in scored.totals.items()}
    shares = {label: float(values[index]) for label, values in scored.shares.items()}
    trials = totals["trials"]

    def share(label: str) -> float:
        return shares[label] / shares["trials"] if trials > 0 else math.nan

    return Row(
        rank=None,
        model_name=labels["model_name"][index],
        template=labels["template"][index],
        sampler=labels["sampler"][index],
        eval_id=labels["eval_id"][index],
        facets=facets(labels["facets"][index]),
        score=Estimate.of(scored.scores.mean[index]),
        tiers=_tiers(labels["tier"], scored, index),
        score_per_token=Estimate.of(scored.scores.per_token[index]),
        correct_per_1000_tokens=Estimate.of([part[index] for part in scored.correct_by_token]),
        score_v1=float(scored.upper[index]),
        accuracy=Estimate.of([part[index] for part in scored.accuracy]),
        rate=Estimate.of([part[index] for part in scored.rates]),
        guesser=float(scored.guesser[index]),
        tokens_per_trial=float(_known(np.float64(share("tokens_sum")))),
        truncated=share("truncated"),
        max_tokens=scored.limits[index],
        invalid=share("invalid"),
        refused=share("refused"),
        trials=int(trials),
        transport=int(totals.get("transport", 0)),
        missing=int(totals.get("missing", 0)),
        cost=float(scored.cost[index]),
        cost_per_1000=1000 * float(scored.shared_cost[index]) / shares["trials"] if trials > 0 else math.nan,
        unique=float(scored.unique[index]),
        rank_interval=Estimate.of(scored.ranks[index]),
        revision=labels["revision"][index],
        others=scored.others[index],
        behind=bool(scored.behind[index]),
    )


def _limits(ds: xr.Dataset) -> list[int | None]:
    """The limit of completion tokens of each evaluation, if the dataset says it."""
    if "max_tokens" not in ds.coords:
        return [None] * ds.sizes["model"]
    return [int(limit) if limit > 0 else None for limit in ds.variables["max_tokens"].values.tolist()]


def _tiers(tiers: Sequence[str], scored: _Scored, index: int) -> tuple[TierEstimate, ...]:
    return tuple(
        TierEstimate(
            tier=tier,
            score=Estimate.of(scored.scores.tiers[index, place]),
            rate=Estimate.of([part[index, place] for part in scored.tier_rates]),
            tasks_present=int(scored.present.tasks_present[index, place]),
            tasks_expected=int(scored.present.tasks_expected[index, place]),
            cells_present=int(scored.cells_present[index, place]),
            cells_expected=int(scored.cells_expected[index, place]),
            tokens=float(scored.tokens[index, place]),
        )
        for place, tier in enumerate(tiers)
    )


def row_order(ds: xr.Dataset, board: Leaderboard) -> list[int]:
    """Index in the dataset of each of the board's rows.

    Raises
    ------
    ValueError
        If a row is not in the dataset.
    """
    parts = [names(ds, name) for name in ("eval_id", "model_name", "template", "sampler")]
    free: dict[tuple[str, ...], list[int]] = {}
    for index, key in enumerate(zip(*parts, strict=True)):
        free.setdefault(key, []).append(index)
    order = []
    for row in board.rows:
        found = free.get(_key(row))
        if not found:
            raise ValueError(
                f"the leaderboard's row {row.model_name!r} (eval_id {row.eval_id!r}) is not in the dataset; "
                "make the leaderboard from the same dataset"
            )
        order.append(found.pop(0))
    return order


def _key(row: Row) -> tuple[str, ...]:
    return (row.eval_id, row.model_name, row.template, row.sampler)
