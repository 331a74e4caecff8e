"""Worker processes on this machine: the default cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, LocalCluster, Worker, WorkerPlugin

from deploy.clusters.base import Cluster, ClusterError

_MOST_WORKERS = 8

_SETTINGS = {
    # One poisonous task marks every task on its worker as suspicious; the driver counts attempts itself.
    "distributed.scheduler.allowed-failures": 100,
    # Blocks wait for the network in threads that were given back, not in the queue.
    "distributed.scheduler.work-stealing": True,
    "distributed.worker.daemon": True,
    "distributed.comm.timeouts.connect": "30s",
    "distributed.scheduler.default-task-durations": {
        "generate": "50ms",
        "infer": "20ms",
        "process": "50ms",
        "score": "20ms",
        "analyze": "20ms",
    },
}


class IgnoreInterrupt(WorkerPlugin):
    """Leaves Ctrl-C to the driver: the terminal sends it to every process of the group."""

    name = "evalcube-ignore-interrupt"

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 - the interface of plugins
        """Ignore the signal in this worker."""
        with contextlib.suppress(ValueError):  # a worker that does not run in its main thread never gets it
            signal.signal(signal.SIGINT, signal.SIG_IGN)


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
        workers = self.workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        with tempfile.TemporaryDirectory(prefix="evalcube-") as scratch, dask.config.set(_SETTINGS):
            try:
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=self.threads,
                    processes=True,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": self.dashboard},
                    host="127.0.0.1",
                    local_directory=scratch,
                    silence_logs=logging.CRITICAL,  # what fails is told by the driver, once
                )
            except (OSError, RuntimeError, TimeoutError) as error:
                raise ClusterError(
                    f"{workers} local worker processes could not be started: {error}. "
                    f"Give fewer workers, or free memory and ports on this machine."
                ) from error
            with cluster, Client(cluster, set_as_default=False) as client:
                client.register_plugin(IgnoreInterrupt())
                yield client
