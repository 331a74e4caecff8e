"""G-Pass@k, mG-Pass@k and Maj@k, which ask for a number of k samples to be correct, each with a credible interval.

Priors and posteriors are those of `evalcube.stages.analyze.formulas.outcomes.binary`.
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
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.posterior import Interval, Posterior, credible


def g_pass_at_k_tau(R: object, k: int, tau: float) -> float:
    """Probability that at least a share τ of k samples is correct, and at least one.

    τ = 0 is Pass@k and τ = 1 is Pass^k.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    tau
        Share τ of the k samples that have to be correct, in [0, 1].

    Returns
    -------
    The mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        If R is not such a matrix, k is not an integer in 1..N, or `tau` is outside [0, 1].
    TypeError
        If `tau` is not a number.

    References
    ----------
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147

    Examples
    --------
    >>> round(g_pass_at_k_tau([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2, 0.5), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, least_successes(k, tau))


def mg_pass_at_k(R: object, k: int) -> float:
    """mG-Pass@k: mean of (2/k) Σ_{j>m} (j − m) P(X = j), m = ⌈k/2⌉; 0 for k = 1.

    For even k this is twice the integral of `g_pass_at_k_tau` over τ in [1/2, 1].

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.

    Returns
    -------
    The mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        If R is not such a matrix, or k is not an integer in 1..N.

    References
    ----------
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147

    Examples
    --------
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    bank, k = bank_and_draws(R, k)
    return bank.mean(bank.values(lambda n: hypergeometric.upper_half(n, k)))


def maj_at_k(R: object, k: int) -> float:
    """Probability that more than half of k samples are correct: ⌊k/2⌋ + 1 or more.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.

    Returns
    -------
    The mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        If R is not such a matrix, or k is not an integer in 1..N.

    References
    ----------
    X. Wang et al. (2023), Self-consistency improves chain of thought reasoning in language models.
    https://arxiv.org/abs/2203.11171

    Examples
    --------
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, k // 2 + 1)


def g_pass_at_k_tau_ci(
    R: object,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the probability of j or more successes in k draws, j as in `g_pass_at_k_tau`.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, 1 <= k <= N.
    tau
        Share τ of the k samples that have to be correct, in [0, 1].
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
        If R is not such a matrix, or `k`, `tau`, `confidence`, `bounds`, `alpha0` or `beta0` is out of its range.
    TypeError
        If `tau`, `confidence` or a bound is not a number.

    References
    ----------
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147
    """
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
    """(μ, σ, lo, hi) of (2/k) Σ_{j>m} (j − m) C(k, j) p^j (1−p)^{k−j}, m = ⌈k/2⌉.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, 1 <= k <= N.
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
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    moments = posterior.payoff(hypergeometric.upper_half(k, k))
    return credible(*posterior.average(*moments), confidence, bounds)


def maj_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of the probability of a strict majority in k independent draws.

    Parameters
    ----------
    R
        Outcomes of 0 and 1, shape (question, sample), or their `Successes`; one dimension is one question.
    k
        Independent draws, 1 <= k <= N.
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
    X. Wang et al. (2023), Self-consistency improves chain of thought reasoning in language models.
    https://arxiv.org/abs/2203.11171

    Examples
    --------
    >>> [round(x, 4) for x in maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)]
    [0.6845, 0.152, 0.3867, 0.9824]
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return tail_interval(posterior, k, k // 2 + 1, confidence, bounds)


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
