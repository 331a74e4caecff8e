"""Bayes@N, avg@N and Max@k of categorical outcomes, each with its uncertainty.

R is a matrix (questions × samples) of categories 0..C, `w` the score of each category; without it R must be
binary and w = (0, 1). Bayes@N gives each question's category probabilities a posterior Dirichlet(1 + counts).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.analyze.formulas.outcomes.binary import mean_tail
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, categories
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.posterior import (
    Interval,
    log_moment,
    moment_variance,
    with_sigma,
)

_BINARY = (0.0, 1.0)


def bayes(R: object, w: object = None, R0: object = None) -> tuple[float, float]:
    """(μ, σ): posterior mean and standard deviation of the mean score.

    With ν = 1 + counts in R and R0 and T = 1 + C + D + N, a question's mean is Σ ν_j w_j / T and its variance
    (Σ ν_j w_j²/T − mean²)/(T + 1); questions are independent.

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    w
        Score of each category 0..C, shape (C + 1,); None means (0, 1) for binary outcomes.
    R0
        Prior outcomes of the same questions, shape (question, prior sample), or None.

    Returns
    -------
    mu, sigma
        Posterior mean and standard deviation of the mean score over the questions given, in units of `w`.

    Raises
    ------
    ValueError
        If R or R0 is not such a matrix or has a category without a weight, or `w` is not a vector of finite numbers.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

    Examples
    --------
    >>> R, R0 = [[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], [[0, 2], [1, 2]]
    >>> [round(x, 6) for x in bayes(R, [0.0, 0.5, 1.0], R0)]
    [0.575, 0.084275]
    """
    scores, exponent = scale_scores(w)
    table = posterior_counts(R, scores.size - 1, R0)
    mean, sigma = _moments(table, scores)
    return math.ldexp(mean, exponent), math.ldexp(sigma, exponent)


def bayes_ci(
    R: object, w: object = None, R0: object = None, confidence: float = 0.95, bounds: Bounds = None
) -> Interval:
    """(μ, σ, lo, hi) of `bayes`, with a normal credible interval clipped to `bounds`.

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    w
        Score of each category 0..C, shape (C + 1,); None means (0, 1) for binary outcomes.
    R0
        Prior outcomes of the same questions, shape (question, prior sample), or None.
    confidence
        Level of the interval, inside (0, 1).
    bounds
        (low, high) that the interval is clipped to; None clips nothing.

    Returns
    -------
    mu, sigma, low, high
        As `bayes`, and μ ± z σ, clipped.

    Raises
    ------
    ValueError
        As for `bayes`, and if `confidence` is not inside (0, 1) or `bounds` is not a pair low <= high.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

    Examples
    --------
    >>> [round(x, 4) for x in bayes_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], bounds=(0.0, 1.0))]
    [0.6429, 0.1185, 0.4107, 0.875]
    """
    return with_sigma(*bayes(R, w, R0), confidence, bounds)


def avg(R: object, w: object = None) -> tuple[float, float]:
    """(a, σ) for categories 0..C: mean score of all samples, and the σ of `bayes` multiplied by (N + C + 1)/N.

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    w
        Score of each category 0..C, shape (C + 1,); None means (0, 1) for binary outcomes.

    Returns
    -------
    a, sigma
        Mean score of all samples and its standard deviation, in units of `w`.

    Raises
    ------
    ValueError
        If R or R0 is not such a matrix or has a category without a weight, or `w` is not a vector of finite numbers.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

    Examples
    --------
    >>> [round(x, 6) for x in avg([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])]
    [0.7, 0.165831]
    """
    scores, exponent = scale_scores(w)
    table = categories(R, scores.size - 1)
    samples = table.counts.sum(axis=1)
    mean = _moments(table, scores)[0]
    sigma = _moments(_with_uniform_prior(table), scores, (scores.size + samples) / samples)[1]
    return math.ldexp(mean, exponent), math.ldexp(sigma, exponent)


def avg_ci(R: object, w: object = None, confidence: float = 0.95, bounds: Bounds = None) -> Interval:
    """(a, σ, lo, hi) of `avg`, with a normal credible interval clipped to `bounds`.

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    w
        Score of each category 0..C, shape (C + 1,); None means (0, 1) for binary outcomes.
    confidence
        Level of the interval, inside (0, 1).
    bounds
        (low, high) that the interval is clipped to; None clips nothing.

    Returns
    -------
    a, sigma, low, high
        As `avg`, and a ± z σ, clipped.

    Raises
    ------
    ValueError
        As for `bayes`, and if `confidence` is not inside (0, 1) or `bounds` is not a pair low <= high.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265
    """
    return with_sigma(*avg(R, w), confidence, bounds)


def scale_scores(w: object) -> tuple[Floats, int]:
    """Scores over a power of two that brings the largest into [1/2, 1), and its exponent: exact, no overflow."""
    scores = inputs.rewards(_BINARY if w is None else w)
    exponent = math.frexp(float(np.abs(scores).max()))[1]
    return np.ldexp(np.ldexp(scores, -(exponent // 2)), -(exponent - exponent // 2)), exponent


def posterior_counts(R: object, top: int, R0: object) -> Categories:
    """Counts of each category in R and R0, plus 1 for the uniform prior."""
    return _with_uniform_prior(categories(R, top, R0))


def _with_uniform_prior(table: Categories) -> Categories:
    return Categories(table.samples, table.counts + 1, table.weights, table.squares)


def _moments(table: Categories, scores: Floats, scale: Floats | float = 1.0) -> tuple[float, float]:
    """Mean score, and its standard deviation where the counts are of a Dirichlet distribution, scaled by question."""
    size = table.counts.sum(axis=1)
    means = table.counts @ scores / size
    spread = (table.counts * (scores - means[:, None]) ** 2).sum(axis=1) / size
    total = math.fsum(((table.weights / size) @ table.counts) * scores) / table.questions
    return total, math.sqrt(table.variance(spread / (size + 1) * scale**2))


def max_at_k(R: object, k: int, w: object = None) -> float:
    """Mean over questions of the expected best reward among k of the N samples.

    The best reward exceeds a level if any of the k samples does, so that Max@k is a sum over the gaps between
    reward levels of Pass@k for "better than the level" (above 0), or of its complement (below 0).

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    k
        Samples drawn from the N of each question without replacement, 1 <= k <= N.
    w
        Reward of each category 0..C, shape (C + 1,); None means (0, 1), for which Max@k is Pass@k.

    Returns
    -------
    Mean best reward, in units of `w`.

    Raises
    ------
    ValueError
        As for `bayes`, and if k is not an integer in 1..N.

    References
    ----------
    F. Bagirov et al. (2025), The best of N worlds. https://arxiv.org/abs/2510.23393

    Examples
    --------
    >>> round(max_at_k([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, w=[0.0, 0.5, 1.0]), 6)
    0.85
    """
    rewards, exponent = scale_scores(w)
    table = categories(R, rewards.size - 1)
    k = inputs.draws(k, table.samples)
    start, gaps = _layers(rewards)
    total = start
    for level, gap in gaps:
        if level >= start:
            total += gap * mean_tail(table.as_successes(rewards > level), k, 1)
        else:
            total -= gap * mean_tail(table.as_successes(rewards <= level), k, k)
    return math.ldexp(total, exponent)


def max_at_k_ci(
    R: object, k: int, w: object = None, R0: object = None, confidence: float = 0.95, bounds: Bounds = None
) -> Interval:
    """(μ, σ, lo, hi) of the expected best reward of k independent draws, under the posterior of `bayes`.

    With A_l the posterior probability of a reward of at most level l, the target is the sum over the gaps of
    1 − A_l^k. A_l/A_m and A_m are independent for l < m, so that Cov(A_l^k, A_m^k) = E[A_l^k]/E[A_m^k] Var(A_m^k).

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample), or their `Categories`; one dimension is one question.
    k
        Independent draws, k >= 1; k = 1 is `bayes_ci`.
    w
        Reward of each category, as for `max_at_k`.
    R0
        Prior outcomes of the same questions, shape (question, prior sample), or None.
    confidence
        Level of the interval, inside (0, 1).
    bounds
        (low, high) that the interval is clipped to; None clips to the rewards, but not at k = 1.

    Returns
    -------
    mu, sigma, low, high
        Posterior mean and standard deviation of the best reward, in units of `w`, and μ ± z σ, clipped.

    Raises
    ------
    ValueError
        As for `bayes`, and for a wrong `k`, `confidence` or `bounds`.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    F. Bagirov et al. (2025), The best of N worlds. https://arxiv.org/abs/2510.23393

    Examples
    --------
    >>> [round(x, 4) for x in max_at_k_ci([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, w=[0.0, 0.5, 1.0])]
    [0.75, 0.0881, 0.5773, 0.9227]
    """
    rewards, exponent = scale_scores(w)
    k = inputs.draws(k)
    table = posterior_counts(R, rewards.size - 1, R0)
    if bounds is None and k > 1:
        bounds = (math.ldexp(float(rewards.min()), exponent), math.ldexp(float(rewards.max()), exponent))
    mean, variance = _posterior_moments(table, rewards, k)
    return with_sigma(
        math.ldexp(mean, exponent), math.ldexp(math.sqrt(variance), exponent), confidence, bounds
    )


def _posterior_moments(table: Categories, rewards: Floats, k: int) -> tuple[float, float]:
    start, gaps = _layers(rewards)
    mean, variance = start, np.zeros(table.weights.size)
    below = np.zeros(table.weights.size)
    for level, gap in gaps:
        a = table.counts[:, rewards <= level].sum(axis=1).astype(np.float64)
        b = table.counts[:, rewards > level].sum(axis=1).astype(np.float64)
        log = log_moment(a, b, k)
        power, spread = np.exp(log), moment_variance(a, b, k)
        mean += gap * _mean(table, -np.expm1(log)) if level >= start else -gap * _mean(table, power)
        share = np.divide(below, power, out=np.zeros(power.shape), where=power > 0)
        variance += gap * spread * (gap + 2.0 * share)
        below += gap * power
    return mean, table.variance(variance)


def _layers(rewards: Floats) -> tuple[float, Iterator[tuple[float, float]]]:
    """Where to start, the reward nearest to 0 in their range, and (level, gap to the next), ascending."""
    start = float(np.clip(0.0, rewards.min(), rewards.max()))
    levels = np.unique(np.append(rewards, start))
    return start, zip(levels[:-1].tolist(), np.diff(levels).tolist(), strict=True)


def _mean(table: Categories, values: Floats) -> float:
    return float(np.dot(table.weights, values)) / table.questions
