"""Bayes@N and avg@N of categorical outcomes, each with its uncertainty.

R is a matrix (questions × samples) of categories 0..C, `w` the score of each category; without it R must be
binary and w = (0, 1). Bayes@N gives each question's category probabilities a posterior Dirichlet(1 + counts).
"""

from __future__ import annotations

import math

import numpy as np

from evalcube.stages.analyze.formulas.arguments import confidence_level
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, categories
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.intervals import Interval, with_sigma

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
        If R or R0 is no such matrix or has a category without a weight, or `w` no vector of finite numbers.

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
    scores, exponent = scaled(w)
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
        As for `bayes`, and if `confidence` is not inside (0, 1) or `bounds` no pair low <= high.
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
    level, limits = confidence_level(confidence), inputs.clipping(bounds)
    return with_sigma(*bayes(R, w, R0), level, limits)


def avg(R: object, w: object = None) -> tuple[float, float]:
    """(a, σ): mean score of all samples, and the σ of `bayes` times T/N, which puts it on the same scale.

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
        If R or R0 is no such matrix or has a category without a weight, or `w` no vector of finite numbers.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265

    Examples
    --------
    >>> [round(x, 6) for x in avg([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])]
    [0.7, 0.165831]
    """
    scores, exponent = scaled(w)
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
        As for `bayes`, and if `confidence` is not inside (0, 1) or `bounds` no pair low <= high.
    TypeError
        If `confidence` or a bound is not a number.

    References
    ----------
    M. Hariri et al. (2026), Don't Pass@k: a Bayesian framework for large language model evaluation.
    https://arxiv.org/abs/2510.04265
    """
    level, limits = confidence_level(confidence), inputs.clipping(bounds)
    return with_sigma(*avg(R, w), level, limits)


def scaled(w: object) -> tuple[Floats, int]:
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
