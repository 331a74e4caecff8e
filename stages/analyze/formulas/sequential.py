"""Bounds of a success rate that hold at every moment at once, whatever decides when sampling stops.

An interval for a fixed number of trials is wrong once somebody looks, and goes on while it is too wide. These
bounds cover the truth at all times together with the probability asked for, so that any stopping rule is
allowed. Both are functions of the counters of one moment; sums over chunks serve as well as running counts.

``betabinomial``: the likelihood ratio of a Beta(½, ½) mixture to the rate q is a non-negative martingale under q::

    M(q) = B(s + ½, n − s + ½)/B(½, ½) / (q^s (1 − q)^(n−s)),   bounds = {q : M(q) < 1/α}   (Ville)

It needs trials of one success rate: those of one cell. ``hoeffding``: the normal mixture for values in [0, 1]
whose means may differ from trial to trial; the bounds hold for the mean of the rates of the trials sampled, as
for counters pooled over cells, and are wider.

References
----------
H. Robbins (1970), Statistical methods related to the law of the iterated logarithm, Annals of Mathematical
Statistics 41, 1397-1409. https://doi.org/10.1214/aoms/1177696786
S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
sequences, Annals of Statistics 49, 1055-1080. https://doi.org/10.1214/20-AOS1991
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, xlog1py, xlogy

from evalcube.stages.analyze.formulas.arguments import confidence_level, fitting, one_of
from evalcube.stages.analyze.formulas.estimators import Bounds
from evalcube.stages.analyze.formulas.intervals import Floats

METHODS = ("betabinomial", "hoeffding")

TUNED = 64.0
"""Trials at which the bounds of ``hoeffding`` are near their tightest."""

_STEPS = 60
"""Halvings of a bracket inside [0, 1]: to the last bit."""


def confidence_sequence(
    successes: ArrayLike,
    trials: ArrayLike,
    guesses: ArrayLike = 0.0,
    *,
    confidence: float = 0.95,
    method: str = "betabinomial",
) -> Bounds:
    """Success rate with lower and upper bounds that hold at every number of trials together, elementwise.

    Parameters
    ----------
    successes
        s, any shape.
    trials
        m; everything broadcasts.
    guesses
        g, summed guess chances of these trials, known beforehand. The bounds of the raw rate q are carried
        over to the guess-corrected (q − c)/(1 − c), c = g/m, and clipped to [0, 1]. So give the raw
        `successes`, not s − g: a guessed success is as random as any.
    confidence
        Level in (0, 1) at which all bounds hold together.
    method
        "betabinomial" or "hoeffding", see above.

    Returns
    -------
    point, lower, upper
        NaN without trials and where guessing leaves nothing to measure.

    Raises
    ------
    ValueError
        If an argument is out of range or successes or guesses exceed the trials.

    References
    ----------
    H. Robbins (1970), https://doi.org/10.1214/aoms/1177696786, and S. R. Howard et al. (2021),
    https://doi.org/10.1214/20-AOS1991; the formulas are in the module.

    Examples
    --------
    >>> [round(float(value), 3) for value in confidence_sequence(96, 128)]
    [0.75, 0.609, 0.862]
    >>> [round(float(value), 3) for value in confidence_sequence(96, 128, 64)]
    [0.5, 0.219, 0.724]
    """
    one_of(method, "method", METHODS)
    confidence_level(confidence)
    s, m, g = np.broadcast_arrays(*fitting(successes=successes, trials=trials, guesses=guesses))
    if np.any((s < 0) | (s > m) | (g < 0) | (g > m * (1.0 + 1e-9))):
        raise ValueError("`successes` and `guesses` must lie between 0 and `trials`; give summed counts")
    m = np.where(m > 0, m, np.nan)
    with np.errstate(all="ignore"):
        bounds = _betabinomial if method == "betabinomial" else _hoeffding
        lower, upper = bounds(s, m, -np.log1p(-confidence))
        chance = g / m
        room = np.where(chance < 1.0, 1.0 - chance, np.nan)
        point, lower, upper = (np.clip((part - chance) / room, 0.0, 1.0) for part in (s / m, lower, upper))
    return point, lower, upper


def _betabinomial(s: Floats, m: Floats, threshold: float) -> tuple[Floats, Floats]:
    """The two solutions of log M(q) = log 1/α by bisection; log M is convex in q, least at s/m."""
    mode = s / m
    mixture = betaln(s + 0.5, m - s + 0.5) - betaln(0.5, 0.5)

    def outside(q: Floats) -> Floats:
        return np.asarray(mixture - xlogy(s, q) - xlog1py(m - s, -q) >= threshold)

    def solve(far: Floats, near: Floats) -> Floats:
        for _ in range(_STEPS):
            middle = (far + near) / 2.0
            out = outside(middle)
            far, near = np.where(out, middle, far), np.where(out, near, middle)
        return far

    lower = np.where(s == 0, 0.0, solve(np.zeros_like(mode), mode))
    upper = np.where(s == m, 1.0, solve(np.ones_like(mode), mode))
    undefined = np.isnan(mode)
    return np.where(undefined, np.nan, lower), np.where(undefined, np.nan, upper)


def _hoeffding(s: Floats, m: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Robbins' normal mixture; a value in [0, 1] is sub-Gaussian with variance ¼."""
    rho = TUNED / 4.0
    variance = m / 4.0
    radius = np.sqrt((variance + rho) * (2.0 * threshold + np.log1p(variance / rho))) / m
    return np.clip(s / m - radius, 0.0, 1.0), np.clip(s / m + radius, 0.0, 1.0)
