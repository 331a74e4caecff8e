"""The Geom@k, GeoSpectrum@k and threshold-spectrum metrics, each with its interval.

Arguments and errors are those of `binary`, but for the ``_ci`` metrics any k >= 1 will do. The intervals of the
blends x^a y^b rest on first-order (delta) propagation of the exact posterior moments of x and y.
"""

from __future__ import annotations

import numpy as np

from stages.analyze.formulas.intervals import Floats
from stages.analyze.formulas.outcomes import hypergeometric, inputs
from stages.analyze.formulas.outcomes.binary import UNIT, bank_and_draws, mean_tail, posterior_and_draws
from stages.analyze.formulas.outcomes.inputs import Bounds
from stages.analyze.formulas.outcomes.intervals import Interval, credible

_LARGEST_BUDGET = 10**7
"""Largest k of a spectrum: there is a weight per threshold."""


def geom_at_k(R: object, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> float:
    """Mean over questions of Pass@k^a · Pass^k^b of the question.

    Raises
    ------
    ValueError
        As for `pass_at_k`; if both powers are 0, or a power below 0 meets a question for which its base is 0.

    Examples
    --------
    >>> round(geom_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.647106
    """
    a, b = _powers(pass_power, unanimous_power)
    bank, k = bank_and_draws(R, k)
    some = hypergeometric.tail(bank.samples, k, 1)[bank.counts]
    every = hypergeometric.tail(bank.samples, k, k)[bank.counts]
    return bank.mean(blend(some, every, a, b))


def geom_ds_at_k(R: object, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> float:
    """Pass@k^a · Pass^k^b of the means over questions; errors as for `geom_at_k`.

    Examples
    --------
    >>> round(geom_ds_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.653835
    """
    a, b = _powers(pass_power, unanimous_power)
    bank, k = bank_and_draws(R, k)
    return _blend_one(mean_tail(bank, k, 1), mean_tail(bank, k, k), a, b)


def threshold_spectrum_at_k(R: object, k: int, weights: object) -> float:
    """S = Σ_r w_r P(r or more of k samples are correct), averaged over questions.

    `weights` holds w_1..w_k, not negative, with a sum of at most 1; else ValueError.

    Examples
    --------
    >>> round(threshold_spectrum_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, [1.0, 0.0]), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    payoff = _payoff(inputs.spectrum_weights(weights, k))
    return bank.mean(hypergeometric.mean_payoff(payoff, bank.samples, bank.counts))


def geo_spectrum_at_k(
    R: object, k: int, lam: float = 0.5, weights: object = None, lambda_: float | None = None
) -> float:
    """Pass@k^λ · S^(1−λ), S being the threshold spectrum, or mG-Pass@k without weights; λ = 1 ignores weights.

    Raises
    ------
    ValueError
        As for `threshold_spectrum_at_k`, and if λ is outside [0, 1].
    TypeError
        If both `lam` and its other name `lambda_` are given.

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
        spectrum = bank.mean(hypergeometric.upper_half(bank.samples, k)[bank.counts])
    else:
        spectrum = threshold_spectrum_at_k(bank, k, weights)
    return _blend_one(some, spectrum, share, 1.0 - share)


def geo_spectrum_star_at_k(R: object, k: int) -> float:
    """√(Pass@k · mG-Pass@k): `geo_spectrum_at_k` with its defaults."""
    return geo_spectrum_at_k(R, k)


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
    return _blend_interval((x, y), powers, (x_var, y_var, both), confidence, bounds)


def threshold_spectrum_at_k_ci(
    R: object,
    k: int,
    weights: object,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of Σ_r w_r P(r or more successes in k independent draws)."""
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
    """(μ, σ, lo, hi) of x^λ y^(1−λ), the means of Pass@k and of the spectrum for independent draws."""
    share = _share(lam, lambda_)
    posterior, k = posterior_and_draws(R, k, alpha0, beta0, any_k=True)
    x, x_var = posterior.average(*posterior.any_success(k))
    if share == 1.0:
        return credible(x, x_var, confidence, bounds)
    payoff = _upper_half(k) if weights is None else _payoff(inputs.spectrum_weights(weights, k))
    y, y_var = posterior.average(*posterior.payoff(payoff))
    covariance = posterior.any_payoff_covariance(k, payoff)
    both = posterior.average(covariance, covariance)[1]
    return _blend_interval((x, y), (share, 1.0 - share), (x_var, y_var, both), confidence, bounds)


def geo_spectrum_star_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi): `geo_spectrum_at_k_ci` with the default λ and weights."""
    return geo_spectrum_at_k_ci(R, k, confidence=confidence, bounds=bounds, alpha0=alpha0, beta0=beta0)


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
            raise ValueError(
                f"`{name}` must not be negative where the quantity it applies to is 0, got {exponent}"
            )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(vanishes, 0.0, np.power(x, a) * np.power(y, b))


def _blend_one(x: float, y: float, a: float, b: float) -> float:
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


def _blend_interval(
    means: tuple[float, float],
    powers: tuple[float, float],
    moments: tuple[float, float, float],
    confidence: object,
    bounds: object,
) -> Interval:
    x, y = (np.array([mean]) for mean in means)
    variance = _propagate(
        (x, y), powers, (np.array([moments[0]]), np.array([moments[1]]), np.array([moments[2]]))
    )
    return credible(_blend_one(*means, *powers), float(variance[0]), confidence, bounds)


def _powers(pass_power: object, unanimous_power: object) -> tuple[float, float]:
    a, b = inputs.power(pass_power, "pass_power"), inputs.power(unanimous_power, "unanimous_power")
    if a == 0.0 and b == 0.0:
        raise ValueError("`pass_power` and `unanimous_power` must not both be 0: the blend would be constant")
    return a, b


def _share(lam: object, lambda_: object) -> float:
    if lambda_ is None:
        return inputs.fraction(lam, "lam")
    if lam != 0.5:
        raise TypeError(f"give `lam` or its other name `lambda_`, not both, got {lam!r} and {lambda_!r}")
    return inputs.fraction(lambda_, "lambda_")


def _payoff(weights: Floats) -> Floats:
    """Sum of the weights of the thresholds reached with 0..k successes, shape (k + 1,)."""
    return np.concatenate([[0.0], np.cumsum(weights)])


def _upper_half(k: int) -> Floats:
    if k > _LARGEST_BUDGET:
        raise ValueError(
            f"`k` must be at most {_LARGEST_BUDGET} here: there is a weight per threshold; got {k}"
        )
    return hypergeometric.upper_half(k, k)
