"""What a scheduler knows of runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from distributed import SchedulerPlugin

from evalcube.deploy.clusters.asking import SERVING

WANTED = "evalcube_waits"
"""Begins the names of tasks that never run, and resource that no worker has."""


class Queue(NamedTuple):
    """A run's tasks beside those of others."""

    running: int = 0
    """Of the run, those that are under way on a worker."""
    waiting: int = 0
    """Of the run, those that wait for a worker."""
    others: int = 0
    """Tasks of others that are under way or wait."""


class ClusterView(NamedTuple):
    """A cluster as its scheduler sees it."""

    workers: Mapping[str, str]
    """Workers that serve: address -> name."""
    shares: Mapping[str, tuple[int, int]]
    """For each endpoint that runs on the scheduler may share, by digest: how many do, and this one's place."""
    seen: Mapping[str, float] = {}
    """By address, when the worker was last heard of; on the scheduler's clock, so that only changes mean something."""
    paused: frozenset[str] = frozenset()
    """Those that Dask gives no tasks, as their memory is nearly full."""
    queue: Queue = Queue()
    others: Sequence[str] = ()
    """Names of some workers that are there and that the run may not use."""
    leaving: frozenset[str] = frozenset()
    """Those that serve no more, or not yet: what they have under way may not have ended."""
    crashes: int = 0
    """Workers that have gone since the run is there, and that nobody told to."""
    ids: Mapping[str, str] = {}
    """By address, the unique name of the worker's process: one that is started again may have the same address."""


class Registrar(SchedulerPlugin):
    """What a scheduler knows of a run: whose it is, what it asks, and where its tasks must not go.

    Whoever joins gets no task before the driver has let it in: it may have no evalcube.

    Parameters
    ----------
    name
        Of the run's plugin on the workers.
    client
        The driver's; when it is gone, all of the run goes.
    group
        What the names of the run's task groups end with.
    endpoints
        Digests of the endpoints that the run asks.
    names, resource
        Which workers it uses: those of these names or addresses, or with that resource; all where both are empty.
    """

    def __init__(
        self, name: str, client: str, group: str, endpoints: list[str], names: Sequence[str], resource: str
    ) -> None:
        self.name = f"{name}-registrar"
        self.run = name
        self.endpoints = endpoints
        self.since = 0.0
        self._client, self._group = client, group
        self._names, self._resource = names, resource
        self._allowed: set[str] = set()
        self.crashes = 0
        """Workers that have gone, and that nobody told to."""
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:  # noqa: ANN401 - Dask's scheduler
        """Remember the scheduler, and since when the run is there."""
        self._scheduler, self.since = scheduler, time.time()

    def shares(self) -> dict[str, tuple[int, int]]:
        """For each endpoint, how many runs ask it at the moment, and this one's place among them."""
        registrars = [plugin for plugin in self._scheduler.plugins.values() if isinstance(plugin, Registrar)]
        by_endpoint = {}
        for endpoint in self.endpoints:
            asking = [plugin for plugin in registrars if endpoint in plugin.endpoints]
            # The same order for every run that asks: each computes its own place, and no two may get the same.
            asking.sort(key=lambda plugin: (plugin.since, plugin.run))
            names = [plugin.run for plugin in asking]
            if self.run in names:
                by_endpoint[endpoint] = (len(names), names.index(self.run))
        return by_endpoint

    def allow(self, addresses: Sequence[str], silent: Sequence[str] = ()) -> None:
        """Let the run's tasks go to these workers, and keep them away from all others.

        What those that are silent have of the run is computed again.
        """
        before, self._allowed = self._allowed, set(addresses)
        # Each restriction walks over all tasks of the run; the driver calls this at every look.
        if self._allowed != before or silent:
            self._restrict(silent=silent)

    def queue(self) -> Queue:
        """Tasks of the run that are under way and that wait for a worker, and tasks of others."""
        running = sum(
            task.group.name.endswith(self._group)
            for worker in self._scheduler.workers.values()
            for task in {*worker.executing, *worker.long_running}
        )
        own = foreign = 0
        for group in self._scheduler.task_groups.values():
            if group.name.startswith(WANTED):
                continue
            open_tasks = sum(group.states.get(state, 0) for state in ("processing", "queued", "no-worker"))
            if group.name.endswith(self._group):
                own += open_tasks
            else:
                foreign += open_tasks
        return Queue(running, max(own - running, 0), foreign)

    def _restrict(self, keys: Any = None, silent: Any = ()) -> None:  # noqa: ANN401
        barred = {
            address
            for address, worker in self._scheduler.workers.items()
            if address not in self._allowed
            or not is_chosen(address, worker.name, worker.resources, self._names, self._resource)
        }
        allowed = set(self._scheduler.workers) - barred if barred else set()
        if barred and not allowed:
            allowed = {"nowhere"}  # it waits for one that may
        # Asked first without restrictions, as these end Dask's queuing: only where there is somebody to keep away.
        moved = []
        for key in list(self._scheduler.tasks) if keys is None else keys:
            task = self._scheduler.tasks.get(key)
            if task is None or not task.group.name.endswith(self._group):
                continue
            # Of one that is done, too: if its result is lost with a worker, it is computed again where it may go then.
            task.worker_restrictions = set(allowed) or None
            if allowed and task.processing_on is not None and task.processing_on.address in barred:
                moved.append(key)
        for address in silent:
            self._give_up(address)
        for key in moved:
            task = self._scheduler.tasks.get(key)
            # What it needs may have been given up above, and then it has left already.
            if task is not None and task.processing_on is not None and task.processing_on.address in barred:
                self._scheduler._reschedule(key, stimulus_id=f"{self.name}-{time.time()}")  # noqa: SLF001

        for worker in list(self._scheduler.running) if keys is None else ():
            # What found no worker that it may go to waits for one that joins; this one was here, and barred.
            waiting = self._scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
            if waiting:
                self._scheduler.transitions(waiting, stimulus_id=f"{self.name}-{time.time()}")

    def _give_up(self, address: str) -> None:
        """Do without the results that are on a worker which does not answer, as Dask does where one is removed.

        It is not removed, as others' tasks may be there; the whole of a run can be made again from the cache.
        """
        worker = self._scheduler.workers.get(address)
        if worker is None:
            return
        stimulus = f"{self.name}-{time.time()}"
        lost = [task for task in worker.has_what if task.group.name.endswith(self._group)]
        for task in lost:
            self._scheduler.remove_replica(task, worker)
        self._scheduler.transitions(
            {task.key: "released" for task in lost if not task.who_has}, stimulus_id=stimulus
        )
        # When it goes on, it hears that nobody wants these.
        keys = [task.key for task in lost]
        self._scheduler.worker_send(address, {"op": "free-keys", "keys": keys, "stimulus_id": stimulus})
        # Whoever waits for data of it, on a connection that is open, would wait for good.
        self._scheduler.rpc.remove(address)
        for peer in list(self._scheduler.workers):
            if peer != address:
                message = {"op": "remove-worker", "worker": address, "stimulus_id": stimulus}
                self._scheduler.worker_send(peer, message)

    def log_event(self, topic: Any, msg: Any) -> None:  # noqa: ANN401 - as Dask hands it over
        """Count crashes; `remove_worker` does not say whether a worker was told to go."""
        if topic == "all" and msg.get("action") == "remove-worker" and not msg["expected"]:
            self.crashes += 1

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Keep new tasks away, too."""
        self._restrict(tasks)

    def add_worker(self, scheduler: Any, worker: str) -> None:  # noqa: ANN401, ARG002
        """Keep the run's tasks away from a worker that joins."""
        self._restrict()

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Forget a worker that is gone: another one may come with its address."""
        self._allowed.discard(worker)
        self._restrict()

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ANN401
        """Take the run's plugins off the workers and the scheduler when its driver is gone, however it ended."""
        # Dask removes a client also when its process was killed: nobody else would clean up after that driver.
        if client != self._client:
            return
        with suppress(ValueError, KeyError):
            scheduler.remove_plugin(self.name)
        leaving = {"op": "plugin-remove", "name": self.run}
        self._leaving = asyncio.ensure_future(scheduler.broadcast(msg=leaving, on_error="ignore"))


