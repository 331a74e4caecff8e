"""Scores of a comparison with every axis in place, or one message about what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import describe
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import GRAIN, HIGHEST, LAYERS, LOWEST, judge_layer
from evalcube.stages.errors import ArgumentError, ArgumentTypeError

JUDGE = LAYERS.index("judge")

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """Everything that was measured; the first variant is the control."""

    variants: tuple[str, ...]
    units: tuple[str, ...]
    layers: Floats
    """Array (run, variant, unit, layer), NaN where a layer is absent."""
    judges: Floats
    """Readings (run, variant, unit, judge), NaN where a judge failed."""
    ok: Flags
    """Executions (run, variant, unit) that finished."""
    entries: Flags
    """Executions that have a row at all."""
    shares: Floats
    """Weight of each unit (unit,) in every mean, 1 on average."""
    judge_names: tuple[str, ...] = ()
    """Names of the judges, in the order of `judges`."""
    clusters: NDArray[np.int64] | None = None
    """Number of each unit's cluster (unit,), 0 where it has none; None where no unit has one."""
    due: Flags | None = None
    """Layers (unit, layer) that a unit is to have even where no variant has it."""

    def by_unit(self) -> Scores:
        """The same scores with units in the order of their ids, which no order of completion can change."""
        order = sorted(range(len(self.units)), key=self.units.__getitem__)
        return replace(
            self,
            units=tuple(self.units[index] for index in order),
            layers=self.layers[:, :, order],
            judges=self.judges[:, :, order],
            ok=self.ok[:, :, order],
            entries=self.entries[:, :, order],
            shares=self.shares[order],
            clusters=None if self.clusters is None else self.clusters[order],
            due=None if self.due is None else self.due[order],
        )


def checked_scores(
    layers: ArrayLike,
    variants: Sequence[str],
    units: Sequence[str],
    *,
    judges: ArrayLike | None = None,
    ok: ArrayLike | None = None,
    entries: ArrayLike | None = None,
    judge_names: Sequence[str] | None = None,
    shares: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    due: ArrayLike | None = None,
) -> Scores:
    """Scores with a run axis in front, failed judge readings as NaN."""
    _check_labels("variants", variants)
    _check_labels("units", units)
    layers = _numbers("layers", layers)
    runs = len(layers) if layers.ndim == 4 else None
    if runs == 0:
        raise ArgumentError("`layers` has no run; give at least one")
    shape = (1 if runs is None else runs, len(variants), len(units))
    values = _fitting("layers", layers, shape, runs, (len(LAYERS),))
    values[..., JUDGE] = np.where(values[..., JUDGE] <= 0, np.nan, values[..., JUDGE])
    readings = (
        np.empty((*shape, 0)) if judges is None else _fitting("judges", judges, shape, runs, (-1,), (-1, -1))
    )
    readings = np.where(readings <= 0, np.nan, readings)
    for name, scored in (("layers", values), ("judges", readings)):
        # One such value moves every mean, and nothing would show it.
        wrong = scored[~np.isnan(scored) & ((scored < LOWEST - GRAIN) | (scored > HIGHEST + GRAIN))]
        if wrong.size:
            raise ArgumentError(
                f"`{name}` has the score {wrong[0]:g}, which is not from {LOWEST:g} to {HIGHEST:g}; "
                "NaN means that there is none"
            )
    readings = judge_layer(readings) if readings.ndim == 5 else readings
    number = readings.shape[-1]
    names = [f"judge {index + 1}" for index in range(number)] if judge_names is None else judge_names
    if len(names) != number:
        raise ArgumentError(f"`judge_names` must name {number} judges, got {len(names)} names")
    flags = [
        np.ones(shape, dtype=bool) if flag is None else _fitting(name, flag, shape, runs, ()).astype(bool)
        for name, flag in (("ok", ok), ("entries", entries))
    ]
    return Scores(
        tuple(variants),
        tuple(units),
        values,
        readings,
        flags[0],
        flags[1],
        _shares(shares, len(units)),
        tuple(names),
        _clusters(clusters, len(units)),
        None if due is None else np.broadcast_to(np.asarray(due, dtype=bool), (len(units), len(LAYERS))),
    )


def _check_labels(name: str, labels: Sequence[str]) -> None:
    if not hasattr(labels, "__len__"):
        raise ArgumentTypeError(f"`{name}` must be a list of labels, got {describe(labels)}")
    if not len(labels):
        raise ArgumentError(f"`{name}` is empty: there is nothing to compare")
    twice = [label for label, times in Counter(labels).items() if times > 1]
    if twice:
        raise ArgumentError(f"`{name}` must differ from each other, {min(twice)!r} occurs twice")


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:  # of whole numbers that no float holds
        raise ArgumentError(
            f"`{name}` must hold numbers, NaN where one is absent, got {describe(values)}"
        ) from error


def _fitting(
    name: str, array: ArrayLike, shape: tuple[int, ...], runs: int | None, *ends: tuple[int, ...]
) -> Floats:
    """Numbers (run, variant, unit, ...) with one of these ends, where −1 stands for any size."""
    values = _numbers(name, array)
    values = values[np.newaxis] if runs is None else values
    axes = values.shape[3:]
    fits = any(
        len(end) == len(axes) and all(b in (-1, a) for a, b in zip(axes, end, strict=True)) for end in ends
    )
    if values.shape[:3] != shape or not fits:
        raise ArgumentError(
            f"`{name}` must be ([run,] variant, unit, ...), beginning with {shape[1:]} after the runs; layers are "
            f"{', '.join(LAYERS)}; got the shape {np.shape(array)}"
        )
    return values


def _clusters(clusters: ArrayLike | None, units: int) -> NDArray[np.int64] | None:
    values = np.zeros(units, dtype=np.int64) if clusters is None else np.asarray(clusters)
    if values.shape != (units,) or not np.issubdtype(values.dtype, np.integer) or (values < 0).any():
        raise ArgumentError(f"`clusters` must be {units} whole numbers >= 0; 0 means that a unit has none")
    return values.astype(np.int64) if values.any() else None


def _shares(shares: ArrayLike | None, units: int) -> Floats:
    values = np.ones(units) if shares is None else _numbers("shares", shares)
    if values.shape != (units,) or not (np.all(np.isfinite(values) & (values >= 0)) and values.max() > 0):
        raise ArgumentError(f"`shares` must be {units} finite numbers >= 0 that are not all zero")
    values = values / values.max()
    return np.asarray(values / values.mean())
