"""Intervals and p values of mean paired differences, one column at a time or all together.

Three procedures:

* **sign flip** (default): under "no effect" the two arms of a unit could be swapped, so every difference could have had
  the other sign. The p value counts the sign patterns that are at least as extreme. The interval is the set of shifts
  that the same test does not reject; for a mean its bounds are order statistics of the means of the flipped
  subsets (Hartigan 1969, Using subsample values as typical values, JASA 64, 1303-1317). Exact at any number of units
  if the differences are symmetric; with n units no level below 2^(1-n) can be reached, and the interval is unbounded.
* **anytime**: bets on the same signs, whose e-value is not yet 1/alpha at the shifts inside; so the bounds hold at all
  looks together, however many units are added in between (`evalcube.stages.analyze.formulas.sequential.sign_e_value`).
* **max-t**: sign flips of all columns together; the largest |t| gives one critical value (Westfall & Young 1993), so
  that the chance of *any* wrong column is at most alpha.

Where units share clusters, these are what is drawn, flipped and counted: each column goes by their weighted means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import one_of
from evalcube.stages.analyze.formulas.clustering import cluster_units, unit_means
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.sequential import sign_e_value
from evalcube.stages.analyze.verdict.resampling import TIE, flips, in_blocks, on_grid, total_flips
from evalcube.stages.errors import ArgumentError

Method = Literal["sign-flip", "anytime"]
Clusters = NDArray[np.int64]

_FARTHEST, _HALVINGS = 8.0, 30
"""No two mean differences of scores from 1 to 5 are farther apart; steps of the search for a bound of "anytime"."""

DRAWS = 10_000
"""B = 1 000 would leave a p value of .05 a Monte Carlo error of .007; this leaves .002 and still takes milliseconds."""


@dataclass(frozen=True)
class Interval:
    """Mean paired difference of one column with its interval and the p value of "no difference"."""

    estimate: float
    """NaN without a single pair."""
    low: float
    high: float
    """Infinite bounds: too few pairs for any interval at this level."""
    p_value: float
    """Two-sided; 1 without a pair."""
    alpha: float
    """The interval has level 1 − alpha."""
    pairs: int
    method: str
    e: float = math.nan
    """What speaks against "no difference" however often one looks; from 1 / alpha on, no look errs more often than
    alpha. NaN where it was not asked for."""
    clusters: int = 0
    """Clusters that the pairs lie in, of which the interval is; 0 where they share none."""

    @property
    def size(self) -> int:
        """Number of clusters, or of pairs without any, that the interval rests on."""
        return self.clusters or self.pairs

    @property
    def noun(self) -> str:
        """The word for these: clusters or pairs."""
        return "clusters" if self.clusters else "pairs"

    @property
    def amount(self) -> str:
        """The same in words."""
        return f"{self.pairs} pair{'s' * (self.pairs != 1)}" + (
            f" in {self.clusters} clusters" if self.clusters else ""
        )

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.positive or self.negative

    @property
    def positive(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    @property
    def negative(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0


def paired_intervals(
    differences: ArrayLike,
    *,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
    method: Method = "sign-flip",
    shares: ArrayLike = 1.0,
    clusters: Clusters | None = None,
) -> list[Interval]:
    """Interval, p value and e-value of the weighted mean of each column, each at level 1 − alpha."""
    values = check_differences(differences, alpha, draws)
    one_of(method, "method", get_args(Method))
    means, weights = units_drawn(values, shares, clusters)
    if method == "sign-flip":
        intervals = sign_flip(means, alpha, draws, seed, weights)
    else:
        intervals = [_anytime(*_present(*both), alpha) for both in zip(means.T, weights.T, strict=True)]
    intervals = [
        replace(interval, e=sign_e_value(np.prod(_present(*both), axis=0)))
        for interval, *both in zip(intervals, means.T, weights.T, strict=True)
    ]
    return in_clusters(intervals, values, clusters)


def units_drawn(values: Floats, shares: ArrayLike, clusters: Clusters | None) -> tuple[Floats, Floats]:
    """Return the units, or the means of their clusters, with their weights: both (row, column)."""
    weights = np.broadcast_to(np.asarray(shares, dtype=float), len(values))[:, np.newaxis]
    weights = np.broadcast_to(weights, values.shape)
    return (values, weights) if clusters is None else unit_means(values, weights, cluster_units(clusters))


def in_clusters(intervals: list[Interval], values: Floats, clusters: Clusters | None) -> list[Interval]:
    """Intervals of the means of clusters, with the pairs (unit, column) that these have; others as they are."""
    if clusters is None:
        return intervals
    pairs = (~np.isnan(values)).sum(axis=0).tolist()
    return [
        replace(row, pairs=number, clusters=row.pairs) for row, number in zip(intervals, pairs, strict=True)
    ]


def weigh(differences: Floats, shares: Floats) -> Floats:
    """Differences (row, column) times shares that are 1 on average over the rows that a column has.

    Their plain mean is the weighted mean; whoever flips signs or takes t of them tests that.
    """
    there = ~np.isnan(differences)
    total = (shares * there).sum(axis=0)
    scale = np.divide(there.sum(axis=0), total, out=np.ones_like(total), where=total > 0)
    return np.asarray(differences * shares * scale)


def _present(column: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Differences that are there, and their shares, 1 on average."""
    there = ~np.isnan(column)
    weights = shares[there]
    return column[there], weights / (weights.mean() if weights.sum() > 0 else 1.0)


