"""Bounds and tests that hold at every moment at once, whatever decides when sampling stops, or at a few planned looks.

An interval for a fixed number of trials is wrong once somebody looks, and goes on while it is too wide. These
bounds cover the truth at all times together with the probability asked for, so that any stopping rule is
allowed. Both are functions of the counters of one moment; sums over chunks serve as well as running counts.

``betabinomial``: the likelihood ratio of a Beta(½, ½) mixture to the rate q is a non-negative martingale under q::

    M(q) = B(s + ½, n − s + ½)/B(½, ½) / (q^s (1 − q)^(n−s)),   bounds = {q : M(q) < 1/α}   (Ville)

It needs trials of one success rate: those of one cell. ``hoeffding``: the normal mixture for values in [0, 1]
whose means may differ from trial to trial; the bounds hold for the mean of the rates of the trials sampled, as
for counters pooled over cells, and are wider.

An **e-value** is what bets against a hypothesis have made of 1, so that its chance to reach 1/α at any look, ever, is
at most α under it. Those of paired differences d, for one hypothesis each, bet on both sides and at all odds together::

    mean:       e = ∫ Π (1 + t a d) dp,  p = (1 + t)/2 ~ Beta(½, ½),  a the weight over the largest weight
    symmetry:   e = ∫ Π exp(λd − λ²d²/2) dλ,  λ ~ N(0, 1):  exp(S²/(2 + 2V))/√(1 + V),  S = Σ d,  V = Σ d²

Of b and c discordant pairs that weigh the same, the first is 2^(b + c) B(b + ½, c + ½)/B(½, ½).

A look at the fraction t of all questions may spend what the spending function of O'Brien and Fleming's kind has given
out by then, 2(1 − Φ(z/√t)) with z the quantile of half the one-sided level: next to nothing early, and nearly the whole
level at the end. Scores of looks are those of a Brownian motion, B(t) = Z√t, so that the chance to cross at a look and
not before is a recursion of one-dimensional integrals, taken here by the trapezoidal rule.

References
----------
H. Robbins (1970), Statistical methods related to the law of the iterated logarithm, Annals of Mathematical
Statistics 41, 1397-1409. https://doi.org/10.1214/aoms/1177696786
S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
sequences, Annals of Statistics 49, 1055-1080. https://doi.org/10.1214/20-AOS1991
I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting, Journal of the Royal
Statistical Society B 86, 1-27. https://doi.org/10.1093/jrsssb/qkad009
V. H. de la Peña (1999), A general class of exponential inequalities for martingales and ratios, Annals of Probability
27, 537-564: sums of symmetric variables. https://doi.org/10.1214/aop/1022677258
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
import scipy
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import confidence_level, fitting, one_of, reals
from evalcube.stages.analyze.formulas.estimators import Bounds
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

METHODS = ("betabinomial", "hoeffding")

TUNED = 64.0
"""Trials at which the bounds of ``hoeffding`` are near their tightest."""

LARGEST_E = 1e300
"""e-values above it are given as this."""

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
    """Success rate with bounds that hold at all numbers of trials simultaneously.

    Parameters
    ----------
    successes
        Number s of right answers, any shape.
    trials
        Number m of trials; must broadcast with `successes`.
    guesses
        g, summed guess chances of these trials, known beforehand. The bounds of the raw rate q are carried
        over to the guess-corrected (q − c)/(1 − c), c = g/m, and clipped to [0, 1]. So give the raw
        `successes`, not s − g: a guessed success is as random as any.
    confidence
        Level, between 0 and 1, at which the bounds of all numbers of trials hold together.
    method
        "betabinomial": for trials of one success rate, as in one cell. "hoeffding": for trials with different rates, as
        in counts of several cells; wider.

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
        raise ArgumentError("`successes` and `guesses` must lie between 0 and `trials`; give summed counts")
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
    mixture = scipy.special.betaln(s + 0.5, m - s + 0.5) - scipy.special.betaln(0.5, 0.5)

    def outside(q: Floats) -> Floats:
        return np.asarray(mixture - scipy.special.xlogy(s, q) - scipy.special.xlog1py(m - s, -q) >= threshold)

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


