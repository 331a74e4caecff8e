"""Pass@k, Pass^k, G-Pass@k, mG-Pass@k and AUC@k, each with a credible interval.

R is a matrix (questions × samples) of 0 and 1, or its `Successes`. The point metrics draw k of a question's N
samples without replacement and average over questions. The ``_ci`` metrics give each question's success
probability p the posterior Beta(alpha0 + successes, beta0 + failures) and return the posterior mean, standard
deviation and normal interval of the same quantity for k independent draws. Every function raises ValueError if R
is not binary, or k no integer in 1..N; ``_ci`` ones too for a wrong `confidence`, `bounds`, `alpha0` or `beta0`.
"""

from __future__ import annotations

import numpy as np

from stages.analyze.formulas.intervals import Floats
from stages.analyze.formulas.outcomes import hypergeometric, inputs
from stages.analyze.formulas.outcomes.counts import Successes, successes
from stages.analyze.formulas.outcomes.inputs import Bounds
from stages.analyze.formulas.outcomes.intervals import Interval, credible
from stages.analyze.formulas.outcomes.posterior import Posterior

UNIT = (0.0, 1.0)


def pass_at_k(R: object, k: int) -> float:
    """Probability that at least one of k samples is correct: mean of 1 − C(N−ν, k)/C(N, k).

    References
    ----------
    M. Chen et al. (2021), Evaluating large language models trained on code. https://arxiv.org/abs/2107.03374

    Examples
    --------
    >>> round(pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, 1)


def pass_hat_k(R: object, k: int) -> float:
    """Pass^k, probability that all of k samples are correct: mean of C(ν, k)/C(N, k).

    References
    ----------
    S. Yao et al. (2024), τ-bench. https://arxiv.org/abs/2406.12045

    Examples
    --------
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, k)


def g_pass_at_k(R: object, k: int) -> float:
    """G-Pass@k at the threshold τ = 1: another name of `pass_hat_k`.

    References
    ----------
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147
    """
    return pass_hat_k(R, k)


def g_pass_at_k_tau(R: object, k: int, tau: float) -> float:
    """Probability that at least j of k samples are correct, j being the smallest with j/k >= τ, at least 1.

    τ = 0 is Pass@k and τ = 1 is Pass^k; `tau` must lie in [0, 1]. Reference as for `g_pass_at_k`.

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, least_successes(k, tau))


def mg_pass_at_k(R: object, k: int) -> float:
    """mG-Pass@k: mean of (2/k) Σ_{j>m} (j − m) P(X = j), m = ⌈k/2⌉; 0 for k = 1.

    For even k this is twice the integral of `g_pass_at_k_tau` over τ in [1/2, 1]. Reference as for `g_pass_at_k`.

    Examples
    --------
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    bank, k = bank_and_draws(R, k)
    return bank.mean(hypergeometric.upper_half(bank.samples, k)[bank.counts])


def auc_at_k(R: object, k: int) -> float:
    """Area under Pass@1..Pass@k by the trapezoid rule, over k − 1; Pass@1 for k = 1.

    References
    ----------
    Z. Hu et al. (2026), Rewarding the rare. https://arxiv.org/abs/2601.08763

    Examples
    --------
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.9
    """
    bank, k = bank_and_draws(R, k)
    return bank.mean(hypergeometric.area(bank.samples, k)[bank.counts])


def pass_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of 1 − (1 − p)^k; see the module for prior and errors.

    Examples
    --------
    >>> [round(x, 4) for x in pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.8393, 0.0973, 0.6487, 1.0]
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return credible(*posterior.average(*posterior.any_success(k)), confidence, bounds)


def pass_hat_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of p^k; see the module for prior and errors.

    Examples
    --------
    >>> [round(x, 4) for x in pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.4464, 0.1462, 0.1599, 0.7329]
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return credible(*posterior.average(*posterior.all_success(k)), confidence, bounds)


def g_pass_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of p^k: another name of `pass_hat_k_ci`."""
    return pass_hat_k_ci(R, k, confidence, bounds, alpha0, beta0)


def g_pass_at_k_tau_ci(
    R: object,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the probability of j or more successes in k draws, j as in `g_pass_at_k_tau`."""
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return tail_interval(posterior, k, least_successes(k, tau), confidence, bounds)


def mg_pass_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of (2/k) Σ_{j>m} (j − m) C(k, j) p^j (1−p)^{k−j}, m = ⌈k/2⌉."""
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    moments = posterior.payoff(hypergeometric.upper_half(k, k))
    return credible(*posterior.average(*moments), confidence, bounds)


def auc_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the area under 1 − (1 − p)^j for j in 1..k, as in `auc_at_k`.

    Given x successes among k draws, the area is that of a bank of k samples with x successes.
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    moments = posterior.payoff(hypergeometric.area(k, k)) if k > 1 else posterior.any_success(1)
    return credible(*posterior.average(*moments), confidence, bounds)


unanimous_at_k = pass_hat_k
unanimous_at_k_ci = pass_hat_k_ci


def bank_and_draws(R: object, k: object) -> tuple[Successes, int]:
    """Reduced outcomes and a checked 1 <= k <= N."""
    bank = successes(R)
    return bank, inputs.draws(k, bank.samples)


def posterior_and_draws(
    R: object, k: object, alpha0: object, beta0: object, *, any_k: bool = False
) -> tuple[Posterior, int]:
    """Posterior and a checked k, which may exceed N where `any_k`."""
    a, b = inputs.concentration(alpha0, "alpha0"), inputs.concentration(beta0, "beta0")
    bank = successes(R)
    return Posterior.of(bank, a, b), inputs.draws(k, None if any_k else bank.samples)


def mean_tail(bank: Successes, k: int, least: int) -> float:
    """Mean over the questions of the probability of `least` or more successes among k samples."""
    return bank.mean(hypergeometric.tail(bank.samples, k, least)[bank.counts])


def tail_interval(posterior: Posterior, k: int, least: int, confidence: object, bounds: object) -> Interval:
    """(μ, σ, lo, hi) of the probability of `least` or more successes in k independent draws."""
    if least == 1:
        moments = posterior.any_success(k)
    elif least == k:
        moments = posterior.all_success(k)
    else:
        moments = posterior.payoff(threshold(k, least))
    return credible(*posterior.average(*moments), confidence, bounds)


def threshold(k: int, least: int) -> Floats:
    """1 from `least` successes on, else 0, shape (k + 1,)."""
    return (np.arange(k + 1) >= least).astype(np.float64)


def least_successes(k: int, tau: object) -> int:
    """The smallest j >= 1 with j/k >= τ; the quotient decides, since τ k may round up across an integer."""
    wanted = inputs.fraction(tau, "tau")
    least = max(1, min(k, int(wanted * k)))
    while least > 1 and (least - 1) / k >= wanted:
        least -= 1
    while least / k < wanted:
        least += 1
    return least
