"""Brings the cube's counters up to date with the regions that are recorded."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby
from typing import Any, TypeAlias

from distributed import Future as DaskFuture

from evalcube.flows.run.worker import region_tasks
from evalcube.flows.run.worker.poison import is_killed, raise_if_failed
from evalcube.flows.run.workers import RunParts
from evalcube.flows.state.open_trials import RoundWork
from evalcube.flows.state.store import SweepStore
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region

Future: TypeAlias = "DaskFuture[Any]"

_MOST_MODELS = 25
"""Models whose counters one task writes, so that its inputs stay small."""
_MANY_REGIONS = 32
"""Regions from which on a task counts no further model."""
_SHARE = 0.05
"""Of a run's time that it counts at most, before its end."""
_MOST_DEATHS = 3
"""Times that workers may die with these tasks in a round."""


Submit = Callable[..., Future]
"""Submits a task: takes its stage, its function and that one's arguments, and maybe a `priority`."""
WhenDone = Callable[[Future, Callable[[Future], None]], None]
"""Has a handler called, later and in the driver's thread, when a future is done."""


class Counting:
    """The tasks that compare prompts, count regions, add counters and write them, one writer at a time."""

    def __init__(
        self, parts: RunParts, store: SweepStore, work: RoundWork, submit: Submit, when_done: WhenDone
    ) -> None:
        self._parts, self._run = parts, parts.context.run
        self._regions = defaultdict[int, set[Region]](set)
        """Those that are recorded, by model."""
        for region in store.ledger.newest():
            self._regions[region.model].add(region)
        self._changed = set(work.stale)
        self._uncompared = work.uncompared
        self._submit = submit
        self._when_done = when_done
        self._comparisons: list[Future] = []
        self._writing: Future | None = None
        self._due = time.monotonic() + parts.flush_seconds
        self._deaths = 0

    def compare_prompts(self) -> None:
        """Have prompts compared beside the inference; whatever counts waits for it."""
        self._comparisons = [
            self._submit("generate", region_tasks.find_duplicates, self._run, task)
            for task in self._uncompared
        ]

    @property
    def comparing(self) -> bool:
        """Whether prompts are still being compared."""
        return any(comparison.status == "pending" for comparison in self._comparisons)

    @property
    def behind(self) -> bool:
        """Whether the cube's counters lack something that is recorded."""
        return bool(self._changed) or self._writing is not None

    def add_receipt(self, receipt: Receipt) -> None:
        """Have a region counted that was just written."""
        self._regions[receipt.region.model].add(receipt.region)
        self._changed.add(receipt.region.model)

    def write_due(self, *, last: bool) -> None:
        """Bring the counters of changed evaluations into the cube, if it is time; at once if it is the last time."""
        # One such task at a time: the counters of all evaluations are in one array, and a chunk has one writer.
        began = time.monotonic()
        if self._writing is not None or not self._changed or not (last or began > self._due):
            return
        models = sorted(self._changed)[:_MOST_MODELS]
        # Before the task is done: a region that is recorded meanwhile puts its model back in.
        self._changed.difference_update(models)
        ends = accumulate(len(self._regions[model]) for model in models)
        parts = []
        for _, part in groupby(zip(models, ends, strict=True), lambda pair: pair[1] // _MANY_REGIONS):
            # In the order of the regions whatever finished first: sums of floats depend on it.
            regions = [sorted(self._regions[model]) for model, _ in part]
            counting = (region_tasks.score, self._run, regions, self._comparisons)
            parts.append(self._submit("score", *counting, priority=20))
        future = self._submit("analyze", region_tasks.analyze, self._run, models, parts, priority=30)
        self._writing = future

        def done(future: Future) -> None:
            self._writing = None
            # All regions of a model are counted each time: the more there are, the more seldom.
            self._due = began + max(self._parts.flush_seconds, (time.monotonic() - began) / _SHARE)
            # Nothing is lost with it: counters are added up from regions, which are in the cube.
            if is_killed(future) and self._deaths < _MOST_DEATHS:
                self._deaths += 1
                self._count_again(models)
                return
            raise_if_failed(future)

        self._when_done(future, done)

    def _count_again(self, models: Sequence[int]) -> None:
        """Count anew what died with workers, without the comparisons of prompts that did."""
        alive = [comparison for comparison in self._comparisons if not is_killed(comparison)]
        if len(alive) < len(self._comparisons):
            self._parts.emit.note(
                "workers died comparing the prompts of a task; the next run compares them again"
            )
        self._comparisons = alive
        self._changed.update(models)
