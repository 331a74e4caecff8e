"""Keeps a bounded window of blocks on the cluster until every region is in the cube. Only the driver records.

The driver's memory does not grow with the sweep: it holds the blocks in flight, one small state per open region, and
the ledger. Every decision is made in one thread, from finished futures that arrive in a queue.
"""

from __future__ import annotations

import itertools
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from distributed import Client, KilledWorker
from distributed import Future as DaskFuture

from deploy.clusters import ClusterError
from flows.errors import SweepError
from flows.plan.blocks import Block
from flows.run import tasks as dag
from flows.run.block_queue import Lane, OpenRegion, RegionTask
from flows.run.events import Event, Noted, RegionWritten, Slowed, Traffic
from flows.run.in_flight import Budget
from flows.run.poison_isolation import FOLDER, Suspects, is_killed, watched
from flows.run.worker import RunContext, plugin_name
from flows.run.workers import Workers
from storage.cube.cube import Region
from storage.cube.lease import Lease
from storage.cube.ledger import Ledger, Receipt

Future = DaskFuture[Any]

_SUM_WIDTH = 16
_CAUSES = 8
_POLL_SECONDS = 0.25
_HALT_SECONDS = 1.0
_MOST_DEATHS = 3
FLUSH_SECONDS = 120.0
"""A region is written at least this often while its blocks come in, so that cubes can be read during a sweep."""


