"""Brings the cube's counters up to date with the regions that are recorded."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeAlias

from distributed import Future as DaskFuture

from evalcube.flows.run.worker import region_tasks
from evalcube.flows.run.worker.poison import is_killed, raise_if_failed
from evalcube.flows.run.workers import RunParts
from evalcube.flows.state.open_trials import RoundWork
from evalcube.flows.state.recording import split_questions, sum_pairwise
from evalcube.flows.state.store import SweepStore
from evalcube.stages.score.counters import add_counters
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region

Future: TypeAlias = "DaskFuture[Any]"

_MOST_MODELS = 25
"""Models whose counters one task writes, so that its inputs stay small."""
_MOST_DEATHS = 3


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
        self._scores: dict[Region, Future] = {}
        self._split: dict[tuple[Region, ...], Future] = {}
        """What regions that share questions lack, by these regions."""
        self._writing: Future | None = None
        self._written_at = time.monotonic()
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
        """Count a region that was just written."""
        region, regions = receipt.region, self._regions[receipt.region.model]
        regions.add(region)
        self._scores.pop(region, None)
        # The only one of a model is counted together with those of others: of many models each has but one.
        if len(regions) > 1:
            self._scores[region] = self._score(region)
        self._split = {group: future for group, future in self._split.items() if region not in group}
        self._changed.add(region.model)

    def write_due(self, open_models: Callable[[], Container[int]], *, last: bool) -> None:
        """Bring the counters of changed evaluations into the cube, if it is time; at once if it is the last time."""
        # One such task at a time: the counters of all evaluations are in one array, and a chunk has one writer.
        waits = not last and time.monotonic() - self._written_at < self._parts.flush_seconds
        if self._writing is not None or not self._changed or waits:
            return
        models = sorted(self._changed)[:_MOST_MODELS]
        # Before the task is done: a region that is recorded meanwhile puts its model back in.
        self._changed.difference_update(models)
        alone = [model for model in models if len(self._regions[model]) == 1]
        others = [model for model in models if model not in alone]
        regions = [region for model in alone for region in self._regions[model]]
        each = (region_tasks.score_each, self._run, regions, self._comparisons)
        counted = self._submit("score", *each, priority=20)
        sums = [self._model_sum(model) for model in others]
        analyzed = (region_tasks.analyze, self._run, [*alone, *others], counted, sums)
        future = self._submit("analyze", *analyzed, priority=30)
        self._writing, self._written_at = future, time.monotonic()

        def done(future: Future) -> None:
            self._writing = None
            if is_killed(future) and self._deaths < _MOST_DEATHS:
                self._deaths += 1
                self._count_again(models)
                return
            raise_if_failed(future)
            self._drop_scores(models, open_models())

        self._when_done(future, done)

    def _score(self, region: Region) -> Future:
        return self._submit("score", region_tasks.score, self._run, region, self._comparisons, priority=20)

    def _count_again(self, models: Sequence[int]) -> None:
        """Count anew what died with workers, without the comparisons of prompts that did."""
        alive = [comparison for comparison in self._comparisons if not is_killed(comparison)]
        if len(alive) < len(self._comparisons):
            self._parts.note("workers died comparing the prompts of a task; the next run compares them again")
        self._comparisons = alive
        # Which of the counters died is not known: a future that failed because of another looks the same.
        self._scores.clear()
        self._split.clear()
        self._changed.update(models)

    def _drop_scores(self, models: Sequence[int], open_models: Container[int]) -> None:
        """Let the cluster forget counters that are in the cube and will not change any more."""
        over = {model for model in models if model not in open_models and model not in self._changed}
        # The cluster frees what no future stands for any more.
        self._scores = {region: future for region, future in self._scores.items() if region.model not in over}
        self._split = {group: future for group, future in self._split.items() if group[0].model not in over}

    def _model_sum(self, model: int) -> Future:
        """A tree of sums over a model's regions, of the shape of `evalcube.flows.state.recording.count_model`."""
        level = []
        # In the order of the regions whatever finished first: sums of floats depend on it.
        regions = sorted(self._regions[model])
        for region in regions:
            if region not in self._scores:
                self._scores[region] = self._score(region)
            level.append(self._scores[region])
        for group in split_questions(regions):
            if group not in self._split:
                self._split[group] = self._submit(
                    "score", region_tasks.score_questions, self._run, group, priority=20
                )
            level.append(self._split[group])
        return sum_pairwise(level, lambda parts: self._submit("score", add_counters, parts, priority=20))
