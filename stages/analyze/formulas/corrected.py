"""Correct what a judge says of many answers by what people say of some of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.clustering import cluster_units
from evalcube.stages.analyze.formulas.intervals import Floats, quantile, wilson_bounds

LEAST_SCORES = 50
"""Scores by people below which no mean is corrected: its interval rests on how much they differ from the judge's."""
LEAST_PASS_OR_FAIL = 100
"""The same where people say right or wrong: a judge's errors are few, and two rates rest on them."""
_OF_STRATUM = 5
"""Labels of a stratum, at least; one with fewer is joined to the next."""

_SMALLEST = 1.0
"""Points of the scale from 1 to 5."""
_PRIOR = 10.0
"""Labels with the errors of all strata, as which those of none of its own count where the next ones are chosen."""

_Strata = NDArray[np.int64]


@dataclass(frozen=True)
class Corrected:
    """A mean that people's labels have corrected."""

    estimate: float
    influence: Floats
    """How far each unit moves it, shape (unit,); 0 of units that do not count."""
    unseen: float
    """Variance for errors of the judge that so few labels may not show."""
    labels: int
    strata: int

    def error(self, clusters: NDArray[np.int64] | None = None) -> tuple[float, int]:
        """Standard error and degrees of freedom; units that share a cluster are one draw."""
        parts = self.influence
        if clusters is not None:
            codes = np.unique(cluster_units(clusters), return_inverse=True)[1]
            parts = np.bincount(codes, parts).astype(float)
        freedom = max(min(self.labels - self.strata, int((parts != 0).sum()) - 1), 1)
        return math.sqrt(float((parts**2).sum()) + self.unseen), freedom

    def interval(self, alpha: float, clusters: NDArray[np.int64] | None = None) -> tuple[float, float]:
        """Interval of level 1 − alpha, by Student's t."""
        error, freedom = self.error(clusters)
        reach = float(scipy.special.stdtrit(freedom, 1.0 - alpha / 2.0)) * error
        return self.estimate - reach, self.estimate + reach

    def p_value(self, clusters: NDArray[np.int64] | None = None) -> float:
        """Two-sided p value of the mean being 0."""
        error, freedom = self.error(clusters)
        return 2.0 * float(scipy.special.stdtr(freedom, -abs(self.estimate) / error))

    def minus(self, other: Corrected) -> Corrected:
        """The difference of two means over the same units."""
        return Corrected(
            self.estimate - other.estimate,
            self.influence - other.influence,
            self.unseen + other.unseen,
            min(self.labels, other.labels),
            max(self.strata, other.strata),
        )


def corrected_mean(judged: Floats, truth: Floats, strata: Floats, shares: Floats) -> Corrected:
    """Weighted mean of what people would say, from what a judge says of all units and people of some.

    Prediction-powered inference with a tuned weight of the judge (PPI++), stratified by what the judge says: people
    may look more closely where more is to be learnt, if they draw at random among equal judgements.

    Parameters
    ----------
    judged
        By the judge (unit,); NaN where there is nothing, and such units do not count.
    truth
        By people (unit,), NaN where they said nothing; of at least two units.
    strata
        What the judge said (unit,), by which units are put together; numbers in an order. NaN where nobody judged:
        such a unit is known as it is.
    shares
        Weight of each unit in the mean (unit,).

    Notes
    -----
    No error of the judge among few labels does not mean that there is none: two as large as the largest that was seen,
    or of `_SMALLEST`, one up and one down, are added to the labels of each stratum.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++: efficient prediction-powered inference, arXiv:2311.01453; Fisch,
    Maynez et al. (2024), Stratified prediction-powered inference, arXiv:2406.04291.
    """
    there = ~np.isnan(judged)
    unjudged = there & np.isnan(strata)
    labelled = there & ~unjudged & ~np.isnan(truth)
    weight = np.where(there, shares, 0.0) / shares[there].sum()
    f, y = np.where(there, judged, 0.0), np.where(labelled, truth, 0.0)
    stratum_of = joined_strata(strata, there & ~unjudged, labelled)
    trust, wrong = _trust(f, y, stratum_of, labelled), np.where(labelled, y - f, np.nan)
    residual, correction, error, hidden = y - trust * f, np.zeros_like(f), np.zeros_like(f), 0.0
    for stratum in range(int(stratum_of.max()) + 1):
        inside, rated = stratum_of == stratum, (stratum_of == stratum) & labelled
        size, number = float(weight[inside].sum()), int(rated.sum())
        own = weight[rated] / weight[rated].sum()
        mean = own @ residual[rated]
        correction[inside] = mean
        error[rated] = size * own * (residual[rated] - mean) * math.sqrt(number / max(number - 1, 1))
        hidden += size**2 * unseen(wrong, number)
    value = np.where(unjudged, f, trust * f + correction)
    total = float(weight @ value)
    return Corrected(
        total, weight * (value - total) + error, hidden, int(labelled.sum()), int(stratum_of.max()) + 1
    )


