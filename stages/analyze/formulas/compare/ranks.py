"""The distribution of each model's rank, with an interval, from draws of the models' scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import confidence_level, reals
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
