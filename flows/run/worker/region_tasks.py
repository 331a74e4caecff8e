"""Dask tasks on whole regions and tasks of a sweep: writing, comparing prompts, counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import secede

from evalcube.flows.plan.grading import Arrays, trial_variables
from evalcube.flows.plan.targets import NOTHING_KEPT, Kept, Window
from evalcube.flows.run.worker.plugin import workspace
from evalcube.flows.run.worker.tasks import BlockResult
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.flows.state.recording import count_region, count_split_questions, receipt_of, sum_regions
from evalcube.flows.state.shared_arrays import keep_compared, read_compared, repeat_flags
from evalcube.storage.cube.ledger import Receipt, most_fingerprints
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError


def find_duplicates(run: str, task: int) -> None:
    """Find out which planned prompts of a task occurred before in their cell, once for all models.

    A run that stops does not wait for it: cells that are not compared by then are compared by the next run.
    """
    work = workspace(run)
    # Blocks need the thread more, and one comparison at a time leaves the loop that asks enough of this process.
    secede()
    with work.comparing:
        cube = work.cube
        cube.refresh()
        flags = cube.read_duplicates()[task]
        planned = cube.read_planned("trial")[:, task].max(axis=0)
        compared = read_compared(cube.records, task)
        flags = repeat_flags(
            work.plan.tasks[task], planned, flags, lambda: work.drained, work.make_trial, compared
        )
        # Right before the write: comparing takes long, and another driver may have taken over meanwhile.
        work.check_lease()
        cube.write_duplicates(task, flags)
        keep_compared(cube.records, task, compared)


def write_region(
    run: str, window: Window, generation: int, kept: Kept, results: Sequence[BlockResult], unrated: int = 0
) -> Receipt:
    """Gather a region's blocks and write every array's whole chunk."""
    work = workspace(run)
    work.cube.refresh()  # it may have grown since this worker opened it
    arrays = _kept_arrays(work, window, kept)
    causes: Counter[str] = Counter()
    for result in results:
        causes.update(result.causes)
        for name, column in result.arrays.items():
            arrays[name].reshape(-1, *column.shape[1:])[result.positions] = column
    work.check_lease()
    # Whole chunks, and of one region by one task at a time, so that a kill leaves old or new chunks and never a mix
    # within one; a mix between arrays does not fit the digest, and the next run grades the region again.
    digest = work.cube.write_region(window.region, arrays, check=work.check_lease)
    planned = work.read_targets().mask(window)
    shape = work.cube.shape_number
    receipt = receipt_of(window, generation, planned, arrays["status"], digest, causes, shape)
    return replace(
        receipt,
        unrated=unrated - sum(result.rated for result in results),
        fingerprints=most_fingerprints(result.fingerprints for result in results),
    )


def _kept_arrays(work: Workspace, window: Window, kept: Kept) -> Arrays:
    """A region of missing trials with what is kept of the stored one, in the window's shape."""
    arrays: Arrays = {
        name: np.full((*window.shape, *more), variable.fill, dtype=variable.dtype)
        for name, (variable, more) in trial_variables(work.plan).items()
    }
    if kept != NOTHING_KEPT:
        trials, repeats, shape = kept
        stored = work.cube.read_region(window.region)
        for name, values in work.cube.shapes[shape].crop(stored, trials, repeats).items():
            arrays[name][tuple(map(slice, values.shape))] = values
    return arrays


def score(
    run: str,
    recorded: Sequence[Sequence[Region]],
    compared: Sequence[None],  # noqa: ARG001
) -> list[npt.NDArray[np.float64]]:
    """Counters of models, each of shape (task, params, counter), given by their regions, from what the cube holds."""
    work = workspace(run)
    work.cube.refresh()
    targets, sizes = work.read_targets(), work.cube.sizes
    nothing = np.zeros((sizes["task"], sizes["params"], sizes["counter"]))

    def attempt(count: Callable[..., npt.NDArray[np.float64]], *args: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
        try:
            return count(*args)
        except CubeDamagedError:
            # It is being done again, and counted again then; if that is cut short, the counters are behind the ledger,
            # which the next run sees.
            return nothing

    sums = []
    for regions in recorded:
        prices = work.context.prices
        counted = [
            attempt(count_region, work.cube, region, targets, prices[region.model]) for region in regions
        ]
        sums.append(sum_regions(work.cube, regions, counted, partial(attempt, count_split_questions)))
    return sums


def analyze(run: str, models: Sequence[int], parts: Sequence[Sequence[npt.NDArray[np.float64]]]) -> None:
    """Put the counters of some models, given in parts, into the cube; one such task runs at a time."""
    work = workspace(run)
    work.check_lease()
    # From what the cube holds, not from what tasks counted on the way: a number that is written twice is the same.
    work.cube.write_counters(dict(zip(models, chain(*parts), strict=True)))
