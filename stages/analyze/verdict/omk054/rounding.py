"""A number -> the same number rounded as JavaScript does, at the places where omk 0.54 rounds."""

from __future__ import annotations

import math

from stages.rounding import half_away


def to_fixed(value: float, digits: int) -> float:
    """`Number(x.toFixed(digits))`: nearest to the exact binary value, ties away from zero."""
    return half_away(value, digits)


def round4(value: float) -> float:
    """`Math.round(x * 1e4) / 1e4`: halves up, also below zero.

    Examples
    --------
    >>> round4(0.00005), round4(-0.00005), round4(0.00015)
    (0.0001, 0.0, 0.0001)
    """
    if not math.isfinite(value):
        return value
    return whole(value * 1e4) / 1e4 + 0.0


def whole(value: float) -> int:
    """`Math.round(x)`: nearest whole number, halves up."""
    below = math.floor(value)
    return below + 1 if value - below >= 0.5 else below