def check_differences(differences: ArrayLike, alpha: float, draws: int) -> Floats:
    """The differences as (unit, column) floats; raises ValueError if an argument does not fit."""
    values = np.asarray(differences, dtype=float)
    if values.ndim != 2:
        raise ArgumentError(f"`differences` must be (unit, column), got shape {values.shape}")
    if not 0.0 < alpha < 1.0:
        raise ArgumentError(f"`alpha` must lie inside (0, 1), got {alpha!r}; 0.05 gives 95% intervals")
    if draws < 100:
        raise ArgumentError(f"`draws` must be at least 100, got {draws}; fewer cannot tell 5% from 4%")
    return values


def sign_flip(values: Floats, alpha: float, draws: int, seed: int, shares: Floats) -> list[Interval]:
    """The mean of each column of differences (unit, column), weighted by shares of that shape, without its e-value."""
    units, columns = values.shape
    present = ~np.isnan(values) * shares
    values = values * shares
    if units == 0 or columns == 0:
        return [nothing(alpha, "sign-flip") for _ in range(columns)]
    whole, step = on_grid(values)
    rows = total_flips(units, draws)

    def subset_sums(start: int, stop: int) -> Floats:
        """Sums and sizes of the flipped subsets: array (row, column, 2)."""
        table = flips(units, start, stop, draws=draws, seed=seed)
        return np.stack([table @ whole, table @ present], axis=-1)

    sums = in_blocks(subset_sums, rows)
    tie = TIE * units * np.abs(whole).max(axis=0)
    sums[..., 0] = np.where(np.abs(sums[..., 0]) <= tie, 0.0, sums[..., 0])
    pairs, total, means = (present > 0).sum(axis=0), present.sum(axis=0), whole.sum(axis=0)
    return [
        _invert(
            sums[:, c, 0] * step[c],
            sums[:, c, 1],
            means[c] * step[c] / (total[c] if total[c] > 0 else 1.0),
            int(pairs[c]),
            alpha,
        )
        for c in range(columns)
    ]


def _invert(sums: Floats, sizes: Floats, mean: float, pairs: int, alpha: float) -> Interval:
    """The shifts that the sign-flip test does not reject. An empty subset is the data: as extreme as they are."""
    if pairs == 0:
        return nothing(alpha, "sign-flip")
    filled = sizes > 0
    means = np.sort(sums[filled] / sizes[filled])
    rows, empty = len(sums), len(sums) - len(means)
    below, above = empty + int((means <= 0).sum()), empty + int((means >= 0).sum())
    spare = math.floor(alpha / 2 * rows + 1e-9) - empty
    low, high = (means[spare], means[-1 - spare]) if 0 <= spare < len(means) else (-math.inf, math.inf)
    p_value = min(1.0, 2 * min(below, above) / rows)
    return Interval(mean, float(low), float(high), p_value, alpha, pairs, "sign-flip")


