"""The composite of a unit's layer scores, which layers are behind it, both as text, and the threshold of layer means.

Layers run along the last axis in the order of `LAYERS`; NaN means that the layer was not measured. The composite is
the weighted mean of the layers that are present. Two composites are comparable only if the same layers are behind
them, so the set of layers travels with the number as a bitmask: bit i stands for `LAYERS[i]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import mean_present
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

_PLAIN_BELOW = 1e21
"""From here on numbers are written with an exponent; they have no decimals to round."""


def half_away(value: float, digits: int = 2) -> float:
    """`value` with `digits` decimals, exact ties away from zero; NaN, infinities and huge numbers stay.

    The binary value decides, so 1.005, which is stored a little below, becomes 1.0.

    Examples
    --------
    >>> half_away(1.125), half_away(-1.125), half_away(1.005)
    (1.13, -1.13, 1.0)
    """
    if not math.isfinite(value) or abs(value) >= _PLAIN_BELOW:
        return value
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def decimal(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """`value` as text with exactly `digits` decimals; "missing" for NaN.

    Examples
    --------
    >>> decimal(4.0), decimal(0.5, sign=True), decimal(float("nan"))
    ('4.00', '+0.50', 'missing')
    """
    if math.isnan(value):
        return "missing"
    return f"{half_away(value, digits):{'+' if sign else ''}.{digits}f}"


LAYERS: tuple[str, ...] = ("fact", "behavior", "judge")
"""Facts and behaviour are shares of passed assertions mapped to 1..5, the judge is a reading from 1 to 5."""

LOWEST, HIGHEST = 1.0, 5.0
"""The scale of every layer."""
GRAIN = 1e-9
"""Scores that differ by less than this are equal: what remains is rounding, which no test may take for a change."""

Bits = NDArray[np.uint8]


def layer_bits(layers: ArrayLike) -> Bits:
    """Which layers are present, as a bitmask.

    Examples
    --------
    >>> layer_bits([[4.5, 4.0, 4.5], [np.nan, np.nan, 4.3]]).tolist()
    [7, 4]
    """
    present = ~np.isnan(np.asarray(layers, dtype=float))
    return np.asarray((present * (1 << np.arange(present.shape[-1]))).sum(axis=-1), dtype=np.uint8)


def weighty(bits: ArrayLike, weights: Sequence[float] | None) -> Bits:
    """The layers of bitmasks that have a weight: one with weight 0 is measured, and is no part of the composite.

    Examples
    --------
    >>> weighty([7, 4], (1, 0, 2)).tolist()
    [5, 4]
    """
    mask = sum(1 << bit for bit, weight in enumerate(weights or ()) if weight) if weights else 0xFF
    return np.asarray(np.asarray(bits, dtype=np.uint8) & np.uint8(mask), dtype=np.uint8)


def composite(layers: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Weighted mean of the layers that are present; NaN where none is.

    Examples
    --------
    >>> composite([[4.5, 4.0, 4.5], [np.nan, np.nan, 4.0]]).round(2).tolist()
    [4.33, 4.0]
    """
    values = np.asarray(layers, dtype=float)
    parts = np.where(np.isnan(values), 0.0, checked_weights(weights, values.shape[-1]))
    total = parts.sum(axis=-1)
    summed = (np.nan_to_num(values) * parts).sum(axis=-1)
    return np.asarray(np.divide(summed, total, out=np.full(total.shape, np.nan), where=total > 0))


def checked_weights(weights: ArrayLike | None, layers: int) -> Floats:
    """Weights of `layers` layers that sum to 1; raises ValueError if they are not usable."""
    if weights is None:
        return np.full(layers, 1.0 / layers)
    values = np.asarray(weights, dtype=float)
    usable = values.shape == (layers,) and bool(np.all(np.isfinite(values)) and np.all(values >= 0))
    if not usable or values.max() <= 0:
        raise ArgumentError(
            f"`weights` must be {layers} numbers >= 0 that are not all zero, got {np.ravel(values).tolist()}"
        )
    values = values / values.max()  # sums of huge weights would overflow
    return np.asarray(values / values.sum())


