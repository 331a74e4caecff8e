"""Percentile bootstrap intervals, number by number as omk 0.54 computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.omk054.mulberry import SEED, drawn_places
from evalcube.stages.analyze.verdict.rounding import round4

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
    low, high = tails(_resampled_means(np.asarray(values, dtype=float), draws, seed), alpha)
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
    low, high = tails(_resampled_means(steps, draws, seed), alpha)
    estimate = round4(in_order(steps) / len(steps))
    return Bootstrap(round4(low), round4(high), estimate, draws, not low <= 0 <= high)


def in_order(values: ArrayLike) -> float:
    """Sum from left to right: the last digits of omk's numbers depend on it."""
    numbers = np.asarray(values, dtype=float)
    return float(np.cumsum(numbers)[-1]) if numbers.size else 0.0


def _resampled_means(values: Floats, draws: int, seed: int) -> Floats:
    places = drawn_places(len(values), draws, seed=seed)
    return row_sums(values[places]) / len(values)


def row_sums(rows: Floats) -> Floats:
    """Sum of each row from left to right, as `in_order`."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column
    return total


def tails(drawn: Floats, alpha: float) -> tuple[float, float]:
    """Quantiles alpha / 2 and 1 − alpha / 2 of the resampled values."""
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
