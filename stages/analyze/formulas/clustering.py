"""Design effects of questions that were asked several times, from sums over questions.

Answers to one question are alike, questions are not. With c right among m answers of a question, n answers and s right
ones of a point in all, the variance of s by question is Q/(Q − 1) · Σ(c − m s/n)², which needs no more of the questions
than Q, Σc², Σcm and Σm²; by answer it is s(n − s)/(n − 1). Their ratio is the design effect: so many answers are worth
one independent answer.

References
----------
J. N. K. Rao, A. J. Scott (1992), A simple method for the analysis of clustered binary data, Biometrics 48, 577-585.
https://doi.org/10.2307/2532311
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import broadcast, check_counts, fitting
from evalcube.stages.analyze.formulas.intervals import Z_95, Floats
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import LAST_FINISHED, Status

_Integers = NDArray[np.int64]

MOMENTS = ("correct", "answers", "questions", "correct_squares", "correct_answers", "answer_squares")
"""Sums over the questions of a point: Σc, Σm, Q, Σc², Σcm, Σm²."""


def cluster_moments(status: NDArray[np.uint8]) -> Floats:
    """Sums over the questions of each point, `MOMENTS`, from outcomes.

    Parameters
    ----------
    status
        Codes of `evalcube.stages.reply.status.Status`, shape (..., question, repeat). A truncated trial is a wrong
        answer.

    Returns
    -------
    Array (..., moment); sums over parts of the questions add.

    Examples
    --------
    >>> cluster_moments(np.array([[1, 1], [0, 1], [255, 255]], np.uint8)).tolist()
    [3.0, 4.0, 2.0, 5.0, 6.0, 8.0]
    """
    right = (status == int(Status.CORRECT)).sum(axis=-1, dtype=np.float64)
    asked = (status <= LAST_FINISHED).sum(axis=-1, dtype=np.float64)
    parts = (right, asked, asked > 0, right**2, right * asked, asked**2)
    return np.stack([np.asarray(part).sum(axis=-1, dtype=np.float64) for part in parts], axis=-1)


def cluster_effect(moments: ArrayLike) -> Floats:
    """Answers that are worth one independent answer, over the points of the axis before the last.

    Parameters
    ----------
    moments
        Array (..., point, moment) of `MOMENTS`.

    Returns
    -------
    Array (...): from 1, answers to a question are independent, to the answers of a question, they say the same; that
    is also taken where nothing can be said, as where all answers are right.

    Examples
    --------
    >>> alike = cluster_moments(np.array([[[1] * 4, [0] * 4, [1] * 4, [0] * 4]], np.uint8))
    >>> float(cluster_effect(alike)), float(cluster_effect([[5.0, 8.0, 8.0, 5.0, 5.0, 8.0]]))
    (4.0, 1.0)
    """
    right, asked, questions, squares, products, sizes = np.moveaxis(np.asarray(moments, dtype=float), -1, 0)
    with np.errstate(all="ignore"):
        rate = right / asked
        spread = squares - 2.0 * rate * products + rate**2 * sizes
        by_question = questions / (questions - 1.0) * spread
        by_answer = right * (asked - right) / (asked - 1.0)
        used = questions > 1
        shown = [np.where(used, part, 0.0).sum(axis=-1) for part in (by_question, by_answer)]
        most = np.maximum(asked.sum(axis=-1) / np.maximum(questions.sum(axis=-1), 1.0), 1.0)
        effect = np.where(shown[1] > 0, shown[0] / shown[1], most)
    return np.asarray(np.clip(effect, 1.0, most))


def design_effect(
    first_only: ArrayLike, second_only: ArrayLike, trials: ArrayLike, weights: ArrayLike = 1.0
) -> float:
    """Number of trials that are worth one independent trial.

    Parameters
    ----------
    first_only, second_only, trials
        Numbers of trials that only the first got right, that only the second got right, and of all trials; shape
        (stratum, question).
    weights
        Weights of the strata; must broadcast to (stratum,).

    Returns
    -------
    From 1 (trials of a question are independent) to the largest number of trials of a question (they are all alike),
    which is also returned if the data cannot tell.

    Raises
    ------
    ValueError
        If a count is negative or infinite, or shapes do not fit.

    References
    ----------
    J. N. K. Rao, A. J. Scott (1992), A simple method for the analysis of clustered binary data, Biometrics 48,
    577-585. https://doi.org/10.2307/2532311

    Examples
    --------
    >>> design_effect([[4, 0, 4, 0, 0]], [[0, 4, 0, 0, 0]], [[4, 4, 4, 4, 4]])
    4.0
    """
    b, c, asked = np.broadcast_arrays(*fitting(first_only=first_only, second_only=second_only, trials=trials))
    if asked.ndim == 0:
        raise ArgumentError("`trials` must be (stratum, question), got a single number")
    for name, part in (("first_only", b), ("second_only", c), ("trials", asked)):
        check_counts(part, name)
    most = float(asked.max(initial=0.0))
    if most <= 1.0:
        return 1.0
    questions, n = (asked > 0).sum(axis=-1), asked.sum(axis=-1)
    used = questions > 1
    share = broadcast(weights, "weights", used.shape)[used].astype(np.float64) ** 2
    b, c, asked, questions, n = b[used], c[used], asked[used], questions[used], n[used]
    mean = (b - c).sum(axis=-1) / n
    spread = ((b - c - mean[:, np.newaxis] * asked) ** 2).sum(axis=-1)
    by_question = questions / (questions - 1) * spread / n**2
    by_trial = ((b + c).sum(axis=-1) - n * mean**2) / (n * (n - 1))
    if (share * by_trial).sum() <= 0.0:
        return most
    return float(np.clip((share * by_question).sum() / (share * by_trial).sum(), 1.0, most))


def unit_effect(
    values: Floats,
    squares: Floats,
    sizes: Floats,
    weights: Floats,
    units: _Integers,
    *,
    cells: _Integers,
    prior: float = 1.0,
) -> float:
    """Trials that are worth one independent trial where units of several questions are drawn, such as passages.

    The variance of a weighted mean over cells by unit, whose sums of deviations from the cells' means are independent,
    over that by trial; times (t/1.96)², t being Student's 97.5% point for one degree of freedom less than there are
    units. A cell with one unit says nothing of its own mean: there deviations are from the mean of all.

    Parameters
    ----------
    values, squares, sizes
        Of each question, shape (n,): the sum of its trials' values, of their squares, and their number, above 0.
    weights
        Weight of each cell, shape (cell,).
    units, cells
        Numbers of each question's unit and cell, shape (n,).
    prior
        Weight of the most that it can be, beside three for each unit's worth of the rarer outcome: where this is rare,
        the units that would show how alike they are may not have come.

    Returns
    -------
    From 1 to the number of trials; that also where there is one unit, and where nothing varies what the units' sizes
    alone say.

    References
    ----------
    K.-Y. Liang, S. L. Zeger (1986), Longitudinal data analysis using generalized linear models, Biometrika 73, 13-22.

    Examples
    --------
    >>> right, one, unit = np.array([1.0, 1, 0, 0, 1, 1, 0, 0]), np.ones(8), np.arange(8) // 2
    >>> round(unit_effect(right, right, one, np.ones(1), unit, cells=0 * unit, prior=0.0), 2)
    6.15
    """
    _, units = np.unique(units, return_inverse=True)
    number, trials = int(units.max(initial=-1)) + 1, float(sizes.sum())
    if number < 2:
        return max(trials, 1.0)
    n, total, square = (np.bincount(cells, part, len(weights)) for part in (sizes, values, squares))
    share = np.where(n > 0, weights, 0.0)
    rate = total / np.maximum(n, 1.0)
    inside = np.bincount(np.unique(cells * number + units) // number, minlength=len(weights))
    centre = np.where(inside > 1, rate, (share * rate).sum() / share.sum())
    each = share / np.maximum(n, 1.0)
    apart = np.bincount(units, each[cells] * (values - centre[cells] * sizes))
    by_unit = number / (number - 1.0) * (apart**2).sum()
    by_trial = (each**2 * np.where(n > 1, (square - n * rate**2) * n / np.maximum(n - 1.0, 1.0), 0.0)).sum()
    parts = np.bincount(units, each[cells] * sizes)
    alike = float((parts**2).sum() / (each**2 * n).sum())
    effect = max(float(by_unit / by_trial), 1.0) if by_trial > 1e-12 else alike
    mean = float((share * rate).sum() / share.sum())
    seen = 3.0 * number * min(mean, 1.0 - mean)
    effect = (seen * effect + prior * max(alike, effect)) / (seen + prior) if prior else effect
    # Where nothing else holds the effect up, units count as many as equal ones: one large one is most of the variance.
    units_worth = number if prior else float(parts.sum() ** 2 / (parts**2).sum())
    return min(effect * widening(units_worth), max(trials, 1.0))


def widening(units: float) -> float:
    """By how much a variance from so many units counts more, as of few it is itself unsure: (t/1.96)² at 97.5%."""
    return float(scipy.special.stdtrit(max(units - 1.0, 1.0), 0.975) / Z_95) ** 2


def unit_moments(
    values: Floats, weights: Floats, cells: _Integers, units: _Integers, strata: _Integers
) -> Floats:
    """Sums for `evalcube.stages.analyze.formulas.stratified.parts_of` of a weighted mean of values: (stratum, moment).

    Units are independent within their stratum, whatever their values have in common: the variance is that of the units'
    sums of deviations from the means of cells.

    Parameters
    ----------
    values, weights
        Values in [0, 1] and their weights, shape (n,).
    cells, units
        Numbers of the cell, whose mean is not left to chance, and of the unit that each belongs to, shape (n,).
    strata
        Number of the stratum of each unit, shape (unit,).
    """
    total, product = (np.bincount(cells, part) for part in (weights, weights * values))
    means = product / np.where(total > 0, total, 1.0)
    apart = np.bincount(units, weights * (values - means[cells]), len(strata))
    share = np.bincount(units, weights, len(strata))
    there = share > 0
    most = int(strata.max(initial=0)) + 1
    number = np.bincount(strata[there], minlength=most)[strata]
    alone = there & (number == 1)
    spread = np.where(number > 1, number / np.maximum(number - 1, 1), 0.0) * apart**2
    parts = (
        np.ones(len(strata)),
        share,
        0.0 * share,
        share,
        np.bincount(units, weights * values, len(strata)),
        spread,
        share**2,
        np.where(alone, share**2, 0.0),
    )
    return np.stack([np.bincount(strata, part, most) for part in parts], axis=-1)


def cluster_units(clusters: _Integers) -> _Integers:
    """Number of the cluster of each question, shape (..., question): one of its own, below 0, where it has none."""
    own = -1 - np.arange(clusters.size).reshape(clusters.shape)
    return np.where(clusters > 0, clusters, own)


def unit_means(values: Floats, weights: Floats, units: _Integers) -> tuple[Floats, Floats]:
    """Weighted mean of the values of each unit, and its weight: their weighted mean is that of the values.

    Parameters
    ----------
    values, weights
        Of each question, shape (n,) or (n, column); NaN is no value, and a unit without any is NaN, with weight 0.
    units
        Number of each question's unit, shape (n,), which may be any.

    Examples
    --------
    >>> [part.tolist() for part in unit_means(np.array([1.0, 3, 5]), np.ones(3), np.array([-1, 7, 7]))]
    [[1.0, 4.0], [1.0, 2.0]]
    """
    _, unit = np.unique(units, return_inverse=True)
    there = ~np.isnan(values)
    shape = (int(unit.max(initial=-1)) + 1, *values.shape[1:])
    number, total, product = (np.zeros(shape) for _ in range(3))
    for into, part in ((number, there), (total, weights * there), (product, weights * np.nan_to_num(values))):
        np.add.at(into, unit, part)
    return np.where(number > 0, product / np.where(total > 0, total, 1.0), np.nan), total


def units_of(clusters: _Integers, tasks: _Integers) -> tuple[_Integers, ...]:
    """Units of questions, numbered from 0, and the task of each.

    Parameters
    ----------
    clusters
        Of questions, shape (point, trial); see `cluster_units`.
    """
    _, codes = np.unique(cluster_units(clusters), return_inverse=True)
    whose = np.repeat(tasks, clusters.shape[1])
    inside = codes.ravel() * (int(tasks.max(initial=0)) + 1) + whose
    _, first, units = np.unique(inside, return_index=True, return_inverse=True)
    return units.reshape(clusters.shape), whose[first]
