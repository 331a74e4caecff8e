"""A config in, a measured cube out: `run` brings a sweep to its end, or as far as it gets, and can be called again."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distributed import Client

from deploy.clusters import Cluster, ExistingScheduler, LocalProcesses
from flows.config import as_config
from flows.config.models import ModelConfig, SweepConfig
from flows.errors import SweepError
from flows.plan.plan import Plan, build_plan
from flows.plan.sampling import Sampling, as_configured
from flows.plan.store import LIVE, SPENT, Home, open_home
from flows.run.batches import requests_in_batches
from flows.run.driver import FLUSH_SECONDS, Driver
from flows.run.efficiency import limit_use
from flows.run.events import (
    Event,
    Extended,
    Finished,
    Noted,
    Slowed,
    Started,
    Subscriber,
    Traffic,
    from_message,
    topic,
)
from flows.run.in_flight import JudgeBudget, make_budgets, shared_connections
from flows.run.interrupts import stop_on_interrupt
from flows.run.preflight import check_workers
from flows.run.servers import serve_models
from flows.run.spending import Spending
from flows.run.subscribers.live_file import LiveFile
from flows.run.summary import ModelSummary, RunSummary, Tracker
from flows.run.worker import Route, RunContext, SweepPlugin, plugin_name
from flows.run.workers import present
from stages.infer.endpoint import Endpoint, missing_key_message
from storage.cache.cache import open_cache
from storage.cube.lease import Lease
from storage.urls import directory_of

_REGISTRATIONS = 3


def run(
    config: SweepConfig | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    cluster: Cluster | None = None,
    sampling: Sampling | None = None,
    subscribers: Sequence[Subscriber] = (),
    flush_seconds: float = FLUSH_SECONDS,
) -> RunSummary:
    """Run a sweep, or resume it.

    What is recorded is not asked again: run the same config again after any interruption, or with more ``trials``
    or ``repeats`` to extend it.

    Parameters
    ----------
    config
        A config, a mapping of the same form, or the path of a YAML file.
    cube, cache
        Address of the results and of the response cache; default: those of the config.
    scheduler
        Address of a running Dask scheduler; default: worker processes on this machine.
    workers
        Number of local worker processes; default: one per core, at most eight.
    cluster
        A cluster of any other kind; excludes `scheduler` and `workers`.
    sampling
        How far each cell is measured; default: as the config says.
    subscribers
        Called with each event (see `flows.run.events`), always from one thread at a time.
    flush_seconds
        Regions under way are written at least this often.

    Returns
    -------
    RunSummary
        What was done, and what is left.

    Raises
    ------
    ConfigError
        If the config has problems.
    SweepError
        If the sweep cannot run as configured.
    StorageError
        If the cube belongs to another config or is being written by another run, or on a full or read-only disk.
    DeployError
        If the cluster or a managed server does not start.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit  # a worker process that runs its parent's script: the parent tells, once
    if cluster is not None and (scheduler is not None or workers is not None):
        raise SweepError("`cluster` excludes `scheduler` and `workers`", "Give one of them")
    settings = as_config(config, cube=cube, cache=cache)
    plan = build_plan(settings)
    if cluster is None:
        cluster = ExistingScheduler(scheduler) if scheduler else LocalProcesses(workers)
    if cluster.inherits_environment:
        _check_keys(settings.models)
    home = open_home(plan, settings.cube)
    open_cache(settings.cache)  # told now, not by a worker later
    with Lease.acquire(home.lease_path) as lease:
        # Read again: whoever held the lease a moment ago may have grown the cube and added to the ledger.
        home = open_home(plan, settings.cube)
        home.relabel()
        chosen, notes = sampling or as_configured(settings), _notes(settings, plan)
        home.note({**notes, **chosen.notes()})
        summary = _Run(home, settings, chosen, cluster, lease, subscribers, flush_seconds).run()
        if summary.reason == "complete":
            home.note(notes)
        return summary


def _check_keys(models: Sequence[ModelConfig]) -> None:
    for model in models:
        if model.key_env is not None and not os.environ.get(model.key_env, "").strip():
            raise SweepError(missing_key_message(model.name, model.key_env))


def _notes(settings: SweepConfig, plan: Plan) -> dict[str, Any]:
    """What whoever goes on with the cube needs: its config, which names secrets' variables only, and its data files."""
    config = settings.model_dump(mode="json", exclude_unset=True)
    config |= {"cube": _absolute(settings.cube), "cache": _absolute(settings.cache)}
    files = {digest: str(Path(path).absolute()) for digest, path in plan.files.items()}
    found = {"files": files} if files else {}
    return {"cache": config["cache"], "name": settings.name, "config": config, **found}


