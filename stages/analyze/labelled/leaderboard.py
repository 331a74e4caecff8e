"""The leaderboard of a cube: every evaluation scored, with intervals from a bootstrap, and ranked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from stages.analyze.formulas import bootstrap, estimators, reasonscore, reasonscore_v2
from stages.analyze.formulas.compare.ranks import rank_intervals
from stages.analyze.formulas.estimators import Bounds, Mode
from stages.analyze.formulas.intervals import Floats, quantile
from stages.analyze.formulas.reasonscore import Basis
from stages.analyze.labelled.axes import distinguishing, facets, most_repeats, names
from stages.analyze.labelled.counters import counters, tier_counters
from stages.analyze.labelled.duplicates import unmarked_tasks
from stages.analyze.labelled.results import Estimate, Leaderboard, Row, TierEstimate

Version = Literal["v1", "v2"]
VERSIONS: tuple[Version, ...] = get_args(Version)


def leaderboard(
    ds: xr.Dataset,
    *,
    version: Version = "v1",
    mode: Mode = "C_I",
    basis: Basis = "completed",
    seed: int = 0,
    draws: int = 2000,
    confidence: float = 0.95,
    selection: str = "",
) -> Leaderboard:
    """All evaluations of a cube ranked by ReasonScore, with intervals and what each rests on.

    Parameters
    ----------
    ds
        Dataset with ``counters`` (model, task, params, counter), lazy or not, and the cube's coordinates.
    version
        "v1" scores upper bounds (`stages.analyze.formulas.reasonscore`), "v2" what was measured
        (`stages.analyze.formulas.reasonscore_v2`).
    mode
        Estimator of the column ``accuracy``, one of `stages.analyze.formulas.estimators.MODES`; no part of the score.
    basis
        Denominator of version 1, see `stages.analyze.formulas.reasonscore.adjusted`.
    seed
        Seed of the bootstrap; a row's interval depends on it, on `eval_id` and on the row's own counters
        only.
    draws
        Number of bootstrap draws.
    confidence
        Level of all intervals, in (0, 1). The score itself always uses Wilson's bound at z = 1.96.
    selection
        What the dataset is a part of, in words, for the notes.

    Returns
    -------
    Leaderboard, rows by score from high to low; rows without a score last; equal scores by name.

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
    cells = counters(ds).astype(np.float64).compute()
    used = ("counters", "duplicate", "planned_trials")
    loaded = ds.drop_vars([name for name in ds.data_vars if name not in used]).assign(counters=cells)
    how = _How(version, mode, basis, seed, draws, confidence)
    scored = _score(loaded, how)
    rows = [_row(loaded, scored, index) for index in range(ds.sizes["model"])]
    rows.sort(key=_order)
    ranked = [
        row if math.isnan(row.score.value) else replace(row, rank=place)
        for place, row in enumerate(rows, start=1)
    ]
    return Leaderboard(
        rows=tuple(ranked),
        tiers=tuple(names(ds, "tier")),
        tasks=tuple(names(ds, "task")),
        basis=basis,
        confidence=confidence,
        draws=draws,
        seed=seed,
        version=version,
        mode=mode,
        uneven=_uneven(loaded),
        repeats=most_repeats(ds),
        selection=selection,
    )


@dataclass(frozen=True)
class _How:
    """The options of a leaderboard."""

    version: Version
    mode: Mode
    basis: Basis
    seed: int
    draws: int
    confidence: float

    def tier_scores(
        self, grouped: Floats, labels: list[str], expected: NDArray[np.bool_]
    ) -> reasonscore.TierScores:
        if self.version == "v2":
            return reasonscore_v2.tier_score(grouped, labels=labels, expected=expected)
        return reasonscore.tier_score(grouped, labels=labels, basis=self.basis, expected=expected)

    def drawn(self, cells: Floats, member: NDArray[np.bool_], identity: str, labels: list[str]) -> Floats:
        """Tier scores of one model under every draw, shape (draw, tier)."""
        if self.version == "v2":
            return reasonscore_v2.draw_tier_scores(
                cells, member, identity, seed=self.seed, labels=labels, draws=self.draws
            )
        return bootstrap.draw_tier_scores(
            cells, member, identity, seed=self.seed, labels=labels, basis=self.basis, draws=self.draws
        )


@dataclass(frozen=True)
class _Scored:
    """Arrays behind the rows, first axis model."""

    tiers: reasonscore.TierScores
    mean: Floats
    per_token: Floats
    tokens: Floats
    bounds: bootstrap.Intervals
    ranks: Floats
    """Shape (model, 3): mean rank, lower and upper."""
    cells_present: Any
    cells_expected: Any
    totals: Mapping[str, Floats]
    accuracy: Bounds
    cost: Floats
    unique: Floats


def _score(ds: xr.Dataset, how: _How) -> _Scored:
    labels = names(ds, "counter")
    cells = ds["counters"].values
    member = ds["in_tier"].transpose("tier", "task", "params").values.astype(bool)
    grouped = tier_counters(ds).values
    pooled = cells.sum(axis=(1, 2))
    estimators.counts(cells, labels=labels)
    tiers = how.tier_scores(grouped, labels, np.asarray(member.any(axis=-1)))
    tokens = reasonscore.tier_tokens(grouped, labels=labels)
    totals = {label: pooled[:, index] for index, label in enumerate(labels)}
    there = reasonscore.column(cells, "trials", labels) > 0
    bounds, ranks = _resample(ds, how, member, tokens)
    confidence = None if how.confidence == 0.95 else how.confidence
    return _Scored(
        tiers=tiers,
        mean=reasonscore.mean_score(tiers.score),
        per_token=reasonscore.per_token(tiers.score, tokens),
        tokens=tokens,
        bounds=bounds,
        ranks=ranks,
        cells_present=np.einsum("gkp,mkp->mg", member.astype(np.int64), there.astype(np.int64)),
        cells_expected=member.sum(axis=(1, 2)),
        totals=totals,
        accuracy=estimators.estimate(
            cells[:, member.any(axis=0)].sum(axis=1), labels=labels, mode=how.mode, confidence=confidence
        ),
        cost=_cost(ds, totals),
        unique=_unique(ds, totals),
    )