def _anytime(column: Floats, shares: Floats, alpha: float) -> Interval:
    """The shifts at which the e-value has not reached 1/alpha."""
    pairs = len(column)
    if pairs == 0:
        return nothing(alpha, "anytime")
    mean = float((column * shares).sum() / pairs)

    def excludes(shift: float) -> bool:
        return sign_e_value(shares * (column - mean - shift)) >= 1.0 / alpha

    def bound(side: float) -> float:
        near, far = 0.0, side * _FARTHEST
        if not excludes(far):
            return side * math.inf
        for _ in range(_HALVINGS):
            middle = (near + far) / 2.0
            near, far = (near, middle) if excludes(middle) else (middle, far)
        return far

    p_value = min(1.0, 1.0 / sign_e_value(shares * column))
    return Interval(mean, mean + bound(-1.0), mean + bound(1.0), p_value, alpha, pairs, "anytime")


def simultaneous_intervals(
    differences: ArrayLike,
    *,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
    shares: ArrayLike = 1.0,
    clusters: Clusters | None = None,
) -> list[Interval]:
    """Intervals of all columns that hold together at level 1 − alpha, with adjusted p values (max-t).

    Arguments as in `paired_intervals`. An interval is mean ± c · standard error with the same c for all columns; a
    column's interval excludes 0 exactly if its adjusted p value is at most alpha.
    """
    pairwise = check_differences(differences, alpha, draws)
    values = weigh(*units_drawn(pairwise, shares, clusters))
    units, columns = values.shape
    present = (~np.isnan(values)).astype(float)
    pairs = present.sum(axis=0)
    if units == 0 or columns == 0:
        return [nothing(alpha, "max-t") for _ in range(columns)]
    whole, _ = on_grid(values)
    squares = (whole**2).sum(axis=0)

    def largest(start: int, stop: int) -> Floats:
        table = flips(units, start, stop, draws=draws, seed=seed)
        sums = whole.sum(axis=0) - 2.0 * (table @ whole)
        return np.asarray(_t_values(sums, squares, pairs).max(axis=1))

    rows = total_flips(units, draws)
    drawn = np.sort(in_blocks(largest, rows))
    observed = _t_values(whole.sum(axis=0), squares, pairs)
    spare = math.floor(alpha * rows + 1e-9)
    critical = float(drawn[-1 - spare]) * (1 + 2 * TIE) if spare > 0 else math.inf
    extreme = rows - np.searchsorted(drawn, observed * (1 - TIE))
    intervals = [
        _around(column[~np.isnan(column)], critical, min(1.0, float(count / rows)), alpha)
        for column, count in zip(values.T, extreme, strict=True)
    ]
    return in_clusters(intervals, pairwise, clusters)


def _t_values(sums: Floats, squares: Floats, pairs: Floats) -> Floats:
    """|t| of columns from sums of (flipped) differences; flips leave the sum of squares as it is."""
    scale = pairs * squares
    share = np.divide(sums**2, scale, out=np.zeros_like(sums), where=scale > 0)
    remainder = 1.0 - share
    endless = np.broadcast_to(np.where(pairs > 1, np.inf, 0.0), sums.shape).copy()
    return np.asarray(np.sqrt(np.divide((pairs - 1) * share, remainder, out=endless, where=remainder > TIE)))


def _around(column: Floats, critical: float, p_value: float, alpha: float) -> Interval:
    """Mean ± critical standard errors of one column; unbounded where no standard error or level exists."""
    pairs = len(column)
    if pairs == 0:
        return nothing(alpha, "max-t")
    mean = math.fsum(column) / pairs
    if pairs == 1 or math.isinf(critical):
        return Interval(mean, -math.inf, math.inf, p_value, alpha, pairs, "max-t")
    margin = critical * float(column.std(ddof=1)) / math.sqrt(pairs)
    return Interval(mean, mean - margin, mean + margin, p_value, alpha, pairs, "max-t")


def nothing(alpha: float, method: str) -> Interval:
    """The interval of a column without a single pair."""
    return Interval(math.nan, -math.inf, math.inf, 1.0, alpha, 0, method)
