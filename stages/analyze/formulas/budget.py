"""Accuracy under another limit of tokens, from how trials ended under the limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.forensics import ENDS, Curve
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.errors import ArgumentError


def budget_curve(ends: ArrayLike, at_end: ArrayLike = 0, *, confidence: float | None = None) -> Curve:
    """Share of right answers if each bin's end had been the limit of tokens, whatever cut trials would have said.

    A trial that was cut before a limit may be right with it, or not: nothing is taken to be alike. The value is what
    is sure, and the bounds reach from Wilson's lower one of it to the upper one of what is possible.

    Parameters
    ----------
    ends
        Counts from `count_ends`, shape (..., bin, end).
    at_end
        How many of those that were censored in a bin were so at its last token, shape (..., bin): with that limit
        they are cut, and not right.
    confidence
        Level of the pointwise bounds; None means z = 1.96.

    Returns
    -------
    Curve, arrays (..., bin)

    Examples
    --------
    >>> from evalcube.stages.analyze.formulas.forensics import count_ends
    >>> curve = budget_curve(count_ends([1, 1, 0, 2], [100, 300, 300, 512]))
    >>> curve.value.tolist(), curve.upper.round(2).tolist()
    ([0.25, 0.5], [0.7, 0.95])
    """
    counts = np.asarray(ends)
    if counts.ndim < 2 or counts.shape[-1] != len(ENDS):
        raise ArgumentError(f"`ends` has shape {counts.shape}; it must be (..., bin, {len(ENDS)}), as {ENDS}")
    trials = counts.sum(axis=(-2, -1))[..., np.newaxis]
    right, _, cut = np.moveaxis(np.cumsum(counts, axis=-2), -1, 0)
    value, lower, _ = wilson_bounds(right, trials, confidence=confidence)
    upper = wilson_bounds(right + cut - np.asarray(at_end), trials, confidence=confidence)[2]
    return Curve(np.asarray(value), np.asarray(lower), np.asarray(upper))
