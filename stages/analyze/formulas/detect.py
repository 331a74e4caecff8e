"""How many questions, asked how often, tell a difference of two models that answer the same ones; pure functions.

Of a question, the difference d between the shares of right answers of two models varies by `between` over questions;
the difference of two single answers varies by `within` around it. With Q questions, r answers each, the variance of the
mean is::

    V = (between + within/r + (m − 1) shared)/Q

where questions come in clusters of m, whose differences have the covariance `shared` (Kish's design effect). Clusters
are what is drawn, so the test has Student's t with one degree of freedom less than there are clusters, and its power is
that of the noncentral t with δ/√V. Where a discordance is stated, the share of questions that only one of
two got right, between + within = discordance − δ². As right and wrong are counted, δ loses `_STEP` of a question's
answer: without that few questions promise a power that they do not have.

Where points weigh w (sum 1) and have n questions each, Q is what these are worth, 1/Σ w²/n.

References
----------
R. J. Connor (1987), Sample size for testing differences in proportions for the paired-sample design, Biometrics 43,
207-211. https://doi.org/10.2307/2531961
E. Miller (2024), Adding error bars to evals: a statistical approach to language model evaluations: variance between and
within questions, clusters. https://arxiv.org/abs/2411.00640
L. Kish (1965), Survey Sampling, Wiley, chapters 5 and 8: design effects.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.margins import LEVEL, POWER
from evalcube.stages.errors import ArgumentError

MOST_QUESTIONS = 10**9
"""More than anybody asks: a difference that takes more is told by no number."""
_LARGE = 10_000
"""Degrees of freedom from which Student's t is normal."""
_STEP = 0.75
"""Of an answer: for 10 to 99 questions the mean error of the power is then 1 point of 100, and 8 without it; 66 designs
simulated with the test of `compare`."""


@dataclass(frozen=True)
class Spread:
    """What a difference of two models varies by."""

    between: float
    """Variance over questions of the difference of the two shares of right answers."""
    within: float
    """Variance of the difference of two single answers to a question; NaN where no question was asked twice, and
    `between` has both."""
    shared: float = 0.0
    """Covariance of the differences of two questions of a cluster."""
    size: float = 1.0
    """Questions of a cluster as one of them sees it: Σm²/Σm."""
    mean_size: float = 1.0
    """Questions to a cluster."""

    @classmethod
    def of_discordance(cls, discordance: float, difference: float = 0.0) -> Spread:
        """What follows from the share of questions that only one of the two gets right."""
        return cls(max(discordance - difference**2, 0.0), math.nan)

    def per_question(self, repeats: int = 1) -> float:
        """Variance that a question adds, its answers averaged; where `within` is not known, repeats change nothing."""
        within = 0.0 if math.isnan(self.within) else self.within / repeats
        return self.between + within + (self.size - 1.0) * self.shared

    @property
    def share_within(self) -> float:
        """Share of the variance of single answers that asking a question again takes away; NaN if unknown."""
        whole = self.per_question()
        return self.within / whole if whole > 0 else math.nan


def detect_power(difference: float, questions: float, spread: Spread, repeats: int = 1) -> float:
    """Chance that so many questions tell a difference, by a two-sided test at 5%.

    Examples
    --------
    >>> round(detect_power(0.02, 3992, Spread.of_discordance(0.2, 0.02)), 3)
    0.8
    """
    # Of answers that are right or wrong, whatever was assumed of how they vary: a difference is discordance, too.
    each = 1 if math.isnan(spread.within) else repeats
    least = difference * (1.0 - difference) / each
    variance = max(spread.per_question(repeats), least)
    if variance <= 0.0:
        return 1.0
    freedom = questions / spread.mean_size - 1.0
    if freedom <= 0.0:
        return 0.0
    shift = (difference - _STEP / (questions * each)) / math.sqrt(variance / questions)
    if spread.mean_size <= 1.0 or freedom > _LARGE:
        return float(scipy.special.ndtr(shift + scipy.special.ndtri(LEVEL)))
    return float(1.0 - scipy.special.nctdtr(freedom, shift, scipy.special.stdtrit(freedom, 1.0 - LEVEL)))


