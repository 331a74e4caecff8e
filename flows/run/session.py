"""One run of a sweep, from an open cube under a lease to a summary."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import InitVar, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalcube.flows.config.models import Model, Sweep
from evalcube.flows.events import (
    Announcer,
    Asked,
    Event,
    Extended,
    Finished,
    InDoubt,
    Started,
    Subscriber,
    Traffic,
    from_message,
    topic,
)
from evalcube.flows.plan.evaluations import token_limit
from evalcube.flows.plan.part import Only, Sampling
from evalcube.flows.run.endpoint_use import bounded_refusals, recall, remember, share_limits
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.follow.records import LiveFile
from evalcube.flows.run.processes import begin_processes
from evalcube.flows.run.spending import Spending
from evalcube.flows.run.stopping import Interrupt, StopWish, stop_on_interrupt
from evalcube.flows.run.summary import RunSummary, summarize_run
from evalcube.flows.state.engines import Engines, joined_engines, origins_of, read_engines, write_engines
from evalcube.flows.state.open_trials import RoundWork
from evalcube.flows.state.store import SweepStore
from evalcube.stages.infer.endpoint import Endpoint, EngineInfo
from evalcube.stages.infer.jobs import Slowdown
from evalcube.storage.cube.lease import Lease
from evalcube.storage.urls import absolute

if TYPE_CHECKING:
    # A run with nothing to do needs no cluster and no client: imports stand where they work.
    from evalcube.deploy.clusters import Cluster, Connection
    from evalcube.flows.run.driver import Driver
    from evalcube.flows.run.worker.context import Route, RunContext
    from evalcube.flows.run.workers import RunParts

FLUSH_SECONDS = 120.0
"""A region is written at least this often while its blocks come in, so that cubes can be read during a sweep."""


@dataclass(eq=False)
class Session:
    """One run of a sweep, from an open cube under a lease to a summary."""

    store: SweepStore
    """As far as the sampling wants it now; replaced from round to round."""
    settings: Sweep
    sampling: Sampling
    cluster: Cluster | None
    workers: int | None
    lease: Lease
    subscriber: InitVar[Subscriber]
    flush_seconds: float
    only: Only | None = None
    stop: InitVar[threading.Event | None] = None

    def __post_init__(self, subscriber: Subscriber, stop: threading.Event | None) -> None:
        records = self.store.cube.records
        self._id = uuid.uuid4().hex[:12]
        self._tracker = Tracker()
        self._engines: Engines = {}
        prices = {model.name: model.paid for model in self.settings.models}
        self._spending = Spending(records, self.store.counters(), prices, self.settings.spend)
        live = LiveFile(records, self._tracker)
        self._emit = Announcer((self._tracker, self._spending, live, self._keep_engines, subscriber))
        self._interrupt: Interrupt | None = None
        self._wish = StopWish(records, self.lease.holder.token, self._emit.note, stop)
        self._spending.stop = self._wish.stop
        self._endpoints: dict[str, Endpoint] = {}

    def run(self) -> RunSummary:
        """Do what is left to do; a sweep with nothing left starts neither server nor cluster."""
        self.store = self._with_current_targets()
        work = RoundWork.of(self.store)
        with stop_on_interrupt() as self._interrupt:
            try:
                reason = self._begin(work, self._interrupt)
            except KeyboardInterrupt:
                if self._interrupt.stopped:
                    raise  # whoever insists, as the driver has stopped at the first signal
                self._interrupt.stopped, reason = True, "stopped"
        if reason == "stopped" and self._is_done():
            reason = "complete"
        # A new one, since it reads the ledger: once, for all that is said of the run's end.
        old = self.store
        store = SweepStore(old.cube, old.plan, old.targets, old.found)
        summary = summarize_run(
            reason,
            store,
            self.settings,
            self._tracker,
            self._spending,
            self._wish.by,
            self._endpoints,
            self.only,
        )
        self._warn_of_engines(store)
        remember(store.cube.records, self.settings.models, self._endpoints, self._tracker.traffic())
        self._emit(Finished(summary.reason, summary.to_dict()))
        return summary

    @property
    def was_interrupted(self) -> bool:
        """Whether a signal has stopped it in good order."""
        return self._interrupt is not None and self._interrupt.stopped

    def _keep_engines(self, event: Event) -> None:
        """A subscriber that keeps beside the cube what serves the models, as workers find it out."""
        if not isinstance(event, Traffic) or not event.engines:
            return
        added = {
            evaluation.eval_id: [EngineInfo(*info) for info in event.engines[evaluation.model]]
            for evaluation in self.store.plan.evaluations
            if evaluation.model in event.engines
        }
        joined = joined_engines([self._engines, added])
        if joined != self._engines:
            self._engines = joined
            records = self.store.cube.records
            # With what is there: other engines may have served earlier runs of the cube.
            write_engines(records, joined_engines([read_engines(records), joined]))

    def _warn_of_engines(self, store: SweepStore) -> None:
        """Say of which evaluations replies come from several systems."""
        named = list(zip(store.plan.labels, (row.eval_id for row in store.plan.evaluations), strict=True))
        for origin in origins_of(named, read_engines(store.cube.records), store.receipts):
            if origin.warning:
                self._emit.note(f"replies of {origin.label} come from different systems", str(origin))

    def _with_current_targets(self) -> SweepStore:
        """The sweep as far as the sampling wants it now; its cube may not have that size yet."""
        store = self.store
        targets = self.sampling.targets(store.plan, store.planned, store.counters())
        whole = targets
        if self.only is not None:
            whole = targets.union(self.only.whole(self.settings, store.plan))
            targets = replace(targets, first=self.only.first)
        whole.refuse_too_many()
        # A new one, since it reads the ledger: what the round before recorded is done.
        return SweepStore(store.cube, store.plan, targets, store.found, whole)

    def _next_round(self) -> RoundWork:
        """Ask the sampling how far to go now, and bring the cube to that size."""
        self.store = self._with_current_targets()
        self.store.grow()
        return RoundWork.of(self.store)

    def _is_done(self) -> bool:
        """Whether nothing is left, although somebody stopped the run: that came with its last reply."""
        store = self._with_current_targets()
        if not store.grown or store.stale():
            return False
        return not any(True for i in range(len(store.plan.evaluations)) for _ in store.unfinished(i))

    def _begin(self, work: RoundWork, interrupt: Interrupt) -> str:
        """Say what there is to do, and do it; returns as `_work`."""
        self._emit(self._started_event(work))
        if not (work.trials or work.stale or work.uncompared):
            self.store.grow()
            return "complete"
        if self._wish.stopped or (work.trials and self._spending.reached):
            return "stopped"
        return self._work(work, interrupt)

    def _work(self, work: RoundWork, interrupt: Interrupt) -> str:
        """Run the tasks round by round; returns "complete", or "stopped" if somebody stopped it."""
        begin_processes(self.cluster, self.workers, work.trials, self.store.plan)
        from evalcube.flows.run.cluster import default_cluster, described, present, wait_for_workers
        from evalcube.flows.run.preflight import Members, refuse_far_workers
        from evalcube.flows.run.servers import serve_models
        from evalcube.flows.run.worker.plugin import forget, install, plugin_name, task_group
        from evalcube.flows.run.workers import RunParts

        asked = self._models_asked(work)
        with ExitStack() as stack:
            stack.enter_context(self._wish)
            served = stack.enter_context(serve_models(asked, self._emit.note, self._answer_tokens()))
            # A Ctrl-C in the middle of starting worker processes would leave some of them behind.
            cluster = self.cluster or default_cluster(self.workers, work.trials, self.store.plan)
            with interrupt.hold_signals():
                connection = stack.enter_context(cluster.connect())
            stack.enter_context(connection.explain_if_lost())
            self._note_place(cluster, connection)
            addresses = wait_for_workers(cluster, connection, self.lease, self._emit.note, self._is_stopped)
            if self._is_stopped():
                return "stopped"
            refuse_far_workers(asked, addresses)
            context = self._context(served.routes, connection, cluster.environment != "inherited")
            admission = Members(connection.code, plugin_name(self._id), context.proof.tokens, self._emit.note)
            parts = RunParts(
                connection,
                context,
                admission,
                self.lease,
                self._emit,
                share_limits(self._endpoints),
                self._wish,
                served.is_over,
                self.flush_seconds,
                cluster.patience,
                task_group(self.settings.name, self._id),
            )
            connection.client.subscribe_topic(topic(self._id), partial(self._receive, parts))
            # Before the plugin is registered: half a registration has to be taken back, too.
            stack.callback(forget, connection, self._id)
            stack.callback(admission.close)
            install(connection, context, self.settings.name)
            # Before any request: money is spent only by workers that can store the replies.
            addresses = admission.first(addresses, lambda: present(connection), self._is_stopped)
            if self._is_stopped():
                return "stopped"
            if not self.store.grown:
                # Not before: a run that is refused for a key, a server or a worker leaves the plan as it was.
                self.store.grow()
                work = RoundWork.of(self.store)
            self._emit.note(described(cluster, connection, len(addresses)))
            driver, blocks = self._run_rounds(parts, work, len(addresses), interrupt)
            self._wait_for_reports(connection, driver.workers, blocks)
        self._spending.save()
        return "stopped" if self._wish.stopped else "complete"

    def _run_rounds(
        self, parts: RunParts, work: RoundWork, workers: int, interrupt: Interrupt
    ) -> tuple[Driver, int]:
        """Work until the sampling wants no more; returns the driver of the last round, and the blocks of all."""
        from evalcube.flows.run.driver import Driver

        blocks = 0
        interrupt.stop = partial(self._wish.stop, "; Ctrl-C again to stop at once")
        while True:
            driver = Driver(parts, self.store, work, workers)
            driver.run()
            blocks += driver.blocks
            if self._wish.stopped:
                return driver, blocks
            before = self.store.planned
            work = self._next_round()
            if self.store.planned.same(before):
                return driver, blocks  # nothing is left but transport errors
            finished = self._tracker.done()
            asked_since = tuple(
                replace(row, left=row.left + finished.get(number, 0))
                for number, row in enumerate(self._asked_rows(work))
            )
            self._emit(Extended(sum(self.store.targets.counts), asked_since))

    def _models_asked(self, work: RoundWork) -> list[Model]:
        plan = self.store.plan
        names = {plan.evaluations[i].model for i in self.sampling.models(plan)}
        names |= {judge.model for judge in plan.judges}
        # Counters that are behind decide nothing yet: once they are added up, a budget may want more.
        any_asked = bool(work.trials or work.stale)
        return [model for model in self.settings.models if any_asked and model.name in names]

    def _answer_tokens(self) -> int:
        """Most tokens of an answer; 0 where nobody bounds it."""
        longest = [token_limit(sampler) for sampler in self.settings.samplers.values()]
        return 0 if 0 in longest else max(longest, default=0)

    def _note_place(self, cluster: Cluster, connection: Connection) -> None:
        """Say on whose cluster the run is, if it is not its own."""
        from evalcube.deploy.clusters import GivenCluster

        if cluster.environment == "own":
            opened = " (the open Client)" if isinstance(cluster, GivenCluster) and cluster.found else ""
            self._emit.note(f"on the Dask cluster at {connection.code.address}{opened}")

    def _is_stopped(self) -> bool:
        """Whether the run is to stop, for those that wait."""
        return self._wish.stopped

    def _context(self, routes: Mapping[str, Route], connection: Connection, unset_keys: bool) -> RunContext:
        from evalcube.flows.run.servers import is_managed
        from evalcube.flows.run.worker.context import Proof, RunContext
        from evalcube.storage.reach import leave_tokens

        cube, cache, store = absolute(self.settings.cube), absolute(self.settings.cache), self.store
        routes = bounded_refusals(store, recall(store.cube.records, self.settings.models, routes))
        self._endpoints = {name: route.endpoint for name, route in routes.items()}
        elsewhere, managed = connection.code.elsewhere, filter(is_managed, self.settings.models)
        # A server of this run may not have begun yet.
        reached = self._endpoints.keys() - {model.name for model in managed}
        proof = Proof(
            # Whoever was started here has the same disks and variables: nothing can differ.
            leave_tokens(self._id, cube, cache) if elsewhere else (),
            tuple(self._endpoints.values()) if unset_keys else (),
            tuple(self._endpoints[name] for name in self._endpoints if name in reached) if elsewhere else (),
        )
        token = self.lease.holder.token
        return RunContext.of(self._id, store.plan, (cube, cache), routes, token, proof)

    def _wait_for_reports(self, connection: Connection, workers: Sequence[str], blocks: int) -> None:
        """Let the last reports arrive: results and reports travel apart."""
        from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
        from evalcube.flows.run.worker.plugin import last_report, plugin_name

        with suppress(OSError):
            asked = ask_each(connection.client, last_report, plugin_name(self._id), workers=workers)
            for report in PendingAnswer(connection.client, asked).answer().values():
                if isinstance(report, Traffic):
                    self._emit(report)
        # Reports are for display: after two seconds the numbers may be short, and nothing else is.
        deadline = time.monotonic() + 2.0
        while self._tracker.blocks < blocks and time.monotonic() < deadline:
            time.sleep(0.02)

    def _receive(self, parts: RunParts, event: tuple[float, Mapping[str, Any]]) -> None:
        report = from_message(event[1])
        if isinstance(report, InDoubt):
            parts.reports.put(report)
            return
        # These two are for the driver, which asks for them in its own thread and in its own time.
        if isinstance(report, Slowdown) or (isinstance(report, Traffic) and report.starved):
            parts.reports.put(report)
        # What only passes between workers is no event of the run.
        if not isinstance(report, Slowdown) or report.overload or report.pause:
            self._emit(report)

    def _started_event(self, work: RoundWork) -> Started:
        store, counts = self.store, self.store.targets.counts
        return Started(
            self._id,
            self.settings.cube,
            sum(counts),
            sum(counts) - sum(work.left),
            store.plan.labels,
            recorded=tuple(count - left for count, left in zip(counts, work.left, strict=True)),
            asked=self._asked_rows(work),
            prices={model.name: model.paid for model in self.settings.models if model.priced},
        )

    def _asked_rows(self, work: RoundWork) -> tuple[Asked, ...]:
        """What is to ask of each evaluation; nothing where the config no longer names its model."""
        names = {model.name for model in self.settings.models}
        rows = zip(self.store.plan.evaluations, self.store.targets.counts, work.left, strict=True)
        return tuple(
            Asked(evaluation.model, trials, left if evaluation.model in names else 0)
            for evaluation, trials, left in rows
        )