def unseen(errors: Floats, number: int) -> float:
    """Variance of a mean of so many labels for errors of the judge that none of them shows; NaN are no errors."""
    return 2.0 * (max(float(np.nanmax(np.abs(errors))), _SMALLEST) / (number + 2)) ** 2


def _trust(f: Floats, y: Floats, stratum_of: _Strata, labelled: NDArray[np.bool_]) -> float:
    """The weight of the judge by which the variance is least, from 0 to 1; 1 where nothing tells."""
    together = apart = 0.0
    for stratum in range(int(stratum_of.max()) + 1):
        inside, rated = stratum_of == stratum, (stratum_of == stratum) & labelled
        number, size = int(rated.sum()), int(inside.sum())
        if number < 2:
            continue
        (_, shared), (_, own) = np.cov(y[rated], f[rated])
        together += size**2 * shared / number
        apart += size**2 * own * (1.0 / number + 1.0 / size)
    return float(np.clip(together / apart, 0.0, 1.0)) if apart > 0 else 1.0


def joined_strata(strata: Floats, there: NDArray[np.bool_], labelled: NDArray[np.bool_]) -> _Strata:
    """Number of each unit's stratum, from 0 on in order; −1 of units that do not count.

    Neighbours are joined until each has `_OF_STRATUM` labels.
    """
    levels = np.unique(np.round(strata[there]))
    ends, rated = [], 0
    rounded = np.round(strata)
    for level in levels:
        rated += int((labelled & (rounded == level)).sum())
        if rated >= _OF_STRATUM:
            ends.append(level)
            rated = 0
    # What is left over goes to the last one that has enough.
    number = np.searchsorted(np.asarray(ends[:-1]), rounded, side="left") if ends else np.zeros(len(rounded))
    return np.where(there, number, -1).astype(np.int64)


