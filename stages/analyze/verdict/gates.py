"""Layer scores of one arm -> its layer means and whether each reaches the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.analyze.verdict.composite import LAYERS

THRESHOLD = 3.5
"""Lowest layer mean that passes."""

SLACK = 1e-9
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


def layer_means(layers: ArrayLike, names: Sequence[str] = LAYERS) -> dict[str, float]:
    """Mean of each layer over the units that have it; layers without a unit are left out.

    Parameters
    ----------
    layers
        Scores (unit, layer), NaN where absent.
    names
        Names of the layers.
    """
    values = np.asarray(layers, dtype=float)
    means = {}
    for place, name in enumerate(names):
        present = values[~np.isnan(values[:, place]), place]
        if present.size:
            means[name] = math.fsum(present) / present.size
    return means


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


@dataclass(frozen=True)
class PowerWarnings:
    """What a plan of n units and some repeats is too small for, known before it is run."""

    tiny: bool
    """Fewer than 5 units: nothing but the largest effects can show."""
    small: bool
    """5 to 19 units: below the band where a shift counts as powered."""
    single_run: bool
    """One repeat: run-to-run stability cannot be measured."""


def power_warnings(units: int, repeats: int = 1) -> PowerWarnings:
    """Warnings about the size of a comparison before it is run.

    Examples
    --------
    >>> power_warnings(12)
    PowerWarnings(tiny=False, small=True, single_run=True)
    """
    return PowerWarnings(tiny=units < 5, small=5 <= units < 20, single_run=repeats < 2)
