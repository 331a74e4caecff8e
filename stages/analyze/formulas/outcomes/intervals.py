"""Normal credible intervals, clipped to the bounds of a metric."""

from __future__ import annotations

import math

from scipy.special import ndtri

from evalcube.stages.analyze.formulas.arguments import confidence_level
from evalcube.stages.analyze.formulas.outcomes import inputs

Interval = tuple[float, float, float, float]


def credible(mean: float, variance: float, confidence: object, bounds: object) -> Interval:
    """(μ, σ, lo, hi) with lo, hi = μ ± z σ, clipped to `bounds` unless None; σ = 0 for an undefined variance.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1) or `bounds` is no pair lo <= hi.
    TypeError
        If one of them is not a number.
    """
    level = confidence_level(confidence)
    limits = inputs.clipping(bounds)
    sigma = math.sqrt(variance) if variance > 0 else 0.0
    return with_sigma(mean, sigma, level, limits)


def with_sigma(mean: float, sigma: float, level: float, limits: tuple[float, float] | None) -> Interval:
    """The same for a checked level and checked limits."""
    margin = float(ndtri((1.0 + level) / 2.0)) * sigma
    low, high = mean - margin, mean + margin
    if limits is not None:
        low, high = (min(max(end, limits[0]), limits[1]) for end in (low, high))
    return mean, sigma, low, high