def next_to_label(
    judged: Floats, truth: Floats, strata: Floats, count: int, *, seed: int = 0
) -> NDArray[np.int64]:
    """Places of the units to be labelled next, those first that make the corrected mean most certain.

    The stratum of what the judge says is chosen by the gain, the unit in it at random, so that labels stay a sample.

    Parameters
    ----------
    judged, truth, strata
        As of `corrected_mean`; `truth` may be all NaN.
    count
        How many, at most.
    """
    there = ~np.isnan(judged)
    labelled = there & ~np.isnan(truth)
    rounded = np.round(strata)
    levels = np.unique(rounded[there])
    waiting = [np.flatnonzero(there & ~labelled & (rounded == level)) for level in levels]
    order = np.random.default_rng(seed).random(len(judged))
    waiting = [places[np.argsort(order[places])] for places in waiting]
    error = np.where(labelled, truth - judged, np.nan)
    pooled = float(np.nanvar(error)) if labelled.sum() > 1 else 1.0
    sizes, numbers, spreads = [], [], []
    for level in levels:
        own = error[labelled & (rounded == level)]
        sizes.append(float((there & (rounded == level)).sum()))
        numbers.append(len(own))
        spreads.append(
            (float(((own - own.mean()) ** 2).sum() if len(own) else 0.0) + _PRIOR * pooled)
            / (len(own) + _PRIOR)
        )
    chosen: list[int] = []
    while len(chosen) < count and any(len(places) for places in waiting):
        gain = [
            size**2 * spread * (1.0 / (number + 1) - 1.0 / (number + 2)) if len(places) else -1.0
            for size, spread, number, places in zip(sizes, spreads, numbers, waiting, strict=True)
        ]
        best = int(np.argmax(gain))
        chosen.append(int(waiting[best][0]))
        waiting[best] = waiting[best][1:]
        numbers[best] += 1
    return np.asarray(chosen, dtype=np.int64)


def rogan_gladen(
    passed: float,
    judged: float,
    hits: float,
    positives: float,
    rejected: float,
    negatives: float,
    *,
    confidence: float | None = None,
) -> tuple[float, float, float]:
    """Share of right answers, from a judge's share and its errors as people's labels show them, with its interval.

    Parameters
    ----------
    passed, judged
        Answers that the judge passed, of so many.
    hits, positives
        Of those that people call right, so many the judge passed: the sensitivity.
    rejected, negatives
        Of those that people call wrong, so many the judge failed: the specificity.
    confidence
        Level in (0, 1); None means z = 1.96 exactly.

    Returns
    -------
    point, lower, upper
        In [0, 1]; NaN where the judge tells right from wrong no better than chance.

    References
    ----------
    W. J. Rogan, B. Gladen (1978), Estimating prevalence from the results of a screening test, American Journal of
    Epidemiology 107, 71-76; the interval: Z. Lang, J. Reiczigel (2014), Confidence limits for prevalence of disease
    adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine 113, 13-22.
    """
    z = quantile(confidence)
    plain = _share(
        passed / judged, hits / positives if positives else 1.0, rejected / negatives if negatives else 1.0
    )
    n, at, wrong = judged + z * z, positives + 2.0, negatives + 2.0
    q, sens, spec = (passed + z * z / 2.0) / n, (hits + 1.0) / at, (rejected + 1.0) / wrong
    youden = sens + spec - 1.0
    if not youden > 0:
        return math.nan, math.nan, math.nan
    p = _share(q, sens, spec)
    of_sens, of_spec = sens * (1.0 - sens) / at, spec * (1.0 - spec) / wrong
    shift = 2.0 * z * z * (p * of_sens - (1.0 - p) * of_spec)
    error = math.sqrt(q * (1.0 - q) / n + p * p * of_sens + (1.0 - p) ** 2 * of_spec) / youden
    low, high = (min(max(p + shift + sign * z * error, 0.0), 1.0) for sign in (-1, 1))
    return (plain, min(low, plain), max(high, plain)) if not math.isnan(plain) else (p, low, high)


def worth_of(rate: float, width: float, confidence: float, most: float) -> float:
    """Independent trials that give a rate an interval of this width by Wilson's formula; at most `most`.

    Examples
    --------
    >>> round(worth_of(0.5, 0.19, 0.95, 1000))
    103
    """
    z = quantile(confidence)
    low, high = 0.0, max(most, 1.0)
    for _ in range(60):
        n = (low + high) / 2.0
        _, lower, upper = wilson_bounds(rate * n, n, confidence=confidence)
        low, high = (low, n) if upper - lower < width else (n, high)
    return max(high, z)


def _share(q: float, sens: float, spec: float) -> float:
    youden = sens + spec - 1.0
    return min(max((q + spec - 1.0) / youden, 0.0), 1.0) if youden > 0 else math.nan
