"""What a scheduler knows of runs; sent as text like `deploy.clusters.carrier`, so it imports nothing of ours."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from distributed import SchedulerPlugin


class Registrar(SchedulerPlugin):
    """What a scheduler knows of a run: whose it is, what it asks, and where its tasks must not go.

    Plugins of different versions of evalcube meet on one scheduler: they know each other by attributes that begin with
    ``evalcube_``, which therefore keep their meaning.

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
    """

    def __init__(self, name: str, client: str, group: str, endpoints: list[str]) -> None:
        self.name = f"{name}-registrar"
        self.evalcube_run = name
        self.evalcube_endpoints = endpoints
        self.evalcube_since = 0.0
        self._client, self._group = client, group
        self._barred: set[str] = set()
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:  # noqa: ANN401 - Dask's scheduler
        """Remember the scheduler, and since when the run is there."""
        self._scheduler, self.evalcube_since = scheduler, time.time()

    def shares(self) -> dict[str, tuple[int, int]]:
        """For each endpoint, how many runs ask it at the moment, and this one's place among them."""
        others = [plugin for plugin in self._scheduler.plugins.values() if hasattr(plugin, "evalcube_run")]
        found = {}
        for endpoint in self.evalcube_endpoints:
            asking = [plugin for plugin in others if endpoint in plugin.evalcube_endpoints]
            asking.sort(key=lambda plugin: (plugin.evalcube_since, plugin.evalcube_run))
            names = [plugin.evalcube_run for plugin in asking]
            if self.evalcube_run in names:
                found[endpoint] = (len(names), names.index(self.evalcube_run))
        return found

    def bar(self, addresses: list[str]) -> None:
        """Keep the run's tasks away from these workers, and let them go to all others."""
        before, self._barred = self._barred, set(addresses)
        if self._barred != before:
            self._restrict()

    def _restrict(self, keys: Any = None) -> None:  # noqa: ANN401
        barred = self._barred.intersection(self._scheduler.workers)
        allowed = set(self._scheduler.workers) - barred if barred else set()
        # Asked first without restrictions, as these end Dask's queuing: only where there is somebody to keep away.
        for key in list(self._scheduler.tasks) if keys is None else keys:
            task = self._scheduler.tasks.get(key)
            if task is None or not task.group.name.endswith(self._group):
                continue
            # Of one that is done, too: if its result is lost with a worker, it is computed again where it may go then.
            task.worker_restrictions = set(allowed) or None
            if allowed and task.processing_on is not None and task.processing_on.address in barred:
                self._scheduler._reschedule(key, stimulus_id=f"{self.name}-{time.time()}")  # noqa: SLF001

        for worker in list(self._scheduler.running) if keys is None else ():
            # What found no worker that it may go to waits for one that joins; this one was here, and barred.
            waiting = self._scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
            if waiting:
                self._scheduler.transitions(waiting, stimulus_id=f"{self.name}-{time.time()}")

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Keep new tasks away, too."""
        if self._barred:
            self._restrict(tasks)

    def add_worker(self, scheduler: Any, worker: str) -> None:  # noqa: ANN401, ARG002
        """Let tasks go to a worker that joins."""
        if self._barred:
            self._restrict()

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Forget a worker that is gone."""
        if self._barred:
            self._barred.discard(worker)
            self._restrict()

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ANN401
        """Take the run's plugins off the workers and the scheduler when its driver is gone, however it ended."""
        if client != self._client:
            return
        with suppress(ValueError, KeyError):
            scheduler.remove_plugin(self.name)
        if self.evalcube_run in scheduler.worker_plugins:
            self._leaving = asyncio.ensure_future(
                scheduler.unregister_worker_plugin(comm=None, name=self.evalcube_run)
            )


def look(name: str, dask_scheduler: Any = None) -> dict[str, Any]:  # noqa: ANN401
    """Runs on the scheduler: its workers, with name and status, and the run's shares of endpoints."""
    registrar = dask_scheduler.plugins.get(f"{name}-registrar")
    return {
        "workers": {
            address: (str(worker.name), worker.status.name)
            for address, worker in dask_scheduler.workers.items()
        },
        "shares": {} if registrar is None else registrar.shares(),
    }


def bar(name: str, addresses: list[str], dask_scheduler: Any = None) -> None:  # noqa: ANN401
    """Runs on the scheduler: keep a run's tasks away from some workers."""
    registrar = dask_scheduler.plugins.get(f"{name}-registrar")
    if registrar is not None:
        registrar.bar(addresses)
