"""A profile and a number in; the sum and the rounding of that profile out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from stages.rounding import half_away

Profile = Literal["reference", "omk054"]
"""``reference`` keeps full precision and tells unmeasured from failed; ``omk054`` does as oh-my-knowledge 0.54."""


def presented(value: float, profile: Profile, digits: int = 2) -> float:
    """`value` as the profile hands it on: rounded by ``omk054``, untouched otherwise."""
    return half_away(value, digits) if profile == "omk054" else value


def total(values: Iterable[float], profile: Profile) -> float:
    """Sum of `values`: exactly rounded, or from left to right as ``omk054`` adds."""
    if profile == "reference":
        return math.fsum(values)
    result = 0.0
    for value in values:
        result += value
    return result
