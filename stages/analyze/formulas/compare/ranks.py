"""The distribution of each model's rank from draws of scores, and clusters of models whose intervals overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import confidence_level, flag, reals
from evalcube.stages.analyze.formulas.compare.winrates import need_two
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError


@dataclass(frozen=True)
class Ranks:
    """Ranks of models, 1 the best; NaN for a model without a score."""

    expected: Floats
    """Mean rank over the draws, ties shared; shape (model,)."""
    lower: Floats
    """The best rank inside the interval, shape (model,)."""
    upper: Floats
    """The worst rank inside the interval, shape (model,)."""
    shares: Floats
    """Shape (model, rank): share of the draws in which the model takes the rank; tied models share theirs."""


def rank_intervals(draws: ArrayLike, *, confidence: float = 0.95) -> Ranks:
    """Interval of each model's rank from draws of all scores, such as the bootstrap's.

    Where models tie in a draw, the best of their ranks counts for `lower` and the worst for `upper`. The
    bounds are ranks that occurred, with at most (1 − confidence)/2 of the draws beyond each.

    Parameters
    ----------
    draws
        Scores, higher is better, shape (model, draw); a model with a NaN is not ranked.
    confidence
        Level of the percentile interval, in (0, 1).

    Returns
    -------
    Mean rank, bounds of the rank, and the share of draws at each rank, of every model.

    Raises
    ------
    ValueError
        If there are fewer than two models, no draws, or the level is outside (0, 1).

    References
    ----------
    H. Goldstein, D. J. Spiegelhalter (1996), League tables and their limitations, Journal of the Royal Statistical
    Society A 159, 385-443. https://doi.org/10.2307/2983325

    Examples
    --------
    >>> ranks = rank_intervals([[9, 8, 9, 9], [5, 6, 4, 5], [1, 7, 3, 2]])
    >>> ranks.lower.tolist(), ranks.upper.tolist(), ranks.expected.tolist()
    ([1.0, 2.0, 2.0], [1.0, 3.0, 3.0], [1.0, 2.25, 2.75])
    """
    scores = reals(draws, "draws")
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ArgumentError(f"`draws` must be (model, draw) with at least one draw, got shape {scores.shape}")
    need_two(len(scores), "draws")
    confidence_level(confidence)
    ranked = np.flatnonzero(~np.isnan(scores).any(axis=1))
    blank = np.full(len(scores), np.nan)
    result = Ranks(blank, blank.copy(), blank.copy(), np.full((len(scores),) * 2, np.nan))
    if len(ranked) == 0:
        return result
    best, worst = _places(-scores[ranked])
    tail = (1.0 - confidence) / 2.0
    result.expected[ranked] = (best + worst).mean(axis=1) / 2.0
    result.lower[ranked] = np.quantile(best, tail, axis=1, method="inverted_cdf")
    result.upper[ranked] = np.quantile(worst, 1.0 - tail, axis=1, method="inverted_cdf")
    result.shares[ranked] = _shares(best, worst, len(scores))
    return result


def _shares(best: Floats, worst: Floats, models: int) -> Floats:
    """Share of the draws at each rank, shape (ranked model, rank): of ranks (ranked model, draw)."""
    first, tied = best.astype(np.intp) - 1, (worst - best).astype(np.intp) + 1
    rows = np.broadcast_to(np.arange(len(best))[:, np.newaxis], best.shape)
    shares = np.zeros((len(best), models))
    for number in np.unique(tied).tolist():
        here = tied == number
        begun = np.bincount(rows[here] * models + first[here], minlength=shares.size).reshape(shares.shape)
        # A model that shares its rank with others takes each of theirs: what began at this one or shortly before it.
        taken = begun.cumsum(axis=1)
        taken[:, number:] -= taken[:, :-number].copy()
        shares += taken / number
    return np.asarray(shares / best.shape[1])


def _places(values: Floats) -> tuple[Floats, Floats]:
    """First and last place of each value in its column, from 1: equal values share theirs.

    `scipy.stats.rankdata` gives the same, but every command that reads a cube would wait for its import.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    place = np.arange(1.0, len(values) + 1)[:, np.newaxis]
    step = ordered[1:] != ordered[:-1]
    edge = np.ones((1, values.shape[1]), dtype=bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, step]), place, 0.0), axis=0)
    ends = np.where(np.concatenate([step, edge]), place, np.inf)
    last = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    best, worst = np.empty_like(ordered), np.empty_like(ordered)
    np.put_along_axis(best, order, first, axis=0)
    np.put_along_axis(worst, order, last, axis=0)
    return best, worst


_END, _POINT, _START = 0, 1, 2


def overlap_clusters(lower: ArrayLike, upper: ArrayLike, *, strict: bool = False) -> list[tuple[int, ...]]:
    """Maximal cliques of the graph that joins models with overlapping intervals.

    Overlap is not transitive, so a model may be in several clusters: the intervals of A and C may be apart while that
    of B meets both. The graph is an interval graph: one sweep over sorted bounds finds all its maximal
    cliques in O(n log n) plus the size of the answer.

    Parameters
    ----------
    lower, upper
        Bounds of n models, shape (n,). A model with a NaN bound has no interval and is in no cluster.
    strict
        False: intervals that touch in one point overlap. True: they do not.

    Returns
    -------
    Clusters from low to high, each the ascending indices of its members. At most n.

    Raises
    ------
    ValueError
        If the bounds are not two equal vectors, or a lower bound exceeds its upper bound.

    Examples
    --------
    >>> overlap_clusters([0.70, 0.78, 0.84, 0.95], [0.80, 0.86, 0.92, 0.99])
    [(0, 1), (1, 2), (3,)]
    """
    low, high = reals(lower, "lower"), reals(upper, "upper")
    flag(strict, "strict")
    if low.ndim != 1 or low.shape != high.shape:
        raise ArgumentError(f"`lower` {low.shape} and `upper` {high.shape} must be vectors of one length")
    if np.any(low > high):
        index = int(np.argmax(low > high))
        raise ArgumentError(
            f"`lower` must not exceed `upper`, got [{low[index]:g}, {high[index]:g}] at {index}"
        )
    clusters: list[tuple[int, ...]] = []
    active: set[int] = set()
    grown = False
    for starts, model in _events(low, high, strict=strict):
        if starts:
            active.add(model)
            grown = True
            continue
        if grown:
            clusters.append(tuple(sorted(active)))
            grown = False
        active.discard(model)
    return clusters


def _events(low: Floats, high: Floats, *, strict: bool) -> Iterator[tuple[bool, int]]:
    """(starts?, model) along the axis; at one place in the order that makes touching overlap or not."""
    models = np.flatnonzero(~np.isnan(low) & ~np.isnan(high))
    flat = strict & (low[models] == high[models])
    place = np.concatenate([low[models], high[models]])
    starts = np.repeat([True, False], len(models))
    if strict:  # ends, then intervals of no width one by one, then starts
        order = np.where(starts, _START, _END)
        order[np.concatenate([flat, flat])] = _POINT
    else:
        order = np.where(starts, _END, _START)
    who: NDArray[np.intp] = np.concatenate([models, models])
    keys = (~starts, np.where(order == _POINT, who, 0), order, place)
    for index in np.lexsort(keys):
        yield bool(starts[index]), int(who[index])
