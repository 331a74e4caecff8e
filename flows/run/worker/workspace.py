"""What a worker keeps for a sweep: the plan, open storage, the inference engine, and a few recent blocks.

Tasks carry addresses only; they find everything else here. Nothing is global: each run registers a plugin of its
own under the run's name, and takes it away when it ends.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import compress

from distributed import Reschedule

from evalcube.flows.events import Traffic
from evalcube.flows.plan.grading import LayerGrader, Prices
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import MadeTrials, Prepared, prepare_trials
from evalcube.flows.plan.targets import Block, SampleTargets
from evalcube.flows.run.in_flight import MOST
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.state.questions import offer_questions
from evalcube.stages.generate import Cell, Trial
from evalcube.stages.infer.counts import Report
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Job, Result, Slowdown
from evalcube.stages.named_code import allow_code
from evalcube.storage.cache.cache import Cache, open_cache
from evalcube.storage.clocks import elapsed_seconds
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.lease import check_holder
from evalcube.storage.cube.space import Space

_FETCHED = 64
"""Replies that a task has in memory at once: they may be megabytes each."""
_AT_HAND_BYTES = 32_000_000
"""Of replies just stored that a worker has in memory, as they are graded a moment later; and of prompts."""
_KEPT_TRIALS = 8 * MOST
"""Trials of blocks under way that a worker has in memory, enough but for batches: what is more is made again."""
_ROOM_BYTES = 128_000_000
"""Of requests under way on a worker, above which it wants no more; in memory they take a few times that."""


class Meter:
    """Counts by label of the model: ``requests``, ``answers`` and their ``seconds``; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, dict[str, float]] = {}

    def add(self, model: str, **counts: float) -> None:
        """Add to some of a model's counts."""
        with self._lock:
            totals = self._models.setdefault(model, {"requests": 0, "answers": 0, "seconds": 0.0})
            for name, count in counts.items():
                totals[name] += count

    def totals(self) -> dict[str, dict[str, float]]:
        """All counts as plain values."""
        with self._lock:
            return {model: dict(counts) for model, counts in self._models.items()}


