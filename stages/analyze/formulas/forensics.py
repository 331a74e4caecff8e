"""When trials end, how well their reasoning compresses, and what they cost.

Curves over tokens are life tables, Kaplan–Meier and Aalen–Johansen. Time is the number of completion tokens. A trial
ends in a right or a wrong answer, which are competing risks, or is cut by the limit, which is right-censoring: how it
would have ended is unknown. Everything is a function of counts of ends per bin of tokens, which add over chunks and
groups; bins of one token give the curves at every observed time.

A reasoning trace that repeats itself compresses well: a low ratio among truncated trials separates loops from long
thoughts. Of traces only sums of products are kept; they add over chunks and groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import column, reals
from evalcube.stages.analyze.formulas.estimators import Bounds, brought
from evalcube.stages.analyze.formulas.intervals import Floats, exact_bounds, quantile, wilson_bounds
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COMPLETED, COUNTERS, OUTCOMES, Status

WIDTH = 256
"""Tokens in a bin of the life table."""
MOST_BINS = 1 << 18
"""More than a context has tokens; an endpoint may say that a reply has 2^31, for which there is no memory."""

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
        If the shapes differ, `width` < 1, a trial lies beyond the last bin, or they would be more than `MOST_BINS`.
    """
    outcome, length = np.atleast_1d(status), np.atleast_1d(tokens)
    if outcome.shape != length.shape:
        raise ArgumentError(f"`tokens` has shape {length.shape}, `status` has {outcome.shape}")
    if width < 1:
        raise ArgumentError(f"`width` must be at least 1, got {width}")
    completed = np.isin(outcome, COMPLETED)
    used = (completed | (outcome == Status.TRUNCATED)) & (length >= 0)
    bin_of = np.maximum(length.astype(np.int64) - 1, 0) // width
    needed = int(bin_of[used].max(initial=-1)) + 1
    if bins is not None and needed > bins:
        raise ArgumentError(f"`bins` is {bins}, but the longest trial needs {needed} bins of {width} tokens")
    size = max(needed, 1) if bins is None else bins
    if size > MOST_BINS:
        raise ArgumentError(
            f"`width` = {width} makes {size:,} bins, more than {MOST_BINS:,}; give a larger one"
        )
    end = np.where(completed, np.where(outcome == Status.CORRECT, 0, 1), 2)
    groups = int(np.prod(outcome.shape[:-1]))
    group = np.arange(groups).reshape(*outcome.shape[:-1], 1)
    flat = ((group * size + bin_of) * len(ENDS) + end)[used]
    counted = np.bincount(flat, minlength=groups * size * len(ENDS))
    return counted.reshape(*outcome.shape[:-1], size, len(ENDS))


def life_table(ends: ArrayLike, *, confidence: float | None = None) -> LifeTable:
    """The life table of counts from `count_ends`, shape (..., bin, end).

    All trials censored in a bin were at risk throughout: a limit at the end of a bin needs no correction.

    Parameters
    ----------
    ends
        Counts, shape (..., bin, end); fractions where answers are alike, and several are worth one.
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
    counts = np.asarray(ends)
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
    risk, survival, spread = _steps(ends)
    error = survival * np.sqrt(np.cumsum(spread, axis=-1))
    return _with_bounds(np.where(risk > 0, survival, np.nan), error, 1.0, confidence)


def aalen_johansen(ends: ArrayLike, *, confidence: float | None = None) -> Curve:
    """Share of trials that have ended by each cause up to each bin's end; the other cause is no censoring.

    Their sum and `kaplan_meier` make 1. Variances by the delta method; bounds on the log(−log) scale, where nothing has
    happened yet from 0 to the end of the exact interval, NaN at 1. NaN where no trial is at risk any more.

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
    at_risk, survival, spread = _steps(ends)
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    events = np.asarray(ends, dtype=np.float64)[..., : len(CAUSES)]
    with np.errstate(all="ignore"):
        risk = np.where(at_risk > 0, at_risk, np.nan)[..., np.newaxis]
        start = before[..., np.newaxis]
        share = np.where(risk > 0, events / risk, 0.0)
        value = np.cumsum(start * share, axis=-2)
        # sum over earlier bins of (F(t) − F_i)²·a_i + b_i − 2·(F(t) − F_i)·c_i, multiplied out.
        a = spread[..., np.newaxis]
        b = np.where(risk > 0, start**2 * share * (1 - share) / risk, 0.0)
        c = np.where(risk > 0, start * share / risk, 0.0)
        square = value**2 * _upto(a) - 2 * value * _upto(value * a) + _upto(value**2 * a)
        variance = square + _upto(b) - 2 * (value * _upto(c) - _upto(value * c))
        error = np.sqrt(np.maximum(variance, 0.0))
    curve = _with_bounds(np.where(risk > 0, value, np.nan), error, 0.0, confidence)
    over = events.sum(axis=-1)
    # All but those that were cut before.
    present = (at_risk + np.cumsum(over, axis=-1) - over)[..., np.newaxis]
    most = exact_bounds(0.0, present, confidence=confidence)[2]
    return replace(curve, upper=np.where(curve.value == 0.0, most, curve.upper))


