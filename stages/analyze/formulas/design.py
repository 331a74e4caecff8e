"""Weights of points by the design of a sweep, so that no summary depends on where trials were added or lost.

The *base design* says how many answers each point was first planned with; it is a ratio, within each task. What all
summaries estimate is the mean over tasks of the means over a task's points, each weighing as in the base design
(`task_weights`). Formulas that take counts get sums instead: each point's counters are scaled by its base over its
finished trials and summed; the sums are then scaled to Kish's effective number of trials. Where all points have grown
alike, both scales are 1 and the sums are the plain ones, to the last bit.

References
----------
L. Kish (1965), Survey Sampling, Wiley, chapter 8: effective sample size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.reply.status import COUNTERS

if TYPE_CHECKING:  # with it comes scipy, which a run does without
    from evalcube.stages.analyze.formulas.intervals import Floats

Weigh = Literal["tasks", "points", "trials"]
"""What has the same weight in a mean: each task, with points in it as in the base design; each point; each trial."""

WEIGHING: dict[str, str] = {
    "tasks": "tasks have equal weight; a task's points are weighted by their planned trials in the cube's first run",
    "points": "all points have equal weight",
    "trials": "all trials have equal weight",
}


def ratios(base: ArrayLike, used: ArrayLike) -> Floats:
    """A base design in lowest terms within each task, so that designs of equal ratios are equal.

    Parameters
    ----------
    base
        Answers of the base design, shape (..., point); a task where any that is used is not known, which is 0, has 1 at
        all of its points.
    used
        Booleans that broadcast to the same shape: points that count.

    Returns
    -------
    Whole numbers, shape (..., point); 0 where not used.

    Examples
    --------
    >>> ratios([[32, 32, 64], [0, 5, 7]], [[True, True, True], [True, True, False]]).tolist()
    [[1.0, 1.0, 2.0], [1.0, 1.0, 0.0]]
    """
    first, there = np.broadcast_arrays(np.asarray(base, dtype=np.int64), np.asarray(used, dtype=bool))
    planned = ~(there & (first <= 0)).any(axis=-1, keepdims=True)
    least = np.where(there & planned, first, 1 * ~planned)
    divisor = np.maximum(np.gcd.reduce(least, axis=-1, keepdims=True), 1)
    return np.where(there, np.where(planned, first // divisor, 1), 0).astype(np.float64)


def task_weights(base: ArrayLike, used: ArrayLike) -> Floats:
    """Weights of points in a mean over all tasks: as in the base design within a task, and each task 1.

    Parameters
    ----------
    base, used
        As for `ratios`, shape (..., task, point).

    Returns
    -------
    Array (..., task, point), which sums to the number of tasks with points that are used.

    Examples
    --------
    >>> task_weights([[32, 96], [32, 32]], [[True, True], [True, False]]).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    share = ratios(base, used)
    total = share.sum(axis=-1, keepdims=True)
    return np.asarray(share / np.where(total > 0, total, 1.0))


def worth_of(questions: ArrayLike, weights: ArrayLike) -> tuple[float, int]:
    """Questions of equal weight that tell as much as these, and the first axis' place that costs the most of them.

    Parameters
    ----------
    questions, weights
        Shape (task, point); of points without weight they do not count.

    Examples
    --------
    >>> worth, place = worth_of([[1000], [20]], [[1.0], [1.0]])
    >>> round(worth), place
    (78, 1)
    """
    share = np.asarray(weights, dtype=float)
    total = share.sum()
    if total <= 0:
        return 0.0, 0
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(share > 0, (share / total) ** 2 / np.asarray(questions, float), 0.0).sum(axis=-1)
    return 1.0 / float(lost.sum()), int(lost.argmax())


def design_factors(counters: ArrayLike, base: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> Floats:
    """Factor of each point's counters: its base design over its finished trials.

    Parameters
    ----------
    counters
        Array (..., counter).
    base
        Answers of the base design, broadcasts to (...); 0 where it is not known, which is factor 1.
    labels
        Names along the last axis.

    Returns
    -------
    Array (...), of positive numbers; 1 without trials.

    Examples
    --------
    >>> design_factors([[32], [128], [16]], 32, labels=["trials"]).tolist()
    [1.0, 0.25, 2.0]
    """
    first, trials = np.broadcast_arrays(np.asarray(base, dtype=float), column(counters, "trials", labels))
    used = (first > 0) & (trials > 0)
    return np.asarray(np.where(used, first, 1.0) / np.where(used, trials, 1.0))


def normalise(factors: ArrayLike, used: ArrayLike, *, axis: int | tuple[int, ...]) -> Floats:
    """Factors with the largest of those used set to 1: only their proportions matter.

    Parameters
    ----------
    factors
        Array (...).
    used
        Booleans of the same shape: points with trials.
    axis
        Axes over which there is one largest.
    """
    values = np.asarray(factors, dtype=float)
    most = np.where(used, values, 0.0).max(axis=axis, keepdims=True, initial=0.0)
    return np.asarray(np.where(used, values / np.where(most > 0, most, 1.0), 1.0))


def design_moments(
    counters: ArrayLike, factors: ArrayLike, *, labels: Sequence[str] = COUNTERS
) -> tuple[Floats, Floats]:
    """What points add to a group: scaled counters (..., counter), and scaled trials once more by the factor (...)."""
    share = np.asarray(factors, dtype=float)
    scaled = np.asarray(counters, dtype=float) * share[..., np.newaxis]
    return scaled, column(scaled, "trials", labels) * share


def effective(sums: ArrayLike, squares: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> Floats:
    """Counters of groups at their effective number of trials, from sums of `design_moments`: array (..., counter).

    With factors f and trials n of the points there are (Σfn)²/Σf²n trials.

    Examples
    --------
    >>> cells, factors = [[64.0, 32.0], [64.0, 64.0]], [1.0, 0.5]
    >>> parts = design_moments(cells, factors, labels=["trials", "correct"])
    >>> effective(*(part.sum(axis=0) for part in parts), labels=["trials", "correct"]).round(3).tolist()
    [115.2, 76.8]
    """
    total = np.asarray(sums, dtype=float)
    trials, square = column(total, "trials", labels), np.asarray(squares, dtype=float)
    return total * (np.where(square > 0, trials, 1.0) / np.where(square > 0, square, 1.0))[..., np.newaxis]
