"""How far each cell is to be measured, as arrays of trials and repeats. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Region

if TYPE_CHECKING:
    from evalcube.flows.plan.plan import Plan

Kept = tuple[int, int, int]
"""Trials and repeats of a region that are kept, and the number of the shape that it had when they were recorded."""
NOTHING_KEPT: Kept = (0, 0, 0)

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """The part of a region that exists at the sweep's present sizes."""

    region: Region
    shape: tuple[int, int, int, int]
    """(task, params, trial, repeat) of the region's arrays."""
    first_trial: int
    first_repeat: int

    def coordinates(self, positions: Positions) -> tuple[Positions, ...]:
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
    positions: Positions
    """Flat positions in the window."""
    recorded: bool = False
    """Whether its trials are recorded, and only judges who have not rated them are asked."""

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.positions)

    @property
    def key(self) -> tuple[int, ...]:
        """A hashable name, unique within one run."""
        region = self.window.region
        return (region.model, region.trial, region.repeat, self.generation, self.index)


@dataclass(frozen=True)
class RegionWork:
    """A region with something left to do."""

    window: Window
    positions: Positions
    """Flat positions to ask for; see `pending_positions`."""
    generation: int
    """Of the newest receipt; 0 if there is none."""
    kept: Kept
    """What is stored that a receipt vouches for; nothing else is kept."""
    shape: int
    """Number of the shape that the cube's regions have now."""
    grader: str | None = None
    """Version of the grader of what is kept; None if nothing is."""
    unrated: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    """Flat positions of recorded trials that not all judges have rated."""

    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Of what is kept, see `evalcube.storage.cube.ledger.Receipt.fingerprints`."""

    def grader_of(self, new: str) -> str:
        """The grader to record of the region: both, where trials that are kept were graded by another one."""
        return new if self.grader is None else "+".join(sorted({*self.grader.split("+"), new}))


def window_of(sizes: Mapping[str, int], region: Region, chunks: Mapping[str, int]) -> Window:
    """The window of a region at the cube's sizes."""
    first_trial, first_repeat = region.trial * chunks["trial"], region.repeat * chunks["repeat"]
    trials = min(chunks["trial"], sizes["trial"] - first_trial)
    repeats = min(chunks["repeat"], sizes["repeat"] - first_repeat)
    return Window(region, (sizes["task"], sizes["params"], trials, repeats), first_trial, first_repeat)


def pending_positions(
    window: Window, wanted: npt.NDArray[np.bool_], status: npt.NDArray[np.uint8] | None
) -> Positions:
    """Flat positions still to do, first trials of all cells first, so that partial data covers every cell."""
    todo = wanted
    if status is not None:
        todo = todo & ((status == Status.MISSING) | (status == Status.TRANSPORT))
    trial_major: Any = np.moveaxis(np.arange(todo.size).reshape(window.shape), (2, 3), (0, 1))
    positions: Positions = trial_major[np.moveaxis(todo, (2, 3), (0, 1))]
    return positions


def cut_blocks(work: RegionWork, size: int) -> Iterator[Block]:
    """Cut what is to do in a region into blocks of about `size` trials."""
    index = 0
    for positions, recorded in ((work.positions, False), (work.unrated, True)):
        # The nearest number: a region that is a little larger than a block is one block.
        count = max(1, round(len(positions) / size))
        for part in np.array_split(positions, count) if len(positions) else ():
            yield Block(work.window, work.generation, index, part, recorded)
            index += 1


IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

MOST_TRIALS, MOST_REPEATS = 10**7, 10**5
"""Of one cell; the same as a config may ask for."""
MOST_QUESTIONS, MOST_REQUESTS = 5 * 10**7, 10**9
"""Of one cube: slots of its tasks times trials; trials times repeats of all evaluations."""


