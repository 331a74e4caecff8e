"""Numbers with few decimals: for people to read, and where a profile rounds between its formulas."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

_PLAIN_BELOW = 1e21
"""From here on numbers are written with an exponent; they have no decimals to round."""


def half_away(value: float, digits: int = 2) -> float:
    """`value` with `digits` decimals, exact ties away from zero; NaN, infinities and huge numbers stay.

    The binary value decides, so 1.005, which is stored a little below, becomes 1.0.

    Examples
    --------
    >>> half_away(1.125), half_away(-1.125), half_away(1.005)
    (1.13, -1.13, 1.0)
    """
    if not math.isfinite(value) or abs(value) >= _PLAIN_BELOW:
        return value
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


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
