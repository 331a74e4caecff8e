"""Two groups of run means -> Welch's t, effect sizes and t intervals with the tables of omk 0.54."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from stages.analyze.verdict.omk054.rounding import to_fixed

_NORMAL = {0.05: 1.96, 0.01: 2.576, 0.001: 3.291}
_LEVELS = ((0.001, "<0.001"), (0.01, "<0.01"), (0.05, "<0.05"))


def critical(df: float, alpha: float = 0.05) -> float:
    """Two-sided critical t with three decimals, as printed tables have it; the normal one above 30 degrees."""
    if df > 30:
        return _NORMAL[alpha]
    return to_fixed(float(stdtrit(max(math.floor(df), 1), 1 - alpha / 2)), 3)


@dataclass(frozen=True)
class MeanInterval:
    """Mean of a few runs with a 95 % t interval, four decimals."""

    mean: float
    low: float
    high: float
    sd: float


@dataclass(frozen=True)
class Welch:
    """Welch's t test at 5 %."""

    t: float
    df: int
    significant: bool

    @property
    def bucket(self) -> str:
        """The p value as a range."""
        return p_bucket(self.t, self.df)


@dataclass(frozen=True)
class Effect:
    """Standardised difference of two groups."""

    cohens_d: float
    hedges_g: float
    primary: Literal["d", "g", "none"]
    """g for fewer than 20 observations in all."""
    magnitude: str
    pooled_sd: float


NO_EFFECT = Effect(0.0, 0.0, "none", "none", 0.0)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample variance (0 for one observation)."""
    if len(values) == 0:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    squares = float(np.cumsum([(value - mean) ** 2 for value in values])[-1])
    return mean, squares / (len(values) - 1) if len(values) > 1 else 0.0


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Mean ± t · s / √n; a single value is its own interval."""
    mean, variance = _moments(values)
    sd = math.sqrt(variance)
    if len(values) < 2:
        return MeanInterval(mean, mean, mean, sd)
    margin = critical(len(values) - 1) * (sd / math.sqrt(len(values)))
    return MeanInterval(*(to_fixed(value, 4) for value in (mean, mean - margin, mean + margin, sd)))


def welch(a: Sequence[float], b: Sequence[float]) -> Welch:
    """Welch's test of a − b; without any variance different constants count as significant."""
    if len(a) < 2 or len(b) < 2:
        return Welch(0.0, 0, False)
    (mean_a, variance_a), (mean_b, variance_b) = _moments(a), _moments(b)
    part_a, part_b = variance_a / len(a), variance_b / len(b)
    error = math.sqrt(part_a + part_b)
    if error == 0:
        return Welch(0.0, len(a) + len(b) - 2, mean_a != mean_b)
    t = (mean_a - mean_b) / error
    spread = part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1)
    df = max(1, math.floor((part_a + part_b) ** 2 / spread))
    return Welch(to_fixed(t, 4), df, abs(t) > critical(df))


def p_bucket(t: float, df: float) -> str:
    """Range of the two-sided p value.

    Examples
    --------
    >>> p_bucket(2.0, 30), p_bucket(1.96, 31)
    ('≥0.05', '<0.05')
    """
    if not math.isfinite(t) or df <= 0:
        return "≥0.05"
    return next((text for alpha, text in _LEVELS if abs(t) >= critical(df, alpha)), "≥0.05")


def effect(a: Sequence[float], b: Sequence[float]) -> Effect:
    """Cohen's d and Hedges' g of a − b."""
    if len(a) < 2 or len(b) < 2:
        return NO_EFFECT
    (mean_a, variance_a), (mean_b, variance_b) = _moments(a), _moments(b)
    total = len(a) + len(b)
    pooled = math.sqrt(((len(a) - 1) * variance_a + (len(b) - 1) * variance_b) / (total - 2))
    if pooled == 0:
        return NO_EFFECT
    d = (mean_a - mean_b) / pooled
    g = (1 - 3 / (4 * total - 9)) * d
    primary: Literal["d", "g"] = "g" if total < 20 else "d"
    size = abs(g if primary == "g" else d)
    names = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))
    magnitude = next((name for bound, name in names if size < bound), "large")
    return Effect(to_fixed(d, 4), to_fixed(g, 4), primary, magnitude, to_fixed(pooled, 4))