@dataclass(frozen=True, eq=False)
class SampleTargets:
    """How far each cell of a sweep is to be measured: its first trials, its first repeats of each."""

    trials: IntArray
    """Shape (model, task, params); 0 where there is no cell."""
    repeats: IntArray
    first: int = 0
    """Number of the first trial that is meant."""

    @classmethod
    def uniform(cls, plan: Plan, trials: int, repeats: int, chosen: BoolArray | None = None) -> SampleTargets:
        """The same for every cell that the config names, or for the chosen ones, as far as it has as many trials."""
        wanted = plan.named_cells if chosen is None else chosen & plan.named_cells
        most = np.minimum(plan.sources, trials)
        return cls(np.where(wanted, most, 0).astype(np.int32), np.where(wanted, repeats, 0).astype(np.int32))

    @property
    def maxima(self) -> tuple[int, int]:
        """The most trials and repeats of any cell."""
        return int(self.trials.max()), int(self.repeats.max())

    @property
    def counts(self) -> list[int]:
        """Trials of each model, repeats included."""
        trials = np.maximum(self.trials.astype(np.int64) - self.first, 0)
        each: Any = (trials * self.repeats).sum(axis=(1, 2))
        return [int(count) for count in each]

    def union(self, other: SampleTargets) -> SampleTargets:
        """As far as either of the two reaches in trials, and in repeats, from the first trial on."""
        return SampleTargets(np.maximum(self.trials, other.trials), np.maximum(self.repeats, other.repeats))

    def rectangular(self, planned: SampleTargets) -> SampleTargets:
        """The targets with all repeats of their new trials, and all trials of their new repeats.

        A plan is a rectangle for each cell: what its union with these targets holds must be measured by somebody.
        """
        trials = np.where(
            self.repeats > planned.repeats, np.maximum(self.trials, planned.trials), self.trials
        )
        repeats = np.where(
            self.trials > planned.trials, np.maximum(self.repeats, planned.repeats), self.repeats
        )
        return SampleTargets(trials, repeats)

    def refuse_too_many(self) -> None:
        """Refuse more than a cube can have, before any array of that size is made."""
        _, tasks, slots = self.trials.shape
        trials, repeats = self.maxima
        sizes = (
            (trials, MOST_TRIALS, "trials of a cell"),
            (repeats, MOST_REPEATS, "repeats"),
            (
                tasks * slots * trials,
                MOST_QUESTIONS,
                f"questions ({tasks} tasks x {slots} points x {trials:,} trials)",
            ),
            (sum(self.counts), MOST_REQUESTS, "requests"),
        )
        for size, most, unit in sizes:
            if size > most:
                raise SweepError(
                    f"{size:,} {unit} are more than a cube can have: {most:,}",
                    "Ask for fewer trials or repeats, or spread the tasks over several cubes",
                )

    def same(self, other: SampleTargets) -> bool:
        """Whether both reach equally far."""
        return np.array_equal(self.trials, other.trials) and np.array_equal(self.repeats, other.repeats)

    def count(self, window: Window) -> int:
        """How many trials of a region belong to the targets: the sum of `mask`, without making it."""
        return int(self.by_cell(window).sum())

    def by_cell(self, window: Window) -> npt.NDArray[np.int64]:
        """The same of each cell, shape (task, params)."""
        trials, repeats, _ = self._reach(window)
        return trials * repeats

    def positions(self, window: Window, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Flat positions of some trials of a region that belong to the targets, by their number among these."""
        trials, repeats, begin = self._reach(window)
        each = (trials * repeats).reshape(-1)
        ends = np.cumsum(each)
        cell = np.searchsorted(ends, numbers, side="right")
        within, width = numbers - (ends - each)[cell], repeats.reshape(-1)[cell]
        trial = cell * window.shape[2] + begin + within // width
        positions: npt.NDArray[np.int64] = trial * window.shape[3] + within % width
        return positions

    def _reach(self, window: Window) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """Trials and repeats of each cell in a window, and the first of the trials there."""
        model, (_, _, length, width) = window.region.model, window.shape
        begin = min(max(self.first - window.first_trial, 0), length)
        until = np.clip(self.trials[model].astype(np.int64) - window.first_trial, 0, length)
        repeats = np.clip(self.repeats[model].astype(np.int64) - window.first_repeat, 0, width)
        return np.maximum(until - begin, 0), repeats, begin

    def mask(self, window: Window) -> BoolArray:
        """Which trials of a region belong to the targets, in the window's shape."""
        model = window.region.model
        trial = np.arange(window.shape[2]) + window.first_trial
        repeat = np.arange(window.shape[3]) + window.first_repeat
        meant = (trial < self.trials[model, :, :, None]) & (trial >= self.first)
        within: BoolArray = meant[..., None] & (repeat < self.repeats[model, :, :, None])[:, :, None, :]
        return within
