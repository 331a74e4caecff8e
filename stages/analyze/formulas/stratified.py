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
one trial's worth. One stratum of right and wrong answers gives exactly Wilson's interval.

One such number hides a stratum of few trials, or without spread, behind the others. So strata go into *parts*
(`parts_of`): those of like weight per planned trial, whose weighted sum is a plain sum of trials, and of these apart
what was all right, all wrong or mixed. Each part has its interval, and the mean over parts of shares W and bounds
(l, u) of theirs has m − √Σ W²(m − l)² and m + √Σ W²(u − m)². `moments` makes sums, `parts_of` adds them by part,
`combine` takes these.

References
----------
G. Y. Zou, A. Donner (2008), Construction of confidence limits about effect measures: a general approach, Statistics in
Medicine 27, 1693-1702: the intervals of sums (MOVER).
L. Kish (1965), Survey Sampling, Wiley, chapter 8: effective sample size.
E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
counts estimated from survey data, Survey Methodology 24, 193-201.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import broadcast, column, fitting
from evalcube.stages.analyze.formulas.estimators import Bounds, checked_mode, counts, estimate
from evalcube.stages.analyze.formulas.intervals import Floats, exact_bounds, wilson_bounds
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS

MOMENTS = ("strata", "weight", "offset", "scale", "mean", "variance", "size", "single")
"""Names of the additive sums: strata with an estimate, Σw, Σw(1 − k), Σa, Σaz̄, Σa²s²/m, Σa²/m, and the latter
over strata of one trial, which show nothing of their variance."""
FEW = 4
"""Planned trials below which a stratum counts as mixed, whatever it shows."""
_HALVINGS = 40
LIKE = 1.25 * (1.0 + 1e-9)
"""Weights per trial up to so many times the least of a part are alike."""


def stratified(
    counters: ArrayLike,
    weights: ArrayLike = 1.0,
    *,
    labels: Sequence[str] = COUNTERS,
    mode: str = "C_P",
    confidence: float | None = None,
    units: ArrayLike | None = None,
) -> Bounds:
    """Mean of one estimator, weighted over strata, with lower and upper bound.

    Parameters
    ----------
    counters
        Array (..., stratum, counter) of counters, summed over the cells of each stratum.
    weights
        Non-negative weights that broadcast to (..., stratum); they need not sum to 1.
    labels
        Names of the counters along the last axis; default: those of a cube.
    mode
        Estimator: "E_I", "E_P", "E_O" (share right) or "C_I", "C_P", "C_O" (corrected for guessing). Truncated trials
        are left out (I), wrong (P) or right (O).
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.
    units
        Number of independent trials that each stratum was planned with; broadcasts to (..., stratum). None means the
        number that it has.

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
    [0.725, 0.619, 0.779]
    """
    sums = moments(counters, weights, labels=labels, mode=mode)
    if sums.ndim < 2:
        raise ArgumentError("`counters` must be (..., stratum, counter), got those of a single group")
    planned = column(counters, "trials", labels) if units is None else units
    return combine(parts_of(sums, broadcast(planned, "units", sums.shape[:-1])), confidence=confidence)


def moments(
    counters: ArrayLike, weights: ArrayLike = 1.0, *, labels: Sequence[str] = COUNTERS, mode: str = "C_P"
) -> Floats:
    """What each stratum adds to the sums `MOMENTS`: array (..., stratum, moment); zero without an estimate.

    Arguments and errors as of `stratified`.
    """
    chosen = checked_mode(mode)
    tally = counts(counters, labels=labels)
    with np.errstate(all="ignore"):
        chance = np.where(tally.completed > 0, tally.guesses / tally.completed, 0.0)
    if chosen[0] == "E":
        chance = np.zeros_like(chance)
    if chosen[2] == "I":
        return score_moments(tally.correct, tally.completed, chance=chance, weights=weights)
    if chosen[2] == "O":
        right = tally.correct + tally.truncated
        return score_moments(right, tally.trials, chance=chance, weights=weights)
    return score_moments(tally.correct, tally.trials, nothing=tally.truncated, chance=chance, weights=weights)


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


