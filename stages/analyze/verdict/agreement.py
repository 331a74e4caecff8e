"""How well several judges, or a judge and a human, agree on the same units, and how biased one would have to be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.clustering import cluster_units
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import HIGHEST, LOWEST, decimal
from evalcube.stages.analyze.verdict.paired import Clusters
from evalcube.stages.analyze.verdict.resampling import in_blocks, indices


@dataclass(frozen=True)
class Agreement:
    """Agreement among the judges of one arm."""

    pearson: float
    """Mean over pairs of judges; NaN if no pair has two units and two different readings each."""
    mad: float
    """Mean absolute difference, averaged over pairs of judges."""
    pairs: int
    """Pairs of judges."""
    units: int
    """Units on which every judge gave a valid reading."""
    ac2: float = math.nan
    """Gwet's AC2, see `gwet_ac2`; NaN where it was not computed."""


def judge_agreement(readings: ArrayLike) -> Agreement | None:
    """Agreement of the judges of one arm; None if they share fewer than two units."""
    values = np.asarray(readings, dtype=float)
    valid = values > 0
    judges = valid.any(axis=0)
    aligned = values[:, judges][valid[:, judges].all(axis=1)]
    if aligned.shape[1] < 2 or len(aligned) < 2:
        return None
    couples = [(aligned[:, i], aligned[:, j]) for i, j in combinations(range(aligned.shape[1]), 2)]
    correlations = [value for value in (pearson(a, b) for a, b in couples) if not math.isnan(value)]
    return Agreement(
        pearson=math.fsum(correlations) / len(correlations) if correlations else math.nan,
        mad=math.fsum(float(np.abs(a - b).mean()) for a, b in couples) / len(couples),
        pairs=len(couples),
        units=len(aligned),
        ac2=gwet_ac2(np.where(valid, values, np.nan)[:, judges]),
    )


def gwet_ac2(ratings: ArrayLike) -> float:
    """Gwet's AC2 with linear weights: agreement beyond chance that stays high where all ratings are close.

    A correlation says how alike coders *order* units, and is near 0 where all units deserve about the same rating,
    however well coders agree. AC2 says how close their ratings are, measured against coders who would only guess.

    Examples
    --------
    >>> gwet_ac2([[5, 4], [4, 4], [5, 5], [3, 5], [4, 5], [5, 5]]).__round__(4)
    0.7193
    """
    values = np.asarray(ratings, dtype=float)
    rated = ~np.isnan(values)
    coders = rated.sum(axis=1)
    several = coders >= 2
    if not several.any():
        return math.nan
    scale = np.arange(1.0, 6.0)  # all ratings that could be given
    width = scale.max() - scale.min()
    apart = np.abs(values[:, :, np.newaxis] - values[:, np.newaxis, :])
    pairs = (coders * (coders - 1))[several]
    agreed = float((1.0 - np.nansum(apart[several], axis=(1, 2)) / (pairs * width)).mean())
    shares = np.clip(1.0 - np.abs(values[:, :, np.newaxis] - scale), 0.0, 1.0)
    share = (np.nansum(shares, axis=1)[coders > 0] / coders[coders > 0, np.newaxis]).mean(axis=0)
    weights = (1.0 - np.abs(scale[:, np.newaxis] - scale) / width).sum()
    guessed = float(weights * (share * (1.0 - share)).sum() / (len(scale) * (len(scale) - 1)))
    return (agreed - guessed) / (1.0 - guessed)


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    """Product-moment correlation of two series; NaN with fewer than two units or without variance.

    Examples
    --------
    >>> pearson([1, 2, 3, 4], [2, 3, 4, 5]), pearson([3, 3], [1, 2])
    (1.0, nan)
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    dx, dy = x - x.mean(), y - y.mean()
    return float((dx * dy).sum() / math.sqrt((dx * dx).sum() * (dy * dy).sum()))


def krippendorff_alpha(ratings: ArrayLike) -> float:
    """Krippendorff's alpha for interval data: 1 − observed / expected squared difference.

    Examples
    --------
    >>> krippendorff_alpha([[1, 2], [2, 3], [3, 4], [4, 5]]).__round__(6)
    0.708333
    """
    values = np.asarray(ratings, dtype=float)
    rated = ~np.isnan(values)
    values, rated = values[rated.sum(axis=1) >= 2], rated[rated.sum(axis=1) >= 2]
    if len(values) == 0 or np.ptp(values[rated]) == 0:
        return math.nan
    filled = np.where(rated, values - values[rated].mean(), 0.0)
    sizes = rated.sum(axis=1)
    within = 2.0 * (sizes * (filled**2).sum(axis=1) - filled.sum(axis=1) ** 2)
    total = float(sizes.sum())
    among = 2.0 * (total * (filled**2).sum() - filled.sum() ** 2)
    return float(1.0 - (within / (sizes - 1)).sum() / (among / (total - 1)))


def weighted_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Cohen's kappa with quadratic weights, in which the scale cancels; NaN if chance agreement is complete."""
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not len(x) or np.ptp(np.concatenate([x, y])) == 0:
        return math.nan
    # The mean over all pairs of one rating of each, without a table of these.
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(1.0 - ((x - y) ** 2).mean() / expected)


