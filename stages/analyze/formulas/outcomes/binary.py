"""Pass@k, Pass^k and AUC@k, each with a credible interval.

R is a matrix (questions × samples) of 0 and 1, or its `Successes`. The point metrics draw k of a question's N
samples without replacement and average over questions. The ``_ci`` metrics give each question's success
probability p the posterior Beta(alpha0 + successes, beta0 + failures) and return the posterior mean, standard
deviation and normal interval of the same quantity for k independent draws.
"""

from __future__ import annotations

from evalcube.stages.analyze.formulas.outcomes import hypergeometric, inputs
from evalcube.stages.analyze.formulas.outcomes.counts import Successes, successes
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.posterior import Interval, Posterior, credible

UNIT = (0.0, 1.0)


def pass_at_k(R: object, k: int) -> float:
    """Probability that at least one of k samples is correct: mean of 1 − C(N−ν, k)/C(N, k).

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
    M. Chen et al. (2021), Evaluating large language models trained on code. https://arxiv.org/abs/2107.03374

    Examples
    --------
    >>> round(pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.95
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, 1)


def pass_hat_k(R: object, k: int) -> float:
    """Pass^k, with three names: probability that all of k samples are correct, mean of C(ν, k)/C(N, k).

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
    S. Yao et al. (2024), τ-bench. https://arxiv.org/abs/2406.12045
    J. Liu et al. (2024), Are your LLMs capable of stable reasoning? https://arxiv.org/abs/2412.13147

    Examples
    --------
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    bank, k = bank_and_draws(R, k)
    return mean_tail(bank, k, k)


def auc_at_k(R: object, k: int) -> float:
    """Area under Pass@1..Pass@k by the trapezoid rule, over k − 1; Pass@1 for k = 1.

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
    Z. Hu et al. (2026), Rewarding the rare. https://arxiv.org/abs/2601.08763

    Examples
    --------
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.9
    """
    bank, k = bank_and_draws(R, k)
    return bank.mean(bank.values(lambda n: hypergeometric.area(n, k)))


def pass_at_k_ci(
    R: object,
    k: int,
    confidence: float = 0.95,
    bounds: Bounds = UNIT,
    alpha0: float = 1.0,
    beta0: float = 1.0,
) -> Interval:
    """(μ, σ, lo, hi) of 1 − (1 − p)^k, the chance that any of k independent draws is correct.

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
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

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
    """(μ, σ, lo, hi) of p^k, the chance that all of k independent draws are correct.

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
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

    Examples
    --------
    >>> [round(x, 4) for x in pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)]
    [0.4464, 0.1462, 0.1599, 0.7329]
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return credible(*posterior.average(*posterior.all_success(k)), confidence, bounds)


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
    Z. Hu et al. (2026), Rewarding the rare. https://arxiv.org/abs/2601.08763
    """
    posterior, k = posterior_and_draws(R, k, alpha0, beta0)
    return credible(*posterior.average(*posterior.payoff(hypergeometric.area(k, k))), confidence, bounds)


unanimous_at_k = g_pass_at_k = pass_hat_k
unanimous_at_k_ci = g_pass_at_k_ci = pass_hat_k_ci


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
    return bank.mean(bank.values(lambda n: hypergeometric.tail(n, k, least)))
