"""Max@k, the expected best reward of k samples, and its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from evalcube.stages.analyze.formulas.arguments import confidence_level
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.analyze.formulas.outcomes.bayesian import posterior_counts, scaled
from evalcube.stages.analyze.formulas.outcomes.binary import mean_tail
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, categories
from evalcube.stages.analyze.formulas.outcomes.inputs import Bounds
from evalcube.stages.analyze.formulas.outcomes.intervals import Interval, with_sigma
from evalcube.stages.analyze.formulas.outcomes.posterior import log_moment, moment_variance


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
        As for `bayes`, and if k is no integer in 1..N.

    References
    ----------
    F. Bagirov et al. (2025), The best of N worlds. https://arxiv.org/abs/2510.23393

    Examples
    --------
    >>> round(max_at_k([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, w=[0.0, 0.5, 1.0]), 6)
    0.85
    """
    rewards, exponent = scaled(w)
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
    level, limits = confidence_level(confidence), inputs.clipping(bounds)
    rewards, exponent = scaled(w)
    k = inputs.draws(k)
    table = posterior_counts(R, rewards.size - 1, R0)
    if limits is None and k > 1:
        limits = (math.ldexp(float(rewards.min()), exponent), math.ldexp(float(rewards.max()), exponent))
    mean, variance = _posterior_moments(table, rewards, k)
    return with_sigma(math.ldexp(mean, exponent), math.ldexp(math.sqrt(variance), exponent), level, limits)


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
