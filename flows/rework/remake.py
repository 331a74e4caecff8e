"""Makes a damaged region again from the cache, and records it where it is another one than before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.blocks import Window, window_of
from evalcube.flows.plan.grading import Prices
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.recording import grader_of, receipt_of
from evalcube.flows.plan.records import MERGED
from evalcube.flows.plan.regrade import regrade
from evalcube.flows.plan.targets import SampleTargets
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import region_digest

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