class RecentReplies:
    """Stores replies in a cache, and has the newest of them at hand. Threads may share it."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._replies: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def put_all(self, records: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store records; returns which are new: of one that is not, the cache has another."""
        new = self._cache.put_all(records)
        with self._lock:
            for key, value in compress(records, new):
                self._replies[key] = value
                self._size += len(value)
            while self._size > _AT_HAND_BYTES:
                self._size -= len(self._replies.popitem(last=False)[1])
        return new

    def commit(self) -> None:
        """Have all that was put on disk."""
        self._cache.commit()

    def take(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Those of the records that are at hand, which are so no more."""
        with self._lock:
            replies = {key: self._replies.pop(key) for key in keys if key in self._replies}
            self._size -= sum(map(len, replies.values()))
        return replies


class BatchBook(BatchNotes):
    """Notes beside a cube's records, and what the sweep's cache holds.

    Parameters
    ----------
    space
        The cube's records.
    cache
        The sweep's cache.
    """

    def __init__(self, space: Space, cache: Cache) -> None:
        super().__init__(space)
        self._cache = cache

    def records(self, digests: Sequence[str]) -> Sequence[bytes | None]:
        """Cached replies, those that others stored a moment ago among them."""
        return self._cache.get_many(digests)


class Workspace:
    """A run's state on one worker. Safe to use from several task threads at once."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        allow_code(context.code)
        self.plan = Plan.from_spec(context.spec, context.trials, context.repeats)
        # Where this machine has not the data files, the cube has them.
        offer_questions(space_of(context.cube).at(SIDE), self.plan)
        self.cache: Cache = open_cache(context.cache)
        self._written = RecentReplies(self.cache)
        self._share: tuple[int, Mapping[str, tuple[int, int]]] = (0, {})
        self._lent: dict[str, Slowdown] = {}
        """By label of the model, what the driver decided last."""
        self._unused: Mapping[str, Report | None] = {}
        self._held = False
        self.drained = False
        """Whether no further request is to be started."""
        self.begun: set[tuple[int, ...]] = set()
        """Keys of blocks of which there is an answer, or may yet be one."""
        self._abandoned: set[Hashable] = set()
        # Task threads, the worker's event loop (plugin calls) and the engine's thread all come here. Nothing that
        # waits for the disk or the network is done under the lock: a heartbeat that waits looks like a death.
        self._lock = threading.Lock()
        self.comparing = threading.Lock()
        """Held while the prompts of a task are compared."""
        self._open: dict[tuple[int, ...], list[Prepared]] = {}
        self._made: MadeTrials = {}
        self._engine: Engine | None = None
        self._closed = False
        self._began = 0.0
        self.meter = Meter()
        self.faulty: set[str] = set()
        """Labels of models whose failures here are the endpoint's trouble, as the driver says."""
        self.revived: Counter[str] = Counter()
        """By label of the model, how often it was asked again here after it had been given up."""

    @cached_property
    def cube(self) -> Cube:
        """The sweep's cube, opened when first used: by then the driver has brought it to size."""
        return Cube.open(self.context.cube, writable=True)

    @cached_property
    def layers(self) -> LayerGrader:
        """What scores outputs by assertions and rubrics."""
        return LayerGrader(self.plan)

    def prices(self, block: Block) -> Prices:
        """Of a block's model."""
        return self.context.prices[block.window.region.model]

    def cached(self, keys: Sequence[str]) -> Iterator[bool]:
        """Whether the cache answers each key, be it with what another worker stored a moment ago."""
        for begin in range(0, len(keys), _FETCHED):
            yield from (value is not None for value in self.cache.get_many(keys[begin : begin + _FETCHED]))

    def fetch(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Cached replies, few of them in memory at once; what another worker stored a moment ago is found, too."""
        for begin in range(0, len(keys), _FETCHED):
            some = keys[begin : begin + _FETCHED]
            replies: dict[str, bytes | None] = {**self._written.take(some)}
            missing = [key for key in some if key not in replies]
            replies.update(zip(missing, self.cache.get_many(missing), strict=True))
            yield from (replies[key] for key in some)

    def check_lease(self) -> None:
        """Make sure, before the cube is written, that no other driver took it over while this one was stopped."""
        check_holder(self.cube.records, self.context.lease)

    def read_targets(self) -> SampleTargets:
        """How far each cell is to be measured, as the cube says now."""
        return SampleTargets(*self.cube.read_targets())

    def engine(self) -> Engine:
        """The inference engine, started when first used."""
        # Under the lock, so that two tasks that begin together do not start two engines with a share each.
        with self._lock:
            # A task may be late, and nobody would close an engine that begins now: it might wait for its share for
            # good.
            if self._closed:
                raise Reschedule
            if self._engine is None:
                endpoints = {name: route.endpoint for name, route in self.context.routes.items()}
                workers, runs = self._share
                batched = any(endpoint.batch is not None for endpoint in endpoints.values())
                book = BatchBook(self.cube.records, self.cache) if batched else None
                self._engine = Engine(
                    endpoints,
                    self._written,
                    workers=workers,
                    runs=runs,
                    lent=self._lent,
                    clock=elapsed_seconds,
                    batches=book,
                )
                self._began = time.monotonic()
                # The order to stop may have come before the first request made an engine.
                if self.drained:
                    self._engine.drain()
            return self._engine

    def ask(self, model: str, jobs: Sequence[Job], task: Hashable) -> list[Result]:
        """Send a task's requests and wait for their results, in the order of the jobs."""
        if not jobs:
            return []
        return self.engine().run(
            model, jobs, caller=task, unwanted=lambda: Reschedule() if self.is_abandoned(task) else None
        )

    def abandon(self, task: Hashable) -> None:
        """Send nothing more for a task that the scheduler took back: its driver is gone, or it is done elsewhere."""
        # First, and also without an engine: the task may be about to begin a call.
        self._abandoned.add(task)
        engine = self._engine
        if engine is not None:
            # The waiting task thread gets the exception that Dask expects of a task that is to run elsewhere.
            engine.abandon(task, Reschedule())

    def accept(self, task: Hashable) -> None:
        """Begin a task, which may be one that was abandoned here before."""
        self._abandoned.discard(task)

    def is_abandoned(self, task: Hashable) -> bool:
        """Whether nobody waits for a task here: the scheduler took it back since it was begun, or the run is over."""
        return self._closed or task in self._abandoned

    @property
    def workers(self) -> int:
        """How many share the endpoints; 0 until that is known."""
        return self._share[0]

    def share_out(self, workers: int, runs: Mapping[str, tuple[int, int]]) -> None:
        """Be one of so many workers that share the endpoints, as `Engine.share_out`; nothing is sent before."""
        # Kept also without an engine: one that starts later must not begin with all connections for itself.
        with self._lock:
            if self._held:
                return
            self._share = (workers, runs)
            if self._engine is not None:
                self._engine.share_out(workers, runs)

    def hold(self) -> None:
        """Send nothing more, whatever share is given out; what is in flight ends and counts."""
        self.share_out(0, {})
        with self._lock:
            self._held = True

    def traffic(self, worker: str) -> Traffic | None:
        """Totals of what this worker sent so far; None before the first request."""
        engine, models = self._engine, self.meter.totals()
        if engine is None:
            return Traffic(models=models, worker=worker) if models else None
        began, asked = self._began, dict(engine.stats.asked).items()
        starved = engine.starved_models() if self._size() < _ROOM_BYTES else ()
        return Traffic(
            **engine.stats.snapshot(),
            models=models,
            active=time.monotonic() - began,
            asked={model: (first - began, last - began) for model, (first, last) in asked},
            starved=tuple(starved),
            waiting=engine.waiting(),
            found={model: asdict(limits) for model, limits in engine.found_limits().items()},
            engines={model: [list(info) for info in infos] for model, infos in engine.engines().items()},
            worker=worker,
        )

    def may_doubt(self, model: str) -> bool:
        """Whether it may be this worker alone that a model's endpoint cannot be asked from."""
        route = self.context.routes[model]
        has_peers = self._share[0] > 1 and bool(self.context.proof.reached) and route.endpoint.batch is None
        return has_peers and not self.drained and model not in self.faulty

    def given_up(self, model: str) -> bool:
        """Whether this worker asks a model nothing more."""
        engine = self._engine
        return engine is not None and engine.given_up(model)

    def revive(self, model: str) -> None:
        """Ask a model again that was given up here."""
        self.revived[model] += 1
        engine = self._engine
        if engine is not None:
            engine.revive(model)

    def slowdowns(self) -> list[Slowdown]:
        """What this worker learned of endpoints since the last call, or has of those that it asks nothing yet."""
        with self._lock:
            if self._engine is not None:
                return self._engine.slowdowns()
            unused = {model: each.report_unused() for model, each in self._lent.items()}
            changed = {model: report for model, report in unused.items() if report != self._unused.get(model)}
            self._unused = unused
        return [Slowdown(model, report=report) for model, report in changed.items()]

    def slow_down(self, learned: Slowdown) -> None:
        """Take over what another worker learned, or what was decided for all."""
        with self._lock:
            if learned.setting is not None:
                self._lent[learned.model] = learned
            if self._engine is not None:
                self._engine.slow_down(learned)

    def ask_again(self) -> None:
        """Send nothing more until the driver answers: it may take this worker for gone."""
        with self._lock:
            if self._engine is not None:
                self._engine.stop()

    def drain(self) -> frozenset[tuple[int, ...]]:
        """Start no further request; returns the blocks of which there is an answer, or may yet be one."""
        with self._lock:
            self.drained = True
            if self._engine is not None:
                self._engine.drain()
        return frozenset(self.begun)

    def make_trial(self, cell: Cell, index: int) -> Trial:
        """A trial whose prompt is compared with others; it is at hand until it is asked, if there is room."""
        trial = cell.trial(index)
        if len(self._made) * len(trial.prompt) < _AT_HAND_BYTES:
            self._made[cell.id, index] = trial
        return trial

    def open_block(self, block: Block) -> list[Prepared]:
        """A block's trials with their requests, made anew unless they were made here a moment ago."""
        with self._lock:
            if block.key in self._open:
                return self._open[block.key]
        # Outside of the lock: it takes milliseconds. Two tasks that make the same block make equal ones.
        trials = prepare_trials(self.plan, block, self._made)
        with self._lock:
            self._open[block.key] = trials
            # Not the oldest goes: its answers are the next to come, so that in the end each block would be made again.
            while sum(map(len, self._open.values())) > _KEPT_TRIALS and len(self._open) > 1:
                del self._open[list(self._open)[-2]]
        return trials

    def _size(self) -> int:
        """Bytes of the requests of the blocks under way, about: each block is as large as its first requests say."""
        with self._lock:
            blocks = list(self._open.values())
        return sum(
            len(trials) * max(len(item.request.body) for item in trials[:4]) for trials in blocks if trials
        )

    def forget(self, block: Block) -> None:
        """Drop a block's trials."""
        with self._lock:
            self._open.pop(block.key, None)

    def close(self) -> None:
        """Stop the engine, and leave an index of what this worker stored."""
        with self._lock:
            self._closed = self.drained = True
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        self.cache.close()
