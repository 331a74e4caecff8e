"""What each of several cubes knows of a part of their union, in the union's order of cells."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.union import Place
from evalcube.stages.reply.status import LAST_FINISHED, SECOND, Status
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import SAID, Variable

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]

_TRANSPORT = int(Status.TRANSPORT)
_LATENCY = "latency"
_BESIDE = (_LATENCY, *SAID)
"""Arrays that differ between equal runs, or that only some cubes have: no outcome."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What one cube knows of a region."""

    source: int
    """Number of the cube."""
    arrays: dict[str, Array]
    """Each of shape (cell, trial, repeat), of judges' readings with their dims after these."""
    at: Array
    """When each was written, float64 (trial, repeat), seconds since the epoch; NaN where that is not known."""


def lay(layers: Iterable[Layer], *, newer: bool = False) -> tuple[Layer | None, list[pd.DataFrame]]:
    """One layer of all; None if there is none."""
    remaining = iter(layers)
    top = next(remaining, None)
    if top is None:
        return None, []
    shape = next(iter(top.arrays.values())).shape[:3]
    owner = np.full(shape, top.source, dtype=np.intp)
    time = np.broadcast_to(top.at, shape).copy()
    contradictions = [_lay_one(top.arrays, owner, time, layer, newer=newer) for layer in remaining]
    return top, [table for table in contradictions if table is not None]


def _lay_one(
    arrays: dict[str, Array], owner: Array, time: Array, layer: Layer, *, newer: bool
) -> pd.DataFrame | None:
    here, there = _rank(arrays["status"]), _rank(layer.arrays["status"])
    _take(arrays, layer, there > here, owner, time)
    both = np.flatnonzero((here == 2) & (there == 2))
    if not len(both):
        return None
    ours = {name: _flat(values)[both] for name, values in arrays.items()}
    theirs = {name: _flat(values)[both] for name, values in layer.arrays.items()}
    differ = differing(ours, theirs)
    same = both[~differ]
    if SECOND in arrays:  # a cube may have no second reader of what another one read twice
        read = _flat(arrays[SECOND])
        read[same] = np.minimum(read[same], _flat(layer.arrays[SECOND])[same])
    for name in arrays.keys() & set(_BESIDE):
        flat, pick = _flat(arrays[name]), np.fmin if name == _LATENCY else np.fmax
        flat[same] = pick(flat[same], _flat(layer.arrays[name])[same])
    if not differ.any():
        return None
    where = both[differ]
    at = np.broadcast_to(layer.at, owner.shape).reshape(-1)[where]
    later = at > time.reshape(-1)[where]
    undecided = ~later & ~(at < time.reshape(-1)[where])
    won = later if newer else np.zeros(len(where), dtype=bool)
    before, status = owner.reshape(-1)[where], [side["status"][differ] for side in (ours, theirs)]
    if won.any():
        mask = np.zeros(owner.size, dtype=bool)
        mask[where[won]] = True
        _take(arrays, layer, mask.reshape(owner.shape), owner, time)
    import pandas as pd  # which most cubes that are read together need nothing of

    return pd.DataFrame(
        {
            "upper": np.where(won, layer.source, before),
            "lower": np.where(won, before, layer.source),
            "kept": np.where(won, *status[::-1]),
            "hidden": np.where(won, *status),
            "where": where,
            "undecided": undecided,
        }
    )


