"""At which level to test at each of a few planned looks, so that all of them together keep one level; pure functions.

A look at the fraction t of all questions may spend what the spending function of O'Brien and Fleming's kind has given
out by then, 2(1 − Φ(z/√t)) with z the quantile of half the one-sided level: next to nothing early, and nearly the whole
level at the end. Scores of looks are those of a Brownian motion, B(t) = Z√t, so that the chance to cross at a look and
not before is a recursion of one-dimensional integrals, taken here by the trapezoidal rule.

References
----------
K. K. G. Lan, D. L. DeMets (1983), Discrete sequential boundaries for clinical trials, Biometrika 70, 659-663.
https://doi.org/10.1093/biomet/70.3.659
P. Armitage, C. K. McPherson, B. C. Rowe (1969), Repeated significance tests on accumulating data, Journal of the Royal
Statistical Society A 132, 235-244: the recursion. https://doi.org/10.2307/2343787
C. Jennison, B. W. Turnbull (2000), Group Sequential Methods with Applications to Clinical Trials, Chapman & Hall:
conditional power, chapter 10.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from evalcube.stages.errors import ArgumentError

_NODES = 1201
_FAR = 8.5
"""Standard deviations beyond which nothing is looked for."""
_HALVINGS = 50


def spent(fraction: float, level: float) -> float:
    """Level that may be spent by a fraction of the questions.

    Examples
    --------
    >>> round(spent(0.5, 0.025), 5), round(spent(1.0, 0.025), 3)
    (0.00153, 0.025)
    """
    return float(2.0 * ndtr(ndtri(level / 2.0) / math.sqrt(min(fraction, 1.0))))


@lru_cache(maxsize=64)
def look_levels(fractions: tuple[float, ...], level: float) -> tuple[float, ...]:
    """One-sided level of the test at each look, which together reject a true hypothesis with the chance `level`.

    Parameters
    ----------
    fractions
        Share of all questions at each look, rising, in (0, 1].
    level
        One-sided, in (0, 0.5).

    Returns
    -------
    tuple of float
        As many; the critical score of a look is Φ⁻¹(1 − level).

    Raises
    ------
    ValueError
        If the fractions do not rise, or something is out of range.

    Examples
    --------
    >>> [round(float(-ndtri(one)), 3) for one in look_levels((0.2, 0.4, 0.6, 0.8, 1.0), 0.025)]
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    steps = np.diff((0.0, *fractions))
    if not fractions or not (steps > 0.0).all() or fractions[-1] > 1.0 or not 0.0 < level < 0.5:
        raise ArgumentError(
            "`fractions` must rise from above 0 to at most 1, and `level` lie between 0 and 0.5"
        )
    # Paths that have not crossed: where they are, and with which mass. They begin at 0.
    place, mass, before, found = np.zeros(1), np.ones(1), 0.0, []
    for fraction, step in zip(fractions, steps.tolist(), strict=True):
        now = spent(fraction, level)
        low, high = -_FAR, _FAR
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            crossed = float(mass @ ndtr((place - middle * math.sqrt(fraction)) / math.sqrt(step)))
            low, high = (middle, high) if crossed > now - before else (low, middle)
        found.append(float(ndtr(-high)))
        new = np.linspace(-_FAR, high, _NODES) * math.sqrt(fraction)
        weights = np.full(_NODES, new[1] - new[0])
        weights[[0, -1]] /= 2.0
        density = np.exp(-((new[:, np.newaxis] - place) ** 2) / (2.0 * step)) / math.sqrt(
            2.0 * math.pi * step
        )
        place, mass, before = new, weights * (density @ mass), now
    return tuple(found)


def conditional_power(score: float, fraction: float, drift: float, last: float) -> float:
    """Chance that the last look crosses, given the score of this one.

    Parameters
    ----------
    score
        At this look.
    fraction
        Share of all questions, in (0, 1).
    drift
        Expected score of the last look under the truth that is assumed.
    last
        Critical score of the last look.

    Examples
    --------
    >>> round(conditional_power(1.0, 0.5, 2.8, 2.03), 3)
    0.543
    """
    ahead = score * math.sqrt(fraction) + drift * (1.0 - fraction) - last
    return float(ndtr(ahead / math.sqrt(1.0 - fraction)))
