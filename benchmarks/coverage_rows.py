"""What the rows of `coverage.py` have in common: a row, streams of random numbers, shares with their errors."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

NOMINAL = 0.95

Values: TypeAlias = Any
"""A number or an array."""
Bounds = tuple[Values, Values, Values]


@dataclass(frozen=True)
class Row:
    """One interval in one situation."""

    interval: str
    case: str
    coverage: float
    error: float
    """Standard error of the simulated coverage."""
    note: str = ""

    @property
    def verdict(self) -> str:
        """Nominal within 1 point; below or above if farther by two standard errors as well; else unsure."""
        far = abs(self.coverage - NOMINAL) - 0.01
        if far <= 0.0:
            return "nominal"
        if far <= 2.0 * self.error:
            return "unsure"
        return "below" if self.coverage < NOMINAL else "above"


@dataclass(frozen=True)
class Bench:
    """Repeats and seed of the simulations."""

    repeats: int
    seed: int
    least: int = 20
    """Repeats of what costs more."""

    def rng(self, *key: str) -> np.random.Generator:
        """Stream of one row."""
        return np.random.default_rng([self.seed, *(zlib.crc32(part.encode()) for part in key)])

    def few(self, part: int) -> int:
        """A fraction of the repeats, for what costs more."""
        return max(self.least, self.repeats // part)


def covered(bounds: Bounds, truth: Values) -> tuple[float, float]:
    """Share of intervals that hold the truth, and its standard error; a rounding error is no miss."""
    _, lower, upper = bounds
    inside = np.asarray((lower <= truth + 1e-12) & (truth - 1e-12 <= upper))
    return share(inside)


def share(inside: np.ndarray) -> tuple[float, float]:
    """Share of True, and its standard error."""
    rate = float(inside.mean())
    return rate, float(np.sqrt(max(rate * (1 - rate), 0.25 / inside.size) / inside.size))
