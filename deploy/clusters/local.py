"""Worker processes on this machine: the default cluster."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster

from deploy.clusters.base import Cluster, ClusterError
from deploy.clusters.scratch import scratch_folder

_MOST_WORKERS = 8

SETTINGS = {
    # A task that kills its worker makes all others there suspicious; the driver finds out which one it was.
    "distributed.scheduler.allowed-failures": 3,
    # So long after a death Dask looks once whether the worker is back, and gives up one that restarts just then.
    "distributed.deploy.lost-worker-timeout": "1000 days",
    # Blocks wait for the network in threads that were given back, not in the queue.
    "distributed.scheduler.work-stealing": True,
    "distributed.worker.daemon": True,
    # What would look at the process every few milliseconds: together it costs as much as all of Dask's own work.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.comm.timeouts.connect": "30s",
    "distributed.scheduler.default-task-durations": {
        "generate": "50ms",
        "infer": "20ms",
        "process": "50ms",
        "score": "20ms",
        "analyze": "20ms",
    },
}


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in what is started meanwhile, threads and processes, and in what those start later.

    The terminal sends it to every process of the group; it is for the driver alone, which gets it afterwards.
    """
    resource_tracker.ensure_running()  # its first start would unblock the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class LocalProcesses(Cluster):
    """A scheduler and worker processes on this machine, for as long as the sweep runs."""

    workers: int | None = None
    """Worker processes; default: one per core, at most eight."""
    threads: int = 2
    """Task threads per worker. Waiting for replies needs none."""
    dashboard: bool = True
    """Whether Dask's dashboard is served, on a free local port."""

    @property
    def inherits_environment(self) -> bool:
        """Workers are children of this process."""
        return True

    def connect(self) -> AbstractContextManager[Client]:
        """Start the processes; they end with the context."""
        return self._connect()

    @contextmanager
    def _connect(self) -> Iterator[Client]:
        workers = self.workers or min(CPU_COUNT, _MOST_WORKERS)
        with scratch_folder() as scratch, dask.config.set(SETTINGS):
            try:
                with interrupts_blocked():
                    cluster = LocalCluster(
                        n_workers=workers,
                        threads_per_worker=self.threads,
                        processes=True,
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": self.dashboard},
                        host="127.0.0.1",
                        local_directory=str(scratch),
                        silence_logs=logging.CRITICAL,  # what fails is told by the driver, once
                    )
            except (OSError, RuntimeError, TimeoutError) as error:
                raise ClusterError(
                    f"{workers} local worker processes could not be started: {error}. "
                    f"In a script, call run() under `if __name__ == '__main__':`. Else give fewer workers, or free "
                    f"memory and ports on this machine."
                ) from error
            with cluster, Client(cluster, set_as_default=False) as client:
                yield client