def _steps(ends: ArrayLike) -> tuple[NDArray[Any], Floats, Floats]:
    """Trials at risk, Kaplan–Meier's survival and Greenwood's terms d / (n·(n − d)) per bin, arrays (..., bin).

    The latter are 0 where all at risk end, as nothing varies after it.
    """
    counts = np.asarray(ends)
    risk = _at_risk(counts)
    events = counts[..., : len(CAUSES)].sum(axis=-1)
    left = risk - events
    with np.errstate(all="ignore"):
        survival = np.cumprod(np.where(risk > 0, left / risk, 1.0), axis=-1, dtype=np.float64)
        spread = np.where(left > 0, events / (risk.astype(np.float64) * left), 0.0)
    return risk, survival, spread


def _at_risk(counts: NDArray[Any]) -> NDArray[Any]:
    if counts.ndim < 2 or counts.shape[-1] != len(ENDS):
        raise ArgumentError(f"`ends` has shape {counts.shape}; it must be (..., bin, {len(ENDS)}), as {ENDS}")
    return np.flip(np.cumsum(np.flip(counts.sum(axis=-1), axis=-1), axis=-1), axis=-1)


def _upto(terms: Floats) -> Floats:
    return np.cumsum(terms, axis=-2)


def _with_bounds(value: Floats, error: Floats, start: float, confidence: float | None) -> Curve:
    """Bounds value^exp(±z·error / (value·log value)); `start` itself where the curve has not left it."""
    z = quantile(confidence)
    with np.errstate(all="ignore"):
        width = z * error / np.abs(value * np.log(value))
        lower, upper = value ** np.exp(width), value ** np.exp(-width)
    still = value == start
    return Curve(value, np.where(still, start, lower), np.where(still, start, upper))


MOMENTS = (
    *("traces", "bytes", "compressed", "tokens", "bytes_sq", "compressed_sq", "tokens_sq"),
    *("bytes_compressed", "bytes_tokens", "compressed_tokens"),
)
"""The moment axis of the sums: a count, sums, sums of squares and of products."""


@dataclass(frozen=True)
class Compression:
    """Compression of the traces of each outcome; arrays (..., outcome)."""

    traces: Floats
    """Trials with a trace whose lengths are all known."""
    ratio: Curve
    """Compressed bytes per byte."""
    bytes_per_token: Curve
    """Bytes of the trace per completion token."""
    compressed_per_token: Curve
    """Compressed bytes per completion token."""


