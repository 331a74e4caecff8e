"""The power band of a number of questions that are planned for a comparison.

How much their differences will vary is not known before anything is measured: as in the simulations in
docs/composite.md, whose shares of significant results it reproduces (20 pairs: +0.2 in 40 %, +0.4 in 93 %; 50 pairs:
+0.2 in 78 %).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalcube.stages.analyze.verdict.reach import SPREAD
from evalcube.stages.analyze.verdict.rules import Thresholds

_FOUND = 1.96 + 0.84


@dataclass(frozen=True)
class Power:
    """What a number of questions is enough for."""

    units: int
    """Questions that each variant is to answer."""
    band: str
    """UNDERPOWERED below the number from which there is a verdict of PROGRESS; else the differences that are found."""
    found: float
    """Difference of composites, in points, that is found in four of five cases."""

    @property
    def text(self) -> str:
        """The same in a sentence."""
        least = Thresholds().min_pairs
        if self.units < least:
            return (
                f"composite: {self.units} questions for each variant, power band UNDERPOWERED: below {least} no gain "
                "can be called PROGRESS"
            )
        return (
            f"composite: {self.units} questions for each variant, power band {self.band}: differences from about "
            f"{self.found:.2g} of 4 points up are found 4 times in 5"
        )


def power(units: int) -> Power:
    """The power band of a number of questions.

    Parameters
    ----------
    units
        Questions that each variant is to answer, at least 1.

    Examples
    --------
    >>> power(12).band, power(24).band, power(80).band, power(400).band
    ('UNDERPOWERED', 'large differences', 'medium differences', 'small differences')
    """
    limits = Thresholds()
    found = _FOUND * SPREAD / math.sqrt(units)
    if units < limits.min_pairs:
        band = "UNDERPOWERED"
    elif found > 2 * limits.trivial + 0.01:
        band = "large differences"
    else:
        band = "medium differences" if found > limits.trivial + 0.005 else "small differences"
    return Power(units, band, found)
