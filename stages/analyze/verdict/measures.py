"""Minimum detectable difference, held-out gain and saturation, which stand beside a verdict.

A difference d of two composites is found in four of five cases where d = (z + 0.84) · s / √n, n being the complete
pairs, s the standard deviation of a pair's difference, and z = 1.96 for one look at 5%. Whoever looks again pays:
z² = (2 log 1/α + log(1 + V)) (1 + V)/V, V = n s², is what the e-value of
`evalcube.stages.analyze.formulas.sequential.sign_e_value` asks for. As s is an estimate itself, it is taken as much
larger as quantiles of Student's t with n − 1 degrees of freedom are than these (Julious 2004, Sample sizes for clinical
trials with Normal data, Statistics in Medicine 23, 1921-1986).

Held-out units may be harder than the others for any variant, so that levels say nothing of overfitting: the treatment's
gains over the control are compared. The test is Student's of two independent means with a common variance; as
only a smaller gain on the held-out part speaks against a treatment, it is one-sided.

A growing sample has settled where more samples no longer narrow the interval of its mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from evalcube.stages.analyze.verdict.composite import GRAIN
from evalcube.stages.analyze.verdict.paired import Interval

SPREAD = 0.52
"""Standard deviation of a question's difference, in points of 4, where nothing is known of it."""
_TAIL = NormalDist().inv_cdf(0.8)
"""Beyond the critical value lies the power of four in five."""


@dataclass(frozen=True)
class Reach:
    """What a comparison could have seen, and how many pairs would see a stated difference."""

    detectable: float
    """Difference that so many pairs find in four of five cases; infinite where none is."""
    difference: float
    """The stated one: the smallest that matters."""
    pairs: int
    """Pairs that find it in four of five cases with one look, planned so from the start."""
    pairs_again: int
    """Pairs in all that find it where this comparison is continued, and looked at again."""


def reach(
    spread: float, pairs: int, difference: float, *, alpha: float, again: bool = False, planned: float = 0.0
) -> Reach:
    """Return the minimum detectable difference for an observed standard deviation.

    Examples
    --------
    >>> seen = reach(0.52, 24, 0.1, alpha=0.05)
    >>> round(seen.detectable, 2), seen.pairs, seen.pairs_again
    (0.31, 232, 514)
    """
    if not spread > 0:
        spread = SPREAD
    elif pairs > 2:
        normal = _TAIL - NormalDist().inv_cdf(alpha / 2.0)
        high, low = scipy.special.stdtrit(pairs - 1, [0.8, alpha / 2.0]).tolist()
        spread *= (high - low) / normal
    seen = spread * (_critical(spread, pairs, alpha, again=again) + _TAIL) / math.sqrt(max(pairs, 1))
    return Reach(
        seen if pairs else math.inf,
        difference,
        _pairs_needed(spread, difference, planned or alpha, again=False),
        _pairs_needed(spread, difference, alpha, again=True),
    )


def _critical(spread: float, pairs: float, alpha: float, *, again: bool) -> float:
    """How many standard errors from 0 a mean must be."""
    if not again:
        return -NormalDist().inv_cdf(alpha / 2.0)
    information = max(pairs, 1) * spread**2
    return math.sqrt((2.0 * math.log(1.0 / alpha) + math.log1p(information)) * (1.0 + 1.0 / information))


def _pairs_needed(spread: float, difference: float, alpha: float, *, again: bool) -> int:
    pairs = 1.0
    for _ in range(50):  # a contraction: the critical value grows with the logarithm of the pairs
        pairs = (spread * (_critical(spread, pairs, alpha, again=again) + _TAIL) / difference) ** 2
    return math.ceil(pairs)


MIN_PART = 3
"""Fewer units on either side say nothing about generalisation."""


@dataclass(frozen=True)
class Split:
    """Places of the units of both parts, each in the given order."""

    train: tuple[int, ...]
    holdout: tuple[int, ...]


def split_holdout(ids: Sequence[object], ratio: float) -> Split | None:
    """Every so-many-th unit, or cluster of them, is held out; nothing is random, so that runs share the split.

    Examples
    --------
    >>> split_holdout([f"s{i}" for i in range(10)], 0.3).holdout
    (0, 3, 6)
    """
    total = len(ids)
    if not ratio > 0 or total == 0:
        return None
    count = math.floor(total * ratio + 0.5)
    if count < MIN_PART or total - count < MIN_PART:
        return None
    held = {math.floor(index * (total / count)) for index in range(count)}
    return Split(tuple(index for index in range(total) if index not in held), tuple(sorted(held)))


