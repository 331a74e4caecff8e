"""What is left to do of an evaluation in; its blocks, one at a time, and what became of each region, out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from distributed import Future as DaskFuture

from flows.plan.blocks import Block, Window, cut_blocks
from flows.run.in_flight import Budget

Future = DaskFuture[Any]


@dataclass(frozen=True)
class RegionTask:
    """A region with something left to do."""

    window: Window
    positions: Any
    """Flat positions to ask for; see `flows.plan.blocks.pending_positions`."""
    generation: int
    """Of the newest receipt; 0 if there is none."""
    kept: tuple[int, int]
    """Trials and repeats of what is stored that a receipt vouches for; nothing else is kept."""


@dataclass(eq=False)
class OpenRegion:
    """A region while its blocks are in flight."""

    task: RegionTask
    generation: int
    kept: tuple[int, int]
    open_blocks: int = 0
    all_submitted: bool = False
    graded: list[tuple[Block, Future]] = field(default_factory=list)
    writing: Future | None = None
    written_at: float = field(default_factory=time.monotonic)
    causes: Counter[str] = field(default_factory=Counter)
    """Transport errors of this run, by cause."""
    deaths: int = 0
    """How often workers died with the task that writes it."""

    @property
    def finished(self) -> bool:
        """Nothing in flight and nothing unwritten."""
        return self.all_submitted and not self.open_blocks and not self.graded and self.writing is None


class Lane:
    """The blocks of one evaluation still to submit, made as they are needed."""

    def __init__(self, tasks: Iterator[RegionTask], budget: Budget) -> None:
        self.budget = budget
        self._tasks = tasks
        self._blocks: Iterator[Block] = iter(())
        self._region: OpenRegion | None = None
        self.opened: list[OpenRegion] = []

    def take(self) -> tuple[OpenRegion, Block] | None:
        """The next block and its region; None when all are submitted."""
        while True:
            block = next(self._blocks, None)
            if block is not None and self._region is not None:
                return self._region, block
            if self._region is not None:
                self._region.all_submitted = True
                self._region = None
            task = next(self._tasks, None)
            if task is None:
                return None
            self._region = OpenRegion(task, task.generation, task.kept)
            self.opened.append(self._region)
            self._blocks = cut_blocks(task.window, task.generation, task.positions, self.budget.block_size)

    def stop(self) -> None:
        """Give out no further block."""
        self._blocks, self._tasks = iter(()), iter(())
        self.take()
