"""Maj@k, the probability of a strict majority of correct samples, and its interval."""

from __future__ import annotations

from stages.analyze.formulas.outcomes.binary import (
    UNIT,
    bank_and_draws,
    mean_tail,
    posterior_and_draws,
    tail_interval,
)
from stages.analyze.formulas.outcomes.inputs import Bounds
from stages.analyze.formulas.outcomes.intervals import Interval


def maj_at_k(R: object, k: int) -> float:
    """Probability that more than half of k samples are correct: ⌊k/2⌋ + 1 or more.

    Arguments and errors as for `pass_at_k`.

    Examples
    --------
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, k // 2 + 1)


def maj_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the probability of a strict majority in k independent draws; as `pass_at_k_ci`.

    Examples
    --------
    >>> [round(x, 4) for x in maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)]
    [0.6845, 0.152, 0.3867, 0.9824]
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return tail_interval(posterior, k, k // 2 + 1, confidence, bounds)
