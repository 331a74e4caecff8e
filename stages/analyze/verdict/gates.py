"""Whether each of an arm's layer means reaches the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.verdict.composite import GRAIN, LAYERS, weighted_mean

THRESHOLD = 3.5
"""Lowest layer mean that passes."""

SLACK = GRAIN
"""A mean this close below a threshold reaches it: 3.5 must pass however it was summed."""


@dataclass(frozen=True)
class Gate:
    """One arm's layers against the threshold."""

    means: Mapping[str, float]
    """Mean of every layer that was measured."""
    threshold: float
    failed: tuple[str, ...]
    """Layers whose mean is below the threshold."""

    @property
    def passed(self) -> bool:
        """Whether something was measured and every layer reaches the threshold."""
        return bool(self.means) and not self.failed


def layer_means(layers: ArrayLike, shares: ArrayLike = 1.0) -> dict[str, float]:
    """Mean of each layer over the units that have it; layers without a unit are left out.

    Parameters
    ----------
    layers
        Scores (unit, layer), NaN where absent.
    shares
        Weight of each unit, shape (unit,) or 1.
    """
    values = np.asarray(layers, dtype=float)
    weights = np.broadcast_to(np.asarray(shares, dtype=float), len(values))
    means = {name: weighted_mean(values[:, place], weights) for place, name in enumerate(LAYERS)}
    return {name: mean for name, mean in means.items() if not math.isnan(mean)}


def layer_gate(means: Mapping[str, float], threshold: float = THRESHOLD) -> Gate:
    """Which layers reach the threshold; absent (NaN) layers are dropped, and no layer at all fails.

    Parameters
    ----------
    means
        Layer means by name.
    threshold
        Lowest mean that passes.
    """
    present = {name: float(mean) for name, mean in means.items() if not math.isnan(mean)}
    return Gate(present, threshold, tuple(name for name, mean in present.items() if mean < threshold - SLACK))
