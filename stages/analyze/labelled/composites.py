"""The composite of every evaluation on a leaderboard, with its interval and the layers behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.corrected import (
    LEAST_SCORES,
)
from evalcube.stages.analyze.formulas.design import task_weights
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.labelled.axes import base_design
from evalcube.stages.analyze.labelled.clustering import pair_units
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.remarks import first_few, label_rows
from evalcube.stages.analyze.labelled.results import Composite, Estimate, Leaderboard, Row
from evalcube.stages.analyze.verdict.composite import (
    HIGHEST,
    LAYERS,
    LOWEST,
    THRESHOLD,
    checked_weights,
    composite,
    describe,
    layer_bits,
    layer_gate,
    layer_means,
    mean_present,
)
from evalcube.stages.analyze.verdict.paired import paired_intervals
from evalcube.stages.analyze.verdict.people import corrected_scores
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import FINISHED

if TYPE_CHECKING:
    import xarray as xr

_TRIAL = ("task", "params", "trial", "repeat")
_LEAST_DRAWS = 100
PEOPLE_SCORE = "people_score"
"""Variable (model, task, params, trial) with ratings by people from 1 to 5; NaN where there is none."""


def with_composites(
    board: Leaderboard, ds: xr.Dataset, weights: Mapping[str, float] | None = None
) -> Leaderboard:
    """The board with the composite of each row whose outputs have layer scores; the same board without any.

    A unit is a question, whose repeats are averaged first; the mean is that over tasks of base-weighted means over
    points. The interval is that of the mean over units, or their clusters, by sign flips, at the board's level, within
    the scale from 1 to 5.

    Parameters
    ----------
    board
        From `evalcube.stages.analyze.labelled.leaderboard.leaderboard`.
    ds
        The dataset that it was made from, with ``fact``, ``behavior``, ``judge`` and ``status`` where its cube has any.
        They are read one evaluation at a time.
    weights
        Of the layers, by name; one that is not named has none. Default: all the same.

    Raises
    ------
    ValueError
        If the weights are of no use, or the board was not made from this dataset.
    """
    names = [name for name in LAYERS if name in ds]
    people = [PEOPLE_SCORE] if PEOPLE_SCORE in ds else []
    if not names or "status" not in ds:
        return board
    shares = checked_weights(
        None if weights is None else [weights.get(name, 0.0) for name in LAYERS], len(LAYERS)
    )
    found, base = [], base_design(ds)
    for row, place in zip(board.rows, row_order(ds, board), strict=True):
        one = ds[["status", *names, *people]].reset_coords(drop=True).isel(model=place).compute()
        units = _units(one, base[place], pair_units(ds, place))
        found.append(replace(row, composite=_composite(units, shares, board)))
    board = replace(board, cautions=(*board.cautions, *_told_of_people(found, bool(people))))
    declared = {} if weights is None else {name: float(weights.get(name, 0.0)) for name in LAYERS}
    return replace(board, rows=tuple(found), layer_weights=declared)


@dataclass(frozen=True)
class _Units:
    layers: Floats
    """Mean over the repeats of each question, shape (unit, layer)."""
    shares: Floats
    clusters: NDArray[np.int64] | None
    people: Floats
    """Ratings by people, shape (unit,), NaN where there is none."""


def _units(one: xr.Dataset, base: Floats, clusters: NDArray[np.int64] | None) -> _Units:
    """The questions with a finished answer; `base` is the first plan of the points, shape (task, params)."""
    finished = np.isin(one["status"].transpose(*_TRIAL).values, FINISHED)
    none = np.full(finished.shape, np.nan)
    layers = np.stack(
        [
            np.where(finished, one[name].transpose(*_TRIAL).values, np.nan) if name in one else none
            for name in LAYERS
        ],
        axis=-1,
    ).astype(np.float64)
    means = mean_present(layers, axis=3)
    there = (~np.isnan(means)).any(axis=-1)
    number = there.sum(axis=-1)
    weights = task_weights(base, number > 0) / np.maximum(number, 1)
    drawn = None if clusters is None else clusters.reshape(there.shape)[there]
    rated = (
        one[PEOPLE_SCORE].transpose(*_TRIAL[:3]).values
        if PEOPLE_SCORE in one
        else np.full(there.shape, np.nan)
    )
    return _Units(
        means[there],
        np.broadcast_to(weights[..., np.newaxis], there.shape)[there],
        drawn,
        rated[there].astype(float),
    )


def _composite(found: _Units, weights: Floats, board: Leaderboard) -> Composite | None:
    units, shares, clusters = found.layers, found.shares, found.clusters
    if not len(units):
        return None
    if ((units < LOWEST) | (units > HIGHEST)).any():
        raise ArgumentError(
            f"the layers hold scores that are not from {LOWEST:g} to {HIGHEST:g}: the cube is damaged"
        )
    counted = np.where(weights > 0, units, np.nan)  # what has no weight is not behind the composite
    totals = composite(counted, weights)
    measured = ~np.isnan(totals)
    gate, number = layer_gate(layer_means(units, shares), THRESHOLD), int(measured.sum())
    if not measured.any():
        return Composite(Estimate(math.nan, math.nan, math.nan), "missing", gate.means, gate.passed, 0)
    (interval,) = paired_intervals(
        totals[:, np.newaxis],
        alpha=1.0 - board.confidence,
        draws=max(board.draws, _LEAST_DRAWS),
        seed=board.seed,
        shares=shares,
        clusters=clusters,
    )
    value, ends = interval.estimate, (interval.low, interval.high)
    people = corrected_scores(counted, found.people, shares, weights.tolist())
    if people:
        value, ends = (
            people["composite"].estimate,
            people["composite"].interval(1.0 - board.confidence, clusters),
        )
        judge = {"judge": people["judge"].estimate}
        gate = layer_gate({**layer_means(units, shares), **judge}, THRESHOLD)
    return Composite(
        Estimate(value, *(float(np.clip(end, LOWEST, HIGHEST)) for end in ends)),
        describe(value, layer_bits(counted)),
        gate.means,
        gate.passed,
        number,
        people["composite"].labels if people else 0,
    )


def _told_of_people(rows: Sequence[Row], asked: bool) -> Iterator[str]:
    """Which composites people's ratings have corrected, where there are ratings."""
    labels = label_rows(rows)
    told = [
        f"{label} by {row.composite.rated}"
        for row, label in zip(rows, labels, strict=True)
        if row.composite is not None and row.composite.rated
    ]
    if told:
        yield f"Composites as people's ratings correct them: {first_few(told)}."
    if asked and len(told) < len(rows):
        yield f"Composites of other rows are not corrected: that takes {LEAST_SCORES} ratings of a row's answers."
