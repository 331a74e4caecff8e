"""A number -> the same number with few decimals, for people to read; nothing here is used inside a formula."""

from __future__ import annotations

import math

from stages.rounding import half_away


def fixed(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """`value` as text with exactly `digits` decimals; "missing" for NaN.

    Examples
    --------
    >>> fixed(4.0), fixed(0.5, sign=True), fixed(float("nan"))
    ('4.00', '+0.50', 'missing')
    """
    if math.isnan(value):
        return "missing"
    return f"{half_away(value, digits):{'+' if sign else ''}.{digits}f}"