class Driver:
    """Runs the tasks of a sweep.

    Parameters
    ----------
    client
        A connected client whose workers have the run's plugin.
    tasks
        For each evaluation, its regions with something to do.
    budgets
        For each evaluation, how many blocks may be in flight; evaluations of one model have one budget.
    judging
        A budget for each model that judges; every block needs room in all of them.
    stale
        Evaluations whose counters in the cube are older than the ledger.
    unmarked
        Tasks whose prompts are to be compared with each other.
    serials
        Numbers for Dask's keys, different in all rounds of a run.
    reports
        What workers report of their endpoints.
    """

    def __init__(
        self,
        client: Client,
        context: RunContext,
        ledger: Ledger,
        lease: Lease,
        *,
        tasks: Sequence[Iterator[RegionTask]],
        budgets: Sequence[Budget],
        judging: Sequence[Budget] = (),
        stale: Sequence[int] = (),
        unmarked: Sequence[int] = (),
        serials: Iterator[int] | None = None,
        emit: Callable[[Event], None] = lambda _: None,
        reports: queue.SimpleQueue[Slowed | Traffic] | None = None,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._client = client
        self._context = context
        self._ledger = ledger
        self._lease = lease
        self._emit = emit
        self._flush_seconds = flush_seconds
        self._lanes = [Lane(iter(task), budget) for task, budget in zip(tasks, budgets, strict=True)]
        self._judging = tuple(judging)
        self._workers = Workers(client, context.run, (*budgets, *judging), emit, reports)
        self._newest: dict[Region, Receipt] = ledger.newest()
        self._arrived: queue.SimpleQueue[tuple[Callable[[Future], None], Future]] = queue.SimpleQueue()
        self._scores: dict[Region, Future] = {}
        self._changed: set[int] = set(stale)
        self._unmarked = list(unmarked)
        self._marks: list[Future] = []
        self._analyzing: Future | None = None
        self._analyzed_at = time.monotonic()
        self._serials = serials or itertools.count()
        folder = ledger.path.parent / FOLDER
        self._suspects = Suspects(folder, self._chain, self._give_up, self._when_done, self._quiet)
        self._flying = 0
        self._deaths = 0
        self._halted_at = -math.inf
        self.stopped = False
        self.blocks = 0
        """Blocks graded so far."""

    def run(self) -> None:
        """Work until everything is recorded, or until asked to stop and what came in is recorded.

        Raises
        ------
        Exception
            Whatever a task raised, storage errors above all. What is recorded by then stays recorded.
        """
        self._suspects.close()
        try:
            self._run()
        finally:
            self._suspects.close()

    def _run(self) -> None:
        self._workers.look()
        self._mark()
        self._top_up()
        while self._busy():
            self._lease.check()
            self._workers.look()
            if self.stopped and not self._workers.any:
                return
            self._take_arrived()
            self._write_due()
            self._analyze_due(last=False)
            self._top_up()
        while self._changed or self._analyzing is not None:
            self._lease.check()
            self._workers.look()
            self._analyze_due(last=True)
            self._take_arrived()

    def _mark(self) -> None:
        """Have prompts compared beside the inference; whatever counts waits for it."""
        self._marks = [self._submit("generate", dag.mark, self._context.run, task) for task in self._unmarked]

    def stop(self) -> None:
        """Submit nothing more; requests in flight still end and count. May be called from a signal handler."""
        self.stopped = True

    def _halt(self) -> None:
        if self._halted_at < 0:
            waiting = sum({id(lane.budget): lane.budget.in_flight for lane in self._lanes}.values())
            self._emit(Noted(f"stopping: {waiting} blocks under way end first; Ctrl-C again to stop at once"))
        for lane in self._lanes:
            lane.budget.stopped = True
            lane.stop()
        # Again and again: a worker that restarts meanwhile has not heard it yet.
        self._halted_at = time.monotonic()
        self._client.run(_drain, plugin_name(self._context.run), on_error="ignore")

    def _busy(self) -> bool:
        if self.stopped and time.monotonic() - self._halted_at > _HALT_SECONDS:
            self._halt()
        return any(not region.finished for lane in self._lanes for region in lane.opened)

    def _take_arrived(self) -> None:
        """Handle what has finished; wait a moment if nothing has."""
        try:
            handler, future = self._arrived.get(timeout=_POLL_SECONDS)
            while True:
                handler(future)
                handler, future = self._arrived.get_nowait()
        except queue.Empty:
            return

    def _submit(
        self,
        stage: str,
        function: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - those of the function
        priority: int = 0,
    ) -> Future:
        # A tuple key shows on the dashboard under its first element: the stage.
        key = (stage, self._context.run, next(self._serials))
        return self._client.submit(function, *args, key=key, priority=priority, pure=False)

    def _when_done(self, future: Future, handler: Callable[[Future], None]) -> None:
        future.add_done_callback(lambda done: self._arrived.put((handler, done)))

    def _top_up(self) -> None:
        """Submit blocks, one of each evaluation in turn, until every evaluation has its depth in flight."""
        self._suspects.go_on()
        hungry = deque(lane for lane in self._lanes if lane.budget.has_room and not self._suspects.want_quiet)
        while hungry:
            lane = hungry.popleft()
            room = all(budget.has_room for budget in (lane.budget, *self._judging))
            taken = lane.take() if room else None
            if taken is not None:
                self._submit_block(lane.budget, *taken)
                hungry.append(lane)
        # Whoever was served first this time comes last the next time.
        self._lanes.append(self._lanes.pop(0))

    def _chain(self, block: Block, mark: str | None = None) -> Future:
        """Submit the tasks of a block, each under a mark of its own if one is given; the last of them."""
        run = self._context.run

        def submit(stage: str, function: Callable[..., Any], *args: Future, priority: int = 0) -> Future:
            if mark is None:
                return self._submit(stage, function, run, block, *args, priority=priority)
            place = f"{mark}-{function.__name__}"
            return self._submit(stage, watched, place, function, run, block, *args, priority=priority)

        delivery = submit("infer", dag.infer, submit("generate", dag.generate))
        if self._judging:
            delivery = submit("infer", dag.judge, delivery, priority=5)
        return submit("process", dag.process, delivery, priority=10)

    def _quiet(self) -> bool:
        return not self._flying and not any(mark.status == "pending" for mark in self._marks)

    def _give_up(self, block: Block) -> Future:
        return self._submit("process", dag.give_up, self._context.run, block, priority=10)

    def _submit_block(self, budget: Budget, region: OpenRegion, block: Block) -> None:
        budgets = (budget, *self._judging)
        for one in budgets:
            one.in_flight += 1
        region.open_blocks += 1
        self._flying += 1
        begun = time.monotonic()

        def settle(results: list[tuple[Block, Future]]) -> None:
            for one in budgets:
                one.in_flight -= 1
            region.open_blocks -= 1
            for _, future in results:
                _raise_if_failed(future)
            self.blocks += len(results)
            region.graded += results

        def done(future: Future) -> None:
            self._flying -= 1
            if is_killed(future):
                self._suspects.add(block, settle)
            else:
                budget.took(block.size, time.monotonic() - begun)
                settle([(block, future)])

        self._when_done(self._chain(block), done)

    def _write_due(self) -> None:
        now = time.monotonic()
        for lane in self._lanes:
            for region in lane.opened:
                complete = region.all_submitted and not region.open_blocks
                due = complete or now - region.written_at > self._flush_seconds
                if due and region.graded and region.writing is None:
                    self._write(region)
            lane.opened = [region for region in lane.opened if not region.finished]

    def _write(self, region: OpenRegion) -> None:
        region.generation += 1
        graded, region.graded = region.graded, []
        kept, window = region.kept, region.task.window
        future = self._submit(
            "process",
            dag.write_region,
            self._context.run,
            window,
            region.generation,
            kept,
            [result for _, result in graded],
            priority=20,
        )
        region.writing, region.kept, region.written_at = future, window.shape[2:], time.monotonic()

        def done(future: Future) -> None:
            region.writing = None
            if is_killed(future) and region.deaths < _MOST_DEATHS:
                region.deaths, region.kept = region.deaths + 1, kept
                self._grade_again(region, graded)
                return
            _raise_if_failed(future)
            self._record(region, future.result())

        self._when_done(future, done)

    def _grade_again(self, region: OpenRegion, graded: list[tuple[Block, Future]]) -> None:
        """Look after the results that a region could not be written with: some may have died with a worker."""
        for block, future in graded:
            if not is_killed(future):
                region.graded.append((block, future))
                continue
            region.open_blocks += 1

            def settle(results: list[tuple[Block, Future]]) -> None:
                region.open_blocks -= 1
                for _, each in results:
                    _raise_if_failed(each)
                region.graded += results

            self._suspects.add(block, settle)

    def _record(self, region: OpenRegion, receipt: Receipt) -> None:
        self._lease.check()
        region.causes.update(receipt.causes)
        receipt = replace(receipt, causes=dict(region.causes.most_common(_CAUSES)))
        self._ledger.append(receipt)
        self._newest[receipt.region] = receipt
        self._scores[receipt.region] = self._score(receipt.region)
        self._changed.add(receipt.region.model)
        self._emit(RegionWritten(receipt.region.model, receipt.complete))

    def _score(self, region: Region) -> Future:
        return self._submit("score", dag.score, self._context.run, region, self._marks, priority=20)

    def _analyze_due(self, *, last: bool) -> None:
        """Bring the counters of changed evaluations into the cube; one task at a time, the only writer."""
        wait = 0.0 if last else self._flush_seconds
        if self._analyzing is not None or not self._changed or time.monotonic() - self._analyzed_at < wait:
            return
        models = sorted(self._changed)[:25]
        self._changed.difference_update(models)
        sums = [self._model_sum(model) for model in models]
        future = self._submit("analyze", dag.analyze, self._context.run, models, sums, priority=30)
        self._analyzing, self._analyzed_at = future, time.monotonic()

        def done(future: Future) -> None:
            self._analyzing = None
            if is_killed(future) and self._deaths < _MOST_DEATHS:
                self._deaths += 1
                self._count_again(models)
                return
            _raise_if_failed(future)
            self._drop_scores(models)

        self._when_done(future, done)

    def _count_again(self, models: Sequence[int]) -> None:
        """Count anew what died with workers, without the comparisons of prompts that did."""
        marks = [mark for mark in self._marks if not is_killed(mark)]
        if len(marks) < len(self._marks):
            self._emit(
                Noted("workers died comparing the prompts of a task; the next run compares them again")
            )
        self._marks = marks
        self._scores.clear()
        self._changed.update(models)

    def _drop_scores(self, models: Sequence[int]) -> None:
        """Let the cluster forget counters that are in the cube and will not change any more."""
        going_on = {region.task.window.region.model for lane in self._lanes for region in lane.opened}
        over = set(models) - going_on - self._changed
        self._scores = {region: future for region, future in self._scores.items() if region.model not in over}

    def _model_sum(self, model: int) -> Future:
        """A tree of sums over a model's regions, in the order of the regions whatever finished first."""
        level = []
        for region in sorted(region for region in self._newest if region.model == model):
            if region not in self._scores:
                self._scores[region] = self._score(region)
            level.append(self._scores[region])
        while len(level) > 1:
            level = [
                self._submit("score", dag.score_sum, level[i : i + _SUM_WIDTH], priority=20)
                for i in range(0, len(level), _SUM_WIDTH)
            ]
        return level[0]


def _raise_if_failed(future: Future) -> None:
    if future.status == "finished":
        return
    if future.status != "error":
        raise ClusterError(
            f"the cluster gave a task of the sweep up ({future.status}): its scheduler may have ended. "
            f"Run the same command again to resume."
        )
    error = future.exception()
    if isinstance(error, KilledWorker):
        raise SweepError(
            f"a task of the sweep ({error.task}) saw {error.allowed_failures} workers die",
            "Look at the workers' memory and logs, then run the same command again to resume",
        ) from error
    raise error if isinstance(error, Exception) else RuntimeError(f"a task of the sweep raised {error!r}")


def _drain(name: str, dask_worker: Any = None) -> None:  # noqa: ANN401 - Dask's own worker
    """Runs on every worker: start no further request."""
    plugin = dask_worker.plugins.get(name)
    if plugin is not None and plugin.workspace is not None:
        plugin.workspace.drain()