def enough_questions(difference: float, spread: Spread, repeats: int = 1, *, power: float = POWER) -> float:
    """Questions from which on a difference is told with this power; infinite if no number does.

    Examples
    --------
    >>> enough_questions(0.02, Spread.of_discordance(0.2, 0.02))
    3992
    """
    if not 0.0 < difference <= 1.0 or not LEVEL < power < 1.0:
        raise ArgumentError("`difference` must be above 0 and at most 1, and `power` between 0.025 and 1")
    numbers = range(2, MOST_QUESTIONS + 1)
    index = bisect_left(numbers, power, key=lambda number: detect_power(difference, number, spread, repeats))
    return numbers[index] if index < len(numbers) else math.inf


def told_difference(questions: float, spread: Spread, repeats: int = 1, *, power: float = POWER) -> float:
    """The smallest difference that so many questions tell with this power; NaN if none.

    Examples
    --------
    >>> round(told_difference(3992, Spread.of_discordance(0.2)), 4)
    0.02
    """
    return _least(lambda difference: detect_power(difference, questions, spread, repeats), power)


def _least(power_of: Callable[[float], float], power: float) -> float:
    """The smallest difference from 0 to 1 that is told with this power; NaN if none, as power grows with it."""
    if power_of(1.0) < power:
        return math.nan
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (low, middle) if power_of(middle) >= power else (middle, high)
    return high


def pair_spread(
    trials: Floats, first: Floats, second: Floats, weights: Floats, clusters: NDArray[np.int64] | None = None
) -> Spread:
    """What the difference of two models varies by, from counts of their common answers.

    Parameters
    ----------
    trials, first, second
        Shape (point, question): answers of both, of these right by the first alone, and by the second alone.
    weights
        Of the points.
    clusters
        Number of each question's cluster, shape (point, question); None: each is its own.

    Raises
    ------
    ValueError
        If fewer than two questions of a point were answered by both.

    Examples
    --------
    >>> twice = np.full((1, 4), 2.0)
    >>> found = pair_spread(twice, np.array([[2.0, 0, 1, 1]]), np.array([[0.0, 2, 1, 1]]), np.ones(1))
    >>> round(found.between, 3), round(found.within, 3)
    (0.167, 1.0)
    """
    asked = trials > 0
    number = asked.sum(axis=-1)
    used = (number > 1) & (weights > 0)
    if not used.any():
        raise ArgumentError("fewer than two questions of a point were answered by both")
    count, share = number[used], weights[used] / weights[used].sum()
    there, m = asked[used], np.where(asked, trials, 1.0)[used]
    mean = np.where(there, (first[used] - second[used]) / m, 0.0)
    apart = np.where(there, mean - (mean.sum(axis=-1) / count)[:, np.newaxis], 0.0)
    # Of the variance of the weighted mean, each point's part: by its share, and by how few questions it has.
    scale = share**2 / count / (share**2 / count).sum()
    variance = (apart**2).sum(axis=-1) / (count - 1.0)
    again = there & (m > 1)
    if not again.any():
        spread = Spread(float(scale @ variance), math.nan)
    else:
        own = ((first + second)[used] - m * mean**2) / np.maximum(m - 1.0, 1.0)
        within = np.where(again, own, 0.0).sum(axis=-1) / np.maximum(again.sum(axis=-1), 1)
        noise = within * np.where(there, 1.0 / m, 0.0).sum(axis=-1) / count
        spread = Spread(max(float(scale @ (variance - noise)), 0.0), float(scale @ within))
    if clusters is None:
        return spread
    return _with_clusters(spread, apart[there], np.repeat(share / count, count), clusters[used][there])


def _with_clusters(spread: Spread, apart: Floats, weights: Floats, clusters: NDArray[np.int64]) -> Spread:
    """The spread with what questions of a cluster have in common; they weigh as in the mean."""
    _, cluster = np.unique(clusters, return_inverse=True)
    squares, whole = (weights**2).sum(), (np.bincount(cluster, weights) ** 2).sum()
    moved = (np.bincount(cluster, weights * apart) ** 2).sum() - ((weights * apart) ** 2).sum()
    shared = max(float(moved / (whole - squares)), 0.0) if whole > squares else 0.0
    number = int(cluster.max()) + 1
    freed = number / max(number - 1.0, 1.0)
    return replace(
        spread, shared=shared * freed, size=float(whole / squares), mean_size=len(cluster) / number
    )
