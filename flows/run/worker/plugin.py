"""The plugin by which every worker has the workspace of a run, also one that joins or restarts later."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import re
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Reschedule, Worker, WorkerPlugin, get_worker

from evalcube.deploy.clusters import ClusterError, Connection
from evalcube.deploy.clusters.code import State
from evalcube.deploy.clusters.registrar import is_known
from evalcube.flows.events import Traffic, as_message, process_at, topic
from evalcube.flows.run.worker.context import RunContext, unmade
from evalcube.flows.run.worker.poison import blame_nobody
from evalcube.flows.run.worker.workspace import Workspace

_LONGEST_GROUP = 24
_REPORT_MS = 500
_TRY_SECONDS = 5.0
_LAST_PART, _LAST_SECONDS = 0.1, 60.0
"""Of a worker's bounded life, and at most, in which it only waits for replies."""
_WATCH_SECONDS = 20.0
"""Between two looks whether the run is still there: what took its plugin away may not have reached this worker."""
_ANSWER_SECONDS = 10.0
"""So long its answer is waited for: with the time between two looks less than until a silent worker's part is lent."""
_AWAITED_SECONDS = 60.0
"""So long a run that ends waits for what it began on a worker."""
_PAUSE_SECONDS = 0.3
"""Before a task leaves a worker that cannot do it, so that the two do not keep the scheduler busy."""
_MOST_REPORTS = 200
"""Of all workers' traffic, per second: the scheduler handles each."""


async def _hold(work: Workspace) -> None:
    """Have a worker that is about to end send nothing more, and leave no mark of a task that would be blamed for it."""
    work.hold()
    await asyncio.to_thread(blame_nobody)


def seconds_to_ask(lifetime: float | None, age: float) -> float | None:
    """Seconds until a worker is to send nothing more; None if its time is not bounded.

    Examples
    --------
    >>> seconds_to_ask(3600, 10), seconds_to_ask(50, 48), seconds_to_ask(None, 5)
    (3530.0, 0.0, None)
    """
    if not lifetime:
        return None
    return max(0.0, lifetime - min(_LAST_SECONDS, lifetime * _LAST_PART) - age)


class SweepPlugin(WorkerPlugin):
    """Gives a worker the workspace of a run, once it has proved that it can take part.

    It never fails to be set up: a worker that cannot take part in this run serves others. What it does takes place
    beside the worker's loop, so that no other run waits for it.
    """

    def __init__(self, context: RunContext) -> None:
        self.name = plugin_name(context.run)
        self.context = context
        self.workspace: Workspace | None = None
        self.label = ""
        """Names this worker process in reports."""
        self.problem = ""
        """Why this worker cannot take part."""
        self.ready = threading.Event()
        """Set when that is known."""
        self.cut_off: dict[str, str] = {}
        """Addresses of endpoints that this worker cannot connect to, and why; tried again now and then."""
        self._timer: Any = None
        self._tasks: list[asyncio.Future[None]] = []

    def state(self, worker: Worker) -> State:
        """How far this worker is."""
        ready, host = self.ready.is_set(), platform.node()
        return State(ready and not self.problem, self.problem, str(worker.id), host, dict(self.cut_off))

    def setup(self, worker: Worker) -> None:
        """Begin to get ready."""
        self._tasks = [asyncio.ensure_future(work(worker)) for work in (self._begin, self._watch)]

    async def _begin(self, worker: Worker) -> None:
        try:
            # In a thread: it reads files, and asks the stores.
            self.problem = await asyncio.to_thread(self._open, worker)
            if not self.problem:
                self._start(worker)
        except Exception as error:  # noqa: BLE001 - a worker that cannot take part goes on without it
            self.problem = f"{type(error).__name__}: {error}"
        self.ready.set()

    def _open(self, worker: Worker) -> str:
        """Open the workspace; why this worker cannot take part, if so."""
        problem = self.context.proof.lacking(str(worker.id))
        if problem:
            return problem
        workspace = Workspace(self.context)
        problem = unmade(workspace.plan)
        if problem:
            workspace.close()
            return problem
        self.cut_off = self.context.proof.cut_off()
        self.workspace = workspace
        return ""

    async def _watch(self, worker: Worker) -> None:
        """Leave when the run is over: one that hangs while the run ends never hears that it does."""
        question = {"function": pickle.dumps(is_known), "args": pickle.dumps((self.name,)), "wait": True}
        while worker.plugins.get(self.name) is self:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                asking = worker.scheduler.run_function(**question, kwargs=pickle.dumps({}))
                answer = await asyncio.wait_for(asking, _ANSWER_SECONDS)
            except OSError:
                # Cut off from its scheduler, which says nothing of its runs; others soon get what was lent to this one.
                if self.workspace is not None:
                    self.workspace.ask_again()
                continue
            if answer.get("result") is False and worker.plugins.get(self.name) is self:
                del self._tasks[1]  # this one, which would be ended before it has ended the rest
                await worker.plugin_remove(name=self.name)
                return

    @staticmethod
    def _hold_before_end(worker: Worker, work: Workspace) -> None:
        """Have a worker whose time is bounded send nothing shortly before it is up.

        What it had in flight at the end would be lost. Its unfinished blocks go to others, which find the replies that
        it got in the cache.
        """
        # Dask does not say when a worker began; its process did so a moment before.
        left = seconds_to_ask(worker.lifetime, time.time() - worker.monitor.proc.create_time())
        if left is not None:
            worker.io_loop.call_later(left, _hold, work)

    def _start(self, worker: Worker) -> None:
        """Report the traffic twice a second, with hundreds of workers more seldom."""
        from tornado.ioloop import PeriodicCallback

        work = self.workspace
        assert work is not None  # noqa: S101 - opened a moment ago
        # A worker that its nanny restarts has the address of the one that died, whose totals count as well.
        self.label = process_at(worker.address, os.getpid())

        due = 0.0

        def report_traffic() -> None:
            traffic = work.traffic(self.label)
            if traffic is not None:
                worker.log_event(topic(self.context.run), as_message(traffic))

        def report() -> None:
            nonlocal due
            # With hundreds of workers each reports more seldom, as the scheduler handles every report of all of them.
            if time.monotonic() >= due:
                due = time.monotonic() + work.workers / _MOST_REPORTS
                report_traffic()
            for learned in work.slowdowns():
                slowdown = replace(learned, worker=worker.address)
                worker.log_event(topic(self.context.run), as_message(slowdown))

        self._hold_before_end(worker, work)
        self._report_traffic = report_traffic
        self._timer = PeriodicCallback(report, _REPORT_MS)
        self._timer.start()
        if self.cut_off:
            self._tasks.append(asyncio.ensure_future(self._try_again()))

    async def _try_again(self) -> None:
        """Connect to the endpoints again until that works: cables are plugged in, and firewalls opened."""
        while self.cut_off:
            await asyncio.sleep(_TRY_SECONDS)
            self.cut_off = await asyncio.to_thread(self.context.proof.cut_off)

    def transition(self, key: Hashable, start: str, finish: str, **kwargs: object) -> None:  # noqa: ARG002
        """Hear of a task that begins, and of one that is to end before it is done."""
        if self.workspace is None:
            return
        if finish == "executing":
            # Here, where one comes after the other: a task's own thread may be late, and would undo what came since.
            self.workspace.accept(key)
        elif start in ("executing", "long-running") and finish == "released":
            self.workspace.abandon(key)

    async def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - the interface of plugins
        """Close the workspace, off the worker's event loop: it waits for the disk."""
        beginning, *background = self._tasks
        for task in background:
            task.cancel()
        with suppress(TimeoutError):
            # Shielded, as to cancel the wait would not end the thread that opens the workspace.
            await asyncio.wait_for(asyncio.shield(beginning), _AWAITED_SECONDS)
        if self._timer is not None:
            self._timer.stop()
            # Once more: what was sent in the last half second is paid for, too.
            self._report_traffic()
        if self.workspace is not None:
            await asyncio.to_thread(self.workspace.close)