def sum_traces(
    status: ArrayLike, tokens: ArrayLike, reasoning_bytes: ArrayLike, compressed_bytes: ArrayLike
) -> Floats:
    """Sums over the traces of each outcome.

    Parameters
    ----------
    status, tokens, reasoning_bytes, compressed_bytes
        Trial arrays of shape (..., trial). A trial without a trace, or with a missing (negative) length, counts for
        nothing.

    Returns
    -------
    Array (..., outcome, moment), in the order of `OUTCOMES` and `MOMENTS`

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    outcome = np.atleast_1d(status)
    lengths = [np.atleast_1d(item).astype(np.float64) for item in (reasoning_bytes, compressed_bytes, tokens)]
    if any(item.shape != outcome.shape for item in lengths):
        raise ArgumentError(
            f"the trial arrays differ in shape: {[outcome.shape, *(x.shape for x in lengths)]}"
        )
    raw, small, spent = lengths
    measured = (raw > 0) & (small >= 0) & (spent >= 0)
    products = [np.ones_like(raw), raw, small, spent, raw**2, small**2, spent**2]
    products += [raw * small, raw * spent, small * spent]
    sums = [
        [np.where(measured & (outcome == code), item, 0.0).sum(axis=-1) for item in products]
        for code in OUTCOMES.values()
    ]
    return np.moveaxis(np.asarray(sums), (0, 1), (-2, -1))


def compression(sums: ArrayLike, *, confidence: float | None = None) -> Compression:
    """Ratios of sums from `sum_traces`, with intervals of linearisation (the delta method).

    Parameters
    ----------
    sums
        Array (..., outcome, moment).
    confidence
        Level of the intervals; None means z = 1.96. An interval needs two traces.

    References
    ----------
    W. G. Cochran (1977), Sampling Techniques, 3rd edition, Wiley, section 6.3: variance of a ratio of sums.
    """
    values = np.asarray(sums, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != len(MOMENTS):
        raise ArgumentError(
            f"`sums` has shape {values.shape}; its last axis must hold the {len(MOMENTS)} moments"
        )
    moments = {name: values[..., index] for index, name in enumerate(MOMENTS)}
    return Compression(
        moments["traces"],
        _ratio(moments, "compressed", "bytes", "bytes_compressed", confidence),
        _ratio(moments, "bytes", "tokens", "bytes_tokens", confidence),
        _ratio(moments, "compressed", "tokens", "compressed_tokens", confidence),
    )


def _ratio(moments: dict[str, Floats], top: str, base: str, product: str, confidence: float | None) -> Curve:
    count = moments["traces"]
    with np.errstate(all="ignore"):
        below = np.where(moments[base] > 0, moments[base], np.nan)
        value = moments[top] / below
        residual = moments[f"{top}_sq"] - 2 * value * moments[product] + value**2 * moments[f"{base}_sq"]
        factor = np.where(count > 1, count / (count - 1), np.nan)
        error = np.sqrt(factor * np.maximum(residual, 0.0)) / below
    margin = quantile(confidence) * error
    return Curve(value, np.maximum(value - margin, 0.0), value + margin)


@dataclass(frozen=True)
class Costs:
    """USD; arrays of the shape of the counters without their last axis."""

    total: Floats
    per_trial: Floats
    """Per finished trial; NaN without any."""
    per_correct: Floats
    """Per right answer, those that truncated and wrong trials cost included; NaN without a right answer."""
    per_correct_lower: Floats
    per_correct_upper: Floats
    """Of the share of right answers and of the cost per trial together; infinite for a share of 0."""


def costs(
    counters: ArrayLike,
    total: ArrayLike | None = None,
    *,
    labels: Sequence[str] = COUNTERS,
    confidence: float | None = None,
    right: Bounds | None = None,
    error: ArrayLike = 0.0,
) -> Costs:
    """Costs of groups of trials.

    Parameters
    ----------
    counters
        Summed counters, shape (..., counter).
    total
        USD of each group, shape (...); default the counter ``cost_sum``. NaN means that it is not known.
    labels
        Names along the last axis.
    confidence
        Level of the bounds; None means z = 1.96.
    right
        Share of right answers with its bounds, arrays (...); default Wilson's.
    error
        Standard error of the cost per trial as a share of it, shape (...).

    Examples
    --------
    >>> found = costs([200.0, 50.0, 3.0], labels=["trials", "correct", "cost_sum"])
    >>> float(found.per_trial), float(found.per_correct)
    (0.015, 0.06)
    """
    trials = column(counters, "trials", labels)
    correct = column(counters, "correct", labels)
    spent = column(counters, "cost_sum", labels) if total is None else np.asarray(total, dtype=np.float64)
    share = wilson_bounds(correct, trials, confidence=confidence) if right is None else right
    with np.errstate(all="ignore"):
        per_trial = spent / np.where(trials > 0, trials, np.nan)
        _, lower, upper = brought(share, per_trial, error, confidence=confidence)
        per_correct = spent / np.where(correct > 0, correct, np.nan)
        return Costs(np.asarray(spent), per_trial, per_correct, 1.0 / upper, 1.0 / lower)


def pareto_front(score: ArrayLike, *spends: ArrayLike) -> NDArray[np.bool_]:
    """True for points that no other point dominates.

    Equal points are on the front together. A point with a NaN is not on it and beats no other.

    Parameters
    ----------
    score
        Score of each point, shape (point,); more is better.
    spends
        One or more arrays of what each point takes, such as tokens and cost, shape (point,); less is better.

    Returns
    -------
    Booleans, shape (point,).

    Raises
    ------
    ValueError
        If the arrays are not of one length, or nothing is spent.

    Examples
    --------
    >>> pareto_front([3, 2, 2, 1], [9, 4, 5, 4]).tolist()
    [True, True, False, False]
    """
    points = [-reals(score, "score"), *(reals(item, "spends") for item in spends)]
    shapes = [item.shape for item in points]
    if len(points) < 2 or any(shape != shapes[0] or len(shape) != 1 for shape in shapes):
        raise ArgumentError(f"`score` and at least one `spends` must have one shape (point,), got {shapes}")
    table = np.stack(points, axis=-1)
    measured: NDArray[np.bool_] = np.asarray(~np.isnan(table).any(axis=-1))
    front = measured.copy()
    rivals = table[measured]
    for index in np.flatnonzero(measured):
        beaten = (rivals <= table[index]).all(axis=-1) & (rivals < table[index]).any(axis=-1)
        front[index] = not beaten.any()
    return front
