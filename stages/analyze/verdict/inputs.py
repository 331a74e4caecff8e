"""Scores of a comparison with every axis in place, or one message about what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import shown
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
    judges: Floats | None
    """Readings (run, variant, unit, judge), NaN where a judge failed; None without an ensemble."""
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

    def by_unit(self) -> Scores:
        """The same scores with units in the order of their ids, which no order of completion can change."""
        order = sorted(range(len(self.units)), key=self.units.__getitem__)
        return replace(
            self,
            units=tuple(self.units[place] for place in order),
            layers=self.layers[:, :, order],
            judges=None if self.judges is None else self.judges[:, :, order],
            ok=self.ok[:, :, order],
            entries=self.entries[:, :, order],
            shares=self.shares[order],
            clusters=None if self.clusters is None else self.clusters[order],
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
) -> Scores:
    """Scores with a run axis in front, failed judge readings as NaN.

    Parameters
    ----------
    layers
        Array ([run,] variant, unit, layer) with the layers fact, behavior, judge, from 1 to 5; NaN where absent, and
        <= 0 where the judge failed.
    variants, units
        Names along these axes, each different; at least one each.
    judges
        Array ([run,] variant, unit, judge[, repeat]) from 1 to 5, NaN or <= 0 where a judge failed.
    ok, entries
        Booleans ([run,] variant, unit), all true by default.
    judge_names
        Names of the judges; by default they are numbered.
    shares
        Weight of each unit in the means; by default all weigh alike.
    clusters
        Number of each unit's cluster, 0 where it has none.

    Raises
    ------
    ValueError
        If shapes or names do not fit, a score is not on the scale, or there is no variant or no unit.
    """
    for name, labels in (("variants", variants), ("units", units)):
        if not hasattr(labels, "__len__"):
            raise ArgumentTypeError(f"`{name}` must be a list of labels, got {shown(labels)}")
    try:
        values = np.array(layers, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"`layers` must hold numbers, NaN where one is absent, got {shown(layers)}"
        ) from error
    runs_given = values.ndim == 4
    values = values if runs_given else values[np.newaxis]
    shape = (len(values), len(variants), len(units))
    if values.ndim != 4 or values.shape[1:] != (*shape[1:], len(LAYERS)):
        raise ArgumentError(
            f"`layers` must be ([run,] variant, unit, layer) = ({shape[1]}, {shape[2]}, {len(LAYERS)}) after the runs, "
            f"got {np.shape(layers)}; the layers are {', '.join(LAYERS)}, NaN where one is absent"
        )
    if len(values) == 0:
        raise ArgumentError("`layers` has no run; give at least one")
    for name, labels in (("variants", variants), ("units", units)):
        if not len(labels):
            raise ArgumentError(f"`{name}` is empty: there is nothing to compare")
        if len(set(labels)) != len(labels):
            twice = sorted({label for label in labels if list(labels).count(label) > 1})
            raise ArgumentError(f"`{name}` must differ from each other, {twice[0]!r} occurs twice")
    values[..., JUDGE] = np.where(values[..., JUDGE] <= 0, np.nan, values[..., JUDGE])
    _refuse_off_scale("layers", values)
    readings = None if judges is None else _readings(judges, shape, runs_given=runs_given)
    return Scores(
        tuple(variants),
        tuple(units),
        values,
        readings,
        _flags("ok", ok, shape, runs_given=runs_given),
        _flags("entries", entries, shape, runs_given=runs_given),
        _shares(shares, len(units)),
        _names(judge_names, 0 if readings is None else readings.shape[-1]),
        _clusters(clusters, len(units)),
    )


def _clusters(given: ArrayLike | None, units: int) -> NDArray[np.int64] | None:
    values = np.zeros(units, dtype=np.int64) if given is None else np.asarray(given)
    if values.shape != (units,) or not np.issubdtype(values.dtype, np.integer) or (values < 0).any():
        raise ArgumentError(f"`clusters` must be {units} whole numbers >= 0; 0 means that a unit has none")
    return values.astype(np.int64) if values.any() else None


def _shares(given: ArrayLike | None, units: int) -> Floats:
    values = np.ones(units) if given is None else np.asarray(given, dtype=float)
    if values.shape != (units,) or not (np.all(np.isfinite(values) & (values >= 0)) and values.max() > 0):
        raise ArgumentError(f"`shares` must be {units} finite numbers >= 0 that are not all zero")
    values = values / values.max()
    return np.asarray(values / values.mean())


def _names(given: Sequence[str] | None, judges: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"judge {place + 1}" for place in range(judges))
    if len(given) != judges:
        raise ArgumentError(f"`judge_names` must name {judges} judges, got {len(given)} names")
    return tuple(given)


def _refuse_off_scale(name: str, values: Floats) -> None:
    """Refuse what is no score: one such value moves every mean, and nothing would show it."""
    wrong = values[~np.isnan(values) & ((values < LOWEST - GRAIN) | (values > HIGHEST + GRAIN))]
    if wrong.size:
        raise ArgumentError(
            f"`{name}` has the score {wrong[0]:g}, which is not from {LOWEST:g} to {HIGHEST:g}; "
            f"NaN means that there is none"
        )


def _readings(judges: ArrayLike, shape: tuple[int, int, int], *, runs_given: bool) -> Floats:
    values = np.asarray(judges, dtype=float)
    values = values if runs_given else values[np.newaxis]
    if values.ndim not in (4, 5) or values.shape[:3] != shape:
        raise ArgumentError(
            f"`judges` must be ([run,] variant, unit, judge[, repeat]) beginning with {shape[1:]} after the runs, "
            f"got {np.shape(judges)}"
        )
    values = np.where(values <= 0, np.nan, values)
    _refuse_off_scale("judges", values)
    return judge_layer(values) if values.ndim == 5 else values


def _flags(name: str, flags: ArrayLike | None, shape: tuple[int, int, int], *, runs_given: bool) -> Flags:
    if flags is None:
        return np.ones(shape, dtype=bool)
    values = np.asarray(flags, dtype=bool)
    values = values if runs_given else values[np.newaxis]
    if values.shape != shape:
        raise ArgumentError(
            f"`{name}` must be ([run,] variant, unit) = {shape[1:]} after the runs, got {np.shape(flags)}"
        )
    return values
