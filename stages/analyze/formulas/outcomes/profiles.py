"""TailPass: the distribution of the average score of k future samples.

A profile holds, for each threshold t, the posterior mean and standard deviation of the probability that the
average score of k samples reaches t. It is exact: all ways to split k draws among the distinct scores are listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import cast

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import confidence_level, numbers
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.analyze.formulas.outcomes.counts import Integers, count_rows
from evalcube.stages.errors import ArgumentError

_SPLITS = 100_000
"""Most ways to split k draws that are listed for means."""
_PAIRED_SPLITS = 1_500
"""Most ways for variances, which look at all pairs."""
_GRID = 10_000
"""Largest default grid of thresholds."""
_ROUNDING = 1e-12
"""By how much an average score may miss a threshold through rounding."""


@dataclass(frozen=True)
class TailPassProfile:
    """Posterior of the chances to reach each threshold, as `tailpass` returns it."""

    k: int
    """Samples that are drawn of each question."""
    thresholds: Floats
    """Ascending in [0, 1], shape (thresholds,)."""
    scores: Floats
    """Distinct scores, ascending, shape (levels,)."""
    concentrations: Floats
    """Dirichlet parameters of the distinct questions, shape (rows, levels)."""
    rows: Integers
    """The row of each question, shape (M,)."""

    @cached_property
    def question_mean(self) -> Floats:
        """Mean of each question's threshold probabilities, shape (M, thresholds)."""
        return self._means(self._payoffs)[self.rows]

    @cached_property
    def mean(self) -> Floats:
        """Mean over the questions, shape (thresholds,)."""
        return np.asarray(self._weights @ self._means(self._payoffs) / self.rows.size)

    @cached_property
    def covariance(self) -> Floats:
        """Posterior covariance of the means over questions, shape (thresholds, thresholds)."""
        return self._covariance(self._payoffs)

    @cached_property
    def std(self) -> Floats:
        """Posterior standard deviations of the means over questions, shape (thresholds,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def linear(self, weights: object) -> tuple[float, float]:
        """Mean and standard deviation of a convex combination of the thresholds' probabilities.

        Parameters
        ----------
        weights
            One for each threshold, at least 0, shape (thresholds,); they add up to 1.

        Raises
        ------
        ValueError
            If there is not one weight >= 0 per threshold, with a sum of 1.
        """
        checked = inputs.spectrum_weights(weights, self.thresholds.size)
        if abs(math.fsum(checked) - 1.0) > 1e-9:
            raise ArgumentError(
                f"`weights` must add up to 1, got {math.fsum(checked)}; divide them by their sum"
            )
        return self._utility(checked @ self._payoffs)

    def moment(self, lam: float) -> tuple[float, float]:
        """Mean and standard deviation of E[(average score)^λ]; λ = 1 is Bayes@N.

        Parameters
        ----------
        lam
            λ, above 0 and finite.

        Raises
        ------
        ValueError
            If λ is not above 0 and finite.
        """
        return self._utility(self._averages ** inputs.concentration(lam, "lam"))

    def discovery(self) -> tuple[float, float]:
        """Mean and standard deviation of the probability that any of k samples scores above 0."""
        return self._utility((self._averages > 0.0).astype(np.float64))

    def stability(self) -> tuple[float, float]:
        """Mean and standard deviation of the probability that all of k samples score 1."""
        full = (self._splits[:, -1] == self.k) & (self.scores[-1] == 1.0)
        return self._utility(full.astype(np.float64))

    def ci(
        self, confidence: float = 0.95, *, method: str = "normal"
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """(mean, std, lo, hi) per threshold, with normal intervals clipped to [0, 1].

        Parameters
        ----------
        confidence
            Level of the intervals, in (0, 1).
        method
            "normal": the moments are exact, and nothing is sampled.

        Raises
        ------
        ValueError
            If `confidence` is not inside (0, 1), or `method` is not "normal".
        """
        if method != "normal":
            raise ArgumentError(
                f"`method` must be 'normal', got {method!r}; the moments are exact, nothing is sampled"
            )
        margin = scipy.special.ndtri((1.0 + confidence_level(confidence)) / 2.0) * self.std
        low, high = (np.clip(end, 0.0, 1.0) for end in (self.mean - margin, self.mean + margin))
        return self.mean, self.std, low, high

    @cached_property
    def _splits(self) -> Integers:
        return _splits(self.k, self.scores.size)

    @cached_property
    def _averages(self) -> Floats:
        return np.asarray(self._splits @ self.scores / self.k)

    @cached_property
    def _payoffs(self) -> Floats:
        return _payoffs(self._averages, self.thresholds)

    @cached_property
    def _weights(self) -> Integers:
        return np.bincount(self.rows, minlength=self.concentrations.shape[0])

    def _means(self, payoffs: Floats) -> Floats:
        log_ways = _log_ways(self.k, self._splits)
        parts = [payoffs @ np.exp(log_ways + _log_split(row, self._splits)) for row in self.concentrations]
        return np.stack(parts)

    def _covariance(self, payoffs: Floats) -> Floats:
        if self._splits.shape[0] > _PAIRED_SPLITS:
            raise ArgumentError(
                f"`k` = {self.k} with {self.scores.size} scores has {self._splits.shape[0]} outcomes, more than "
                f"the {_PAIRED_SPLITS} for which variances are computed; use a smaller `k` or fewer scores"
            )
        log_ways = _log_ways(self.k, self._splits)
        pairs = (self._splits[:, None, :] + self._splits[None, :, :]).reshape(-1, self.scores.size)
        log_pairs = (log_ways[:, None] + log_ways[None, :]).ravel()
        total = np.zeros((payoffs.shape[0], payoffs.shape[0]))
        for row, weight, mean in zip(self.concentrations, self._weights, self._means(payoffs), strict=True):
            joint = np.exp(log_pairs + _log_split(row, pairs)).reshape(log_ways.size, -1)
            centred = payoffs - mean[:, None]
            total += weight * (centred @ joint @ centred.T)
        return total / self.rows.size**2

    def _utility(self, payoff: Floats) -> tuple[float, float]:
        payoffs = payoff[None]
        mean = float((self._weights @ self._means(payoffs))[0]) / self.rows.size
        return mean, math.sqrt(max(float(self._covariance(payoffs)[0, 0]), 0.0))


def tailpass(
    R: object,
    k: int,
    w: object = None,
    R0: object = None,
    *,
    eta: float = 1.0,
    prior: object = 1.0,
    thresholds: object = None,
) -> TailPassProfile:
    """Posterior of the chance that the mean score of k independent samples reaches each threshold.

    Its parameters are prior + counts(R) + η counts(R0).

    Parameters
    ----------
    R, R0
        Outcomes 0..C, questions × samples, and prior outcomes of the same questions or None.
    k
        Budget, any k >= 1.
    w
        Scores of the categories, in [0, 1]; None means (0, 1). Categories with equal scores are merged.
    eta
        Weight of the prior outcomes, in [0, 1].
    prior
        Dirichlet concentrations above 0: one number, one per category, or questions × categories.
    thresholds
        Increasing average scores in [0, 1]; None means 1/k, 2/k, ..., 1.

    Returns
    -------
    The profile; its arrays are computed when they are first asked for.

    Raises
    ------
    ValueError
        If an argument breaks these rules, or k is too large for the default grid.

    Examples
    --------
    >>> profile = tailpass([[0, 1, 1], [1, 1, 1]], k=4)
    >>> round(profile.moment(1)[0], 3)
    0.7
    """
    scores, levels, category_level = _levels(w)
    budget = inputs.draws(k)
    rows = count_rows(inputs.outcomes(R), scores.size - 1).astype(np.float64)
    try:
        weight = inputs.fraction(eta, "eta")
    except TypeError as error:
        raise ArgumentError(str(error)) from error
    if R0 is not None:
        extra = count_rows(inputs.prior_outcomes(R0, rows.shape[0]), scores.size - 1, "R0")
        rows = rows + weight * extra
    rows = rows + _prior(prior, rows.shape)
    merged = np.stack([rows[:, category_level == level].sum(axis=1) for level in range(levels.size)], axis=1)
    distinct, places = np.unique(merged, axis=0, return_inverse=True)
    return TailPassProfile(budget, _thresholds(thresholds, budget), levels, distinct, places.ravel())


def tailpass_empirical(R: object, k: int, w: object = None, *, thresholds: object = None) -> Floats:
    """Threshold probabilities for k of the N samples without replacement, averaged over questions.

    Parameters
    ----------
    R
        Outcomes 0..C, shape (question, sample).
    k
        Samples drawn from the N of each question, 1 <= k <= N.
    w
        Scores of the categories, in [0, 1]; None means (0, 1). Categories with equal scores are merged.
    thresholds
        Increasing average scores in [0, 1]; None means 1/k, 2/k, ..., 1.

    Returns
    -------
    Shape (threshold,): the probability that the average score of the k samples reaches each threshold.

    Raises
    ------
    ValueError
        If an argument breaks these rules, or k is too large for the default grid.

    Examples
    --------
    >>> tailpass_empirical([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2).round(6).tolist()
    [0.95, 0.45]
    """
    scores, levels, category_level = _levels(w)
    rows = count_rows(inputs.outcomes(R), scores.size - 1)
    budget = inputs.draws(k, int(rows[0].sum()))
    merged = np.stack([rows[:, category_level == level].sum(axis=1) for level in range(levels.size)], axis=1)
    splits = _splits(budget, levels.size)
    payoffs = _payoffs(splits @ levels / budget, _thresholds(thresholds, budget))
    distinct, weights = np.unique(merged, axis=0, return_counts=True)
    log_ways = _log_ways(budget, splits)
    means = [payoffs @ np.exp(log_ways + _log_split(-row.astype(np.float64), splits)) for row in distinct]
    return np.asarray(weights @ np.stack(means) / weights.sum())


def _levels(w: object) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Scores of the categories, the distinct ones, and the place of each category among these."""
    scores = inputs.rewards((0.0, 1.0) if w is None else w)
    if (scores < 0).any() or (scores > 1).any():
        raise ArgumentError(f"`w` must hold scores in [0, 1], got {scores.tolist()}")
    levels, places = np.unique(scores, return_inverse=True)
    return scores, levels, places


def _prior(prior: object, shape: tuple[int, ...]) -> Floats:
    array = numbers(cast(ArrayLike, prior), "prior")
    if array.dtype.kind not in "iuf" or array.shape not in ((), shape[1:], shape):
        raise ArgumentError(
            f"`prior` must be a number, one per category ({shape[1]}) or an array of shape {shape}, got {prior!r}"
        )
    floats = array.astype(np.float64)
    if not (np.isfinite(floats) & (floats > 0)).all():
        raise ArgumentError(f"`prior` must hold finite concentrations above 0, got {prior!r}")
    return floats


def _thresholds(thresholds: object, k: int) -> Floats:
    if thresholds is None:
        if k > _GRID:
            raise ArgumentError(f"`k` = {k} makes more than {_GRID} default thresholds; pass `thresholds`")
        return np.arange(1, k + 1) / k
    array = inputs.rewards(thresholds)
    if array.size == 0 or array[0] < 0 or array[-1] > 1 or (np.diff(array) <= 0).any():
        raise ArgumentError(
            f"`thresholds` must increase strictly within [0, 1] and not be empty, got {thresholds!r}"
        )
    return array


def _payoffs(averages: Floats, thresholds: Floats) -> Floats:
    return (averages >= thresholds[:, None] - _ROUNDING).astype(np.float64)


def _splits(k: int, levels: int) -> Integers:
    """All ways to split k draws among the levels, shape (ways, levels)."""
    ways = math.comb(k + levels - 1, levels - 1)
    if ways > _SPLITS:
        raise ArgumentError(
            f"`k` = {k} draws split among {levels} scores in {ways} ways, more than {_SPLITS}; "
            "use a smaller `k` or fewer distinct scores"
        )
    bars = np.array(list(combinations(range(k + levels - 1), levels - 1)), dtype=np.int64).reshape(
        ways, levels - 1
    )
    return np.diff(bars, axis=1, prepend=-1, append=k + levels - 1) - 1


def _log_ways(k: int, splits: Integers) -> Floats:
    return np.asarray(scipy.special.gammaln(k + 1.0) - scipy.special.gammaln(splits + 1.0).sum(axis=1))


def _log_split(row: Floats, splits: Integers) -> Floats:
    """Log of the rising factorials Π (a_l)_{x_l} / (Σ a)_k; for negative integers a, draws without replacement."""
    most = int(splits[0].sum())
    total = np.zeros(splits.shape[0])
    for level, a in enumerate(row):
        total += _log_rises(float(a), most)[splits[:, level]]
    return np.asarray(total - _log_rises(float(row.sum()), most)[-1])


def _log_rises(a: float, most: int) -> Floats:
    with np.errstate(divide="ignore"):
        factors = np.log(np.abs(a + np.arange(most)))
    if a <= 0:
        factors[int(-a) :] = -np.inf
    return np.concatenate([[0.0], np.cumsum(factors)])
