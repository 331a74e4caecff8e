"""A part of the units held out, and how much worse a variant does on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

MIN_PART = 3
"""Fewer units on either side say nothing about generalisation."""


@dataclass(frozen=True)
class Split:
    """Places of the units of both parts, each in the given order."""

    train: tuple[int, ...]
    holdout: tuple[int, ...]


def split_holdout(ids: Sequence[str], ratio: float) -> Split | None:
    """Every so-many-th unit is held out; nothing is random, so that runs share the split.

    Parameters
    ----------
    ids
        Unit ids in a stable order.
    ratio
        Share to hold out.

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


def overfit_gap(scores: ArrayLike, split: Split) -> float:
    """Mean train score − mean holdout score; NaN if a part has fewer than `MIN_PART` scores.

    Parameters
    ----------
    scores
        Scores (unit,) in the order of the split, NaN where unmeasured.
    split
        From `split_holdout`.
    """
    values = np.asarray(scores, dtype=float)
    parts = [values[list(places)] for places in (split.train, split.holdout)]
    parts = [part[~np.isnan(part)] for part in parts]
    if min(len(part) for part in parts) < MIN_PART:
        return math.nan
    return math.fsum(parts[0]) / len(parts[0]) - math.fsum(parts[1]) / len(parts[1])