def weigh(sums: ArrayLike, factor: ArrayLike) -> Floats:
    """Moments (..., moment) of strata whose weights are multiplied by a factor, broadcasts to (...)."""
    rows, by = np.asarray(sums, dtype=float), np.asarray(factor, dtype=float)[..., np.newaxis]
    return np.concatenate([rows[..., :1] * (by > 0), rows[..., 1:5] * by, rows[..., 5:] * by**2], axis=-1)


def parts_of(
    sums: ArrayLike, units: ArrayLike, owner: NDArray[np.intp] | None = None, owners: int = 0
) -> Floats:
    """Sums of strata by part: from (..., stratum, moment) to (..., part, moment), zero where a part has no stratum.

    Parameters
    ----------
    sums
        Of `moments`, or with `owner` rows (stratum, moment) of several groups.
    units
        Independent trials that each stratum was planned with, broadcasts to its shape; never those that have come, so
        that one more moves no stratum to another part.
    owner, owners
        Number of each row's group, and how many there are: the result is (group, part, moment) then.
    """
    values = np.asarray(sums, dtype=float)
    if owner is None:
        shape, units = values.shape[:-2], np.broadcast_to(np.asarray(units, dtype=float), values.shape[:-1])
        number = int(np.prod(shape))
        rows = values.reshape(-1, len(MOMENTS))
        flat = parts_of(rows, units.ravel(), np.repeat(np.arange(number), values.shape[-2]), number)
        return flat.reshape(*shape, *flat.shape[1:])
    there = values[:, 3] > 0
    values, owner, planned = values[there], owner[there], np.asarray(units, dtype=float)[there]
    _, _, _, scale, mean, variance, _, single = values.T
    # Of so few trials all are alike by chance: that says nothing of a spread.
    spread = (variance + single > 0) | ((mean > 0) & (mean < scale)) | (planned < FEW)
    kind = np.where(spread, 2, mean > 0)
    ratio, group = scale / np.fmax(planned, 1e-9), np.zeros_like(kind)
    left, groups = np.ones_like(spread), 0
    while left.any():
        least = np.full(owners, np.inf)
        np.minimum.at(least, owner[left], ratio[left])
        now = left & (ratio <= least[owner] * LIKE)
        group[now] = groups
        left, groups = left & ~now, groups + 1
    index, size = (owner * groups + group) * 3 + kind, owners * groups * 3
    columns = [np.bincount(index, part, size) for part in values.T]
    return np.asarray(np.stack(columns, axis=-1).reshape(owners, 3 * groups, len(MOMENTS)), dtype=np.float64)


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
    stratum, with the exact interval of Clopper and Pearson in the place of Wilson's: at least 93% for rates .02 to
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
        Level in (0, 1); None means 95%.
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
    _, lower, upper = combine(sums[..., np.newaxis, :], confidence=confidence, exact=True)
    undefined = np.isnan(point)
    return (
        point,
        np.where(undefined, np.nan, np.minimum(lower, point)),
        np.where(undefined, np.nan, np.maximum(upper, point)),
    )


def combine(
    sums: ArrayLike, *, confidence: float | None = None, least: float = 0.0, exact: bool = False
) -> Bounds:
    """Point, lower and upper bound from moments by part (..., part, moment), at last clipped to [least, 1].

    NaN where the weights sum to 0. With `exact`, by exact intervals at the effective numbers of trials; as nobody is
    worse than guessing, upper bounds start at what guesses at least, and no interval has zero width.
    """
    total, offset, scale, rate, trials = _effective(sums)
    bounds = exact_bounds if exact else wilson_bounds
    with np.errstate(all="ignore"):
        start = np.maximum(rate, -offset / scale) if exact else rate
        lower, upper = (
            bounds(part * trials, trials, confidence=confidence)[end] for part, end in ((rate, 1), (start, 2))
        )
        below, above = (
            np.sqrt(np.nansum((scale * part) ** 2, axis=-1)) for part in (rate - lower, upper - start)
        )
        point = np.nansum(offset + scale * rate, axis=-1) / total
        ends = (point, point - below / total, (np.maximum(point, 0.0) if exact else point) + above / total)
        point, lower, upper = (np.clip(part, least, 1.0) for part in ends)
    return point, lower, upper


