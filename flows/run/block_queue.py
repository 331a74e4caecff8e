"""The blocks of an evaluation still to submit, and what became of its open regions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from distributed import Future as DaskFuture

from evalcube.flows.plan.blocks import Block, Kept, RegionWork, cut_blocks
from evalcube.flows.run.in_flight import InFlightLimit

Future: TypeAlias = "DaskFuture[Any]"


@dataclass(eq=False)
class RegionProgress:
    """A region while its blocks are in flight."""

    work: RegionWork
    generation: int
    kept: Kept
    open_blocks: int = 0
    all_submitted: bool = False
    graded: list[tuple[Block, Future]] = field(default_factory=list)
    writing: Future | None = None
    written_at: float = field(default_factory=time.monotonic)
    causes: Counter[str] = field(default_factory=Counter)
    """Transport errors of this run, by cause."""
    deaths: int = 0
    """How often workers died with the task that writes it."""
    unrated: int = 0
    """Recorded trials that not all judges have rated, as of the last writing."""
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Of all that is in it, as of the last writing; see `evalcube.storage.cube.ledger.Receipt`."""

    @property
    def finished(self) -> bool:
        """Nothing in flight and nothing unwritten."""
        return self.all_submitted and not self.open_blocks and not self.graded and self.writing is None


class BlockQueue:
    """The blocks of one evaluation still to submit, made as they are needed."""

    def __init__(self, regions: Iterator[RegionWork], limit: InFlightLimit) -> None:
        self.limit = limit
        self._regions = regions
        self._blocks: Iterator[Block] = iter(())
        self._region: RegionProgress | None = None
        self.opened: list[RegionProgress] = []

    def take(self) -> tuple[RegionProgress, Block] | None:
        """The next block and its region; None when all are submitted."""
        while True:
            block = next(self._blocks, None)
            if block is not None and self._region is not None:
                return self._region, block
            if self._region is not None:
                self._region.all_submitted = True
                self._region = None
            work = next(self._regions, None)
            if work is None:
                return None
            self._region = RegionProgress(work, work.generation, work.kept)
            self._region.unrated, self._region.fingerprints = len(work.unrated), work.fingerprints
            self.opened.append(self._region)
            # Cut when the region is opened, so that the size is what the blocks before it taught.
            self._blocks = cut_blocks(work, self.limit.block_size)

    def stop(self) -> None:
        """Give out no further block."""
        self._blocks, self._regions = iter(()), iter(())
        self.take()