def _absolute(url: str) -> str:
    return str(directory_of(url))


class _Run:
    """One run of a sweep, from an open cube under a lease to a summary."""

    def __init__(
        self,
        home: Home,
        settings: SweepConfig,
        sampling: Sampling,
        cluster: Cluster,
        lease: Lease,
        subscribers: Sequence[Subscriber],
        flush_seconds: float,
    ) -> None:
        self._home = home
        self._settings = settings
        self._sampling = sampling
        self._cluster = cluster
        self._lease = lease
        self._flush_seconds = flush_seconds
        self._id = uuid.uuid4().hex[:12]
        self._tracker = Tracker()
        prices = {model.name: (model.prices.prompt, model.prices.completion) for model in settings.models}
        self._spending = Spending(home.cube.side / SPENT, home.counters(), prices, settings.spend)
        self._subscribers: tuple[Subscriber, ...] = (
            self._tracker,
            self._spending,
            LiveFile(home.cube.side / LIVE, self._tracker),
            *subscribers,
        )
        self._endpoints: dict[str, Endpoint] = {}
        self._reports: queue.SimpleQueue[Slowed | Traffic] = queue.SimpleQueue()
        self._emitting = threading.Lock()

    def run(self) -> RunSummary:
        """Do what is left to do; a sweep with nothing left starts neither server nor cluster."""
        work = self._next_round()
        reason = "complete"
        self._emit(self._started(work))
        if work.needed:
            reason = "stopped" if any(work.left) and self._spending.reached else self._work(work)
        summary = self._summary(reason)
        self._emit(Finished(summary.reason, summary.to_dict()))
        return summary

    def _next_round(self) -> _Work:
        """Ask the sampling how far to go now, and bring the cube to that size."""
        home = self._home
        goal = self._sampling.goal(home.plan, home.planned, home.counters())
        goal.refuse_too_many()
        self._home = home = Home(home.cube, home.plan, goal)
        home.grow()
        left = [sum(len(task.positions) for task in home.tasks(i)) for i in range(len(home.plan.evaluations))]
        return _Work(left, home.stale(), home.unmarked())

    def _work(self, work: _Work) -> str:
        """Run the tasks round by round; tells whether all was done or somebody stopped it."""
        plan = self._home.plan
        names = {plan.evaluations[i].model for i in self._sampling.models(plan)}
        names |= {judge.model for judge in plan.judges}
        asked = [model for model in self._settings.models if model.name in names] if any(work.left) else []
        with ExitStack() as stack:
            interrupt = stack.enter_context(stop_on_interrupt())
            routes = stack.enter_context(serve_models(asked, self._note))
            with interrupt.held():
                client = stack.enter_context(self._cluster.connect())
            addresses = present(client)
            check_workers(client, asked, addresses, unset_keys=not self._cluster.inherits_environment)
            context = self._context(routes)
            client.subscribe_topic(topic(self._id), self._receive)
            stack.callback(_forget_run, client, self._id)
            _register(client, SweepPlugin(context))
            self._note(f"{len(addresses)} workers, dashboard {client.dashboard_link}")
            blocks, serials = 0, itertools.count()
            while True:
                driver = self._driver(client, context, work, max(len(addresses), 1), serials)
                interrupt.stop = self._spending.stop = driver.stop
                driver.run()
                blocks += driver.blocks
                if driver.stopped:
                    break
                before = self._home.planned
                work = self._next_round()
                if self._home.planned.same(before):
                    break  # nothing is left but transport errors
                self._emit(Extended(sum(self._home.goal.counts)))
            self._wait_for_reports(client, blocks)
        self._spending.save()
        return "stopped" if driver.stopped else "complete"

    def _driver(
        self, client: Client, context: RunContext, work: _Work, workers: int, serials: Iterator[int]
    ) -> Driver:
        models = range(len(self._home.plan.evaluations))
        endpoints = {name: route.endpoint for name, route in context.routes.items()}
        judges = list(dict.fromkeys(judge.model for judge in self._home.plan.judges))
        return Driver(
            client,
            context,
            self._home.ledger,
            self._lease,
            tasks=[self._home.tasks(model) for model in models],
            budgets=make_budgets(
                [evaluation.model for evaluation in self._home.plan.evaluations],
                endpoints,
                work.left,
                workers,
                judges,
            ),
            judging=[
                JudgeBudget(shared_connections(endpoints[name], endpoints), 1)
                for name in judges
                if name in endpoints
            ],
            stale=work.stale,
            unmarked=work.unmarked,
            serials=serials,
            emit=self._emit,
            reports=self._reports,
            flush_seconds=self._flush_seconds,
        )

    def _context(self, routes: Mapping[str, Route]) -> RunContext:
        plan = self._home.plan
        self._endpoints = {name: route.endpoint for name, route in routes.items()}
        return RunContext(
            run=self._id,
            spec=plan.spec(),
            trials=plan.trials,
            repeats=plan.repeats,
            prices=plan.prices,
            cube=_absolute(self._settings.cube),
            cache=_absolute(self._settings.cache),
            routes=routes,
            lease=(str(self._lease.path), self._lease.holder.token),
        )

    def _wait_for_reports(self, client: Client, blocks: int) -> None:
        """Let the last reports arrive: results and reports travel apart."""
        for report in client.run(_last_report, plugin_name(self._id), on_error="ignore").values():
            if isinstance(report, Traffic):
                self._emit(report)
        deadline = time.monotonic() + 2.0
        while self._tracker.blocks < blocks and time.monotonic() < deadline:
            time.sleep(0.02)

    def _receive(self, event: tuple[float, Mapping[str, Any]]) -> None:
        report = from_message(event[1])
        if isinstance(report, Slowed) or (isinstance(report, Traffic) and report.starved):
            self._reports.put(report)
        if not isinstance(report, Slowed):
            self._emit(report)

    def _emit(self, event: Event) -> None:
        with self._emitting:
            for subscriber in self._subscribers:
                subscriber(event)

    def _note(self, message: str) -> None:
        self._emit(Noted(message))

    def _started(self, work: _Work) -> Started:
        trials = sum(self._home.goal.counts)
        return Started(self._id, self._settings.cube, trials, trials - sum(work.left), self._home.plan.labels)

    def _summary(self, reason: str) -> RunSummary:
        home, tracker = Home(self._home.cube, self._home.plan, self._home.goal), self._tracker
        models, transport, counts = [], home.transport(), home.goal.counts
        for i, label in enumerate(home.plan.labels):
            left = sum(len(task.positions) for task in home.tasks(i))
            models.append(ModelSummary(label, counts[i], counts[i] - left, min(left, transport[i])))
        done = sum(model.done for model in models)
        traffic = tracker.traffic()
        bound = self._spending.reached if reason == "stopped" else ""
        if done == sum(counts) and (bound or reason != "stopped"):
            reason, bound = "complete", ""
        elif reason == "complete":
            reason = "incomplete"
        return RunSummary(
            reason=reason,
            cube=self._settings.cube,
            cache=self._settings.cache,
            seconds=tracker.seconds,
            trials=sum(counts),
            done=done,
            transport=sum(model.transport for model in models),
            cached=tracker.cached,
            sent=traffic.sent,
            prompt_tokens=traffic.prompt_tokens,
            completion_tokens=traffic.completion_tokens,
            retries=dict(traffic.retries),
            causes=dict(tracker.causes),
            details=dict(tracker.details),
            usd=self._spending.of_run.usd,
            spent=asdict(self._spending.spent),
            bound=bound,
            graded=sum(tracker.done().values()),
            asking_seconds=tracker.asking_seconds,
            limits=limit_use(self._endpoints, traffic, tracker.asking_seconds),
            models=tuple(models),
            in_batches=requests_in_batches(
                home.cube.side, home.plan, [each.done < each.trials for each in models]
            ),
        )