def _resample(
    ds: xr.Dataset, how: _How, member: NDArray[np.bool_], tokens: Floats
) -> tuple[bootstrap.Intervals, Floats]:
    """Intervals of scores and ranks from one set of draws, made model by model."""
    cells, labels = ds["counters"].values, names(ds, "counter")
    tails = [(1.0 - how.confidence) / 2.0, (1.0 + how.confidence) / 2.0]
    models, tiers = cells.shape[0], member.shape[0]
    result = bootstrap.Intervals(np.empty((models, tiers, 2)), np.empty((models, 2)), np.empty((models, 2)))
    means = np.empty((models, how.draws))
    for index, identity in enumerate(_identities(ds)):
        scores = how.drawn(cells[index], member, identity, labels)
        means[index] = reasonscore.mean_score(scores)
        result.tiers[index] = np.quantile(scores, tails, axis=0).T
        result.mean[index] = np.quantile(means[index], tails)
        result.per_token[index] = np.quantile(reasonscore.per_token(scores, tokens[index]), tails)
    if models < 2:
        return result, np.where(np.isnan(means[:, :1]), np.nan, np.ones((models, 3)))
    ranks = rank_intervals(means, confidence=how.confidence)
    return result, np.stack([ranks.expected, ranks.lower, ranks.upper], axis=-1)


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
        reasonscore.column(cells, name, labels)
        for name in ("trials", "transport", "missing")
        if name in labels
    )
    rows = np.asarray(planned).reshape(len(cells), int(np.prod(cells.shape[1:3])))
    return any(len(np.unique(row[row > 0])) > 1 for row in rows)


def _identities(ds: xr.Dataset) -> list[str]:
    """A stream name per model: its eval_id, or its names where the cube has none."""
    if "eval_id" in ds.coords:
        return names(ds, "eval_id")
    parts = zip(names(ds, "model_name"), names(ds, "template"), names(ds, "sampler"), strict=True)
    return ["\n".join(part) for part in parts]


def _cost(ds: xr.Dataset, totals: Mapping[str, Floats]) -> Floats:
    """USD per model from the prices in the coordinates, else the cost counted; NaN where neither is known."""
    counted = totals.get("cost_sum", np.zeros(ds.sizes["model"]))
    known = np.where(counted > 0, counted, np.nan)
    if "price_prompt" not in ds.coords or "price_completion" not in ds.coords:
        return known
    prompt, completion = (ds[f"price_{kind}"].values.astype(float) for kind in ("prompt", "completion"))
    priced = (prompt * totals["prompt_tokens_sum"] + completion * totals["tokens_sum"]) / 1e6
    return np.where(np.isnan(priced), known, priced)


def _row(ds: xr.Dataset, scored: _Scored, index: int) -> Row:
    totals = {label: float(values[index]) for label, values in scored.totals.items()}
    trials = totals["trials"]

    def share(label: str) -> float:
        return totals[label] / trials if trials > 0 else math.nan

    cost = float(scored.cost[index])
    return Row(
        rank=None,
        model_name=names(ds, "model_name")[index],
        template=names(ds, "template")[index],
        sampler=names(ds, "sampler")[index],
        eval_id=names(ds, "eval_id")[index],
        facets=facets(names(ds, "facets")[index]),
        score=_estimate(scored.mean[index], scored.bounds.mean[index]),
        tiers=_tiers(ds, scored, index),
        score_per_token=_estimate(scored.per_token[index], scored.bounds.per_token[index]),
        accuracy=Estimate(*(float(part[index]) for part in scored.accuracy)),
        tokens_per_trial=share("tokens_sum"),
        truncated=share("truncated"),
        invalid=share("invalid"),
        refused=share("refused"),
        trials=int(trials),
        transport=int(totals.get("transport", 0)),
        missing=int(totals.get("missing", 0)),
        cost=cost,
        cost_per_1000=1000 * cost / trials if trials > 0 else math.nan,
        unique=float(scored.unique[index]),
        rank_interval=Estimate(*(float(part) for part in scored.ranks[index])),
    )


def _tiers(ds: xr.Dataset, scored: _Scored, index: int) -> tuple[TierEstimate, ...]:
    return tuple(
        TierEstimate(
            tier=tier,
            score=_estimate(scored.tiers.score[index, place], scored.bounds.tiers[index, place]),
            tasks_present=int(scored.tiers.tasks_present[index, place]),
            tasks_expected=int(scored.tiers.tasks_expected[index, place]),
            cells_present=int(scored.cells_present[index, place]),
            cells_expected=int(scored.cells_expected[place]),
            tokens=float(scored.tokens[index, place]),
        )
        for place, tier in enumerate(names(ds, "tier"))
    )


def _estimate(value: float, bounds: Floats) -> Estimate:
    return Estimate(float(value), float(bounds[0]), float(bounds[1]))


def _order(row: Row) -> tuple[bool, float, str, str, str, str]:
    absent = math.isnan(row.score.value)
    score = 0.0 if absent else -row.score.value
    return (absent, score, row.model_name, row.template, row.sampler, row.eval_id)


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


def label_rows(board: Leaderboard) -> list[str]:
    """A label per row: the model's name, with template and sampler where the board has several of them."""
    return distinguishing([(row.model_name, row.template, row.sampler) for row in board.rows])
