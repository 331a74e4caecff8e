"""Clusters of models whose intervals overlap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import flag, reals
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

_END, _POINT, _START = 0, 1, 2


def overlap_clusters(lower: ArrayLike, upper: ArrayLike, *, strict: bool = False) -> list[tuple[int, ...]]:
    """Maximal cliques of the graph that joins models with overlapping intervals.

    Overlap is not transitive, so a model may be in several clusters: the intervals of A and C may be apart while that
    of B meets both. The graph is an interval graph: one sweep over sorted bounds finds all its maximal
    cliques in O(n log n) plus the size of the answer.

    Parameters
    ----------
    lower, upper
        Bounds of n models, shape (n,). A model with a NaN bound has no interval and is in no cluster.
    strict
        False: intervals that touch in one point overlap. True: they do not.

    Returns
    -------
    Clusters from low to high, each the ascending indices of its members. At most n.

    Raises
    ------
    ValueError
        If the bounds are not two equal vectors, or a lower bound exceeds its upper bound.

    Examples
    --------
    >>> overlap_clusters([0.70, 0.78, 0.84, 0.95], [0.80, 0.86, 0.92, 0.99])
    [(0, 1), (1, 2), (3,)]
    """
    low, high = reals(lower, "lower"), reals(upper, "upper")
    flag(strict, "strict")
    if low.ndim != 1 or low.shape != high.shape:
        raise ArgumentError(f"`lower` {low.shape} and `upper` {high.shape} must be vectors of one length")
    if np.any(low > high):
        index = int(np.argmax(low > high))
        raise ArgumentError(
            f"`lower` must not exceed `upper`, got [{low[index]:g}, {high[index]:g}] at {index}"
        )
    clusters: list[tuple[int, ...]] = []
    active: set[int] = set()
    grown = False
    for starts, model in _events(low, high, strict=strict):
        if starts:
            active.add(model)
            grown = True
            continue
        if grown:
            clusters.append(tuple(sorted(active)))
            grown = False
        active.discard(model)
    return clusters


def _events(low: Floats, high: Floats, *, strict: bool) -> Iterator[tuple[bool, int]]:
    """(starts?, model) along the axis; at one place in the order that makes touching overlap or not."""
    models = np.flatnonzero(~np.isnan(low) & ~np.isnan(high))
    flat = strict & (low[models] == high[models])
    place = np.concatenate([low[models], high[models]])
    starts = np.repeat([True, False], len(models))
    if strict:  # ends, then intervals of no width one by one, then starts
        order = np.where(starts, _START, _END)
        order[np.concatenate([flat, flat])] = _POINT
    else:
        order = np.where(starts, _END, _START)
    who: NDArray[np.intp] = np.concatenate([models, models])
    keys = (~starts, np.where(order == _POINT, who, 0), order, place)
    for index in np.lexsort(keys):
        yield bool(starts[index]), int(who[index])