@dataclass(frozen=True)
class GoldAgreement:
    """Agreement of a judge with gold ratings."""

    alpha: float
    low: float
    high: float
    """Percentile bootstrap interval of alpha over units, or their clusters; draws without variance are left out."""
    kappa: float
    pearson: float
    units: int


def gold_agreement(
    gold: ArrayLike, judge: ArrayLike, *, draws: int = 2000, seed: int = 0, clusters: Clusters | None = None
) -> GoldAgreement:
    """Krippendorff's alpha with an interval, weighted kappa and Pearson of gold and judge."""
    both = np.stack([np.asarray(gold, dtype=float), np.asarray(judge, dtype=float)], axis=1)
    there = ~np.isnan(both).any(axis=1)
    both = both[there]
    if len(both) == 0:
        return GoldAgreement(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    units = np.arange(len(both)) if clusters is None else cluster_units(clusters[there])
    names, cluster = np.unique(units, return_inverse=True)

    def drawn_alphas(start: int, stop: int) -> Floats:
        return alphas(both, indices(len(names), start, stop, seed=seed), cluster)

    drawn = in_blocks(drawn_alphas, draws)
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, (0.025, 0.975)) if len(drawn) else (math.nan, math.nan)
    return GoldAgreement(
        krippendorff_alpha(both),
        float(low),
        float(high),
        weighted_kappa(both[:, 0], both[:, 1]),
        pearson(both[:, 0], both[:, 1]),
        len(both),
    )


def alphas(both: Floats, drawn: NDArray[np.int64], cluster: NDArray[np.intp]) -> Floats:
    """`krippendorff_alpha` of two complete coders under each draw of clusters: array (draw,)."""
    centred, low, high = both - both.mean(), np.full(drawn.shape[1], np.inf), np.full(drawn.shape[1], -np.inf)
    apart = (both[:, 0] - both[:, 1]) ** 2
    parts = ((centred**2).sum(axis=1), apart, centred.sum(axis=1), np.ones(len(both)))
    square, apart, total, units = (np.bincount(cluster, part)[drawn].sum(axis=1) for part in parts)
    np.minimum.at(low, cluster, both.min(axis=1))
    np.maximum.at(high, cluster, both.max(axis=1))
    flat, size = high[drawn].max(axis=1) == low[drawn].min(axis=1), 2.0 * units
    expected = 2.0 * (size * square - total**2) / (size * (size - 1))
    return np.asarray(1.0 - np.where(flat, np.nan, apart / units) / np.where(flat, 1.0, expected))


LEAST_RATED = 5
"""Rated units below which an interval, drawn from these few, says nothing."""


@dataclass(frozen=True)
class JudgeBias:
    """By how many points a judge would have to be kinder to the treatment for a gain not to be one."""

    weight: float
    """Of the judge layer in the composites that are compared, a mean over units."""
    unsure: float
    """From so many on the gain is not significant."""
    erased: float
    """So many take all of it."""
    low: float = math.nan
    """Lower end of the interval for how many it is, by what people rated; NaN with few ratings of either variant."""
    high: float = math.nan

    @property
    def is_shown(self) -> bool:
        """Whether people's ratings show that the judge is kinder to the treatment, and may be by enough."""
        return self.low > 0.0 and self.high >= self.unsure

    @property
    def text(self) -> str:
        """The same in a sentence."""
        if self.unsure > HIGHEST - LOWEST:
            return "no bias of the judges towards the treatment can explain this gain"
        limit = (
            f"the gain would lose significance if judges favoured the treatment by {decimal(self.unsure)} points, and "
            f"vanish at {decimal(self.erased)}"
        )
        if math.isnan(self.high):
            return f"{limit}; to measure this bias, let people rate {LEAST_RATED} answers of each variant"
        bounds = f"they favour it by {decimal(self.low, sign=True)} to {decimal(self.high, sign=True)}"
        end = "which excludes it" if self.high < self.unsure else "which does not exclude it"
        return f"{limit}; by people's ratings {bounds}, {end}"
