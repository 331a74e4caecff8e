"""Student's t intervals of a few runs with the rounded tables of omk 0.54."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from evalcube.stages.analyze.verdict.rounding import half_away

_NORMAL = {0.05: 1.96, 0.01: 2.576, 0.001: 3.291}


def critical(df: float, alpha: float = 0.05) -> float:
    """Two-sided critical t with three decimals, as printed tables have it; the normal one above 30 degrees."""
    if df > 30:
        return _NORMAL[alpha]
    return half_away(float(stdtrit(max(math.floor(df), 1), 1 - alpha / 2)), 3)


@dataclass(frozen=True)
class MeanInterval:
    """Mean of a few runs with a 95 % t interval, four decimals."""

    mean: float
    low: float
    high: float
    sd: float


def moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample variance (0 for one observation)."""
    if len(values) == 0:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    squares = float(np.cumsum([(value - mean) ** 2 for value in values])[-1])
    return mean, squares / (len(values) - 1) if len(values) > 1 else 0.0


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Mean ± t · s / √n; a single value is its own interval."""
    mean, variance = moments(values)
    sd = math.sqrt(variance)
    if len(values) < 2:
        return MeanInterval(mean, mean, mean, sd)
    margin = critical(len(values) - 1) * (sd / math.sqrt(len(values)))
    return MeanInterval(*(half_away(value, 4) for value in (mean, mean - margin, mean + margin, sd)))
