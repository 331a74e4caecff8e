"""One test that none of several layers moved (Hotelling's T²), by sign flips.

A gain in one layer and a loss in another can leave the composite flat; the joint test sees the pair. Its p value comes
from flipping the signs of whole units, so that it needs neither normal scores nor a formula for ties, and holds for
few units. Source: Hotelling (1931), The generalization of Student's ratio; one-sample form T² = n·m'S⁻¹m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.paired import DRAWS, checked
from evalcube.stages.analyze.verdict.resampling import TIE, flips, in_blocks, total_flips


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
    """Hotelling's T² of the mean paired difference with a sign-flip p value.

    Parameters
    ----------
    differences
        Array (unit, layer), treatment − control; units with a NaN and layers that are NaN throughout are left out.
    draws, seed
        As in `paired_intervals`.
    """
    values = checked(differences, 0.5, draws)
    values = values[:, ~np.isnan(values).all(axis=0)] if len(values) else values
    values = values[~np.isnan(values).any(axis=1)]
    pairs = len(values)
    scores = _whitened(values)
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


def _whitened(values: Floats) -> Floats:
    """Columns turned and scaled so that their matrix of squares and products is the identity.

    That matrix is the same for all sign flips, so T² is a rising function of the squared length of the flipped sums.
    """
    scale = np.abs(values).max(axis=0, initial=0.0)
    used = values[:, scale > 0] / scale[scale > 0]
    if used.size == 0:
        return np.empty((len(values), 0))
    left, singular, _ = np.linalg.svd(used, full_matrices=False)
    return np.asarray(left[:, singular > TIE * max(used.shape) * singular.max()])
