"""How much the length of answers moves a judge, from a second rating under the instruction to ignore it.

Asking the same judge again about the same answers is a paired measurement: what differs is the instruction only. The
mean shift shows whether scores fall when length must not count; its slope on log length shows whether long
answers fall more than short ones, which is the bias proper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.paired import DRAWS, Interval, paired_intervals
from evalcube.stages.analyze.verdict.resampling import in_blocks, indices


@dataclass(frozen=True)
class LengthBias:
    """What changed when the judge was instructed to ignore length."""

    shift: Interval
    """Mean of (neutral − original) reading; below 0 if length had been rewarded on the whole."""
    slope: float
    """Change of the reading per doubling of length, original − neutral; > 0: longer answers had been favoured."""
    slope_low: float
    slope_high: float
    """Percentile bootstrap interval over units."""
    units: int

    @property
    def biased(self) -> bool:
        """Whether the shift or the slope differs from 0."""
        return self.shift.significant or self.slope_low > 0 or self.slope_high < 0


def length_bias(
    original: ArrayLike,
    neutral: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
) -> LengthBias:
    """Paired shift of a judge's readings and its slope on log2 length.

    Parameters
    ----------
    original, neutral
        Readings (unit,) without and with the instruction to ignore length; NaN or <= 0 where the judge failed.
    lengths
        Length of each answer, > 0, in any unit; without it the slope is NaN.
    alpha, draws, seed
        As in `paired_intervals`.

    Raises
    ------
    ValueError
        If a length is not positive.
    """
    first, second = np.asarray(original, dtype=float), np.asarray(neutral, dtype=float)
    valid = (first > 0) & (second > 0)
    change = (second - first)[valid]
    shift = paired_intervals(change[:, np.newaxis], alpha=alpha, draws=draws, seed=seed)[0]
    if lengths is None:
        return LengthBias(shift, math.nan, -math.inf, math.inf, len(change))
    size = np.asarray(lengths, dtype=float)[valid]
    if np.any(~(size > 0)):
        raise ValueError("`lengths` must be positive; leave units without an answer out of both judgements")
    x, y = np.log2(size), -change
    if len(x) < 3 or np.ptp(x) == 0:
        return LengthBias(shift, math.nan, -math.inf, math.inf, len(change))

    def slopes(start: int, stop: int) -> Floats:
        drawn = indices(len(x), start, stop, seed=seed)
        return _slope(x[drawn], y[drawn])

    values = in_blocks(slopes, draws)
    low, high = np.nanquantile(values, (alpha / 2, 1 - alpha / 2))
    slope = float(_slope(x[np.newaxis], y[np.newaxis])[0])
    return LengthBias(shift, slope, float(low), float(high), len(change))


def _slope(x: Floats, y: Floats) -> Floats:
    """Least squares slopes of rows; NaN where x does not vary."""
    dx = x - x.mean(axis=1, keepdims=True)
    square = (dx * dx).sum(axis=1)
    product = (dx * y).sum(axis=1)
    return np.asarray(np.divide(product, square, out=np.full(len(x), np.nan), where=square > 0))
