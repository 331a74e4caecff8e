"""Keeps a bounded number of blocks on the cluster until every region is in the cube.

Only the driver records. Its memory does not grow with the sweep: it holds the blocks in flight, one small state per
open region, and the ledger. Every decision is made in one thread, from finished futures that arrive in a queue.

What changes has one owner each: whether the run is to stop, `StopWish`; how far a region is, `RegionProgress`; what is
in flight, `InFlightLimit`; what is counted, `Counting`; blocks that kill, `PoisonIsolation`; who is there and has which
share, `Workers`, with `Members` for who may take part and `Health` for who is silent or paused.
"""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from distributed import Future as DaskFuture

from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
from evalcube.flows.events import RegionWritten
from evalcube.flows.plan.targets import Block
from evalcube.flows.run.counting import Counting
from evalcube.flows.run.in_flight import (
    BlockQueue,
    InFlightLimit,
    RegionProgress,
    blocks_to_submit,
    make_judge_limits,
    make_limits,
)
from evalcube.flows.run.worker import region_tasks, tasks
from evalcube.flows.run.worker.plugin import workspace_on
from evalcube.flows.run.worker.poison import (
    PoisonIsolation,
    await_answer,
    is_killed,
    raise_if_failed,
    run_marked,
)
from evalcube.flows.run.workers import RunParts, Workers
from evalcube.flows.state.open_trials import RoundWork
from evalcube.flows.state.store import SweepStore
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.errors import StorageError

Future: TypeAlias = "DaskFuture[Any]"
Key = tuple[int, ...]  # of a block

_FEW = 64
"""Trials of a block up to which the task that asks them makes them, too."""
_POLL_SECONDS = 0.25
_HALT_SECONDS = 0.5
"""Between two orders to stop: workers may have restarted since the last one."""
_MOST_DEATHS = 3
"""Times that workers may die with the task that writes a region."""
_RECEIPT_SECONDS = 2.0
"""So long a receipt waits for others, where each append costs a request."""


