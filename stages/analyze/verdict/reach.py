"""Which difference a comparison could have seen, and how many pairs see a stated one.

A difference d of two composites is found in four of five cases where d = (z + 0.84) · s / √n, n being the complete
pairs, s the standard deviation of a pair's difference, and z = 1.96 for one look at 5 %. Whoever looks again pays:
z² = (2 log 1/α + log(1 + V)) (1 + V)/V, V = n s², is what the e-value of
`evalcube.stages.analyze.formulas.sequential.sign_e_value` asks for. As s is an estimate itself, it is taken as much
larger as quantiles of Student's t with n − 1 degrees of freedom are than these (Julious 2004, Sample sizes for clinical
trials with Normal data, Statistics in Medicine 23, 1921-1986).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

SPREAD = 0.52
"""Standard deviation of a question's difference, in points of 4, where nothing is known of it."""
_TAIL = float(ndtri(0.8))
"""Beyond the critical value lies the power of four in five."""


@dataclass(frozen=True)
class Reach:
    """What a comparison could have seen, and how many pairs would see a stated difference."""

    detectable: float
    """Difference that so many pairs find in four of five cases; infinite where none is."""
    difference: float
    """The stated one: the smallest that matters."""
    pairs: int
    """Pairs that find it in four of five cases with one look, planned so from the start."""
    pairs_again: int
    """Pairs in all that find it where this comparison is continued, and looked at again."""


def reach(
    spread: float, pairs: int, difference: float, *, alpha: float, again: bool = False, planned: float = 0.0
) -> Reach:
    """What can be found with a standard deviation that was observed.

    Parameters
    ----------
    spread
        Standard deviation of a pair's difference; where it is 0 or NaN, `SPREAD` is taken.
    pairs
        Complete pairs, at least 0.
    difference
        The stated one, above 0.
    alpha
        Two-sided error of this look, and of all later ones together.
    again
        Whether the comparison is by anytime-valid bounds.
    planned
        Error of one look at as many pairs as were planned; by default `alpha`.

    Examples
    --------
    >>> found = reach(0.52, 24, 0.1, alpha=0.05)
    >>> round(found.detectable, 2), found.pairs, found.pairs_again
    (0.31, 232, 514)
    """
    if not spread > 0:
        spread = SPREAD
    elif pairs > 2:
        normal = _TAIL - float(ndtri(alpha / 2.0))
        spread *= float(stdtrit(pairs - 1, 0.8) - stdtrit(pairs - 1, alpha / 2.0)) / normal
    seen = spread * (_critical(spread, pairs, alpha, again=again) + _TAIL) / math.sqrt(max(pairs, 1))
    return Reach(
        seen if pairs else math.inf,
        difference,
        _needed(spread, difference, planned or alpha, again=False),
        _needed(spread, difference, alpha, again=True),
    )


def _critical(spread: float, pairs: float, alpha: float, *, again: bool) -> float:
    """How many standard errors from 0 a mean must be."""
    if not again:
        return -float(ndtri(alpha / 2.0))
    information = max(pairs, 1) * spread**2
    return math.sqrt((2.0 * math.log(1.0 / alpha) + math.log1p(information)) * (1.0 + 1.0 / information))


def _needed(spread: float, difference: float, alpha: float, *, again: bool) -> int:
    found = 1.0
    for _ in range(50):  # a contraction: the critical value grows with the logarithm of the pairs
        found = (spread * (_critical(spread, found, alpha, again=again) + _TAIL) / difference) ** 2
    return math.ceil(found)
