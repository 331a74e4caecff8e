"""The cube's dataset -> summed labelled counters and the leaderboard."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from stages.analyze import bootstrap, intervals, reasonscore
from stages.analyze.board import Estimate, Facet, Leaderboard, Row, TierEstimate
from stages.analyze.intervals import Floats
from stages.analyze.reasonscore import Basis

CELL_DIMS = ("model", "task", "params", "counter")


def counters(ds: xr.Dataset) -> xr.DataArray:
    """The cube's counters with dims (model, task, params, counter), lazy if the dataset is.

    Raises
    ------
    ValueError
        If the dataset has no such array, or lacks a coordinate that names its parts.
    """
    if "counters" not in ds or set(ds["counters"].dims) != set(CELL_DIMS):
        raise ValueError(
            f"the dataset has no array `counters` with dims {CELL_DIMS}; open it with `Cube.dataset()`"
        )
    absent = [name for name in ("model_name", "task", "tier", "in_tier", "counter") if name not in ds.coords]
    if absent:
        raise ValueError(f"the dataset lacks the coordinates {absent}; a cube written by a sweep has them")
    return ds["counters"].transpose(*CELL_DIMS)


def tier_counters(ds: xr.Dataset) -> xr.DataArray:
    """Counters summed over each task's points in each tier: dims (model, tier, task, counter).

    Lazy if `ds` is. A point that belongs to several tiers counts in each of them.
    """
    member = ds["in_tier"].astype(np.float64)
    summed: xr.DataArray = xr.dot(counters(ds), member, dim="params")
    return summed.transpose("model", "tier", "task", "counter")


def task_counters(ds: xr.Dataset) -> xr.DataArray:
    """Counters summed over all points of each task, each once: (model, task, counter); lazy if `ds` is."""
    return counters(ds).sum("params")


def names(ds: xr.Dataset, coordinate: str) -> list[str]:
    """A coordinate of texts as a list; empty texts if the dataset lacks it and it belongs to models."""
    if coordinate not in ds.coords:
        return [""] * ds.sizes["model"]
    return [str(item) for item in ds[coordinate].values.tolist()]


def leaderboard(
    ds: xr.Dataset, *, basis: Basis = "completed", seed: int = 0, draws: int = 2000, confidence: float = 0.95
) -> Leaderboard:
    """All evaluations of a cube ranked by ReasonScore (version 1), with intervals and what each rests on.

    Parameters
    ----------
    ds
        Dataset with ``counters`` (model, task, params, counter), lazy or not, and the cube's coordinates.
    basis
        Denominator of the score, see `stages.analyze.reasonscore.adjusted`.
    seed
        Seed of the bootstrap; a row's interval depends on it, on `eval_id` and on the row's own counters
        only.
    draws
        Number of bootstrap draws.
    confidence
        Level of all intervals, in (0, 1). The score itself always uses Wilson's bound at z = 1.96.

    Returns
    -------
    Leaderboard, rows by score from high to low; rows without a score last; equal scores by name.

    Raises
    ------
    ValueError
        If arrays or coordinates are missing, or an argument is out of range.
    """
    cells = counters(ds).astype(np.float64).compute()
    loaded = ds.drop_vars([name for name in ds.data_vars if name != "counters"]).assign(counters=cells)
    scored = _score(loaded, basis=basis, seed=seed, draws=draws, confidence=confidence)
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
    )


@dataclass(frozen=True)
class _Scored:
    """Arrays behind the rows, first axis model."""

    tiers: reasonscore.TierScores
    mean: Floats
    per_token: Floats
    tokens: Floats
    bounds: bootstrap.Intervals
    cells_present: Any
    cells_expected: Any
    totals: Mapping[str, Floats]
    accuracy: tuple[Floats, Floats, Floats]
    cost: Floats


def _score(ds: xr.Dataset, *, basis: Basis, seed: int, draws: int, confidence: float) -> _Scored:
    labels = names(ds, "counter")
    cells = ds["counters"].values
    member = ds["in_tier"].transpose("tier", "task", "params").values.astype(bool)
    grouped = tier_counters(ds).values
    tiers = reasonscore.tier_score(grouped, labels=labels, basis=basis, expected=member.any(axis=-1))
    tokens = reasonscore.tier_tokens(grouped, labels=labels)
    pooled = cells.sum(axis=(1, 2))
    totals = {label: pooled[:, index] for index, label in enumerate(labels)}
    there = reasonscore.column(cells, "trials", labels) > 0
    successes, trials = reasonscore.adjusted(pooled, labels=labels)
    return _Scored(
        tiers=tiers,
        mean=reasonscore.mean_score(tiers.score),
        per_token=reasonscore.per_token(tiers.score, tokens),
        tokens=tokens,
        bounds=bootstrap.bootstrap_scores(
            cells,
            member,
            _identities(ds),
            seed=seed,
            labels=labels,
            basis=basis,
            draws=draws,
            confidence=confidence,
        ),
        cells_present=np.einsum("gkp,mkp->mg", member.astype(np.int64), there.astype(np.int64)),
        cells_expected=member.sum(axis=(1, 2)),
        totals=totals,
        accuracy=intervals.wilson_bounds(
            successes, trials, confidence=None if confidence == 0.95 else confidence
        ),
        cost=_cost(ds, totals),
    )


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


def facets(text: str) -> dict[str, Facet]:
    """A model's facets from their JSON text; empty if it is no object, lists and objects left out."""
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    items = data.items() if isinstance(data, dict) else ()
    return {str(key): value for key, value in items if isinstance(value, str | int | float | bool)}


def _order(row: Row) -> tuple[bool, float, str, str, str, str]:
    absent = math.isnan(row.score.value)
    score = 0.0 if absent else -row.score.value
    return (absent, score, row.model_name, row.template, row.sampler, row.eval_id)
