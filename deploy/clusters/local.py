"""Clusters on this machine for as long as a sweep runs: all in this process, or worker processes beside it."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

import dask
import distributed.core
import distributed.utils
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, Scheduler, SpecCluster, Worker

from evalcube._together import Together
from evalcube.deploy import fork_server
from evalcube.deploy.clusters.base import EVERYTHING, Cluster, Connection, quiet
from evalcube.deploy.errors import ClusterError
from evalcube.deploy.fork_server import interrupts_blocked

_MOST_WORKERS = 8

SETTINGS = {
    # A task that kills its worker makes all others there suspicious, too; the driver isolates the one that did.
    "distributed.scheduler.allowed-failures": 3,
    # This long after a death Dask checks once whether the worker is back, and drops one that restarts just then.
    "distributed.deploy.lost-worker-timeout": "1000 days",
    # A block that waits for replies has seceded from its thread, so what stands in a queue can still be moved.
    "distributed.scheduler.work-stealing": True,
    # Daemonic workers end with a driver that exits without closing its cluster.
    "distributed.worker.daemon": True,
    # These sample the process every few milliseconds; together they cost as much CPU as all of Dask's own work.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.comm.timeouts.connect": "30s",
    # Until it has measured a task, Dask takes it for half a second long, and would spread blocks by that.
    "distributed.scheduler.default-task-durations": {
        "generate": "50ms",
        "infer": "20ms",
        "process": "50ms",
        "score": "20ms",
        "analyze": "20ms",
    },
}
settled = Together(lambda: dask.config.set(SETTINGS))
"""A context with these settings."""
_forked = Together(lambda: dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}))
"""A context in which worker processes, also those that replace others, are forked."""


class _OnThisMachine(Cluster):
    """A cluster that is started for a sweep and ends with it."""

    environment = "inherited"

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A context with a connection to new workers, which end with it."""
        # The settings hold for as long as the cluster: workers that are added later read them, too.
        with settled(), quiet(EVERYTHING), ExitStack() as stack:
            try:
                stack.enter_context(self._setting_up())
                # Blocked only while starting: Dask's loop thread keeps the mask, and workers restarted later get it.
                with interrupts_blocked():
                    cluster = self._start()
            except (OSError, RuntimeError, TimeoutError) as error:
                raise ClusterError(self._trouble(error)) from error
            # Dask remembers methods of its servers, and so a scheduler and a worker of each run in this process.
            stack.callback(distributed.core._expects_comm.cache_clear)  # noqa: SLF001
            # The client ends before the cluster, which it would otherwise report as lost.
            with cluster, Client(cluster, set_as_default=False) as client:
                yield Connection(client)

    def _setting_up(self) -> AbstractContextManager[None]:
        """A context for the cluster's life, in which there is what must be there before signals are blocked."""
        return nullcontext()

    @abstractmethod
    def _start(self) -> SpecCluster:
        """Start it."""

    @abstractmethod
    def _trouble(self, error: Exception) -> str:
        """Why it could not be started, and what to do."""


@dataclass(frozen=True)
class LocalProcesses(_OnThisMachine):
    """A scheduler and worker processes on this machine, for as long as the sweep runs."""

    forks = True
    workers: int | None = None
    """Number of worker processes; None is one per core, at most eight."""
    threads: int = 2
    """Task threads per worker. Requests in flight need none: a worker waits for all replies in one loop."""
    dashboard: bool = True
    """Whether Dask's dashboard is served, on a free local port."""

    def _setting_up(self) -> AbstractContextManager[None]:
        # Else Dask, too, chooses what is imported there, and imports it here first: pandas and more.
        distributed.utils._forkserver_preload_set = True  # noqa: SLF001
        return _forked() if fork_server.begin() else nullcontext()

    @property
    def _count(self) -> int:
        return self.workers or min(CPU_COUNT, _MOST_WORKERS)

    def _start(self) -> SpecCluster:
        return LocalCluster(
            n_workers=self._count,
            threads_per_worker=self.threads,
            processes=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": self.dashboard},
            host="127.0.0.1",
            silence_logs=logging.CRITICAL,  # what fails is reported by the driver, once
            # The process that workers are forked from knows what was set when it began.
            env=dict(os.environ),
        )

    def _trouble(self, error: Exception) -> str:
        return (
            f"{self._count} local worker processes could not be started: {error}. "
            f"In a script, call run() under `if __name__ == '__main__':`. Else give fewer workers, or free "
            f"memory and ports on this machine, or raise its limits for processes (`ulimit -u`) and open "
            f"files (`ulimit -n`)."
        )


# Tasks and results go from hand to hand, and no port takes any; what is served, metrics above all, stays here. Without
# Dask's dashboard, whose modules take half a second.
_TELLS_FIGURES = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}


@dataclass(frozen=True)
class ThisProcess(_OnThisMachine):
    """A scheduler and one worker in this process: there at once, and enough for small sweeps.

    A trial that kills its worker takes the whole run along, and nobody finds out which one it was.
    """

    threads: int = 2
    """Task threads. Requests in flight need none."""

    def _start(self) -> SpecCluster:
        # There is nobody who could restart the worker, and one that pauses for want of memory would never go on.
        worker = {**_TELLS_FIGURES, "nthreads": self.threads, "memory_limit": 0}
        return SpecCluster(
            scheduler={"cls": Scheduler, "options": {**_TELLS_FIGURES, "port": 0}},
            workers={0: {"cls": Worker, "options": worker}},
            silence_logs=logging.CRITICAL,
        )

    def _trouble(self, error: Exception) -> str:
        return f"a worker in this process could not be started: {error}. Free ports on this machine."
