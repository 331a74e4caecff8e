"""What answers to questions that were asked several times are worth, from sums over questions.

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
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
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
        found = np.where(shown[1] > 0, shown[0] / shown[1], most)
    return np.asarray(np.clip(found, 1.0, most))


def unit_moments(
    values: Floats, weights: Floats, cells: _Integers, units: _Integers, strata: _Integers
) -> Floats:
    """Sums for `evalcube.stages.analyze.formulas.stratified.combine` of a weighted mean of values, shape (moment,).

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
    number = np.bincount(strata[there], minlength=int(strata.max(initial=0)) + 1)[strata]
    alone = there & (number == 1)
    spread = np.where(number > 1, number / np.maximum(number - 1, 1), 0.0) * apart**2
    mass = float(weights.sum())
    parts = (1.0, mass, 0.0, mass, product.sum(), spread.sum(), (share**2).sum(), (share[alone] ** 2).sum())
    return np.array(parts)
