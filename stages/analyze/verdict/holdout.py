"""A part of the units held out, and how much smaller a gain is on it.

Held-out units may be harder than the others for any variant, so that levels say nothing of overfitting: the treatment's
gains over the control are compared. The test is Student's of two independent means with a common variance; as
only a smaller gain on the held-out part speaks against a treatment, it is one-sided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from evalcube.stages.analyze.verdict.composite import GRAIN
from evalcube.stages.analyze.verdict.paired import Interval

MIN_PART = 3
"""Fewer units on either side say nothing about generalisation."""


@dataclass(frozen=True)
class Split:
    """Places of the units of both parts, each in the given order."""

    train: tuple[int, ...]
    holdout: tuple[int, ...]


def split_holdout(ids: Sequence[object], ratio: float) -> Split | None:
    """Every so-many-th unit, or cluster of them, is held out; nothing is random, so that runs share the split.

    Parameters
    ----------
    ids
        Of what is held out, in a stable order.

    Returns
    -------
    The split, or None if the ratio is not positive or a part would have fewer than `MIN_PART` units.

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
    held = {math.floor(place * (total / count)) for place in range(count)}
    return Split(tuple(place for place in range(total) if place not in held), tuple(sorted(held)))


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

    Parameters
    ----------
    differences
        Treatment − control (unit,) in the order of the split, NaN where there is no pair.
    split
        From `split_holdout`.
    alpha
        One-sided error.
    shares
        Weight of each unit, shape (unit,) or 1.

    References
    ----------
    Student (1908), The probable error of a mean, Biometrika 6, 1-25, for two samples.

    Examples
    --------
    >>> found = gain_gap([0.5, 0.4, 0.6, 0.5, 0.1, 0.0, -0.1, 0.0], Split((0, 1, 2, 3), (4, 5, 6, 7)))
    >>> round(found.gap.estimate, 2), round(found.gap.low, 2), found.gap.positive
    (0.5, 0.39, True)
    """
    values = np.asarray(differences, dtype=float)
    weights = np.broadcast_to(np.asarray(shares, dtype=float), values.shape)
    there = ~np.isnan(values) & (weights > 0)
    parts = [[place for place in places if there[place]] for places in (split.train, split.holdout)]
    if min(map(len, parts)) < MIN_PART:
        return None
    means = [float(np.average(values[part], weights=weights[part])) for part in parts]
    pairs, free = len(parts[0]) + len(parts[1]), len(parts[0]) + len(parts[1]) - 2
    rest = [weights[part] * (values[part] - mean) ** 2 for part, mean in zip(parts, means, strict=True)]
    variance = sum(map(np.sum, rest)) / sum(weights[part].sum() for part in parts) * pairs / free
    error = math.sqrt(variance * sum((weights[part] ** 2).sum() / weights[part].sum() ** 2 for part in parts))
    gap, (tail, margin) = means[0] - means[1], stdtrit(free, [0.8, 1.0 - alpha]).tolist()
    gap = 0.0 if abs(gap) < GRAIN else gap
    ratio = abs(gap) / error if error > 0 else math.inf if gap else 0.0
    p_value = 2.0 * float(stdtr(free, -ratio))
    interval = Interval(
        gap, gap - margin * error, gap + margin * error, p_value, 2.0 * alpha, pairs, "student"
    )
    return Holdout(means[0], means[1], interval, (tail + margin) * error)