@dataclass(frozen=True)
class Holdout:
    """The gain on both parts, and how they differ."""

    train: float
    held_out: float
    gap: Interval
    """Gain on the other units − gain on those held out, at level 1 − 2 alpha: positive with an error of alpha."""
    detectable: float = 0.0
    """Gap that so many units find in four of five cases."""


def gain_gap(
    differences: ArrayLike, split: Split, *, alpha: float = 0.05, shares: ArrayLike = 1.0
) -> Holdout | None:
    """How much larger a gain is on the units that were not held out; None if a part has fewer than `MIN_PART` pairs.

    Examples
    --------
    >>> holdout = gain_gap([0.5, 0.4, 0.6, 0.5, 0.1, 0.0, -0.1, 0.0], Split((0, 1, 2, 3), (4, 5, 6, 7)))
    >>> round(holdout.gap.estimate, 2), round(holdout.gap.low, 2), holdout.gap.positive
    (0.5, 0.39, True)
    """
    values = np.asarray(differences, dtype=float)
    weights = np.broadcast_to(np.asarray(shares, dtype=float), values.shape)
    there = ~np.isnan(values) & (weights > 0)
    parts = [[index for index in places if there[index]] for places in (split.train, split.holdout)]
    if min(map(len, parts)) < MIN_PART:
        return None
    means = [float(np.average(values[part], weights=weights[part])) for part in parts]
    pairs, free = len(parts[0]) + len(parts[1]), len(parts[0]) + len(parts[1]) - 2
    deviations = [weights[part] * (values[part] - mean) ** 2 for part, mean in zip(parts, means, strict=True)]
    variance = sum(map(np.sum, deviations)) / sum(weights[part].sum() for part in parts) * pairs / free
    error = math.sqrt(variance * sum((weights[part] ** 2).sum() / weights[part].sum() ** 2 for part in parts))
    gap, (tail, margin) = means[0] - means[1], scipy.special.stdtrit(free, [0.8, 1.0 - alpha]).tolist()
    gap = 0.0 if abs(gap) < GRAIN else gap
    ratio = abs(gap) / error if error > 0 else math.inf if gap else 0.0
    p_value = 2.0 * float(scipy.special.stdtr(free, -ratio))
    half = margin * error
    interval = Interval(gap, gap - half, gap + half, p_value, 2.0 * alpha, pairs, "student")
    return Holdout(means[0], means[1], interval, (tail + margin) * error)


Confidence = Literal["low", "medium", "high"]

METHOD = "bootstrap-ci-width"
"""What counts as a change: that of the interval's width, relative to the width before."""
_SETTLED = 0.05
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
    """Saturation of a sequence of checkpoints, by the relative change of the interval's width."""
    last = checkpoints[-1].samples if checkpoints else 0
    confidence: Confidence = "high" if last >= 50 else "medium" if last >= 20 else "low"
    if len(checkpoints) < WINDOW + 1:
        return Saturation(False, None, confidence, METHOD, _SETTLED, ())
    trace = [
        (now.samples, abs(before.width - now.width) / before.width if before.width > 0 else 0.0)
        for before, now in pairwise(checkpoints)
    ]
    small = [change <= _SETTLED for _, change in trace]
    first = next(
        (end for end in range(WINDOW - 1, len(trace)) if all(small[end - WINDOW + 1 : end + 1])), None
    )
    at = None if first is None else trace[first][0]
    return Saturation(at is not None, at, confidence, METHOD, _SETTLED, tuple(trace))


def cumulative(runs: Sequence[ArrayLike]) -> list[Checkpoint]:
    """Checkpoints after each run, with the width of Student's t interval of the mean."""
    points, seen = [], np.empty(0)
    for run in runs:
        scores = np.asarray(run, dtype=float)
        seen = np.concatenate([seen, scores[~np.isnan(scores)]])
        if len(seen):
            spread = float(seen.std(ddof=1)) / math.sqrt(len(seen)) if len(seen) > 1 else 0.0
            width = 2 * float(scipy.special.stdtrit(len(seen) - 1, 0.975)) * spread if spread > 0 else 0.0
            points.append(Checkpoint(len(seen), float(seen.mean()), width))
    return points
