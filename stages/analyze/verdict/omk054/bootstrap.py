"""Observations -> percentile bootstrap intervals, number by number as omk 0.54 computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.analyze.formulas.intervals import Floats
from stages.analyze.verdict.omk054.mulberry import SEED, drawn_places
from stages.analyze.verdict.omk054.rounding import round4, to_fixed

ALPHA, DRAWS = 0.05, 1000


@dataclass(frozen=True)
class Bootstrap:
    """A percentile interval, rounded to four decimals."""

    low: float
    high: float
    estimate: float
    draws: int
    """Resamples that were done: 0 where there was nothing to resample."""
    significant: bool = False
    """For differences: 0 lies outside the interval."""


EMPTY = Bootstrap(0.0, 0.0, 0.0, 0)


def mean_interval(
    values: Sequence[float], *, alpha: float = ALPHA, draws: int = DRAWS, seed: int = SEED
) -> Bootstrap:
    """Interval of a mean; one observation is its own interval."""
    if len(values) == 0:
        return EMPTY
    if len(values) == 1:
        return Bootstrap(values[0], values[0], values[0], 0)
    low, high = _tails(_resampled_means(np.asarray(values, dtype=float), draws, seed), alpha)
    return Bootstrap(round4(low), round4(high), round4(in_order(values) / len(values)), draws)


def paired_difference(
    control: Sequence[float],
    treatment: Sequence[float],
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Interval of the mean of treatment − control over pairs, which are resampled together.

    Significance looks at the bounds before they are rounded.
    """
    if len(control) == 0:
        return EMPTY
    steps = np.asarray(treatment, dtype=float) - np.asarray(control, dtype=float)
    low, high = _tails(_resampled_means(steps, draws, seed), alpha)
    estimate = round4(in_order(steps) / len(steps))
    return Bootstrap(round4(low), round4(high), estimate, draws, not low <= 0 <= high)


def unpaired_difference(
    control: Sequence[float],
    treatment: Sequence[float],
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Interval of the difference of two means, each group resampled on its own, control first.

    Significance looks at the rounded bounds.
    """
    if len(control) == 0 or len(treatment) == 0:
        return EMPTY
    groups = [np.asarray(control, dtype=float), np.asarray(treatment, dtype=float)]
    share = len(control) + len(treatment)
    means, offset = [], 0
    for group in groups:
        places = drawn_places(len(group), 0, draws, seed=seed, offset=offset, stride=share)
        means.append(_row_sums(group[places]) / len(group))
        offset += len(group)
    low, high = (round4(bound) for bound in _tails(means[1] - means[0], alpha))
    estimate = in_order(treatment) / len(treatment) - in_order(control) / len(control)
    return Bootstrap(low, high, round4(estimate), draws, not low <= 0 <= high)


def metric_interval(
    values: Sequence[float],
    metric: Callable[[Floats], float],
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Interval of any metric of a sample; resamples on which it is undefined (NaN) are left out."""
    if len(values) == 0:
        return EMPTY
    sample = np.asarray(values, dtype=float)
    drawn = np.array([metric(sample[places]) for places in drawn_places(len(sample), 0, draws, seed=seed)])
    low, high = _tails(drawn[~np.isnan(drawn)], alpha)
    return Bootstrap(round4(low), round4(high), round4(metric(sample)), draws)


def in_order(values: ArrayLike) -> float:
    """Sum from left to right: the last digits of omk's numbers depend on it."""
    numbers = np.asarray(values, dtype=float)
    return float(np.cumsum(numbers)[-1]) if numbers.size else 0.0


def _resampled_means(values: Floats, draws: int, seed: int) -> Floats:
    places = drawn_places(len(values), 0, draws, seed=seed)
    return _row_sums(values[places]) / len(values)


def _row_sums(rows: Floats) -> Floats:
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column
    return total


def _tails(drawn: Floats, alpha: float) -> tuple[float, float]:
    ordered = np.sort(drawn)
    return quantile(ordered, alpha / 2), quantile(ordered, 1 - alpha / 2)


def quantile(ordered: Floats, share: float) -> float:
    """Quantile of sorted values, linear between the two nearest; NaN of none."""
    if len(ordered) == 0:
        return math.nan
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    if low == high:
        return float(ordered[low])
    part = place - low
    return float(ordered[low] * (1 - part) + ordered[high] * part)


def level_label(alpha: float | None) -> str:
    """Level of an interval in words.

    Examples
    --------
    >>> level_label(None), level_label(0.0125), level_label(0.05 / 3)
    ('95%', '98.8%', '98.3%')
    """
    percent = to_fixed((1 - (ALPHA if alpha is None else alpha)) * 100, 1)
    return f"{percent:g}%"