def differing(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> Array:
    """Which trials have other values than times and what endpoints say of them, bool (trial,)."""
    differ = np.zeros(len(ours["status"]), dtype=bool)
    for name, values in ours.items():
        if name in _BESIDE:
            continue
        their_values = theirs[name]
        unequal = values != their_values
        if values.dtype.kind == "f":
            unequal &= ~(np.isnan(values) & np.isnan(their_values))
        if name == SECOND:
            unequal &= (values != _MISSING) & (their_values != _MISSING)
        differ |= unequal.any(axis=tuple(range(1, unequal.ndim)))
    return differ


def _take(arrays: dict[str, Array], layer: Layer, mask: Array, owner: Array, time: Array) -> None:
    if not mask.any():
        return
    for name, values in arrays.items():
        values[mask] = layer.arrays[name][mask]
    owner[mask] = layer.source
    time[mask] = np.broadcast_to(layer.at, mask.shape)[mask]


def _rank(status: Array) -> Array:
    """2 for finished trials, 1 for transport errors, 0 for missing ones."""
    return np.where(status <= LAST_FINISHED, 2, np.where(status == _TRANSPORT, 1, 0)).astype(np.int8)


def _flat(values: Array) -> Array:
    """Trials one after another; a view."""
    return values.reshape(-1, *values.shape[3:])


Variables = Mapping[str, tuple[Variable, tuple[int, ...]]]
"""The arrays of the union's regions, with the sizes of the dims that they have beyond a trial's."""

_MISSING = int(Status.MISSING)


@dataclass(frozen=True)
class UnionPart:
    """Some trials and repeats of one model of the union."""

    model: int
    trials: tuple[int, int]
    """The first one, and the one after the last."""
    repeats: tuple[int, int]


class Layers:
    """Reads several cubes in the terms of their union. One thread uses it, and models are read one after another.

    With `only` it reads that array alone, and does not compare it with what was recorded.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        places: Sequence[Place],
        cells: tuple[int, int],
        variables: Variables,
        only: str | None = None,
    ) -> None:
        self._inputs, self._places = inputs, places
        self._variables = variables if only is None else {only: variables[only]}
        self._only = only
        self._cells = cells[0] * cells[1]
        self._maps = [cube.cells(layout, cells[1]) for cube, layout in zip(inputs, places, strict=True)]
        self._rows = [
            {target: row for row, target in enumerate(layout.models) if target >= 0} for layout in places
        ]
        # A region may be larger than the union's: it is read once for all that it reaches into.
        self._read: OrderedDict[tuple[int, Region], tuple[Receipt, dict[str, Array]] | None] = OrderedDict()

    def sharing(self, model: int) -> list[int]:
        """Numbers of the cubes that have a model."""
        return [source for source, rows in enumerate(self._rows) if model in rows]

    def of(self, part: UnionPart, receipts: list[Receipt]) -> Iterator[Layer]:
        """What each cube that knows something of a part knows of it, in the order of the cubes."""
        for source in self.sharing(part.model):
            layer = self.one(source, part, receipts)
            if layer is not None:
                yield layer

    def one(self, source: int, part: UnionPart, receipts: list[Receipt]) -> Layer | None:
        """What one cube knows of a part; None if that is nothing."""
        cube, row = self._inputs[source], self._rows[source][part.model]
        layer: Layer | None = None
        for region in _overlapping(cube, row, part):
            recorded = self._region(source, region)
            if recorded is None:
                continue
            receipt, arrays = recorded
            spans = [
                _overlap(region.trial * cube.chunks["trial"], receipt.trials, part.trials),
                _overlap(region.repeat * cube.chunks["repeat"], receipt.repeats, part.repeats),
            ]
            if any(span is None for span in spans):
                continue
            receipts.append(receipt)
            if layer is None:
                layer = self._empty(source, part)
            self._copy(layer, arrays, spans, receipt.at)  # type: ignore[arg-type]  # none of them is None
        return layer

    def _copy(
        self, layer: Layer, arrays: Mapping[str, Array], spans: Sequence[tuple[slice, slice]], at: int
    ) -> None:
        """Put a region's trials where they belong in a layer."""
        mine, theirs = self._maps[layer.source]
        (from_trials, to_trials), (from_repeats, to_repeats) = spans
        order = self._places[layer.source].judges
        for name, target in layer.arrays.items():
            if name not in arrays:
                continue  # no task of that cube is graded in layers
            values = arrays[name].reshape(-1, *arrays[name].shape[2:])[:, from_trials, from_repeats]
            if name == "judge_readings":
                moved = np.full_like(target[: len(values), to_trials, to_repeats], np.nan)
                moved[..., list(order), : values.shape[-1]] = values
                values = moved
            target[theirs, to_trials, to_repeats] = values[mine]
        layer.at[to_trials, to_repeats] = at

    def _empty(self, source: int, part: UnionPart) -> Layer:
        lengths = (part.trials[1] - part.trials[0], part.repeats[1] - part.repeats[0])
        arrays = {
            name: np.full((self._cells, *lengths, *more), variable.fill, dtype=variable.dtype)
            for name, (variable, more) in self._variables.items()
        }
        return Layer(source, arrays, np.full(lengths, np.nan))

    def _region(self, source: int, region: Region) -> tuple[Receipt, dict[str, Array]] | None:
        key = (source, region)
        if key not in self._read:
            cube = self._inputs[source]
            self._read[key] = (
                cube.read_region(region) if self._only is None else cube.peek(region, self._only)
            )
            while len(self._read) > 2 * len(self._inputs):
                self._read.popitem(last=False)
        return self._read[key]


def _overlapping(cube: Input, row: int, part: UnionPart) -> Iterator[Region]:
    """The regions of a cube that a part reaches into."""
    spans = [
        range(first // cube.chunks[dim], -(-min(last, cube.sizes[dim]) // cube.chunks[dim]))
        for dim, (first, last) in (("trial", part.trials), ("repeat", part.repeats))
    ]
    for trial in spans[0]:
        for repeat in spans[1]:
            yield Region(row, trial, repeat)


def _overlap(first: int, length: int, wanted: tuple[int, int]) -> tuple[slice, slice] | None:
    """Where a run of trials and a wanted one meet, in either of the two."""
    begin, end = max(first, wanted[0]), min(first + length, wanted[1])
    if begin >= end:
        return None
    return slice(begin - first, end - first), slice(begin - wanted[0], end - wanted[0])
