"""The weighted mean of the points' success, with an interval from the points' own variances.

Adaptive sampling gives uncertain points more trials, so that summed counters answer "how often was a trial
right", not "how good is the model over the points". Here each point is a stratum with a declared weight.

A trial counts 1 if it is correct, −h if it is wrong, where h = c/(1 − c) takes out guessing at chance c, and 1, 0
or nothing if it is truncated. A point's estimate is the mean of that, so nothing is clipped before the mean over
points and the noise of guessing is part of the interval. With k = 1 + h, z = (value + h)/k lies in [0, 1], and
the mean over points is an affine function of Z = Σ a z̄ / Σ a, a = w k, with variance V = Σ a² s²/m / (Σ a)². Z
gets Wilson's interval at its effective number of trials::

    M = (Z(1 − Z) + V + q)/(V + q²),   q = Σ a²/m / (Σ a)²

that is Z(1 − Z)/V with unbiased terms, pulled towards 1/q, the number if all points were equally good, by about
one trial's worth. One stratum of right and wrong answers gives exactly Wilson's interval. All sums add over any
chunks: `moments` makes them, `combine` takes them.

References
----------
L. Kish (1965), Survey Sampling, Wiley, chapter 8: effective sample size.
E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
counts estimated from survey data, Survey Methodology 24, 193-201.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import fitting
from evalcube.stages.analyze.formulas.estimators import Bounds, checked_mode, counts, estimate
from evalcube.stages.analyze.formulas.intervals import Floats, exact_bounds, wilson_bounds
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS

MOMENTS = ("strata", "weight", "offset", "scale", "mean", "variance", "size", "single")
"""Names of the additive sums: strata with an estimate, Σw, Σw(1 − k), Σa, Σaz̄, Σa²s²/m, Σa²/m, and the latter
over strata of one trial, which show nothing of their variance."""


def stratified(
    counters: ArrayLike,
    weights: ArrayLike = 1.0,
    *,
    labels: Sequence[str] = COUNTERS,
    mode: str = "C_P",
    confidence: float | None = None,
) -> Bounds:
    """Weighted mean over strata of one estimator, with lower and upper bound.

    Parameters
    ----------
    counters
        Array (..., stratum, counter).
    weights
        Non-negative weights that broadcast to (..., stratum); they need not sum to 1.
    labels
        Names along the last axis.
    mode
        One of `evalcube.stages.analyze.formulas.estimators.MODES`.
    confidence
        Level in (0, 1); None means z = 1.96 exactly.

    Returns
    -------
    point, lower, upper
        Arrays (...) in [0, 1]; NaN where no stratum has an estimate. A stratum without one is left out:
        compare the strata present with those planned before comparing two means.

    Raises
    ------
    ValueError
        If an argument is out of range or counters contradict each other.

    References
    ----------
    E. B. Wilson (1927), at the effective number of trials. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> cells = [[20, 20, 19, 0, 0], [92, 92, 46, 0, 0]]
    >>> [round(float(value), 3) for value in stratified(cells, labels=names)]
    [0.725, 0.646, 0.792]
    """
    sums = moments(counters, weights, labels=labels, mode=mode)
    if sums.ndim < 2:
        raise ArgumentError("`counters` must be (..., stratum, counter), got those of a single group")
    return combine(sums.sum(axis=-2), confidence=confidence)


def moments(
    counters: ArrayLike, weights: ArrayLike = 1.0, *, labels: Sequence[str] = COUNTERS, mode: str = "C_P"
) -> Floats:
    """What each stratum adds to the sums `MOMENTS`: array (..., stratum, moment); zero without an estimate.

    Arguments and errors as of `stratified`.
    """
    chosen = checked_mode(mode)
    found = counts(counters, labels=labels)
    with np.errstate(all="ignore"):
        chance = np.where(found.completed > 0, found.guesses / found.completed, 0.0)
    if chosen[0] == "E":
        chance = np.zeros_like(chance)
    if chosen[2] == "I":
        return score_moments(found.correct, found.completed, chance=chance, weights=weights)
    if chosen[2] == "O":
        right = found.correct + found.truncated
        return score_moments(right, found.trials, chance=chance, weights=weights)
    return score_moments(found.correct, found.trials, nothing=found.truncated, chance=chance, weights=weights)


def score_moments(
    right: ArrayLike,
    trials: ArrayLike,
    *,
    nothing: ArrayLike = 0.0,
    chance: ArrayLike = 0.0,
    weights: ArrayLike = 1.0,
) -> Floats:
    """What strata of trials worth 1, 0 or −c/(1 − c) add to the sums `MOMENTS`: array (..., moment).

    Parameters
    ----------
    right
        Trials worth 1; everything broadcasts.
    trials
        All trials of the stratum; those that are neither right nor nothing are worth −c/(1 − c).
    nothing
        Trials worth 0.
    chance
        c; with c = ½ a trial is worth 1, 0 or −1, as in a paired comparison. No estimate exists for c = 1.

    Raises
    ------
    ValueError
        If a weight is negative or NaN.
    """
    ones, m, zeros, c, w = np.broadcast_arrays(
        *fitting(right=right, trials=trials, nothing=nothing, chance=chance, weights=weights)
    )
    if not np.all((w >= 0) & (w < np.inf)):
        raise ArgumentError(
            "`weights` must not be negative or NaN, and finite; leave a point out with weight 0"
        )
    with np.errstate(all="ignore"):
        scale = 1.0 / (1.0 - c)
        mean = (ones + c * zeros) / m
        spread = np.maximum((ones + c**2 * zeros) / m - mean**2, 0.0)
        a = w * scale
        variance = np.where(m > 1, a**2 * spread / (m - 1.0), 0.0)
        size = a**2 / m
        single = np.where(m > 1, 0.0, size)
    parts = (np.ones_like(w), w, w * (1.0 - scale), a, a * mean, variance, size, single)
    there = (m > 0) & (c < 1.0 - 1e-9)
    return np.stack([np.where(there, part, 0.0) for part in parts], axis=-1)


def standard(sums: ArrayLike) -> Floats:
    """Summed moments (..., moment) brought to a weight of 1, so that groups of them weigh alike in a further sum.

    Zero where there is no weight.

    Examples
    --------
    >>> tasks = moments([[[8, 8, 4, 0, 0]] * 3, [[8, 8, 8, 0, 0]] + [[0] * 5] * 2], labels=[
    ...     "trials", "completed", "correct", "truncated", "guess_sum"])
    >>> float(combine(standard(tasks.sum(axis=-2)).sum(axis=-2))[0])
    0.75
    """
    values = np.asarray(sums, dtype=float)
    weight = values[..., 1:2]
    scale = np.where(weight > 0, 1.0, 0.0) / np.where(weight > 0, weight, 1.0)
    return np.concatenate(
        [values[..., :1], values[..., 1:5] * scale, values[..., 5:] * scale**2], axis=-1
    ) * (weight > 0)


def exact_estimate(
    counters: ArrayLike,
    *,
    labels: Sequence[str] = COUNTERS,
    mode: str = "C_P",
    confidence: float | None = None,
    effect: ArrayLike = 1.0,
) -> Bounds:
    """One estimator of summed counters, elementwise, with an interval that counts the noise of guessing.

    The point value is that of `evalcube.stages.analyze.formulas.estimators.estimate`. The interval is that of one
    stratum, with the exact interval of Clopper and Pearson in the place of Wilson's: at least 93 % for rates .02 to
    .98, guess chances up to ½, any truncation and from 8 trials on.

    Parameters
    ----------
    counters
        Array (..., counter), summed over each group.
    labels
        Names along the last axis.
    mode
        One of `evalcube.stages.analyze.formulas.estimators.MODES`.
    confidence
        Level in (0, 1); None means 95 %.
    effect
        Trials that are worth one independent trial, broadcasts to (...): above 1 where questions were asked several
        times.

    Returns
    -------
    point, lower, upper
        Arrays (...) in [0, 1]; NaN where `estimate` has no value.

    Raises
    ------
    ValueError
        If an argument is out of range or counters contradict each other.

    References
    ----------
    E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24, 193-201.

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> [round(float(value), 4) for value in exact_estimate([128, 128, 64, 0, 64], labels=names)]
    [0.0, 0.0, 0.1792]
    """
    values = np.asarray(counters, dtype=float)
    point = estimate(values, labels=labels, mode=mode)[0]
    sums = moments(values / np.asarray(effect, dtype=float)[..., np.newaxis], labels=labels, mode=mode)
    _, lower, upper = combine(sums, confidence=confidence, exact=True)
    undefined = np.isnan(point)
    return (
        point,
        np.where(undefined, np.nan, np.minimum(lower, point)),
        np.where(undefined, np.nan, np.maximum(upper, point)),
    )


def combine(
    sums: ArrayLike, *, confidence: float | None = None, least: float = 0.0, exact: bool = False
) -> Bounds:
    """Point, lower and upper bound from summed moments (..., moment), at last clipped to [least, 1].

    NaN where the weights sum to 0. With `exact`, by the exact interval at the effective number of trials; as nobody is
    worse than guessing, its upper bound is at least that of what guesses, and no interval has zero width.
    """
    offset, scale, total, rate, trials = _effective(sums)
    with np.errstate(all="ignore"):
        if exact:
            point, lower, _ = exact_bounds(rate * trials, trials, confidence=confidence)
            upper = exact_bounds(np.maximum(rate, -offset / scale) * trials, trials, confidence=confidence)[2]
        else:
            point, lower, upper = wilson_bounds(rate * trials, trials, confidence=confidence)
        parts = tuple(np.clip((offset + scale * part) / total, least, 1.0) for part in (point, lower, upper))
    return parts[0], parts[1], parts[2]


def effective_trials(sums: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Rate Z in [0, 1], trials M and chance c that summed moments (..., moment) are worth: the mean is (Z − c)/(1 − c).

    Z·M successes in M independent trials of one rate say as much about the mean over the strata. NaN without weights.
    """
    offset, scale, _, rate, trials = _effective(sums)
    with np.errstate(all="ignore"):
        return rate, trials, -offset / np.where(scale > 0, scale, np.nan)


def _effective(sums: ArrayLike) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Offset, scale, weight, rate Z and effective number of trials M of summed moments."""
    _, weight, offset, scale, mean, variance, size, single = np.moveaxis(np.asarray(sums, float), -1, 0)
    with np.errstate(all="ignore"):
        total = np.where(weight > 0, weight, np.nan)
        rate = np.clip(mean / scale, 0.0, 1.0)
        spread = rate * (1.0 - rate)
        q = size / scale**2
        error = (variance + single * spread) / scale**2
        trials = (spread + error + q) / (error + q**2)
    return offset, scale, total, rate, trials