def is_chosen(address: str, name: Any, resources: Any, names: Sequence[str], resource: str) -> bool:  # noqa: ANN401
    """Whether a worker is one of those that a run uses."""
    if names and str(name) not in names and address not in names:
        return False
    return not resource or resource in resources


def look(name: str, names: Sequence[str], resource: str, dask_scheduler: Any = None) -> ClusterView:  # noqa: ANN401
    """Runs on the scheduler: the workers that a run uses, and the run itself."""
    registrar = dask_scheduler.plugins.get(f"{name}-registrar")
    workers: dict[str, Any] = {}
    barred: list[str] = []
    leaving: set[str] = set()
    for address, worker in sorted(dask_scheduler.workers.items()):
        if not is_chosen(address, worker.name, worker.resources, names, resource):
            barred.append(str(worker.name))
        elif worker.status.name in SERVING:
            workers[address] = worker
        else:
            leaving.add(address)
    return ClusterView(
        {address: str(worker.name) for address, worker in workers.items()},
        {} if registrar is None else registrar.shares(),
        {address: worker.last_seen for address, worker in workers.items()},
        frozenset(address for address, worker in workers.items() if worker.status.name == "paused"),
        Queue() if registrar is None else registrar.queue(),
        barred[:5],
        frozenset(leaving),
        0 if registrar is None else registrar.crashes,
        {address: worker.server_id for address, worker in workers.items()},
    )


def allow(name: str, addresses: Sequence[str], silent: Sequence[str], dask_scheduler: Any = None) -> None:  # noqa: ANN401
    """Runs on the scheduler: let a run's tasks go to some workers only."""
    registrar = dask_scheduler.plugins.get(f"{name}-registrar")
    if registrar is not None:
        registrar.allow(addresses, silent)


def is_known(name: str, dask_scheduler: Any = None) -> bool:  # noqa: ANN401
    """Runs on the scheduler: whether a run is there."""
    return f"{name}-registrar" in dask_scheduler.plugins
