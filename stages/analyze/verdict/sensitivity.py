"""Tests beside the composite's own: under all possible weights, and of all layers together.

Equal weights are a convention. The simplex of weights is covered with an even lattice; the composite is tested with the
same sign flips at every point, and the shares of points say how much hangs on the convention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import checked_weights, composite
from evalcube.stages.analyze.verdict.paired import DRAWS, check_differences, sign_flip
from evalcube.stages.analyze.verdict.resampling import TIE, flips, in_blocks, total_flips

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
    """Share of the weight simplex on which sign and significance of the composite difference hold."""
    values = check_differences(differences, alpha, draws)
    declared = checked_weights(weights, values.shape[1])
    used = ~np.isnan(values).all(axis=0)
    if not used.any() or declared[used].sum() <= 0:
        return Sensitivity(tuple(declared.tolist()), 0.0, 0.0, 0.0, 0.0, 0)
    points = np.vstack([declared[used] / declared[used].sum(), simplex(int(used.sum()), resolution)])
    columns = np.stack([composite(values[:, used], point) for point in points], axis=1)
    columns = columns[~np.isnan(columns).any(axis=1)]
    tested = sign_flip(columns, alpha, draws, seed, np.ones(columns.shape))
    mean = np.nan_to_num([interval.estimate for interval in tested])
    sign = np.where(np.abs(mean) <= TIE, 0.0, np.sign(mean))
    significant = np.array([interval.p_value <= alpha for interval in tested])
    same = sign[1:] == sign[0]
    return Sensitivity(
        tuple(declared.tolist()),
        float(same.mean()),
        float((same & (significant[1:] == significant[0])).mean()),
        float((significant & (sign > 0))[1:].mean()),
        float((significant & (sign < 0))[1:].mean()),
        len(points) - 1,
    )


@dataclass(frozen=True)
class Hotelling:
    """Joint test over layers."""

    statistic: float
    """T²; NaN if the units are too few for the number of layers."""
    p_value: float
    """By sign flips; 1 where nothing can be said."""
    pairs: int
    """Units with every compared layer."""
    rank: int
    """Number of linearly independent layers in the test; layers that never differ drop out."""


def hotelling(differences: ArrayLike, *, draws: int = DRAWS, seed: int = 0) -> Hotelling:
    """One test that none of several layers moved: Hotelling's T² of the mean paired difference, by sign flips.

    A gain in one layer and a loss in another can leave the composite flat; the joint test sees the pair. As whole units
    are flipped, it needs neither normal scores nor a formula for ties, and holds for few units.
    """
    values = check_differences(differences, 0.5, draws)
    values = values[:, ~np.isnan(values).all(axis=0)] if len(values) else values
    values = values[~np.isnan(values).any(axis=1)]
    pairs = len(values)
    scores = _whiten(values)
    rank = scores.shape[1]
    if rank == 0 or pairs <= rank:
        return Hotelling(math.nan, 1.0, pairs, rank)

    def shares(start: int, stop: int) -> Floats:
        signs = 1.0 - 2.0 * flips(pairs, start, stop, draws=draws, seed=seed)
        return np.asarray(((signs @ scores) ** 2).sum(axis=1))

    observed = float(shares(0, 1)[0])
    drawn = in_blocks(shares, total_flips(pairs, draws))
    extreme = int((drawn >= observed - TIE * pairs).sum())
    share = min(observed / pairs, 1.0)
    statistic = (pairs - 1) * share / (1.0 - share) if share < 1.0 - TIE else math.inf
    return Hotelling(statistic, extreme / len(drawn), pairs, rank)


def _whiten(values: Floats) -> Floats:
    """Columns turned and scaled so that their matrix of squares and products is the identity.

    That matrix is the same for all sign flips, so T² is a rising function of the squared length of the flipped sums.
    """
    scale = np.abs(values).max(axis=0, initial=0.0)
    used = values[:, scale > 0] / scale[scale > 0]
    if used.size == 0:
        return np.empty((len(values), 0))
    left, singular, _ = np.linalg.svd(used, full_matrices=False)
    return np.asarray(left[:, singular > TIE * max(used.shape) * singular.max()])
