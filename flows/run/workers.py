"""Watches a cluster's workers, and shares the endpoints' connections out among them."""

from __future__ import annotations

import itertools
import math
import os
import queue
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from evalcube.deploy.clusters import ClusterError, Connection
from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
from evalcube.deploy.clusters.base import PATIENCE_SECONDS
from evalcube.deploy.clusters.registrar import ClusterView
from evalcube.flows.events import Announcer, InDoubt, Traffic, process_at
from evalcube.flows.run.health import Health, Queueing
from evalcube.flows.run.in_flight import InFlightLimit
from evalcube.flows.run.preflight import Members
from evalcube.flows.run.stopping import StopWish
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.plugin import plugin_name, workspace_on
from evalcube.flows.run.worker.quarantine import Doubts
from evalcube.stages.infer.jobs import Slowdown
from evalcube.stages.infer.sharing import Setting, Shared
from evalcube.storage.cube.lease import Lease

_POLL_SECONDS = 1.0
_ADMIT_SECONDS, _SECONDS_PER_WORKER = 0.1, 0.001
"""Between two looks whether somebody may be admitted, at least and for each worker: all are told of new shares."""
_NOTE_SECONDS = 5.0
_SILENT_SECONDS = 2.0
_NOTED_LOSSES = 5
"""Workers that have to go before it is said that they do: one that dies now and then is restarted, and no news."""


_MOST_LOSSES = 24
"""Workers that have gone, while no task was done, after which none is waited for: more than a trial that kills its
worker takes until the others of its block are found to be harmless."""


class SharedLimits(NamedTuple):
    """Who shares the endpoints' limits, as workers are told; see `Engine.share_out`."""

    workers: int
    """Workers of this run."""
    runs: Mapping[str, tuple[int, int]]
    """By label of a model whose endpoint several runs share: their number, and this one's place among them."""


@dataclass(frozen=True)
class RunParts:
    """What a run consists of in all of its rounds: the session makes it, and whoever works on a round has it."""

    connection: Connection
    """To a cluster whose workers have the run's plugin."""
    context: RunContext
    admission: Members
    """Who may take part."""
    lease: Lease
    emit: Announcer
    sharing: Shared
    """The endpoints' limits, and what workers have of them."""
    wish: StopWish
    """Whether the run is to stop."""
    is_over: Callable[[str], bool]
    """Whether a model's server was given up."""
    flush_seconds: float
    """Regions and counters are written at least this often."""
    patience: float = PATIENCE_SECONDS
    """Seconds without any worker after which the run gives up."""
    group: str = ""
    """What names the run on the dashboard, beside each stage."""
    reports: queue.SimpleQueue[InDoubt | Slowdown | Traffic] = field(default_factory=queue.SimpleQueue)
    """What workers report of their endpoints."""
    serials: Iterator[int] = field(default_factory=itertools.count)
    """For Dask's keys, which never repeat within a cluster's life: a round would get the futures of the one before."""

    @property
    def plugin(self) -> str:
        """Name of the run's plugin."""
        return plugin_name(self.context.run)


