"""Whether a paired difference is shown to keep a margin, is shown to break it, or neither; pure functions.

The difference d is treatment − control, in shares of 1; it is known as well as from `worth` independent questions (see
`evalcube.stages.analyze.formulas.compare.paired.paired_test`), so that under a true difference of q the score
(d − q)·√(worth/(1 − q²)) is standard normal. With the margin m three claims can be made::

    noninferior   d > −m          superior   d > m          equivalent   −m < d < m

A claim is *shown* at level α by a one-sided test of its border, of both borders for equivalence, which is the same as
the interval of level 1 − 2α lying inside. It is *refuted* where the interval lies outside.

References
----------
D. J. Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach for assessing the
equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680.
https://doi.org/10.1007/BF01068419
T. Tango (1998), Equivalence test and confidence interval for the difference in proportions for the paired-sample
design, Statistics in Medicine 17, 891-908: the score test of a paired difference against a margin.
https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

LEVEL = 0.025
"""One-sided level: a claim is shown where the 95% interval lies inside its margin."""
POWER = 0.8


def borders(claim: str, margin: float) -> tuple[float, float]:
    """The differences between which a claim holds; an infinite one is no border.

    Examples
    --------
    >>> borders("noninferior", 0.01), borders("equivalent", 0.01), borders("superior", 0.0)
    ((-0.01, inf), (-0.01, 0.01), (0.0, inf))
    """
    return (margin if claim == "superior" else -margin, margin if claim == "equivalent" else math.inf)


def border_score(difference: float, worth: float, border: float) -> float:
    """By how many standard errors a difference lies above a border; infinitely many above −∞, or below ∞."""
    if abs(border) >= 1.0:
        return -math.copysign(math.inf, border)
    return (difference - border) * math.sqrt(worth / (1.0 - border**2))


def inside_score(difference: float, worth: float, claim: str, margin: float) -> float:
    """By how many standard errors a difference lies inside a claim's borders: the claim is shown where it is large.

    Parameters
    ----------
    difference
        Treatment − control, from −1 to 1.
    worth
        Independent questions that it is worth.
    claim
        "noninferior", "equivalent" or "superior".
    margin
        From 0 to 1.

    Examples
    --------
    >>> round(inside_score(0.0, 40_000.0, "noninferior", 0.01), 3)
    2.0
    """
    low, high = borders(claim, margin)
    return min(border_score(difference, worth, low), -border_score(difference, worth, high))


def inside(lower: float, upper: float, claim: str, margin: float) -> bool:
    """Whether an interval lies inside the borders of a claim."""
    low, high = borders(claim, margin)
    return low < lower and upper < high


def claim_scores(seen: Sequence[tuple[float, float]], claim: str, margin: float) -> tuple[float, float]:
    """The lowest and the highest `inside_score` of (difference, worth) as it is and as it might be.

    What might be lies anywhere between: where that reaches from one side of the borders to the other, it may be inside.

    Examples
    --------
    >>> [round(score, 2) for score in claim_scores([(0.0, 4e4), (-0.02, 4e4)], "noninferior", 0.01)]
    [-2.0, 2.0]
    >>> claim_scores([(-0.1, 4e4), (0.1, 4e4)], "equivalent", 0.01)[1]
    inf
    """
    scores = [inside_score(*evidence, claim, margin) for evidence in seen]
    low, high = borders(claim, margin)
    through = min(seen)[0] < low and max(seen)[0] > high
    return min(scores), math.inf if through else max(scores)


def tail(score: float) -> float:
    """One-sided p value of a score: small where it is large."""
    return math.erfc(score / math.sqrt(2.0)) / 2.0


def enough_worth(difference: float, claim: str, margin: float) -> float:
    """Worth at which a claim is shown with `POWER` if the true difference is this; infinite where it does not hold.

    Examples
    --------
    >>> round(enough_worth(0.0, "noninferior", 0.01)), enough_worth(-0.02, "noninferior", 0.01)
    (78489, inf)
    """
    low, high = borders(claim, margin)
    both = math.isfinite(high)
    room = min(difference - low, high - difference)
    if room <= 0.0:
        return math.inf
    missed = (1.0 - POWER) / (2.0 if both and math.isclose(difference - low, high - difference) else 1.0)
    return (1.0 - difference**2) * (NormalDist().inv_cdf(LEVEL) + NormalDist().inv_cdf(missed)) ** 2 / room**2
