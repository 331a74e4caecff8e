"""Cost per trial and per right answer, and who is on the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import reals
from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.estimators import Bounds
from evalcube.stages.analyze.formulas.intervals import Floats, wilson_bounds
from evalcube.stages.analyze.formulas.ratios import brought
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS


@dataclass(frozen=True)
class Costs:
    """USD; arrays of the shape of the counters without their last axis."""

    total: Floats
    per_trial: Floats
    """Per finished trial; NaN without any."""
    per_correct: Floats
    """Per right answer, those that truncated and wrong trials cost included; NaN without a right answer."""
    per_correct_lower: Floats
    per_correct_upper: Floats
    """Of the share of right answers and of the cost per trial together; infinite for a share of 0."""


def costs(
    counters: ArrayLike,
    total: ArrayLike | None = None,
    *,
    labels: Sequence[str] = COUNTERS,
    confidence: float | None = None,
    right: Bounds | None = None,
    error: ArrayLike = 0.0,
) -> Costs:
    """Costs of groups of trials.

    Parameters
    ----------
    counters
        Summed counters, shape (..., counter).
    total
        USD of each group, shape (...); default the counter ``cost_sum``. NaN means that it is not known.
    labels
        Names along the last axis.
    confidence
        Level of the bounds; None means z = 1.96.
    right
        Share of right answers with its bounds, arrays (...); default Wilson's.
    error
        Standard error of the cost per trial as a share of it, shape (...).

    Examples
    --------
    >>> found = costs([200.0, 50.0, 3.0], labels=["trials", "correct", "cost_sum"])
    >>> float(found.per_trial), float(found.per_correct)
    (0.015, 0.06)
    """
    trials = column(counters, "trials", labels)
    correct = column(counters, "correct", labels)
    spent = column(counters, "cost_sum", labels) if total is None else np.asarray(total, dtype=np.float64)
    found = wilson_bounds(correct, trials, confidence=confidence) if right is None else right
    with np.errstate(all="ignore"):
        per_trial = spent / np.where(trials > 0, trials, np.nan)
        _, lower, upper = brought(found, per_trial, error, confidence=confidence)
        per_correct = spent / np.where(correct > 0, correct, np.nan)
        return Costs(np.asarray(spent), per_trial, per_correct, 1.0 / upper, 1.0 / lower)


def pareto_front(score: ArrayLike, *spends: ArrayLike) -> NDArray[np.bool_]:
    """True for points that no other point beats: none scores as high for as little, and better in one of them.

    Equal points are on the front together. A point with a NaN is not on it and beats no other.

    Parameters
    ----------
    score
        Shape (point,); more is better.
    spends
        One or more arrays (point,), such as tokens and cost; less is better.

    Returns
    -------
    Booleans, shape (point,).

    Raises
    ------
    ValueError
        If the arrays are not of one length, or nothing is spent.

    Examples
    --------
    >>> pareto_front([3, 2, 2, 1], [9, 4, 5, 4]).tolist()
    [True, True, False, False]
    """
    points = [-reals(score, "score"), *(reals(item, "spends") for item in spends)]
    shapes = [item.shape for item in points]
    if len(points) < 2 or any(shape != shapes[0] or len(shape) != 1 for shape in shapes):
        raise ArgumentError(f"`score` and at least one `spends` must have one shape (point,), got {shapes}")
    table = np.stack(points, axis=-1)
    known: NDArray[np.bool_] = np.asarray(~np.isnan(table).any(axis=-1))
    front = known.copy()
    rivals = table[known]
    for index in np.flatnonzero(known):
        beaten = (rivals <= table[index]).all(axis=-1) & (rivals < table[index]).any(axis=-1)
        front[index] = not beaten.any()
    return front
