"""Makes a recorded region again from what the cache holds; nothing is ever asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.grading import (
    LayerGrader,
    Prices,
    columns,
    grade_reading,
    read_stored,
    trial_variables,
)
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import Prepared, prepare_trials
from evalcube.flows.plan.targets import Block, SampleTargets, Window, window_of
from evalcube.flows.state.recording import grader_of, receipt_of
from evalcube.flows.state.records import MERGED
from evalcube.stages.process.grading import Outcome
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import region_digest

_AT_ONCE = 64
"""Trials whose replies are in memory at once."""


@dataclass(frozen=True, eq=False)
class Regraded:
    """A region made again."""

    arrays: dict[str, npt.NDArray[Any]]
    """In the window's shape."""
    unanswered: int
    """Planned trials that the cache does not answer, or whose judges' replies it lacks."""


def regrade(
    plan: Plan,
    window: Window,
    planned: npt.NDArray[np.bool_],
    receipt: Receipt,
    cache: Cache,
    prices: Prices,
    stored: npt.NDArray[np.uint8] | None,
) -> Regraded:
    """Make a region again.

    Parameters
    ----------
    plan
        Of the cube.
    window
        The region's.
    planned
        Which of its trials are to be there, in the window's shape.
    receipt
        What was recorded of it.
    cache
        Where its replies are.
    prices
        Of the region's model.
    stored
        Its status as stored; None where that cannot be read.

    Returns
    -------
    Regraded
        Trials without an answer are transport errors or missing, as the receipt says, or else as `stored` does.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
        for name, (variable, more) in trial_variables(plan).items()
    }
    layers, unanswered = LayerGrader(plan), 0
    positions = np.flatnonzero(planned)
    for begin in range(0, len(positions), _AT_ONCE):
        part = positions[begin : begin + _AT_ONCE]
        prepared = prepare_trials(plan, Block(window, receipt.generation, 0, part))
        replies = cache.get_many([item.request.digest for item in prepared])
        outcomes = []
        for place, item, reply in zip(part.tolist(), prepared, replies, strict=True):
            outcome = _outcome(item, reply, layers, cache, prices)
            unanswered += outcome is None
            outcomes.append(outcome or Outcome(_unanswered(receipt, stored, place)))
        for name, column in columns(plan, outcomes).items():
            arrays[name].reshape(-1, *column.shape[1:])[part] = column
    return Regraded(arrays, unanswered)


def _outcome(
    item: Prepared, reply: bytes | None, layers: LayerGrader, cache: Cache, prices: Prices
) -> Outcome | None:
    reading = read_stored(reply)
    if reading is None:
        return None
    outcome = grade_reading(reading, item.cell, item.trial)
    judged = [
        [cache.get(request.digest) for request in each]
        for each in layers.judge_requests(item, reading.answer)
    ]
    return layers.with_layers(item, reading, outcome, prices, judged)


def _unanswered(receipt: Receipt, stored: npt.NDArray[np.uint8] | None, place: int) -> Status:
    if not receipt.missing:
        return Status.TRANSPORT
    if receipt.transport and stored is not None and stored.reshape(-1)[place] == Status.TRANSPORT:
        return Status.TRANSPORT
    return Status.MISSING


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Remade:
    """A region that was made again."""

    arrays: dict[str, Array]
    """In the window's shape."""
    lost: int
    """Replies that were recorded and that the cache has no more: with any, nothing was written."""
    receipt: Receipt | None
    """To be recorded, where what was written is not what had been recorded."""


def remake(
    cube: Cube,
    plan: Plan,
    receipt: Receipt,
    targets: SampleTargets,
    cache: Cache,
    prices: Sequence[Prices],
    stored: npt.NDArray[np.uint8] | None,
) -> Remade:
    """Make a recorded region again, and write it unless replies are lost.

    Parameters
    ----------
    cube
        Open for writing, under the lease.
    plan
        Of the cube.
    receipt
        Of the region.
    targets
        What the cube is to hold.
    cache
        Where the replies are.
    prices
        By model.
    stored
        The region's status as stored; None where that cannot be read.
    """
    window, recorded = window_of(cube.sizes, receipt.region, cube.chunks), recorded_window(cube, receipt)
    planned = np.zeros(window.shape, dtype=bool)
    planned[:, :, : receipt.trials, : receipt.repeats] = targets.mask(recorded)
    made = regrade(plan, window, planned, receipt, cache, prices[receipt.region.model], stored)
    later = int(planned.sum()) - receipt.planned  # planned since it was recorded, and not run yet
    lost = max(0, made.unanswered - later - receipt.transport - receipt.missing)
    if lost:
        return Remade(made.arrays, lost, None)
    same = (
        region_digest(cube.shape_of(receipt).cropped(made.arrays, receipt.trials, receipt.repeats))
        == receipt.digest
    )
    if not same and MERGED in cube.attrs:
        # Caches may have another team's replies to the same requests, which were not measured here.
        return Remade(made.arrays, receipt.planned, None)
    digest = cube.write_region(receipt.region, made.arrays)
    if same:
        return Remade(made.arrays, 0, None)
    # The cache has got other replies since, or more of them: what is there now is what counts.
    status, generation = made.arrays["status"], receipt.generation + 1
    mask, grader = targets.mask(window), grader_of(plan.evaluations[receipt.region.model])
    new = receipt_of(window, generation, mask, status, digest, receipt.causes, cube.shape_number, grader)
    return Remade(made.arrays, 0, replace(new, fingerprints=receipt.fingerprints))


def recorded_window(cube: Cube, receipt: Receipt) -> Window:
    """The part of a region that was there when it was recorded."""
    window = window_of(cube.sizes, receipt.region, cube.chunks)
    return replace(window, shape=(*window.shape[:2], receipt.trials, receipt.repeats))