def plugin_name(run: str) -> str:
    """Name of a run's plugin on the workers."""
    return f"evalcube-{run}"


def task_group(sweep: str, run: str) -> str:
    """Names a run on Dask's dashboard, beside each stage.

    Examples
    --------
    >>> task_group("my first-sweep", "3f2c81d09ab7")
    'my_first_sweep_3f2c'
    """
    # In one piece and with an underscore: Dask counts words that stand apart to the name of the stage.
    return f"{re.sub(r'[^0-9A-Za-z]+', '_', sweep)[:_LONGEST_GROUP].strip('_')}_{run[:4]}"


def install(connection: Connection, context: RunContext, sweep: str) -> None:
    """Give all workers a run's plugin, those that join later too."""
    endpoints = [route.endpoint for route in context.routes.values()]
    try:
        connection.code.install(
            plugin_name(context.run),
            partial(SweepPlugin, context),
            group=task_group(sweep, context.run),
            # Batches have limits that the provider keeps by itself.
            endpoints=[endpoint.digest for endpoint in endpoints if endpoint.batch is None],
        )
    except OSError as error:
        raise ClusterError(
            f"the cluster went away before any request ({type(error).__name__}). Look at the log of its scheduler."
        ) from error


def workspace(run: str) -> Workspace:
    """The workspace of a run on this worker; for use in tasks."""
    plugin = plugin_on(get_worker(), plugin_name(run))
    if plugin is None or plugin.workspace is None or not plugin.ready.is_set():
        # Still getting ready: the task goes back to the scheduler, but not at once, or it would come back without end.
        time.sleep(_PAUSE_SECONDS)
        raise Reschedule
    return plugin.workspace


def plugin_on(worker: Worker, name: str) -> SweepPlugin | None:
    """A run's plugin on a worker; None if it is not there, or not yet."""
    plugin = worker.plugins.get(name)
    return plugin if isinstance(plugin, SweepPlugin) else None


def workspace_on(worker: Worker, name: str) -> Workspace | None:
    """A run's workspace on a worker, by the name of its plugin; None if it is not there, or not yet."""
    plugin = plugin_on(worker, name)
    return None if plugin is None else plugin.workspace


def forget(connection: Connection, run: str) -> None:
    """Leave nothing of a run on a cluster that goes on; a cluster that is gone needs no cleaning."""
    with suppress(Exception):
        connection.client.unsubscribe_topic(topic(run))
    connection.code.remove(plugin_name(run))


def last_report(name: str, dask_worker: Any = None) -> Traffic | None:  # noqa: ANN401 - Dask's own worker
    """Runs on workers: what they sent in a run, by the name of its plugin."""
    plugin = plugin_on(dask_worker, name)
    if plugin is None or plugin.workspace is None:
        return None
    return plugin.workspace.traffic(plugin.label)
