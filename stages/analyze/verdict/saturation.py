"""Whether more samples still change the picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

Method = Literal["bootstrap-ci-width", "slope", "plateau-height"]
Confidence = Literal["low", "medium", "high"]

DEFAULT_THRESHOLD: dict[Method, float] = {"bootstrap-ci-width": 0.05, "slope": 0.005, "plateau-height": 0.1}
"""Relative change of the interval's width; change of the mean per sample; range of the last means."""

MIN_RUNS = 5
"""Fewer checkpoints give no verdict."""


@dataclass(frozen=True)
class Checkpoint:
    """State after some of the samples."""

    samples: int
    mean: float
    width: float
    """Width of the mean's interval."""


@dataclass(frozen=True)
class Saturation:
    """Whether a growing sample has settled."""

    saturated: bool
    at: int | None
    """Samples at which the last `window` changes were all small for the first time."""
    confidence: Confidence
    """By the final number of samples: low < 20, medium < 50, high."""
    method: Method
    threshold: float
    trace: tuple[tuple[int, float], ...]
    """(samples, change) per checkpoint; the change is infinite where a window is not yet full."""


def saturation(
    checkpoints: Sequence[Checkpoint],
    *,
    method: Method = "bootstrap-ci-width",
    threshold: float | None = None,
    window: int = 3,
    rounded: Callable[[float], float] | None = None,
) -> Saturation:
    """Saturation of a sequence of checkpoints: `window` changes in a row are at most `threshold`.

    Parameters
    ----------
    checkpoints
        In order of growing samples.
    method
        What counts as change: relative change of the interval's width, slope of the mean, or the range of the
        last `window` + 1 means.
    threshold
        Largest change that counts as none; None takes `DEFAULT_THRESHOLD`.
    window
        Changes in a row that must be small, >= 1.
    rounded
        Rounds the changes, for profiles that compare rounded numbers.
    """
    limit = DEFAULT_THRESHOLD[method] if threshold is None else threshold
    last = checkpoints[-1].samples if checkpoints else 0
    confidence: Confidence = "high" if last >= 50 else "medium" if last >= 20 else "low"
    if len(checkpoints) < window + 1:
        return Saturation(False, None, confidence, method, limit, ())
    trace = tuple(_changes(checkpoints, method, window))
    if rounded is not None:
        trace = tuple((samples, rounded(change)) for samples, change in trace)
    small = [change <= limit for _, change in trace]
    for place in range(window - 1, len(trace)):
        if all(small[place - window + 1 : place + 1]):
            return Saturation(True, trace[place][0], confidence, method, limit, trace)
    return Saturation(False, None, confidence, method, limit, trace)


def _changes(checkpoints: Sequence[Checkpoint], method: Method, window: int) -> list[tuple[int, float]]:
    steps = list(pairwise(checkpoints))
    if method == "slope":
        return [
            (now.samples, abs(now.mean - before.mean) / max(1, now.samples - before.samples))
            for before, now in steps
        ]
    if method == "bootstrap-ci-width":
        return [
            (now.samples, abs(before.width - now.width) / before.width if before.width > 0 else 0.0)
            for before, now in steps
        ]
    changes = []
    for place, now in enumerate(checkpoints):
        means = [point.mean for point in checkpoints[max(place - window, 0) : place + 1]]
        changes.append((now.samples, max(means) - min(means) if place >= window else math.inf))
    return changes


def cumulative(runs: Sequence[ArrayLike], *, alpha: float = 0.05) -> list[Checkpoint]:
    """Checkpoints after each run, with the width of Student's t interval of the mean.

    Parameters
    ----------
    runs
        Scores of each run; NaN is left out, and runs before the first score give no checkpoint.
    alpha
        1 − level of the interval.
    """
    points, seen = [], np.empty(0)
    for run in runs:
        scores = np.asarray(run, dtype=float)
        seen = np.concatenate([seen, scores[~np.isnan(scores)]])
        if len(seen):
            spread = float(seen.std(ddof=1)) / math.sqrt(len(seen)) if len(seen) > 1 else 0.0
            width = 2 * float(stdtrit(len(seen) - 1, 1 - alpha / 2)) * spread if spread > 0 else 0.0
            points.append(Checkpoint(len(seen), float(seen.mean()), width))
    return points
