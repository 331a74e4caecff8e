"""Geom@k, the blend of Pass@k and Pass^k, with its interval, and what any blend x^a y^b needs.

The intervals of blends rest on first-order (delta) propagation of the exact posterior moments of x and y.
"""

from __future__ import annotations

import numpy as np

from evalcube.stages.analyze.formulas.arguments import real
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import hypergeometric
from evalcube.stages.analyze.formulas.outcomes.binary import (
    UNIT,
    bank_and_draws,
    mean_tail,
    posterior_and_draws,
)
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.posterior import Interval, credible
from evalcube.stages.errors import ArgumentError


def geom_at_k(R: object, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> float:
    """Mean over questions of `(Pass@k)^a · (Pass^k)^b`.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    pass_power, unanimous_power
        The powers a and b, any real numbers but not both 0.

    Returns
    -------
    The mean over questions.

    Raises
    ------
    ValueError
        As for `pass_at_k`; if both powers are 0, or a power below 0 meets a question for which its base is 0.
    TypeError
        If a power is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> round(geom_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.647106
    """
    a, b = _powers(pass_power, unanimous_power)
    bank, k = bank_and_draws(R, k)
    some = bank.values(lambda n: hypergeometric.tail(n, k, 1))
    every = bank.values(lambda n: hypergeometric.tail(n, k, k))
    return bank.mean(blend(some, every, a, b))


def geom_ds_at_k(R: object, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> float:
    """`(Pass@k)^a · (Pass^k)^b` of the means over questions.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    pass_power, unanimous_power
        The powers a and b, any real numbers but not both 0.

    Returns
    -------
    The product of the powers of both means.

    Raises
    ------
    ValueError
        As for `pass_at_k`; if both powers are 0, or a power below 0 meets a mean of 0.
    TypeError
        If a power is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> round(geom_ds_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.653835
    """
    a, b = _powers(pass_power, unanimous_power)
    bank, k = bank_and_draws(R, k)
    return blend_one(mean_tail(bank, k, 1), mean_tail(bank, k, k), a, b)


def geom_at_k_ci(
    R: object,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the mean over questions of x^a y^b, x = 1 − (1 − p)^k and y = p^k.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, k >= 1.
    pass_power, unanimous_power
        The powers a and b, any real numbers but not both 0.
    confidence
        Level of the interval, inside (0, 1).
    bounds
        (low, high) that the interval is clipped to; None clips nothing.
    alpha0, beta0
        Beta prior of the success rate of each question, both above 0; 1 and 1 are uniform.

    Returns
    -------
    mu, sigma, low, high
        Posterior mean and standard deviation over the questions given, and μ ± z σ, clipped.

    Raises
    ------
    ValueError
        If R is not such a matrix, a power below 0 meets a base of 0, or another argument is out of its range.
    TypeError
        If a power, `confidence` or a bound is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> [round(x, 4) for x in geom_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.6107, 0.1331, 0.3498, 0.8716]
    """
    a, b = _powers(pass_power, unanimous_power)
    posterior, k = posterior_and_draws(R, k, alpha0, beta0, any_k=True)
    (x, x_var), (y, y_var) = posterior.any_success(k), posterior.all_success(k)
    variance = _propagate((x, y), (a, b), (x_var, y_var, posterior.any_all_covariance(k)))
    return credible(*posterior.average(blend(x, y, a, b), variance), confidence, bounds)


def geom_ds_at_k_ci(
    R: object,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of x^a y^b, x and y being the means over questions of 1 − (1 − p)^k and p^k.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, k >= 1.
    pass_power, unanimous_power
        The powers a and b, any real numbers but not both 0.
    confidence
        Level of the interval, inside (0, 1).
    bounds
        (low, high) that the interval is clipped to; None clips nothing.
    alpha0, beta0
        Beta prior of the success rate of each question, both above 0; 1 and 1 are uniform.

    Returns
    -------
    mu, sigma, low, high
        Posterior mean and standard deviation over the questions given, and μ ± z σ, clipped.

    Raises
    ------
    ValueError
        If R is not such a matrix, a power below 0 meets a base of 0, or another argument is out of its range.
    TypeError
        If a power, `confidence` or a bound is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> [round(x, 4) for x in geom_ds_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.6121, 0.1328, 0.3519, 0.8723]
    """
    powers = _powers(pass_power, unanimous_power)
    posterior, k = posterior_and_draws(R, k, alpha0, beta0, any_k=True)
    x, x_var = posterior.average(*posterior.any_success(k))
    y, y_var = posterior.average(*posterior.all_success(k))
    both = posterior.average(posterior.any_all_covariance(k), posterior.any_all_covariance(k))[1]
    return blend_interval((x, y), powers, (x_var, y_var, both), confidence, bounds)


def blend(x: Floats, y: Floats, a: float, b: float) -> Floats:
    """x^a y^b, elementwise; 0 where both bases are 0 and one power is above 0.

    Raises
    ------
    ValueError
        If a power below 0 meets a base of 0 otherwise.
    """
    nothing = (x == 0.0) & (y == 0.0)
    vanishes = nothing & ((a < 0.0 < b) | (b < 0.0 < a))
    for base, exponent, name in ((x, a, "pass_power"), (y, b, "unanimous_power")):
        if exponent < 0.0 and ((base == 0.0) & ~vanishes).any():
            raise ArgumentError(
                f"`{name}` must not be negative where the quantity it applies to is 0, got {exponent}"
            )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(vanishes, 0.0, np.power(x, a) * np.power(y, b))


def blend_one(x: float, y: float, a: float, b: float) -> float:
    """`blend` of single numbers."""
    return float(blend(np.array([x]), np.array([y]), a, b)[0])


def _propagate(
    means: tuple[Floats, Floats], powers: tuple[float, float], moments: tuple[Floats, Floats, Floats]
) -> Floats:
    """Variance of x^a y^b to first order from (Var x, Var y, Cov); a part that does not vary adds nothing."""
    (x, y), (a, b), (x_var, y_var, both) = means, powers, moments
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        by_x = a * np.power(x, a - 1.0) * np.power(y, b) if a != 0.0 else np.zeros(np.shape(x))
        by_y = b * np.power(x, a) * np.power(y, b - 1.0) if b != 0.0 else np.zeros(np.shape(x))
        terms = (
            np.where(x_var > 0, by_x * by_x * x_var, 0.0),
            np.where(y_var > 0, by_y * by_y * y_var, 0.0),
            np.where(both != 0, 2.0 * by_x * by_y * both, 0.0),
        )
        return np.asarray(terms[0] + terms[1] + terms[2])


def blend_interval(
    means: tuple[float, float],
    powers: tuple[float, float],
    moments: tuple[float, float, float],
    confidence: object,
    bounds: object,
) -> Interval:
    """(μ, σ, lo, hi) of x^a y^b from the means of x and y, the powers, and (Var x, Var y, Cov)."""
    x, y = (np.array([mean]) for mean in means)
    variance_x, variance_y, shared = (np.array([moment]) for moment in moments)
    variance = _propagate((x, y), powers, (variance_x, variance_y, shared))
    return credible(blend_one(*means, *powers), float(variance[0]), confidence, bounds)


def _powers(pass_power: object, unanimous_power: object) -> tuple[float, float]:
    a, b = real(pass_power, "pass_power"), real(unanimous_power, "unanimous_power")
    if a == 0.0 and b == 0.0:
        raise ArgumentError(
            "`pass_power` and `unanimous_power` must not both be 0: the blend would be constant"
        )
    return a, b
