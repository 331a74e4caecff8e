"""Paired tests and intervals of differences of models that answered the same trials.

Models of one cube answer the same questions, trial by trial, so that a pair differs in its discordant trials
only: b, which the first alone got right, and c, which the second alone did.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import axes, check_counts, fitting, reals
from evalcube.stages.analyze.formulas.estimators import Bounds
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.stratified import (
    combine,
    effective_trials,
    parts_of,
    score_moments,
    z_apart,
)
from evalcube.stages.errors import ArgumentError


def pair_table(
    first: NDArray[np.bool_],
    first_valid: NDArray[np.bool_],
    second: NDArray[np.bool_],
    second_valid: NDArray[np.bool_],
) -> Floats:
    """(trials of both, only the first right, only the second right) of arrays (..., trial): shape (..., 3)."""
    both = first_valid & second_valid
    parts = (both, both & first & ~second, both & second & ~first)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1).astype(np.float64)


def paired_difference(
    first_only: ArrayLike,
    second_only: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike = 1.0,
    *,
    axis: int | tuple[int, ...] = -1,
    confidence: float | None = None,
    units: ArrayLike | None = None,
) -> Bounds:
    """Difference of two success rates with bounds: weighted mean over strata of (first_only − second_only)/trials.

    A trial is worth 1, −1 or, if both were right or both wrong, 0; see `evalcube.stages.analyze.formulas.stratified`.

    Parameters
    ----------
    first_only, second_only, trials
        Numbers of trials of each stratum that only the first got right, that only the second got right, and of all
        trials; they must broadcast together. Strata without trials are left out.
    weights
        Weights of the strata, at least 0.
    axis
        The axis or axes along which the strata lie.
    confidence
        Confidence level of the interval, between 0 and 1; None means z = 1.96 exactly.
    units
        Number of independent trials that each stratum was planned with; None means the number that it has.

    Returns
    -------
    point, lower, upper
        In [−1, 1]; NaN without trials.

    Raises
    ------
    ValueError
        If a count or a weight is negative, a weight is NaN, first_only + second_only exceeds trials, shapes do not fit,
        an axis is not there, or `confidence` is not inside (0, 1).

    References
    ----------
    The interval of `evalcube.stages.analyze.formulas.stratified`: E. B. Wilson (1927) at the effective number of
    trials. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> [round(float(value), 3) for value in paired_difference([12], [2], [50])]
    [0.2, 0.046, 0.345]
    """
    sums = _difference_parts(first_only, second_only, trials, weights, axis, units)
    return combine(sums, confidence=confidence, least=-1.0)


def paired_test(
    first_only: ArrayLike,
    second_only: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike = 1.0,
    *,
    units: ArrayLike | None = None,
) -> tuple[Bounds, float, float]:
    """The difference over all strata as of `paired_difference`, the p value that it is 0, and what it is worth.

    The test is the one that the interval inverts: p is below 1 − level exactly where the interval of that level leaves
    0 out, and it never speaks for the side that the difference speaks against. What it is worth are independent ±1 that
    say as much: its variance under d is (1 − d²)/worth.

    Returns
    -------
    difference, p, worth
        Two-sided p in [0, 1]; NaN without trials.

    Raises
    ------
    ValueError
        As of `paired_difference`.

    References
    ----------
    The interval of `evalcube.stages.analyze.formulas.stratified`: E. B. Wilson (1927) at the effective number of
    trials. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> _, p, worth = paired_test([12], [2], [50])
    >>> round(p, 5), round(worth), round(paired_test([0], [0], [50])[2])
    (0.01121, 161, 675)
    """
    sums = _difference_parts(first_only, second_only, trials, weights, -1, units)
    p = math.erfc(float(z_apart(sums, 0.0)) / math.sqrt(2.0))
    return combine(sums, least=-1.0), p, float(effective_trials(sums)[1])


def paired_score(*counts: ArrayLike, border: float, units: ArrayLike | None = None) -> float:
    """By how many standard errors the difference of `paired_test` lies above a border, as its interval has it."""
    b, c, n, weights = counts
    sums = _difference_parts(b, c, n, weights, -1, units)
    return float(np.copysign(z_apart(sums, border), combine(sums, least=-1.0)[0] - border))


def _difference_parts(
    first_only: ArrayLike,
    second_only: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike,
    axis: int | tuple[int, ...],
    units: ArrayLike | None,
) -> Floats:
    """Moments of the differences by part."""
    planned = trials if units is None else units
    b, c, n, w, asked = np.broadcast_arrays(
        *fitting(
            first_only=first_only, second_only=second_only, trials=trials, weights=weights, units=planned
        )
    )
    for name, part in (("first_only", b), ("second_only", c), ("trials", n), ("units", asked)):
        check_counts(part, name)
    # Counts that were scaled to an effective number are no whole numbers any more.
    if np.any(b + c > n + 1e-9 * (1.0 + n)):
        raise ArgumentError(
            "`first_only` and `second_only` are parts of `trials` and must not exceed them together"
        )
    sums = score_moments(b, n, nothing=n - b - c, chance=0.5, weights=w)
    along = axes(axis, "axis", n.ndim)
    last = tuple(range(n.ndim - len(along), n.ndim))
    sums, asked = np.moveaxis(sums, along, last), np.moveaxis(asked, along, last)
    shape = (*asked.shape[: n.ndim - len(along)], -1)
    return parts_of(sums.reshape(*shape, sums.shape[-1]), asked.reshape(shape))


def holm(p: ArrayLike, *, axis: int = -1) -> Floats:
    """Adjust p values by Holm's method; a NaN does not count as a test.

    Parameters
    ----------
    p
        p values between 0 and 1, any shape; NaN where there is no test.
    axis
        The axis along which p values are adjusted for their number.

    Returns
    -------
    Adjusted p values in [0, 1], of the same shape; NaN where there was none.

    Raises
    ------
    ValueError
        If a p value is outside [0, 1], or the axis is not there.

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics
    6, 65-70. https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = reals(p, "p")
    if np.any((p_values < 0.0) | (p_values > 1.0)):
        raise ArgumentError(
            f"`p` must hold p values in [0, 1], got {p_values[(p_values < 0.0) | (p_values > 1.0)].flat[0]:g}"
        )
    (axis,) = axes(axis, "axis", p_values.ndim) or (-1,)
    values = np.moveaxis(p_values, axis, -1)
    order = np.argsort(values, axis=-1)
    tests = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    factor = np.maximum(tests - np.arange(values.shape[-1]), 1)
    stepped = np.minimum(np.maximum.accumulate(np.take_along_axis(values, order, -1) * factor, axis=-1), 1.0)
    adjusted = np.empty_like(values)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return np.moveaxis(adjusted, -1, axis)
