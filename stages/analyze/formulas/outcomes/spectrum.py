"""The threshold spectrum and GeoSpectrum@k, its blend with Pass@k, each with its interval.

The ``_ci`` metrics take any k >= 1; priors and posteriors are those of
`evalcube.stages.analyze.formulas.outcomes.binary`.
"""

from __future__ import annotations

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import hypergeometric, inputs
from evalcube.stages.analyze.formulas.outcomes.binary import (
    UNIT,
    bank_and_draws,
    mean_tail,
    posterior_and_draws,
)
from evalcube.stages.analyze.formulas.outcomes.blends import blend_interval, blend_one
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.posterior import Interval, credible
from evalcube.stages.errors import ArgumentError, ArgumentTypeError

_LARGEST_BUDGET = 10**7
"""Largest k of a spectrum: there is a weight per threshold."""


def threshold_spectrum_at_k(R: object, k: int, weights: object) -> float:
    """S = Σ_r w_r P(r or more of k samples are correct), averaged over questions.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    weights
        w_1..w_k of the thresholds 1..k, shape (k,): not negative, with a sum of at most 1.

    Returns
    -------
    The mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As for `pass_at_k`, and if `weights` are not as above.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> round(threshold_spectrum_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, [1.0, 0.0]), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    payoff = _payoff(inputs.spectrum_weights(weights, k))
    return bank.mean(hypergeometric.mean_payoff(payoff, -bank.counts, -bank.failures))


def geo_spectrum_at_k(
    R: object, k: int, lam: float = 0.5, weights: object = None, lambda_: float | None = None
) -> float:
    """Pass@k^λ · S^(1−λ), where S is the threshold spectrum, or mG-Pass@k if no weights are given.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    lam
        The power λ, in [0, 1].
    weights
        As for `threshold_spectrum_at_k`; None takes mG-Pass@k for S. λ = 1 ignores them.
    lambda_
        Another name of `lam`; None means that `lam` holds.

    Returns
    -------
    The product of the powers of both means, in [0, 1].

    Raises
    ------
    ValueError
        As for `pass_at_k`, and if λ or `weights` are not as above.
    TypeError
        If λ is not a number, or both `lam` and `lambda_` are given.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.

    Examples
    --------
    >>> round(geo_spectrum_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.408248
    """
    share = _share(lam, lambda_)
    bank, k = bank_and_draws(R, k)
    some = mean_tail(bank, k, 1)
    if share == 1.0:
        return some
    if weights is None:
        spectrum = bank.mean(bank.values(lambda n: hypergeometric.upper_half(n, k)))
    else:
        spectrum = threshold_spectrum_at_k(bank, k, weights)
    return blend_one(some, spectrum, share, 1.0 - share)


def geo_spectrum_star_at_k(R: object, k: int) -> float:
    """√(Pass@k · mG-Pass@k): `geo_spectrum_at_k` with its defaults.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.

    Returns
    -------
    The square root, in [0, 1].

    Raises
    ------
    ValueError
        If R is not such a matrix, or k is not an integer in 1..N.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.
    """
    return geo_spectrum_at_k(R, k)


def threshold_spectrum_at_k_ci(
    R: object,
    k: int,
    weights: object,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of Σ_r w_r P(r or more successes in k independent draws).

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, k >= 1.
    weights
        w_1..w_k of the thresholds 1..k, shape (k,): not negative, with a sum of at most 1.
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
        If R is not such a matrix, or another argument is out of its range.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0, any_k=True)
    payoff = _payoff(inputs.spectrum_weights(weights, k))
    return credible(*posterior.average(*posterior.payoff(payoff)), confidence, bounds)


def geo_spectrum_at_k_ci(
    R: object,
    k: int,
    lam: float = 0.5,
    weights: object = None,
    lambda_: float | None = None,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of x^λ y^(1−λ), the means of Pass@k and of the spectrum for independent draws.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, k >= 1.
    lam
        The power λ, in [0, 1].
    weights
        As for `threshold_spectrum_at_k`; None takes mG-Pass@k for S. λ = 1 ignores them.
    lambda_
        Another name of `lam`; None means that `lam` holds.
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
        If R is not such a matrix, or another argument is out of its range.
    TypeError
        If λ, `confidence` or a bound is not a number, or both `lam` and `lambda_` are given.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.
    """
    share = _share(lam, lambda_)
    posterior, k = posterior_and_draws(R, k, alpha0, beta0, any_k=True)
    x, x_var = posterior.average(*posterior.any_success(k))
    if share == 1.0:
        return credible(x, x_var, confidence, bounds)
    payoff = _upper_half(k) if weights is None else _payoff(inputs.spectrum_weights(weights, k))
    y, y_var = posterior.average(*posterior.payoff(payoff))
    covariance = posterior.any_payoff_covariance(k, payoff)
    both = posterior.average(covariance, covariance)[1]
    return blend_interval((x, y), (share, 1.0 - share), (x_var, y_var, both), confidence, bounds)


def geo_spectrum_star_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi): `geo_spectrum_at_k_ci` with the default λ and weights.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, k >= 1.
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
        If R is not such a matrix, or `k`, `confidence`, `bounds`, `alpha0` or `beta0` is out of its range.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    The package scorio 0.2.3 of the authors of https://arxiv.org/abs/2510.04265, which defines it.
    """
    return geo_spectrum_at_k_ci(R, k, confidence=confidence, bounds=bounds, alpha0=alpha0, beta0=beta0)


def _share(lam: object, lambda_: object) -> float:
    if lambda_ is None:
        return inputs.fraction(lam, "lam")
    if lam != 0.5:
        raise ArgumentTypeError(
            f"give `lam` or its other name `lambda_`, not both, got {lam!r} and {lambda_!r}"
        )
    return inputs.fraction(lambda_, "lambda_")


def _payoff(weights: Floats) -> Floats:
    """Sum of the weights of the thresholds reached with 0..k successes, shape (k + 1,)."""
    return np.concatenate([[0.0], np.cumsum(weights)])


def _upper_half(k: int) -> Floats:
    if k > _LARGEST_BUDGET:
        raise ArgumentError(
            f"`k` must be at most {_LARGEST_BUDGET} here: there is a weight per threshold; got {k}"
        )
    return hypergeometric.upper_half(k, k)