class Workers:
    """The workers of a run, of whom some limits depend.

    A worker sends nothing before something was lent to it, so that one that joins or restarts never adds connections to
    those that are there already; what is in flight above a part that shrinks ends as usual, and is lent again then.
    Nobody waits for a worker: what it is asked or told has a time limit, and is said again to whoever did not answer.
    """

    def __init__(self, parts: RunParts, limits: Iterable[InFlightLimit]) -> None:
        self._parts = parts
        self._client = parts.connection.client
        self._shared = tuple(limits)
        self._view = ClusterView({}, {})
        self._there: list[str] = []
        self._missed: set[str] = set()
        """Addresses of workers that were there before the last poll, and not at it."""
        self._runs: Mapping[str, tuple[int, int]] = {}
        self._told: dict[str, SharedLimits] = {}
        """The share that each worker has taken."""
        self._looking: PendingAnswer[ClusterView] | None = None
        self._telling: tuple[dict[str, SharedLimits], PendingAnswer[dict[str, bool]]] | None = None
        self._waits_to_tell = False
        """Whether shares have changed while others were on their way."""
        self._polled_at = self._admitted_at = -math.inf
        self._gone_at: float | None = None
        self._noted = False
        self._health = Health(parts.emit.note, parts.admission.describe)
        self._asking: PendingAnswer[dict[str, int]] | None = None
        """On its way to workers that have been silent for a while."""
        self._queueing = Queueing(parts.emit.note)
        self._doubts = Doubts(self._client, parts.context.run, parts.admission)
        self._losses = 0
        self._worked = False

    @property
    def any(self) -> bool:
        """Whether there were workers at the last poll."""
        return bool(self._view.workers)

    @property
    def behind_others(self) -> bool:
        """Whether nothing of the run has been under way lately, as others' tasks come first."""
        return self._queueing.behind

    @property
    def there(self) -> tuple[str, ...]:
        """Workers that took part at the last poll."""
        return tuple(self._there)

    def note_work(self) -> None:
        """Note that a worker has done a task: whatever ends workers leaves time for that."""
        self._worked = True
        self._queueing.note_work()

    def poll(self) -> None:
        """Look up who is there, at most once a second, and adapt to what workers report of their endpoints."""
        # First, as it is cheap and connections are idle meanwhile; who is there is asked over the network.
        self._adapt()
        self._hear_shares()
        self._hear_silent()
        now = time.monotonic()
        self._doubts.poll(self._there, now)
        self._admit(now)
        if self._looking is None:
            if now - self._polled_at < _POLL_SECONDS:
                return
            first = self._polled_at == -math.inf
            self._polled_at, self._looking = now, self._parts.connection.code.look()
            # Only at first is there nothing else to do meanwhile.
            if first:
                with suppress(OSError):
                    self._looking.answer()
        if self._looking.done:
            looked, self._looking = self._looking, None
            try:
                view = looked.answer()
            except OSError:
                return  # a scheduler that went away shows in the futures
            self._see(view)
            self._watch_absence(now)

    def _see(self, view: ClusterView) -> None:
        """Take in who is there."""
        # One that was started again with the address of the one before is another one: it is there from the next look.
        anew = {each for each, process in view.ids.items() if self._view.ids.get(each, process) != process}
        view = view._replace(workers={each: name for each, name in view.workers.items() if each not in anew})
        before, self._view = self._view, view
        for note in self._parts.connection.tend(view.workers):
            self._parts.emit.note(note)
        lost = set(before.workers).difference(view.workers)
        self._count_losses(view.crashes)
        # One poll later, when the last that they reported has certainly arrived.
        for address in sorted(self._missed.difference(view.workers)):
            self._parts.emit(Traffic(worker=process_at(address)))
        self._missed = lost
        self._admitted_at = time.monotonic()
        self._health.see(view, self._admitted_at)
        self._queueing.see(view.queue, self._admitted_at)
        if self._health.doubtful and self._asking is None:
            # Of itself, too: what the scheduler hears may be late.
            asked = ask_each(self._client, os.getpid, workers=self._health.doubtful, seconds=_SILENT_SECONDS)
            self._asking = PendingAnswer(self._client, asked)
        self._there = self._admit_workers()
        self._share_out()

    def _admit_workers(self) -> list[str]:
        """Who takes part now."""
        return self._parts.admission.admit(self._view.workers, self._health.aside, self._health.silent)

    def _hear_silent(self) -> None:
        """Take in whether workers that were silent have answered."""
        if self._asking is None or not self._asking.done:
            return
        asking, self._asking = self._asking, None
        with suppress(OSError):
            # Without an answer, their silence goes on being counted.
            self._health.note_answers(asking.answer())

    def _admit(self, now: float) -> None:
        """Give a late worker its share as soon as it is ready; who is there is looked up more seldom."""
        interval = max(_ADMIT_SECONDS, len(self._view.workers) * _SECONDS_PER_WORKER)
        if not self._parts.admission.undecided or now - self._admitted_at < interval:
            return
        self._admitted_at = now
        before, self._there = self._there, self._admit_workers()
        if self._there != before:
            self._share_out()

    def _adapt(self) -> None:
        """Give more blocks to models that are starved, and tell workers what was decided and what others learned."""
        slowed: list[Slowdown] = []
        starved: set[str] = set()
        while not self._parts.reports.empty():
            report = self._parts.reports.get()
            if isinstance(report, Slowdown):
                slowed.append(report)
                if report.report is not None:
                    self._parts.sharing.hear(report.worker, report.model, report.report)
            elif isinstance(report, InDoubt):
                self._doubts.heard(report)
            else:
                starved.update(report.starved)
        for item in self._shared:
            if item.model in starved:
                item.grow()
        # The one that learned of a pause has paused already.
        pauses = [replace(each, report=None) for each in slowed if each.pause]
        self._pass_on(pauses, self._parts.sharing.decide(self._there, self._present, time.time()))

    @property
    def _present(self) -> tuple[str, ...]:
        """Workers that may hold what was lent to them: those, too, that take no part any more, but for silent ones."""
        return tuple(sorted(self._view.leaving.union(self._view.workers) - self._health.silent))

    def _pass_on(
        self, pauses: Sequence[Slowdown], settings: Mapping[str, Setting], told: Collection[str] = ()
    ) -> None:
        """Tell workers what was decided, and what others learned; some are told already."""
        there = set(self._present).difference(told)
        workers = [address for address in self._view.workers if address in there]
        news = [*pauses, *(Slowdown(model, setting=setting) for model, setting in settings.items())]
        if news and workers:
            # Nobody waits for the answers: who misses this reports an old setting, and is told again.
            asked = ask_each(self._client, _slow_down, self._parts.plugin, news, workers=workers)
            PendingAnswer(self._client, asked)

    def _share_out(self) -> None:
        """Tell workers how many they are, those that have not heard it, and what is lent to them."""
        routes = self._parts.context.routes.items()
        runs = {name: self._view.shares.get(route.endpoint.digest, (1, 0)) for name, route in routes}
        for item in self._shared:
            # With no worker at all the limits stay as for one: the next one to come should find blocks.
            item.workers = max(len(self._there), 1)
            item.runs = runs.get(item.model, (1, 0))
        self._note_sharing(runs)
        # A worker that comes back may be a new process: it has to hear its share again.
        self._told = {address: share for address, share in self._told.items() if address in self._there}
        present, self._parts.sharing.runs = self._present, runs
        decided = self._parts.sharing.decide(self._there, present, time.time(), at_once=True)
        share = SharedLimits(self._parts.sharing.count(self._there, present), runs)
        news = {address: share for address in self._there if self._told.get(address) != share}
        # One message at a time: of two under way the older one might arrive last.
        self._waits_to_tell = bool(news) and self._telling is not None
        if self._waits_to_tell:
            news = {}
        if news:
            name, settings = self._parts.plugin, self._parts.sharing.settings
            asked = ask_each(self._client, _take_share, name, share, settings, workers=tuple(news))
            self._telling = (news, PendingAnswer(self._client, asked))
        self._pass_on([], decided, news)

    def _note_sharing(self, runs: Mapping[str, tuple[int, int]]) -> None:
        """Say when others begin or cease to ask the same endpoints."""
        before, self._runs = self._runs, runs
        waits = {item.model for item in self._shared if not item.own}
        for model, (number, _) in runs.items():
            if number != before.get(model, (1, 0))[0]:
                part = (
                    "they use all of its connections, and this one waits"
                    if model in waits
                    else "each keeps to its share"
                )
                self._parts.emit.note(
                    f"{number} runs on this scheduler use the endpoint of {model}: {part}"
                    if number > 1
                    else f"no other run uses the endpoint of {model} any more"
                )

    def _hear_shares(self) -> None:
        """Note who has taken its share; a worker that did not answer, or is still starting, is told again."""
        if self._telling is None or not self._telling[1].done:
            return
        (shares, telling), self._telling = self._telling, None
        with suppress(OSError):
            # Who does not answer is not among those that were told, and is told again after the next poll.
            taken = telling.answer()
            self._told.update({address: shares[address] for address in taken if taken[address] is True})
        if self._waits_to_tell:
            self._share_out()

    def _count_losses(self, losses: int) -> None:
        """Say so, once, if workers crash again and again: each that is restarted looks as if all were well."""
        before, self._losses = self._losses, losses
        # Dask's nannies start workers again without end, also where each of them crashes at once.
        if self._losses >= _MOST_LOSSES and not self._worked:
            raise ClusterError(
                f"{self._losses} worker processes have ended, and none has finished a task: they crash, or a limit "
                f"ends them (memory, `ulimit -v`, `-t`, `-n`; Dask ends one at its own memory limit). Look at their "
                f"logs, give fewer workers, or more memory for each, and run the same command again."
            )
        if before < _NOTED_LOSSES <= self._losses and not self._parts.connection.replaces:
            self._parts.emit.note(
                f"{self._losses} worker processes have ended so far, by crashes or out of memory (Dask ends one "
                "at its memory limit): look at their logs, give fewer workers, or more memory for each"
            )

    def _watch_absence(self, now: float) -> None:
        if self._there:
            self._gone_at, self._noted = None, False
            return
        self._gone_at = now if self._gone_at is None else self._gone_at
        if now - self._gone_at > self._parts.patience:
            raise ClusterError(
                f"the cluster has had no worker for {self._parts.patience:g} s: they died or were stopped. "
                f"Look at their memory and logs, start some, and run the same command again to resume."
            )
        if now - self._gone_at > _NOTE_SECONDS and not self._noted:
            self._noted = True
            self._parts.emit.note("the cluster has no workers at the moment; waiting for some")


def _take_share(
    name: str,
    share: SharedLimits,
    settings: Mapping[str, Setting],
    dask_worker: Any = None,  # noqa: ANN401 - Dask's own
) -> bool:
    """Runs on every worker: so many share the endpoints, and this is lent to each."""
    work = workspace_on(dask_worker, name)
    if work is None:
        return False
    work.share_out(*share)
    _slow_down(name, [Slowdown(model, setting=setting) for model, setting in settings.items()], dask_worker)
    return True


def _slow_down(name: str, news: list[Slowdown], dask_worker: Any = None) -> None:  # noqa: ANN401 - Dask's own
    """Runs on every worker: take over what was decided for all, and what the others learned of overloaded endpoints."""
    work = workspace_on(dask_worker, name)
    for slowdown in news:
        if work is not None and slowdown.worker != dask_worker.address:
            work.slow_down(replace(slowdown, worker=dask_worker.address))
