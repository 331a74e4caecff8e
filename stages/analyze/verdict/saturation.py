"""Whether a growing sample has settled: more samples no longer narrow the interval of its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

Confidence = Literal["low", "medium", "high"]

METHOD = "bootstrap-ci-width"
"""What counts as a change: that of the interval's width, relative to the width before."""
THRESHOLD = 0.05
"""Largest change that counts as none."""
WINDOW = 3
"""Changes in a row that must be small."""

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
    method: str
    """What was taken as a change."""
    threshold: float
    trace: tuple[tuple[int, float], ...]
    """(samples, change) per checkpoint; the change is infinite where a window is not yet full."""


def saturation(checkpoints: Sequence[Checkpoint]) -> Saturation:
    """Saturation of a sequence of checkpoints, by the relative change of the interval's width.

    Parameters
    ----------
    checkpoints
        In order of growing samples; with no more than `WINDOW` of them nothing is said.
    """
    last = checkpoints[-1].samples if checkpoints else 0
    confidence: Confidence = "high" if last >= 50 else "medium" if last >= 20 else "low"
    if len(checkpoints) < WINDOW + 1:
        return Saturation(False, None, confidence, METHOD, THRESHOLD, ())
    trace = [
        (now.samples, abs(before.width - now.width) / before.width if before.width > 0 else 0.0)
        for before, now in pairwise(checkpoints)
    ]
    small = [change <= THRESHOLD for _, change in trace]
    ends = (place for place in range(WINDOW - 1, len(trace)) if all(small[place - WINDOW + 1 : place + 1]))
    first = next(ends, None)
    at = None if first is None else trace[first][0]
    return Saturation(at is not None, at, confidence, METHOD, THRESHOLD, tuple(trace))


def cumulative(runs: Sequence[ArrayLike]) -> list[Checkpoint]:
    """Checkpoints after each run, with the width of Student's t interval of the mean.

    Parameters
    ----------
    runs
        Scores of each run; NaN is left out, and runs before the first score give no checkpoint.
    """
    points, seen = [], np.empty(0)
    for run in runs:
        scores = np.asarray(run, dtype=float)
        seen = np.concatenate([seen, scores[~np.isnan(scores)]])
        if len(seen):
            spread = float(seen.std(ddof=1)) / math.sqrt(len(seen)) if len(seen) > 1 else 0.0
            width = 2 * float(stdtrit(len(seen) - 1, 0.975)) * spread if spread > 0 else 0.0
            points.append(Checkpoint(len(seen), float(seen.mean()), width))
    return points
