"""What is recorded of a region, and how regions are counted; the same for a run and for whoever makes one again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from flows.plan.blocks import Window, window_of
from flows.plan.grading import Prices
from flows.plan.targets import SampleTargets
from stages.process.grading import GRADER
from stages.reply.status import Status
from stages.score.counters import count_trials
from storage.cube.cube import Cube
from storage.cube.ledger import Receipt
from storage.cube.regions import Region
from storage.cube.schema import VARIABLES

SUM_WIDTH = 16
"""Counters that are added at once, and so the order of additions."""

T = TypeVar("T")


def receipt_of(
    window: Window,
    generation: int,
    planned: npt.NDArray[np.bool_],
    status: npt.NDArray[np.generic],
    digest: str,
    causes: Mapping[str, int],
    shape: int = 0,
) -> Receipt:
    """The receipt of a region that was just written.

    Parameters
    ----------
    window
        The region's, as large as it was written.
    generation
        Number of this version of the region.
    planned
        Which of its trials are planned, in the window's shape.
    status
        Their status, in the same shape.
    digest
        Of its content.
    causes
        How often each cause of a transport error occurred.
    shape
        Number of the shape that regions have, `storage.cube.cube.Cube.shape_number`.
    """
    transport = int((planned & (status == Status.TRANSPORT)).sum())
    missing = int((planned & (status == Status.MISSING)).sum())
    return Receipt(
        region=window.region,
        generation=generation,
        trials=window.shape[2],
        repeats=window.shape[3],
        planned=int(planned.sum()),
        complete=not transport and not missing,
        transport=transport,
        missing=missing,
        causes=dict(causes),
        digest=digest,
        grader=GRADER,
        shape=shape,
        at=int(time.time()),
    )


def count_region(
    cube: Cube, region: Region, planned: SampleTargets, prices: Prices
) -> npt.NDArray[np.float64]:
    """Counters of a region, shape (task, params, counter), from what the cube holds.

    Parameters
    ----------
    cube
        The cube.
    region
        Which part of it.
    planned
        What the cube is to hold: an absent slot is no missing trial.
    prices
        Of the region's model.

    Raises
    ------
    CubeDamagedError
        If a chunk of the region, or of the flags of repeated prompts, cannot be decoded.
    """
    window = window_of(cube.sizes, region, cube.chunks)
    trials = slice(window.first_trial, window.first_trial + window.shape[2])
    return count_trials(
        {
            **cube.read_region(region, VARIABLES),
            "duplicate": cube.read_duplicates(trials)[..., None],
            "planned": planned.mask(window),
        },
        price_prompt=prices[0],
        price_completion=prices[1],
    )


def summed(parts: Sequence[T], add: Callable[[list[T]], T]) -> T:
    """The sum of parts by a tree whose shape follows from their number: sums of floats depend on their order.

    Parameters
    ----------
    parts
        At least one, in a fixed order.
    add
        Adds up to `SUM_WIDTH` of them.
    """
    level = list(parts)
    while len(level) > 1:
        level = [add(level[i : i + SUM_WIDTH]) for i in range(0, len(level), SUM_WIDTH)]
    return level[0]
