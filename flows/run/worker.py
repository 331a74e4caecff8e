"""What a worker keeps for a sweep: the plan, open storage, the inference engine, and a few recent blocks.

Tasks carry addresses only; they find everything else here. Nothing is global: each run registers a plugin of its
own under the run's name, and takes it away when it ends.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from distributed import Reschedule, Worker, WorkerPlugin, get_worker

from deploy.simulator.truth import HEADER, Truth, encode
from flows.config.judgechecks import known_hooks
from flows.config.templates import Message
from flows.plan.blocks import Block
from flows.plan.criteria import CriteriaBook
from flows.plan.evaluations import Evaluation
from flows.plan.plan import Plan
from flows.plan.targets import Goal
from flows.run.batches import BatchBook
from flows.run.events import Slowed, Traffic, as_message, topic
from flows.run.subscribers.prometheus import Meter, publish
from stages.generate import Cell, Trial
from stages.infer.endpoint import Endpoint
from stages.infer.engine import Engine
from stages.infer.jobs import Job, Slowdown
from stages.infer.request import Request, build_request
from stages.process.assertions import Hooks
from storage.cache.cache import Cache, Claims, look_up, open_cache, open_claims
from storage.cube.cube import Cube
from storage.cube.lease import check_holder

_FETCHED = 64
"""Replies that a task has in memory at once: they may be megabytes each."""
_KEPT_TRIALS = 20_000
_ROOM_BYTES = 128_000_000
"""Of requests under way on a worker, above which it wants no more; in memory they take a few times that."""
_REPORT_MS = 500
_MOST_REPORTS = 200
"""Of all workers' traffic, per second: the scheduler handles each."""


@dataclass(frozen=True)
class Route:
    """How one model's requests travel in this run; no part of the sweep's identity."""

    endpoint: Endpoint
    simulated: bool = False
    """Whether the truth goes along, which only the project's own simulator may see."""


@dataclass(frozen=True)
class RunContext:
    """All that a worker is told of a run. Holds names of secrets' variables, never secrets."""

    run: str
    """Unique name of the run."""
    spec: Mapping[str, Any]
    trials: int
    repeats: int
    prices: tuple[tuple[float, float], ...]
    cube: str
    """URL."""
    cache: str
    """URL."""
    routes: Mapping[str, Route]
    """By label of the model."""
    lease: tuple[str, str]
    """Path and token of the driver's lease."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One trial, ready to send and to grade."""

    cell: Cell
    trial: Trial
    request: Request
    repeat: int
    task: int
    """Index of the task in the plan."""