@dataclass(frozen=True)
class _Work:
    """What a round has to do."""

    left: Sequence[int]
    """Trials to ask, by evaluation."""
    stale: Sequence[int]
    """Evaluations to count again."""
    unmarked: Sequence[int]
    """Tasks whose prompts are to be compared."""

    @property
    def needed(self) -> bool:
        """Whether there is anything."""
        return any(self.left) or bool(self.stale) or bool(self.unmarked)


def _register(client: Client, plugin: SweepPlugin) -> None:
    """Register a run's plugin; once more if a worker died meanwhile, since Dask gives the whole call up then."""
    for _ in range(_REGISTRATIONS - 1):
        try:
            client.register_plugin(plugin)
        except (OSError, TimeoutError):
            time.sleep(1.0)
        else:
            return
    client.register_plugin(plugin)


def _forget_run(client: Client, run: str) -> None:
    """Leave nothing of this run on a cluster that goes on; a cluster that is gone needs no cleaning."""
    with suppress(Exception):
        client.unsubscribe_topic(topic(run))
        client.unregister_worker_plugin(plugin_name(run))


def _last_report(name: str, dask_worker: Any = None) -> Traffic | None:  # noqa: ANN401 - Dask's own worker
    """Runs on workers: what they sent in this run."""
    plugin = dask_worker.plugins.get(name)
    if plugin is None or plugin.workspace is None:
        return None
    return plugin.workspace.traffic(plugin.label)  # type: ignore[no-any-return]