def common(control: ArrayLike, treatment: ArrayLike) -> tuple[Floats, Floats]:
    """Both arms with a layer of a unit blanked wherever one of them lacks it."""
    first, second = np.asarray(control, dtype=float), np.asarray(treatment, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    return np.where(both, first, np.nan), np.where(both, second, np.nan)


def difference(control: ArrayLike, treatment: ArrayLike) -> Floats:
    """Treatment − control, 0 where they differ by rounding only, NaN where one is absent."""
    steps = np.asarray(treatment, dtype=float) - np.asarray(control, dtype=float)
    return np.where(np.abs(steps) < GRAIN, 0.0, steps)


def judge_layer(readings: ArrayLike) -> Floats:
    """Mean of the readings along the last axis; those that are 0, negative or NaN count as missing."""
    values = np.asarray(readings, dtype=float)
    return mean_present(np.where(values > 0, values, np.nan), axis=-1)


def weighted_mean(values: Floats, shares: Floats) -> float:
    """Mean of the units (unit,) that are not NaN; NaN where none is."""
    there = ~np.isnan(values)
    total = math.fsum(shares[there])
    return math.fsum(values[there] * shares[there]) / total if total > 0 else math.nan


def describe(score: float, bits: ArrayLike) -> str:
    """A composite with the layers behind it.

    Examples
    --------
    >>> describe(4.3333, 7), describe(4.33, 4), describe(4.1, [5, 5]), describe(4.1, [7, 4])
    ('4.33 (3/3)', '4.33 (judge only)', '4.10 (fact + judge)', '4.10 (3/3, not on every unit)')
    """
    masks = {int(mask) for mask in np.ravel(np.asarray(bits)) if mask}
    if math.isnan(score) or not masks:
        return "missing"
    present = [name for bit, name in enumerate(LAYERS) if any(mask >> bit & 1 for mask in masks)]
    if len(present) == len(LAYERS):
        text = f"{len(LAYERS)}/{len(LAYERS)}"
    else:
        text = f"{present[0]} only" if len(present) == 1 else " + ".join(present)
    return f"{decimal(score)} ({text}{', not on every unit' if len(masks) > 1 else ''})"


THRESHOLD = 3.5
"""Lowest layer mean that passes."""

SLACK = GRAIN
"""A mean this close below a threshold reaches it: 3.5 must pass however it was summed."""


@dataclass(frozen=True)
class LayerCheck:
    """One arm's layers against the threshold."""

    means: Mapping[str, float]
    """Mean of every layer that was measured."""
    threshold: float
    failed: tuple[str, ...]
    """Layers whose mean is below the threshold."""

    @property
    def passes(self) -> bool:
        """Whether something was measured and every layer reaches the threshold."""
        return bool(self.means) and not self.failed


def layer_means(layers: ArrayLike, shares: ArrayLike = 1.0) -> dict[str, float]:
    """Mean of each layer over the units that have it; layers without a unit are left out."""
    values = np.asarray(layers, dtype=float)
    weights = np.broadcast_to(np.asarray(shares, dtype=float), len(values))
    means = {name: weighted_mean(values[:, layer], weights) for layer, name in enumerate(LAYERS)}
    return {name: mean for name, mean in means.items() if not math.isnan(mean)}


def check_layers(means: Mapping[str, float], threshold: float = THRESHOLD) -> LayerCheck:
    """Which layers reach the threshold; absent (NaN) layers are dropped, and no layer at all fails."""
    present = {name: float(mean) for name, mean in means.items() if not math.isnan(mean)}
    failed = tuple(name for name, mean in present.items() if mean < threshold - SLACK)
    return LayerCheck(present, threshold, failed)
