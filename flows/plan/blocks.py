"""Addresses of work: which trials of a region are still to do, cut into blocks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Region

IntArray = npt.NDArray[np.int64]
Kept = tuple[int, int, int]
"""Trials and repeats of a region that are kept, and the number of the shape that it had when they were recorded."""
NOTHING_KEPT: Kept = (0, 0, 0)


@dataclass(frozen=True)
class Window:
    """The part of a region that exists at the sweep's present sizes."""

    region: Region
    shape: tuple[int, int, int, int]
    """(task, params, trial, repeat) of the region's arrays."""
    first_trial: int
    first_repeat: int

    def coordinates(self, positions: IntArray) -> tuple[IntArray, ...]:
        """Indices (task, params, trial, repeat) in the cube of flat positions in the window."""
        task, params, trial, repeat = np.unravel_index(positions, self.shape)
        return task, params, trial + self.first_trial, repeat + self.first_repeat


@dataclass(frozen=True, eq=False)
class Block:
    """The unit of inference: some trials of one model. What tasks pass on instead of prompts."""

    window: Window
    generation: int
    """Of the region's newest receipt when the block was cut."""
    index: int
    """Number within the region and generation."""
    positions: IntArray
    """Flat positions in the window."""
    recorded: bool = False
    """Whether its trials are recorded, and only judges who have not rated them are asked."""
    whole: tuple[int, ...] = ()
    """Key of the block that this one is a part of, where one was taken apart."""

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.positions)

    @property
    def key(self) -> tuple[int, ...]:
        """A hashable name, unique within one run."""
        region = self.window.region
        return (region.model, region.trial, region.repeat, self.generation, self.index)

    @property
    def origin(self) -> tuple[int, ...]:
        """Key of the block as it was first cut."""
        return self.whole or self.key


@dataclass(frozen=True)
class RegionWork:
    """A region with something left to do."""

    window: Window
    positions: IntArray
    """Flat positions to ask for; see `pending_positions`."""
    generation: int
    """Of the newest receipt; 0 if there is none."""
    kept: Kept
    """What is stored that a receipt vouches for; nothing else is kept."""
    shape: int
    """Number of the shape that the cube's regions have now."""
    grader: str | None = None
    """Version of the grader of what is kept; None if nothing is."""
    unrated: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Flat positions of recorded trials that not all judges have rated."""

    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Of what is kept, see `evalcube.storage.cube.ledger.Receipt.fingerprints`."""

    def grader_of(self, new: str) -> str:
        """The grader to record of the region: both, where trials that are kept were graded by another one.

        Parameters
        ----------
        new
            Version of the grader of the trials that are added.
        """
        return new if self.grader is None else "+".join(sorted({*self.grader.split("+"), new}))


def window_of(sizes: Mapping[str, int], region: Region, chunks: Mapping[str, int]) -> Window:
    """The window of a region at the cube's sizes."""
    first_trial, first_repeat = region.trial * chunks["trial"], region.repeat * chunks["repeat"]
    trials = min(chunks["trial"], sizes["trial"] - first_trial)
    repeats = min(chunks["repeat"], sizes["repeat"] - first_repeat)
    return Window(region, (sizes["task"], sizes["params"], trials, repeats), first_trial, first_repeat)


def pending_positions(
    window: Window, wanted: npt.NDArray[np.bool_], status: npt.NDArray[np.uint8] | None
) -> IntArray:
    """Flat positions still to do, first trials of all cells first, so that partial data covers every cell.

    Parameters
    ----------
    window
        The region's window.
    wanted
        Which trials are to be measured, in the window's shape.
    status
        Status of the region as stored, in the window's shape; None where nothing is stored.
    """
    todo = wanted
    if status is not None:
        todo = todo & ((status == Status.MISSING) | (status == Status.TRANSPORT))
    trial_major: Any = np.moveaxis(np.arange(todo.size).reshape(window.shape), (2, 3), (0, 1))
    found: IntArray = trial_major[np.moveaxis(todo, (2, 3), (0, 1))]
    return found


def cut_blocks(work: RegionWork, size: int) -> Iterator[Block]:
    """Cut what is to do in a region into blocks of about `size` trials."""
    index = 0
    for positions, recorded in ((work.positions, False), (work.unrated, True)):
        # The nearest number: a region that is a little larger than a block is one block.
        count = max(1, round(len(positions) / size))
        for part in np.array_split(positions, count) if len(positions) else ():
            yield Block(work.window, work.generation, index, part, recorded)
            index += 1
