"""Weights of points by the design of a sweep, so that no summary depends on where trials were added later.

The *base design* says how many answers each point was first planned with. Adaptive sampling and filters give some
points more. Each point's counters are scaled by what it was planned with over what was asked, and summed; the sums are
then scaled to Kish's effective number of trials, so that a formula which takes them for plain counts is as sure as it
may be. Where all points have grown alike, both scales are 1 and the sums are the plain ones, to the last bit.

References
----------
L. Kish (1965), Survey Sampling, Wiley, chapter 8: effective sample size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.reply.status import COUNTERS


def design_factors(counters: ArrayLike, base: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> Floats:
    """Factor of each point's counters: its base design over the answers that were asked for, at most 1.

    Trials that have not run are not counted as asked for, so that a sweep which is stopped while points grow weighs
    them as before. A point that lost requests weighs less by what it lost.

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
    Array (...), in (0, 1].

    Examples
    --------
    >>> design_factors([[32, 0], [128, 0], [30, 2]], 32, labels=["trials", "transport"]).tolist()
    [1.0, 0.25, 1.0]
    """
    asked = column(counters, "trials", labels)
    if "transport" in labels:
        asked = asked + column(counters, "transport", labels)
    first, asked = np.broadcast_arrays(np.asarray(base, dtype=float), asked)
    grown = (first > 0) & (asked > first)
    return np.asarray(np.where(grown, first, 1.0) / np.where(grown, asked, 1.0))


def levelled(factors: ArrayLike, used: ArrayLike, *, axis: int | tuple[int, ...]) -> Floats:
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