class Driver:
    """Runs the tasks of one round of a sweep, on so many workers at first."""

    def __init__(self, parts: RunParts, store: SweepStore, work: RoundWork, workers: int) -> None:
        self._parts, self._store = parts, store
        endpoints = {name: route.endpoint for name, route in parts.context.routes.items()}
        judges = list(dict.fromkeys(judge.model for judge in store.plan.judges))
        names = [evaluation.model for evaluation in store.plan.evaluations]
        limits = make_limits(names, endpoints, work.by_evaluation, workers or 1, judges)
        self._queues = [BlockQueue(store.unfinished(model), limit) for model, limit in enumerate(limits)]
        self._judge_limits = make_judge_limits(judges, endpoints)
        self._workers = Workers(parts, (*limits, *self._judge_limits))
        self._arrived: queue.SimpleQueue[tuple[Callable[[Future], None], Future]] = queue.SimpleQueue()
        self._counting = Counting(parts, store, work, self._submit, self._when_done)
        self._poison = PoisonIsolation(
            store.cube.records,
            self._submit_chain,
            lambda block: self._submit("process", tasks.give_up, parts.context.run, block, priority=10),
            self._when_done,
            lambda: not self._under_way and not self._counting.comparing,
        )
        self._under_way: dict[Key, tuple[Future, Callable[[list[tuple[Block, Future]]], None]]] = {}
        """By block, its last task, and what takes its results."""
        self._begun: PendingAnswer[dict[str, frozenset[Key]]] | None = None
        """By worker, the blocks of which it has something, asked for together with its stop."""
        self._halted_at = -math.inf
        self.blocks = 0
        """Blocks graded so far."""

    def run(self) -> None:
        """Work until everything is recorded, or until asked to stop and what came in is recorded."""
        # Twice: a run that was killed left its marks, and a task that finds one of them would not run.
        self._poison.close()
        try:
            self._run()
        except BaseException:
            # What is recorded stays recorded; why the run ends is more than that its last receipts did not get through.
            with suppress(StorageError):
                self._store.ledger.flush()
            raise
        finally:
            self._poison.close()
        self._store.ledger.flush()

    def _run(self) -> None:
        self._workers.poll()
        self._top_up()
        # After the first blocks: whoever waits for the first request does not wait for this.
        self._counting.compare_prompts()
        while self._has_unfinished():
            stopped = self._parts.wish.stopped
            if stopped and time.monotonic() - self._halted_at > _HALT_SECONDS:
                self._halt()
            # A process that was stopped (Ctrl-Z, a suspended laptop) may have lost the lease without noticing.
            self._parts.lease.check()
            self._workers.poll()
            if stopped and not self._workers.any:
                return
            if stopped and self._workers.behind_others:
                # What was answered is in the cache, and the next run finds it there.
                self._parts.emit.note("blocks that wait for other users' tasks are left to the next run")
                return
            self._take_arrived()
            self._store.ledger.flush(older_than=_RECEIPT_SECONDS)
            self._write_due()
            self._counting.write_due(last=False)
            self._leave_lost_servers()
            self._top_up()
        # Also after a stop: what is recorded is counted, or counters would lag behind the ledger until another run.
        while self._counting.behind:
            self._parts.lease.check()
            self._workers.poll()
            self._counting.write_due(last=True)
            self._take_arrived()

    @property
    def workers(self) -> tuple[str, ...]:
        """Addresses of those that took part at last."""
        return self._workers.there

    def _halt(self) -> None:
        if self._halted_at < 0:
            limits = {id(blocks.limit): blocks.limit.in_flight for blocks in self._queues}
            self._parts.emit.note(
                f"stopping: {sum(limits.values())} blocks under way end first{self._parts.wish.hint}"
            )
        for blocks in self._queues:
            blocks.limit.stopped = True
            blocks.stop()
        # Again and again: a worker that restarts meanwhile has not heard it yet.
        self._halted_at = time.monotonic()
        there = self._workers.there
        if self._begun is not None:
            if not self._begun.done:
                return
            self._leave_untouched(self._begun, len(there))
        client = self._parts.connection.client
        self._begun = PendingAnswer(client, ask_each(client, _drain, self._parts.plugin, workers=there))

    def _leave_untouched(self, answer: PendingAnswer[dict[str, frozenset[Key]]], workers: int) -> None:
        """Wait no more for blocks of which nobody has anything: none that has stopped begins another one."""
        begun: dict[str, frozenset[Key]] = {}
        with suppress(OSError):
            begun = answer.answer()
        untouched = self._under_way.keys() - frozenset().union(*begun.values())
        for key in untouched if len(begun) >= workers else ():
            future, settle = self._under_way.pop(key)
            # Released last: Dask ends a task of which nobody holds the future.
            settle([])
            future.release()

    def _has_unfinished(self) -> bool:
        # One that has no connection, as other runs have them all, has opened nothing and is not over.
        return any(
            not blocks.over or any(not region.is_finished for region in blocks.opened)
            for blocks in self._queues
        )

    def _leave_lost_servers(self) -> None:
        """Ask nothing more of models whose servers were given up."""
        for blocks in self._queues:
            if self._parts.is_over(blocks.limit.model):
                blocks.stop()

    def _take_arrived(self) -> None:
        """Handle what has finished; wait a moment if nothing has."""
        try:
            handler, future = self._arrived.get(timeout=_POLL_SECONDS)
            while True:
                if future.status == "lost":
                    # Its worker died after it had finished, and Dask computes it again: it will arrive once more.
                    self._when_done(future, handler)
                else:
                    if future.status == "finished":
                        self._workers.note_work()
                    handler(future)
                handler, future = self._arrived.get_nowait()
        except queue.Empty:
            return

    def _submit(self, stage: str, function: Callable[..., Any], *args: object, priority: int = 0) -> Future:
        # The dashboard groups tasks by the first element, and groups by what it begins with: the stage.
        key = (f"{stage}-{self._parts.group}", next(self._parts.serials))
        return self._parts.connection.code.submit(function, *args, key=key, priority=priority)

    def _when_done(self, future: Future, handler: Callable[[Future], None]) -> None:
        # Dask calls back in a thread of its own; the queue brings the handler into this one, which needs no lock.
        future.add_done_callback(lambda done: self._arrived.put((handler, done)))

    def _top_up(self) -> None:
        """Submit blocks until every address has its depth."""
        self._poison.go_on()
        if self._poison.wants_quiet:
            return
        # Whoever was served first this time comes last the next time.
        self._queues.append(self._queues.pop(0))
        for taken in blocks_to_submit(self._queues, self._judge_limits):
            self._submit_block(*taken)

    def _submit_chain(self, block: Block, mark: str | None = None) -> Future:
        """Submit the tasks of a block, each under a mark of its own if one is given; the last of them."""
        run = self._parts.context.run

        def submit(stage: str, function: Callable[..., Any], *args: Future, priority: int = 0) -> Future:
            if mark is None:
                return self._submit(stage, function, run, block, *args, priority=priority)
            key = f"{mark}-{function.__name__}"
            marked = (run_marked, self._store.cube.records, key, function)
            return self._submit(stage, *marked, run, block, *args, priority=priority)

        # Later stages come first, so that blocks end before others begin and replies do not pile up.
        # A few trials are made where they are asked: a task of their own costs more.
        questions = () if block.size <= _FEW and mark is None else (submit("generate", tasks.generate),)
        delivery = submit("infer", tasks.infer, *questions)
        if self._judge_limits:
            delivery = submit("infer", tasks.judge, delivery, priority=5)
        return submit("process", tasks.process, delivery, priority=10)

    def _submit_block(self, limit: InFlightLimit, region: RegionProgress, block: Block) -> None:
        limits = (limit, *self._judge_limits)
        for each in limits:
            each.begin()
        region.open_blocks += 1
        began = time.monotonic()

        def settle(results: list[tuple[Block, Future]]) -> None:
            for each in limits:
                each.end()
            region.settle(results)
            self.blocks += len(results)

        def done(future: Future) -> None:
            if self._under_way.pop(block.key, None) is None:
                return  # it is not waited for any more
            # A block that saw its workers die keeps its places in flight until it is taken apart: what kills should
            # not be joined by others.
            if is_killed(future):
                self._poison.add(block, settle)
            else:
                limit.block_took(block.size, time.monotonic() - began)
                settle([(block, future)])

        last = self._submit_chain(block)
        self._under_way[block.key] = last, settle
        self._when_done(last, done)

    def _write_due(self) -> None:
        now = time.monotonic()
        for blocks in [blocks for blocks in self._queues if blocks.opened]:
            for region in blocks.opened:
                complete = region.all_submitted and not region.open_blocks
                due = complete or now - region.written_at > self._parts.flush_seconds
                # One write of a region at a time: a chunk has one writer, and generations must not overtake.
                if due and region.graded and region.writing is None:
                    self._write(region)
            blocks.opened = [region for region in blocks.opened if not region.is_finished]

    def _write(self, region: RegionProgress) -> None:
        kept_before, window, graded = region.kept, region.work.window, region.begin_write()
        results = [result for _, result in graded]
        arguments = (self._parts.context.run, window, region.generation, kept_before, results, region.unrated)
        future = self._submit("process", region_tasks.write_region, *arguments, priority=20)
        # At once: where its workers die, `done` puts back what the last receipt vouches for.
        region.kept = (*window.shape[2:], region.work.shape)
        region.writing, region.written_at = future, time.monotonic()

        def done(future: Future) -> None:
            if is_killed(future) and region.deaths < _MOST_DEATHS:
                # Nothing was recorded, so what a receipt vouches for is what it was before.
                region.writing, region.deaths, region.kept = None, region.deaths + 1, kept_before
                self._grade_again(region, graded)
                return
            raise_if_failed(future)
            # Not waited for: if it is lost with its worker, new ones compute it again, whom this thread lets in.
            receipt = self._parts.connection.code.fetch(future)

            def take_receipt(future: Future) -> None:
                if future.status != "finished":
                    done(future)
                    return
                self._record(region, await_answer(receipt))

            receipt.when_done(lambda: self._arrived.put((take_receipt, future)))

        self._when_done(future, done)

    def _grade_again(self, region: RegionProgress, graded: list[tuple[Block, Future]]) -> None:
        """Look after the results that a region could not be written with: some may have died with a worker."""
        for block, future in graded:
            if not is_killed(future):
                region.graded.append((block, future))
                continue
            region.open_blocks += 1
            self._poison.add(block, region.settle)

    def _record(self, region: RegionProgress, receipt: Receipt) -> None:
        # Once more, since the task took time: a receipt of a driver that lost its lease must not follow another's.
        self._parts.lease.check()
        receipt = region.end_write(receipt)
        self._store.ledger.append(receipt)
        self._store.trust(receipt)
        self._counting.add_receipt(receipt)
        self._parts.emit(RegionWritten(receipt.region.model, receipt.complete))


def _drain(name: str, dask_worker: Any = None) -> frozenset[Key]:  # noqa: ANN401 - Dask's own worker
    """Runs on every worker: start no further request; the blocks of which it has something."""
    work = workspace_on(dask_worker, name)
    return frozenset() if work is None else work.drain()
