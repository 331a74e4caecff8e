"""When trials end: life tables, Kaplan–Meier and Aalen–Johansen curves over tokens.

Time is the number of completion tokens. A trial ends in a right or a wrong answer, which are competing risks, or is
cut by the limit, which is right-censoring: how it would have ended is unknown. Everything is a function of
counts of ends per bin of tokens, which add over chunks and groups; bins of one token give the curves at every
observed time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.intervals import Floats, quantile, wilson_bounds
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COMPLETED, Status

WIDTH = 256
"""Tokens in a bin of the life table."""

ENDS = ("right", "wrong", "censored")
"""How a trial ends: the last axis of the counts. Wrong includes unreadable and refused answers."""

CAUSES = ENDS[:2]


@dataclass(frozen=True)
class Curve:
    """Values with pointwise bounds, as over tokens; arrays of one shape, NaN where nothing was measured."""

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class LifeTable:
    """What happened in each bin to the trials that reached it; arrays (..., bin), curves (..., bin, cause)."""

    at_risk: NDArray[np.int64]
    """Trials not ended before the bin."""
    ends: NDArray[np.int64]
    """Shape (..., bin, end), in the order of `ENDS`."""
    hazard: Curve
    """Share of the trials at risk that end in the bin, by cause, with Wilson bounds; NaN where none is at risk."""


def count_ends(
    status: ArrayLike, tokens: ArrayLike, *, width: int = WIDTH, bins: int | None = None
) -> NDArray[np.int64]:
    """Ends of trials per bin of tokens.

    Bins are closed on the right, so that a limit of 1024 tokens falls into the bin that ends there: bin b holds
    (b·width, (b + 1)·width], the first one 0 as well.

    Parameters
    ----------
    status
        Outcomes, shape (..., trial). Trials that did not finish count for nothing.
    tokens
        Completion tokens, same shape; a trial with a negative (missing) number counts for nothing.
    width
        Tokens in a bin.
    bins
        Number of bins; default as many as the longest trial needs.

    Returns
    -------
    Array (..., bin, end), in the order of `ENDS`

    Raises
    ------
    ValueError
        If the shapes differ, `width` < 1, or a trial lies beyond the last bin.
    """
    outcome, length = np.atleast_1d(status), np.atleast_1d(tokens)
    if outcome.shape != length.shape:
        raise ArgumentError(f"`tokens` has shape {length.shape}, `status` has {outcome.shape}")
    if width < 1:
        raise ArgumentError(f"`width` must be at least 1, got {width}")
    completed = np.isin(outcome, COMPLETED)
    used = (completed | (outcome == Status.TRUNCATED)) & (length >= 0)
    place = np.maximum(length.astype(np.int64) - 1, 0) // width
    needed = int(place[used].max(initial=-1)) + 1
    if bins is not None and needed > bins:
        raise ArgumentError(f"`bins` is {bins}, but the longest trial needs {needed} bins of {width} tokens")
    size = max(needed, 1) if bins is None else bins
    end = np.where(completed, np.where(outcome == Status.CORRECT, 0, 1), 2)
    groups = int(np.prod(outcome.shape[:-1]))
    group = np.arange(groups).reshape(*outcome.shape[:-1], 1)
    flat = ((group * size + place) * len(ENDS) + end)[used]
    counted = np.bincount(flat, minlength=groups * size * len(ENDS))
    return counted.reshape(*outcome.shape[:-1], size, len(ENDS))


def life_table(ends: ArrayLike, *, confidence: float | None = None) -> LifeTable:
    """The life table of counts from `count_ends`, shape (..., bin, end).

    All trials censored in a bin were at risk throughout: a limit at the end of a bin needs no correction.

    Parameters
    ----------
    ends
        Counts, shape (..., bin, end).
    confidence
        Level of the bounds; None means z = 1.96.

    Examples
    --------
    >>> table = life_table(count_ends([1, 1, 0, 1, 2, 0, 1, 2], [100, 300, 300, 600, 1024, 700, 200, 1024]))
    >>> table.at_risk.tolist()
    [8, 6, 4, 2]
    >>> table.hazard.value.round(4).T.tolist()
    [[0.25, 0.1667, 0.25, 0.0], [0.0, 0.1667, 0.25, 0.0]]
    """
    counts = np.asarray(ends, dtype=np.int64)
    risk = _at_risk(counts)
    bounds = wilson_bounds(counts[..., : len(CAUSES)], risk[..., np.newaxis], confidence=confidence)
    return LifeTable(risk, counts, Curve(*(np.asarray(part) for part in bounds)))


def kaplan_meier(ends: ArrayLike, *, confidence: float | None = None) -> Curve:
    """Share of trials that would not have answered up to each bin's end, had there been no limit.

    Bounds are Greenwood's on the log(−log) scale; the bounds of a curve still at 1 are 1, those of a curve at 0 are
    NaN. NaN where no trial is at risk any more.

    Parameters
    ----------
    ends
        Counts from `count_ends`, shape (..., bin, end). Within a bin, answers come before censoring.
    confidence
        Level of the pointwise bounds; None means z = 1.96.

    Returns
    -------
    Curve, arrays (..., bin)

    References
    ----------
    E. L. Kaplan and P. Meier (1958), Nonparametric estimation from incomplete observations, Journal of the
    American Statistical Association 53, 457-481. https://doi.org/10.1080/01621459.1958.10501452
    """
    steps = _steps(ends)
    with np.errstate(all="ignore"):
        greenwood = np.cumsum(steps.spread, axis=-1)
        error = steps.survival * np.sqrt(greenwood)
    return _bounded(np.where(steps.risk > 0, steps.survival, np.nan), error, 1.0, confidence)


def aalen_johansen(ends: ArrayLike, *, confidence: float | None = None) -> Curve:
    """Share of trials that have ended by each cause up to each bin's end; the other cause is no censoring.

    Their sum and `kaplan_meier` make 1. Variances by the delta method; bounds on the log(−log) scale, 0 where nothing
    has happened yet, NaN at 1. NaN where no trial is at risk any more.

    Parameters
    ----------
    ends
        Counts from `count_ends`, shape (..., bin, end).
    confidence
        Level of the pointwise bounds; None means z = 1.96.

    Returns
    -------
    Curve, arrays (..., bin, cause), in the order of `CAUSES`

    References
    ----------
    O. O. Aalen and S. Johansen (1978), An empirical transition matrix for non-homogeneous Markov chains based on
    censored observations, Scandinavian Journal of Statistics 5, 141-150. Variance: E. Marubini and M. G. Valsecchi
    (1995), Analysing Survival Data from Clinical Trials and Observational Studies, Wiley, section 10.2.
    """
    steps = _steps(ends)
    before = np.concatenate([np.ones_like(steps.survival[..., :1]), steps.survival[..., :-1]], axis=-1)
    events = np.asarray(ends, dtype=np.float64)[..., : len(CAUSES)]
    with np.errstate(all="ignore"):
        risk = np.where(steps.risk > 0, steps.risk, np.nan)[..., np.newaxis]
        start = before[..., np.newaxis]
        share = np.where(risk > 0, events / risk, 0.0)
        value = np.cumsum(start * share, axis=-2)
        # sum over earlier bins of (F(t) − F_i)²·a_i + b_i − 2·(F(t) − F_i)·c_i, multiplied out.
        a = steps.spread[..., np.newaxis]
        b = np.where(risk > 0, start**2 * share * (1 - share) / risk, 0.0)
        c = np.where(risk > 0, start * share / risk, 0.0)
        square = value**2 * _upto(a) - 2 * value * _upto(value * a) + _upto(value**2 * a)
        variance = square + _upto(b) - 2 * (value * _upto(c) - _upto(value * c))
        error = np.sqrt(np.maximum(variance, 0.0))
    return _bounded(np.where(risk > 0, value, np.nan), error, 0.0, confidence)


@dataclass(frozen=True)
class _Steps:
    """Kaplan–Meier per bin, arrays (..., bin)."""

    risk: NDArray[np.int64]
    survival: Floats
    spread: Floats
    """Greenwood's terms d / (n·(n − d)); 0 where all at risk end, as nothing varies after it."""


