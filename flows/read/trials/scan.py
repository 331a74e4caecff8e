"""Finds the rows of the table in a cube's arrays, region by region, and reads nothing that they do not need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.plan.coordinates import ROW_ID
from evalcube.flows.read.reader import ANSWERED
from evalcube.flows.read.trials.opened import OpenCube, fulfils
from evalcube.flows.read.trials.values import Rows
from evalcube.stages.reply.status import FINISHED, Status
from evalcube.storage.cube.schema import LAYERS, VARIABLES

_FINISHED = tuple(status.name.lower() for status in FINISHED)
STATUSES = (*(status.name.lower() for status in Status), ANSWERED)
"""All that trials can be asked for by."""

ARRAYS = tuple(name for name in (*VARIABLES, *LAYERS) if name not in ("status", "judge_readings"))
"""Arrays of the cube that rows may have, beside their status."""

_SPAN_CELLS = 1 << 19
"""Trials of a span, padding included; at least all of one trial number. Some 30 bytes of each are in memory."""


class _Span(NamedTuple):
    """Trials of one model that are read at once."""

    model: int
    trials: slice
    repeats: slice


@dataclass(frozen=True)
class Wanted:
    """Which rows are wanted, and what of the cube's arrays they need."""

    status: Sequence[str] = _FINISHED
    """Names out of `STATUSES`."""
    measured: Mapping[str, object] = field(default_factory=dict)
    """Conditions on numbers of single trials."""
    arrays: Sequence[str] = ()
    """Out of `ARRAYS`."""


def check_status(names: Sequence[str]) -> tuple[str, ...]:
    """Names of outcomes, as they were given; all finished trials if none are.

    Raises
    ------
    SweepError
        If one is unknown.
    """
    for name in names or ():
        checked_option("status", name, STATUSES)
    return tuple(names or ()) or (*_FINISHED, ANSWERED)


def scan(opened: OpenCube, number: int, wanted: Wanted) -> Iterator[Rows]:
    """The rows of a cube by model, task, point, trial and repeat; of a model with very many, by runs of trials first.

    Parameters
    ----------
    opened
        The cube.
    number
        What its rows have as ``cube``.
    wanted
        Which rows.
    """
    for span in _spans(opened):
        rows = _rows(opened, number, wanted, span)
        if rows is not None:
            yield rows


def _spans(opened: OpenCube) -> Iterator[_Span]:
    """Spans that hold all trials of the models and points that are meant: few and large ones, as reading each costs."""
    chunks, cells = opened.cube.chunks, opened.cells.size
    for model in np.flatnonzero(opened.models).tolist():
        trials = int((opened.planned.trials[model] * opened.cells).max())
        repeats = int((opened.planned.repeats[model] * opened.cells).max())
        if not trials or not repeats:
            continue
        # All repeats of a question are in one span, so that they stand side by side, however few questions that makes.
        long = max(1, _SPAN_CELLS // (cells * repeats))
        long -= long % chunks["trial"] if long > chunks["trial"] else 0
        for trial in range(0, trials, long):
            yield _Span(model, slice(trial, min(trial + long, trials)), slice(0, repeats))


def _rows(opened: OpenCube, number: int, wanted: Wanted, span: _Span) -> Rows | None:
    """The rows of one span; None without any."""
    status = _read(opened, span, ["status"])["status"]
    found = _meant(opened, wanted.status, status) & _planned(opened, span)
    if opened.selected is not None:
        found &= opened.selected.of_numbers(span.trials, span.repeats)
    _narrow(found, opened, span, wanted.measured)
    positions = np.flatnonzero(found)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name in wanted.measured:
        if name in ARRAYS and len(positions):
            values = _read(opened, span, [name])[name].reshape(-1)[positions]
            keep = fulfils(values, wanted.measured[name])
            positions = positions[keep]
            arrays = {other: values[keep] for other, values in {**arrays, name: values}.items()}
    if not len(positions):
        return None
    read = _read(opened, span, [name for name in wanted.arrays if name not in arrays])
    task, slot, trial, repeat = np.unravel_index(positions, status.shape)
    return {
        "cube": np.full(len(positions), number),
        "model": np.full(len(positions), span.model),
        "task": task,
        "slot": slot,
        "trial": trial + span.trials.start,
        "repeat": repeat + span.repeats.start,
        "status": status.reshape(-1)[positions],
        **arrays,
        **{name: values.reshape(-1)[positions] for name, values in read.items()},
    }


def _planned(opened: OpenCube, span: _Span) -> npt.NDArray[np.bool_]:
    """Which trials of a span are planned."""
    trial, repeat = (np.arange(part.start, part.stop) for part in (span.trials, span.repeats))
    within: npt.NDArray[np.bool_] = (trial < opened.planned.trials[span.model][..., None])[..., None] & (
        repeat < opened.planned.repeats[span.model][..., None]
    )[:, :, None, :]
    return within


def _meant(opened: OpenCube, names: Sequence[str], status: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which trials of a region have one of the outcomes at a point that is meant."""
    wanted = np.zeros(256, dtype=bool)
    wanted[[Status[name.upper()] for name in names if name != ANSWERED]] = True
    found = wanted[status] & opened.cells[:, :, None, None]
    if (ANSWERED in names) != ("incorrect" in names):
        # One code stands for both: for a wrong answer, and for one that no reference can be held against.
        plain = opened.plan.referenced[:, :, None, None]
        incorrect = (status == Status.INCORRECT) & opened.cells[:, :, None, None]
        found = (found & ~incorrect) | (incorrect & (~plain if ANSWERED in names else plain))
    return found


def _narrow(
    found: npt.NDArray[np.bool_], opened: OpenCube, span: _Span, measured: Mapping[str, object]
) -> None:
    """Leave out trials and repeats of other numbers, and of other rows of data sets, in place."""
    if ROW_ID in measured:
        found &= opened.asks(measured[ROW_ID])[:, :, span.trials, np.newaxis]
    if "trial" in measured:
        found &= fulfils(np.arange(span.trials.start, span.trials.stop), measured["trial"])[:, None]
    if "repeat" in measured:
        found &= fulfils(np.arange(span.repeats.start, span.repeats.stop), measured["repeat"])


def _read(opened: OpenCube, span: _Span, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a span; NaN of layers that the cube does not have."""
    there = [name for name in names if name in opened.cube.trial_arrays]
    read = opened.cube.read_span(span.model, span.trials, span.repeats, there)
    if len(there) < len(names):
        lengths = (part.stop - part.start for part in (span.trials, span.repeats))
        lacking = np.full((*opened.cells.shape, *lengths), np.nan, dtype=np.float32)
        read |= {name: lacking for name in names if name not in read}
    return read