class Workspace:
    """A run's state on one worker. Safe to use from several task threads at once."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.plan = Plan.from_spec(context.spec, context.trials, context.repeats)
        self.cache: Cache = open_cache(context.cache)
        self.interrupted = False
        """Whether a task was abandoned here, so that it may come back with part of its requests done."""
        self._share = (0, 0)
        self.drained = False
        """Whether no further request is to be started."""
        self._abandoned: set[Hashable] = set()
        self._lock = threading.Lock()
        self._recent: OrderedDict[tuple[int, ...], list[Prepared]] = OrderedDict()
        self._engine: Engine | None = None
        self._began = 0.0
        self.meter = Meter()

    @cached_property
    def cube(self) -> Cube:
        """The sweep's cube, opened when first used: by then the driver has brought it to size."""
        return Cube.open(self.context.cube, writable=True)

    def claims(self, model: str) -> Claims | None:
        """Where this run and others tell what they ask of a model; None for batches, which nobody waits for."""
        return None if self.context.routes[model].endpoint.batch is not None else self._claims

    @cached_property
    def _claims(self) -> Claims | None:
        return open_claims(self.context.cache, self.context.run)

    @cached_property
    def criteria(self) -> CriteriaBook:
        """What outputs must be."""
        return CriteriaBook(self.plan.tasks)

    @cached_property
    def hooks(self) -> Hooks:
        """The functions of installed packages that assertions may name."""
        return known_hooks()

    def cached(self, keys: Sequence[str]) -> Iterator[bool]:
        """Whether the cache answers each key, as far as this worker knows."""
        for begin in range(0, len(keys), _FETCHED):
            yield from (value is not None for value in self.cache.get_many(keys[begin : begin + _FETCHED]))

    def fetch(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Cached replies, few of them in memory at once; what another worker stored a moment ago is found, too."""
        for begin in range(0, len(keys), _FETCHED):
            yield from look_up(self.cache, keys[begin : begin + _FETCHED])

    def check_lease(self) -> None:
        """Make sure, before the cube is written, that no other driver took it over while this one was stopped.

        Raises
        ------
        LeaseLostError
            One did.
        """
        check_holder(*self.context.lease)

    def judged(self, item: Prepared) -> bool:
        """Whether judges are asked about a trial's answer."""
        return bool(self.plan.judges and self.criteria.of(item.task, item.trial).rubric)

    def planned(self) -> Goal:
        """How far each cell is to be measured, as the cube says now."""
        return Goal(self.cube.read_planned("trial"), self.cube.read_planned("repeat"))

    def engine(self) -> Engine:
        """The inference engine, started when first used."""
        with self._lock:
            if self._engine is None:
                endpoints = {name: route.endpoint for name, route in self.context.routes.items()}
                workers, rank = self._share
                batched = any(endpoint.batch is not None for endpoint in endpoints.values())
                book = BatchBook(self.cube.side, self.cache) if batched else None
                self._engine = Engine(endpoints, self.cache, workers=workers, rank=rank, batches=book)
                self._began = time.monotonic()
                if self.drained:
                    self._engine.drain()
            return self._engine

    def abandon(self, task: Hashable) -> None:
        """Send nothing more for a task that the scheduler took back: its driver is gone, or it is done elsewhere."""
        engine = self._engine
        if engine is not None:
            self.interrupted = True
            self._abandoned.add(task)
            engine.abandon(task, Reschedule())

    def accept(self, task: Hashable) -> None:
        """Begin a task, which may be one that was abandoned here before."""
        self._abandoned.discard(task)

    def is_abandoned(self, task: Hashable) -> bool:
        """Whether the scheduler took a task back since it was begun."""
        return task in self._abandoned

    @property
    def workers(self) -> int:
        """How many share the endpoints; 0 until that was told."""
        return self._share[0]

    def share_out(self, workers: int, rank: int) -> None:
        """Be one of so many workers that share the endpoints; nothing is sent before this was said."""
        with self._lock:
            self._share = (workers, rank)
            if self._engine is not None:
                self._engine.share_out(workers, rank)

    def traffic(self, worker: str) -> Traffic | None:
        """Totals of what this worker sent so far; None before the first request."""
        engine, models = self._engine, self.meter.totals()
        if engine is None:
            return Traffic(models=models, worker=worker) if models else None
        active = time.monotonic() - self._began
        starved = engine.starved() if self._size() < _ROOM_BYTES else ()
        return Traffic(
            **engine.stats.snapshot(), models=models, active=active, starved=tuple(starved), worker=worker
        )

    def slowdowns(self) -> list[Slowdown]:
        """What this worker learned of overloaded endpoints since the last call."""
        engine = self._engine
        return [] if engine is None else engine.slowdowns()

    def slow_down(self, told: Slowdown) -> None:
        """Take over what another worker learned."""
        engine = self._engine
        if engine is not None:
            engine.slow_down(told)

    def drain(self) -> None:
        """Start no further request."""
        with self._lock:
            self.drained = True
            if self._engine is not None:
                self._engine.drain()

    def prepare(self, block: Block) -> list[Prepared]:
        """The trials of a block with their requests, made anew unless they were made here a moment ago."""
        with self._lock:
            found = self._recent.get(block.key)
            if found is not None:
                self._recent.move_to_end(block.key)
                return found
        made = prepare_trials(self.plan, block)
        with self._lock:
            self._recent[block.key] = made
            while sum(map(len, self._recent.values())) > _KEPT_TRIALS and len(self._recent) > 1:
                self._recent.popitem(last=False)
        return made

    def _size(self) -> int:
        """Bytes of the requests of the blocks under way, about: each block is as large as its first requests say."""
        with self._lock:
            blocks = list(self._recent.values())
        return sum(
            len(block) * max(len(item.request.body) for item in block[:4]) for block in blocks if block
        )

    def forget(self, block: Block) -> None:
        """Drop a block's trials."""
        with self._lock:
            self._recent.pop(block.key, None)

    def job(self, block: Block, prepared: Prepared) -> Job:
        """The job of a prepared trial; the truth goes along only to the project's own simulator."""
        request = prepared.request
        if not self.route(block).simulated:
            return Job(request.digest, request.body)
        trial = prepared.trial
        truth = Truth(
            trial.answer, trial.options, prepared.cell.difficulty, trial.guess_chance, prepared.repeat
        )
        return Job(request.digest, request.body, {HEADER: encode(truth)})

    def route(self, block: Block) -> Route:
        """Where a block's requests go."""
        return self.context.routes[self.plan.evaluations[block.window.region.model].model]

    def close(self) -> None:
        """Stop the engine, and leave an index of what this worker stored."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()
                self._engine = None
        self.cache.close()


def prepare_trials(plan: Plan, block: Block) -> list[Prepared]:
    """Generate the trials of a block and build their requests."""
    evaluation = plan.evaluations[block.window.region.model]
    trials: dict[tuple[int, int, int], Trial] = {}
    prepared = []
    indices = (column.tolist() for column in block.window.coordinates(block.positions))
    for task_index, slot, index, repeat in zip(*indices, strict=True):
        cell = plan.tasks[task_index].cells[slot].cell
        trial = trials.get((task_index, slot, index))
        if trial is None:
            trial = trials[task_index, slot, index] = cell.trial(index)
        request = trial_request(evaluation, cell, trial, repeat)
        prepared.append(Prepared(cell, trial, request, repeat, task_index))
    return prepared


def trial_messages(evaluation: Evaluation, cell: Cell, trial: Trial) -> list[Message]:
    """One trial's question as an evaluation puts it."""
    return evaluation.template.render(prompt=trial.prompt, task=cell.task.name, params=cell.plain_params)


def trial_request(evaluation: Evaluation, cell: Cell, trial: Trial, repeat: int) -> Request:
    """The request of one trial of a cell by an evaluation."""
    messages = trial_messages(evaluation, cell, trial)
    return build_request(evaluation.request_model, messages, evaluation.sampler, repeat, evaluation.api)


class SweepPlugin(WorkerPlugin):
    """Gives every worker, also one that joins or restarts later, the workspace of a run."""

    def __init__(self, context: RunContext) -> None:
        self.name = plugin_name(context.run)
        self.context = context
        self.workspace: Workspace | None = None
        self.label = ""
        """Names this worker process in reports."""
        self._timer: Any = None
        self._unpublish: Callable[[], None] | None = None

    def setup(self, worker: Worker) -> None:
        """Open the workspace and report its traffic twice a second, with hundreds of workers more seldom."""
        from tornado.ioloop import PeriodicCallback

        work = self.workspace = Workspace(self.context)
        self.label = f"{worker.address}/{os.getpid()}"
        self._unpublish = publish(
            self.context.run, self.workspace.meter, partial(self.workspace.traffic, self.label)
        )

        due = 0.0

        def tell_traffic() -> None:
            traffic = work.traffic(self.label)
            if traffic is not None:
                worker.log_event(topic(self.context.run), as_message(traffic))

        def report() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + work.workers / _MOST_REPORTS
                tell_traffic()
            for told in work.slowdowns():
                slowed = Slowed(worker.address, told.model, told.overload, told.pause)
                worker.log_event(topic(self.context.run), as_message(slowed))

        self._tell_traffic = tell_traffic
        self._timer = PeriodicCallback(report, _REPORT_MS)
        self._timer.start()

    def transition(self, key: Hashable, start: str, finish: str, **kwargs: object) -> None:  # noqa: ARG002
        """Hear of a task that is to end before it is done."""
        if start in ("executing", "long-running") and finish == "released" and self.workspace is not None:
            self.workspace.abandon(key)

    async def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - the interface of plugins
        """Close the workspace, off the worker's event loop: it waits for the disk."""
        if self._timer is not None:
            self._timer.stop()
            self._tell_traffic()
        if self._unpublish is not None:
            self._unpublish()
        if self.workspace is not None:
            await asyncio.to_thread(self.workspace.close)

    def __getstate__(self) -> dict[str, Any]:
        """Travel without the workspace: it belongs to one process."""
        fresh = {"workspace": None, "label": "", "_timer": None, "_unpublish": None}
        return {"name": self.name, "context": self.context, **fresh}


def plugin_name(run: str) -> str:
    """Name of a run's plugin on the workers."""
    return f"evalcube-{run}"


def workspace(run: str) -> Workspace:
    """The workspace of a run on this worker; for use in tasks."""
    plugin = get_worker().plugins[plugin_name(run)]
    if not isinstance(plugin, SweepPlugin) or plugin.workspace is None:
        raise RuntimeError(f"the plugin of run {run} is not set up on this worker")
    return plugin.workspace