def _steps(ends: ArrayLike) -> _Steps:
    counts = np.asarray(ends, dtype=np.int64)
    risk = _at_risk(counts)
    events = counts[..., : len(CAUSES)].sum(axis=-1)
    left = risk - events
    with np.errstate(all="ignore"):
        survival = np.cumprod(np.where(risk > 0, left / risk, 1.0), axis=-1, dtype=np.float64)
        spread = np.where(left > 0, events / (risk.astype(np.float64) * left), 0.0)
    return _Steps(risk, survival, spread)


def _at_risk(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    if counts.ndim < 2 or counts.shape[-1] != len(ENDS):
        raise ArgumentError(f"`ends` has shape {counts.shape}; it must be (..., bin, {len(ENDS)}), as {ENDS}")
    total = counts.sum(axis=-1)
    return np.flip(np.cumsum(np.flip(total, axis=-1), axis=-1), axis=-1)


def _upto(terms: Floats) -> Floats:
    return np.cumsum(terms, axis=-2)


def _bounded(value: Floats, error: Floats, start: float, confidence: float | None) -> Curve:
    """Bounds value^exp(±z·error / (value·log value)); `start` itself where the curve has not left it."""
    z = quantile(confidence)
    with np.errstate(all="ignore"):
        width = z * error / np.abs(value * np.log(value))
        lower, upper = value ** np.exp(width), value ** np.exp(-width)
    still = value == start
    return Curve(value, np.where(still, start, lower), np.where(still, start, upper))