def effective_trials(sums: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Rate Z in [0, 1], trials M and chance c that moments by part are worth: the mean is (Z − c)/(1 − c).

    Z·M successes in M independent trials of one rate say as much about the mean over the parts: Beta(Z·M + ½,
    M − Z·M + ½) varies as the mean over them does if each has such a posterior. NaN without weights.
    """
    total, offset, scale, rate, trials = _effective(sums)
    with np.errstate(all="ignore"):
        whole = np.nansum(scale, axis=-1) + 0.0 * total
        share = scale / whole[..., np.newaxis]
        mean = np.minimum(np.nansum(share * rate, axis=-1), 1.0)  # shares may add up to more by rounding
        variance = np.nansum(share**2 * _posterior_variance(rate, trials), axis=-1)
        low, high = np.zeros_like(variance), 0.25 / variance
        for _ in range(_HALVINGS):
            number = np.where((scale > 0).sum(axis=-1) > 1, (low + high) / 2.0, np.nansum(trials, axis=-1))
            wide = _posterior_variance(mean, number) > variance
            low, high = np.where(wide, number, low), np.where(wide, high, number)
        return mean, number, -np.nansum(offset, axis=-1) / whole


def z_apart(sums: ArrayLike, border: float) -> float:
    """The z up to which Wilson's interval of `combine` leaves a border out, from moments (part, moment) of one mean.

    So a p value made of it is below 1 − level exactly where the interval of that level does not hold the border; NaN
    without weights.
    """
    total, offset, scale, rate, trials = _effective(sums)
    there = scale > 0
    scale, rate, trials = scale[there], rate[there], trials[there]
    distance = (offset.sum() + (scale * rate).sum()) / total - border
    side, low, high = rate if distance > 0 else 1.0 - rate, 0.0, 2.0 * float(np.sqrt(trials.sum()))
    for _ in range(4):
        z = np.linspace(low, high, 1024)[:, np.newaxis]
        reach = (z**2 * (2.0 * side - 1.0) + z * np.sqrt(z**2 + 4.0 * trials * side * (1.0 - side))) / (
            trials + z**2
        )
        step = int(np.searchsorted(np.sqrt(((scale * reach / 2.0) ** 2).sum(axis=-1)), abs(distance) * total))
        low, high = float(z[max(step - 1, 0), 0]), float(z[min(step, 1023), 0])
    return high + 0.0 * float(total)


def _posterior_variance(rate: Floats, trials: Floats) -> Floats:
    """Of Beta(Z·M + ½, M − Z·M + ½)."""
    right = rate * trials + 0.5
    return right * (trials + 1.0 - right) / (trials + 1.0) ** 2 / (trials + 2.0)


def _effective(sums: ArrayLike) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Summed weight (...), and offset, scale, rate Z and effective number of trials M of parts (..., part)."""
    _, weight, offset, scale, mean, variance, size, single = np.moveaxis(np.asarray(sums, float), -1, 0)
    total = weight.sum(axis=-1)
    with np.errstate(all="ignore"):
        rate = np.clip(mean / scale, 0.0, 1.0)
        spread = rate * (1.0 - rate)
        q = size / scale**2
        error = (variance + single * spread) / scale**2
        trials = (spread + error + q) / (error + q**2)
    return np.where(total > 0, total, np.nan), offset, scale, rate, trials
