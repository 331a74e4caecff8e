"""The distribution of each model's rank from draws of scores, and clusters of models whose intervals overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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
        Random draws of the scores (higher is better), shape (model, draw); a model with a NaN is not ranked.
    confidence
        Confidence level of the intervals, between 0 and 1.

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
    drawn = scores[ranked].T
    first, last = (np.empty(drawn.shape, dtype=np.int32) for _ in range(2))
    for draw, row in enumerate(drawn):
        ordered = np.sort(row)
        first[draw] = len(ranked) + 1 - ordered.searchsorted(row, "right")
        last[draw] = len(ranked) - ordered.searchsorted(row)
    tail = (1.0 - confidence) / 2.0
    for model, best, worst in zip(ranked, first.T, last.T, strict=True):
        result.expected[model] = (best + worst).mean() / 2.0
        result.lower[model] = np.quantile(best, tail, method="inverted_cdf")
        result.upper[model] = np.quantile(worst, 1.0 - tail, method="inverted_cdf")
        # Who shares places takes its part of each: what begins at one, less what ended before it.
        number, part = len(scores) + 1, 1.0 / (worst - best + 1.0) / len(best)
        begun, ended = (np.bincount(rank.astype(int), part, number) for rank in (best - 1, worst))
        result.shares[model] = np.cumsum(begun - ended)[:-1].clip(0.0)
    return result


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
        False: intervals that touch in one point overlap; True: they do not.

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
    events = []
    for model in np.flatnonzero(~np.isnan(low) & ~np.isnan(high)).tolist():
        start, end = float(low[model]), float(high[model])
        if strict and start == end:  # at one place between ends and starts, one by one
            events += [(start, 1, model, False, model), (end, 1, model, True, model)]
        else:
            events += [(start, 2 * strict, 0, False, model), (end, 1 - strict, 0, True, model)]
    clusters: list[tuple[int, ...]] = []
    active: set[int] = set()
    grown = False
    for *_, ends, model in sorted(events):
        if not ends:
            active.add(model)
        elif grown:
            clusters.append(tuple(sorted(active)))
        grown = not ends
        active.discard(model if ends else -1)
    return clusters
