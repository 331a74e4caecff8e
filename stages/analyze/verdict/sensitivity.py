"""On how much of all possible weightings the sign and significance of the composite hold.

Equal weights are a convention. The simplex of weights is covered with an even lattice; the composite is tested with the
same sign flips at every point, and the shares of points say how much hangs on the convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import checked_weights, composite
from evalcube.stages.analyze.verdict.paired import DRAWS, checked
from evalcube.stages.analyze.verdict.resampling import TIE, flips, in_blocks, on_grid, total_flips

RESOLUTION = 20
"""Steps along an edge of the simplex: 231 points for three layers."""


@dataclass(frozen=True)
class Sensitivity:
    """How the composite's result depends on the weights of its layers."""

    weights: tuple[float, ...]
    """The declared weights, scaled to sum 1."""
    same_sign: float
    """Share of the simplex on which the difference has the sign that it has under the declared weights."""
    same_result: float
    """Share on which it also is significant if and only if it is so under the declared weights."""
    positive: float
    """Share on which the difference is significantly positive."""
    negative: float
    points: int


def simplex(layers: int, resolution: int = RESOLUTION) -> Floats:
    """Even lattice of weights: array (point, layer), each row sums to 1, all weights > 0.

    Examples
    --------
    >>> simplex(2, 3).round(3).tolist()
    [[0.125, 0.875], [0.375, 0.625], [0.625, 0.375], [0.875, 0.125]]
    """
    bars = np.array(list(combinations(range(resolution + layers - 1), layers - 1)), dtype=float)
    bars = bars.reshape(-1 if layers > 1 else 1, layers - 1)
    ends = np.full((len(bars), 1), resolution + layers - 1.0)
    counts = np.diff(np.hstack([np.full((len(bars), 1), -1.0), bars, ends]), axis=1) - 1.0
    return np.asarray((counts + 1.0 / layers) / (resolution + 1.0))


def sensitivity(
    differences: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
    resolution: int = RESOLUTION,
) -> Sensitivity:
    """Share of the weight simplex on which sign and significance of the composite difference hold.

    Parameters
    ----------
    differences
        Array (unit, layer), treatment − control, NaN where a layer is not in both arms; layers that never occur
        take no part.
    weights
        Declared weights, one per layer; equal by default.
    alpha, draws, seed
        As in `paired_intervals`.
    resolution
        Steps along an edge of the simplex.
    """
    values = checked(differences, alpha, draws)
    declared = checked_weights(weights, values.shape[1])
    used = ~np.isnan(values).all(axis=0)
    if not used.any() or declared[used].sum() <= 0:
        return Sensitivity(tuple(declared.tolist()), 0.0, 0.0, 0.0, 0.0, 0)
    points = np.vstack([declared[used] / declared[used].sum(), simplex(int(used.sum()), resolution)])
    columns = np.stack([composite(values[:, used], point) for point in points], axis=1)
    sign, significant = _tested(columns[~np.isnan(columns).any(axis=1)], alpha, draws, seed)
    same = sign[1:] == sign[0]
    return Sensitivity(
        tuple(declared.tolist()),
        float(same.mean()),
        float((same & (significant[1:] == significant[0])).mean()),
        float((significant & (sign > 0))[1:].mean()),
        float((significant & (sign < 0))[1:].mean()),
        len(points) - 1,
    )


def _extremes(whole: Floats, seed: int, draws: int, start: int, stop: int) -> Floats:
    """How many flipped sums of the block are at least as far from 0 as the data's: array (1, column)."""
    signs = 1.0 - 2.0 * flips(len(whole), start, stop, draws=draws, seed=seed)
    observed = whole.sum(axis=0)
    tie = TIE * len(whole) * np.abs(whole).max(axis=0)
    return np.asarray(
        (np.abs(signs @ whole) >= np.abs(observed) - tie).sum(axis=0, keepdims=True), dtype=float
    )


def _tested(columns: Floats, alpha: float, draws: int, seed: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Sign of each column's mean, and whether the sign-flip test rejects 0 at level alpha."""
    if len(columns) == 0:
        return np.zeros(columns.shape[1]), np.zeros(columns.shape[1], dtype=bool)
    whole, _ = on_grid(columns)
    rows = total_flips(len(columns), draws)
    counts = in_blocks(partial(_extremes, whole, seed, draws), rows).sum(axis=0)
    tie = TIE * len(whole) * np.abs(whole).max(axis=0)
    total = whole.sum(axis=0)
    sign = np.where(np.abs(total) <= tie, 0.0, np.sign(total))
    return sign, np.asarray(counts / rows <= alpha, dtype=bool)
