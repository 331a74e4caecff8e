"""Trials of several cubes laid over one another: what is finished hides what is not. Pure.

A *layer* is what one cube knows of a region of the union, in the union's shape, with fills where it knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.stages.reply.status import LAST_FINISHED, Status

Array = npt.NDArray[Any]

_TRANSPORT = int(Status.TRANSPORT)
UNTIMED = "latency"
"""The array that differs between equal runs."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What one cube knows of a region."""

    source: int
    """Number of the cube."""
    arrays: dict[str, Array]
    """Each of shape (cell, trial, repeat), of judges' readings with their dims after these."""
    at: Array
    """When each was written, float64 (trial, repeat), seconds since the epoch; NaN where that is not known."""


@dataclass(frozen=True, eq=False)
class Contradiction:
    """Trials that two cubes have finished with different outcomes."""

    upper: int
    """Number of the cube whose outcome stays."""
    lower: int
    """Number of the other one."""
    where: Array
    """Flat positions of shape (cell, trial, repeat), in order."""
    kept: dict[str, Array]
    """What stays there."""
    hidden: dict[str, Array]
    """What does not."""
    undecided: int
    """How many of them have no newer side."""


def lay(layers: Iterable[Layer], *, newer: bool = False) -> tuple[Layer, list[Contradiction]]:
    """One layer of all.

    Parameters
    ----------
    layers
        At least one, taken one by one; the first one's arrays are written to.
    newer
        Whether the later outcome stays where two contradict, and not that of the earlier layer.

    Returns
    -------
    Layer
        Finished trials of any layer, else transport errors, else missing ones. Of equal outcomes the shorter latency
        is kept, so that the order of layers is of no account where nothing contradicts.
    list of Contradiction
        One for each layer that contradicts those before it, if any.
    """
    rest = iter(layers)
    top = next(rest)
    found: list[Contradiction] = []
    second = next(rest, None)
    if second is None:
        return top, found
    shape = top.arrays["status"].shape
    owner = np.full(shape, top.source, dtype=np.intp)
    time = np.broadcast_to(top.at, shape).copy()
    for layer in chain([second], rest):
        found += _lay_one(top.arrays, owner, time, layer, newer=newer)
    return top, found


def _lay_one(
    arrays: dict[str, Array], owner: Array, time: Array, layer: Layer, *, newer: bool
) -> list[Contradiction]:
    here, there = _rank(arrays["status"]), _rank(layer.arrays["status"])
    _take(arrays, layer, there > here, owner, time)
    both = np.flatnonzero((here == 2) & (there == 2))
    if not len(both):
        return []
    ours = {name: _flat(values)[both] for name, values in arrays.items()}
    theirs = {name: _flat(values)[both] for name, values in layer.arrays.items()}
    differ = differing(ours, theirs)
    same = both[~differ]
    latency = _flat(arrays[UNTIMED])
    latency[same] = np.fmin(latency[same], _flat(layer.arrays[UNTIMED])[same])
    if not differ.any():
        return []
    where = both[differ]
    at = np.broadcast_to(layer.at, owner.shape).reshape(-1)[where]
    later = at > time.reshape(-1)[where]
    undecided = ~later & ~(at < time.reshape(-1)[where])
    won = later if newer else np.zeros(len(where), dtype=bool)
    found = []
    for source in np.unique(owner.reshape(-1)[where]):
        for taken in (False, True):
            chosen = (owner.reshape(-1)[where] == source) & (won == taken)
            if chosen.any():
                pair = [
                    {name: values[differ][chosen] for name, values in side.items()} for side in (ours, theirs)
                ]
                kept, hidden = reversed(pair) if taken else pair
                upper, lower = (layer.source, int(source)) if taken else (int(source), layer.source)
                found.append(
                    Contradiction(upper, lower, where[chosen], kept, hidden, int(undecided[chosen].sum()))
                )
    if won.any():
        mask = np.zeros(owner.size, dtype=bool)
        mask[where[won]] = True
        _take(arrays, layer, mask.reshape(owner.shape), owner, time)
    return found


def differing(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> Array:
    """Which trials have other values than latencies, bool (trial,).

    Parameters
    ----------
    ours, theirs
        Arrays of the same trials, shape (trial, ...).
    """
    found = np.zeros(len(ours["status"]), dtype=bool)
    for name, values in ours.items():
        if name == UNTIMED:
            continue
        other = theirs[name]
        unequal = values != other
        if values.dtype.kind == "f":
            unequal &= ~(np.isnan(values) & np.isnan(other))
        found |= unequal.any(axis=tuple(range(1, unequal.ndim)))
    return found


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