def mean_e_value(differences: ArrayLike, weights: ArrayLike = 1.0) -> float:
    """How much speaks against "the weighted mean of these paired differences is 0", however often one looks.

    Parameters
    ----------
    differences
        In [−1, 1], one for each question: first − second, or the mean of that over a question's repeats.
    weights
        Non-negative weights of the questions; only their ratios count. Where they are those of a design, and all
        parts grow alike between two looks, the value holds at all looks together; else at each look by itself.

    Returns
    -------
    The e-value, from 0 to `LARGEST_E`; 1 says nothing. It does not depend on the order of the questions.

    Raises
    ------
    ValueError
        If a difference is outside [−1, 1], a weight is negative or not finite, or shapes do not fit.

    References
    ----------
    I. Waudby-Smith, A. Ramdas (2024), https://doi.org/10.1093/jrsssb/qkad009, with one bet for all questions; as
    1 + x ≤ exp(x), parts whose differences cancel out win nothing.

    Examples
    --------
    >>> round(mean_e_value([1] * 13 + [-1] * 7), 3), round(mean_e_value([1] * 26 + [-1] * 14), 3)
    (0.439, 0.78)
    """
    d, w = np.broadcast_arrays(reals(differences, "differences"), reals(weights, "weights"))
    if not np.all(np.abs(d) <= 1.0):
        raise ArgumentError("`differences` must lie between -1 and 1; divide larger ones by their scale")
    if not np.all((w >= 0.0) & (w < np.inf)):
        raise ArgumentError("`weights` must not be negative, and finite")
    bets, counts = np.unique((d * (w / max(w.max(initial=0.0), 1e-300))).round(12), return_counts=True)
    # Nodes of Beta(½, ½), equally weighted: so many that the peak of so many bets is smooth between them.
    nodes = 64 + 4 * int(np.ceil(np.sqrt(counts[bets != 0.0].sum())))
    odds = np.cos((np.arange(nodes) + 0.5) * np.pi / nodes)
    return _exp_capped(np.logaddexp.reduce(np.log1p(odds[:, np.newaxis] * bets) @ counts) - np.log(nodes))


def sign_e_value(differences: ArrayLike) -> float:
    """How much speaks against "each paired difference could as well have the other sign", however often one looks.

    Parameters
    ----------
    differences
        One for each unit, on a scale on which about 0.1 to 2 is of interest, such as points of 1 to 5.

    Returns
    -------
    The e-value, from 0 to `LARGEST_E`; 1 says nothing. It does not depend on the order of the units.

    Raises
    ------
    ValueError
        If a difference is no number.

    References
    ----------
    V. H. de la Peña (1999), https://doi.org/10.1214/aop/1022677258, mixed as by H. Robbins (1970).

    Examples
    --------
    >>> round(sign_e_value([0.5, -0.4, 0.1, 0.7] * 2), 2), round(sign_e_value([0.5, -0.4, 0.1, 0.7] * 12), 2)
    (1.06, 38.61)
    """
    d = reals(differences, "differences")
    room = 1.0 + float(d @ d)
    return _exp_capped(float(d.sum()) ** 2 / (2.0 * room) - np.log(room) / 2.0)


def _exp_capped(log: float) -> float:
    return float(np.exp(log)) if log < np.log(LARGEST_E) else LARGEST_E


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
    return float(2.0 * scipy.special.ndtr(scipy.special.ndtri(level / 2.0) / math.sqrt(min(fraction, 1.0))))


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
    >>> [round(float(-scipy.special.ndtri(one)), 3) for one in look_levels((0.2, 0.4, 0.6, 0.8, 1.0), 0.025)]
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    steps = np.diff((0.0, *fractions))
    if not fractions or not (steps > 0.0).all() or fractions[-1] > 1.0 or not 0.0 < level < 0.5:
        raise ArgumentError(
            "`fractions` must rise from above 0 to at most 1, and `level` lie between 0 and 0.5"
        )
    # Paths that have not crossed: where they are, and with which mass. They begin at 0.
    path, mass, before, levels = np.zeros(1), np.ones(1), 0.0, []
    for fraction, step in zip(fractions, steps.tolist(), strict=True):
        now = spent(fraction, level)
        low, high = -_FAR, _FAR
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            steps = (path - middle * math.sqrt(fraction)) / math.sqrt(step)
            crossed = float(mass @ scipy.special.ndtr(steps))
            low, high = (middle, high) if crossed > now - before else (low, middle)
        levels.append(float(scipy.special.ndtr(-high)))
        new = np.linspace(-_FAR, high, _NODES) * math.sqrt(fraction)
        weights = np.full(_NODES, new[1] - new[0])
        weights[[0, -1]] /= 2.0
        density = np.exp(-((new[:, np.newaxis] - path) ** 2) / (2.0 * step)) / math.sqrt(2.0 * math.pi * step)
        path, mass, before = new, weights * (density @ mass), now
    return tuple(levels)


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
    return float(scipy.special.ndtr(ahead / math.sqrt(1.0 - fraction)))
