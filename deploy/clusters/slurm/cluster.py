"""A Dask cluster whose scheduler is in this process and whose workers are jobs of Slurm."""

from __future__ import annotations

import gc
import logging
import math
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import dask
from distributed import Client
from distributed.comm.core import CommClosedError
from distributed.security import Security

from evalcube.deploy.clusters.base import Cluster, ClusterError, Connection
from evalcube.deploy.clusters.local import SETTINGS, interrupts_blocked
from evalcube.deploy.clusters.scheduler_here import SchedulerHere, key_of_run, scheduler_here
from evalcube.deploy.clusters.slurm.crew import Crew
from evalcube.deploy.clusters.slurm.script import JobSettings, slug, worker_script

_ALLOWED_FAILURES = 10
"""Deaths of workers that a task may see before it is suspected: walltime and preemption end jobs that do no wrong."""
_CERTIFICATES = {"ca": "ca_file", "cert": "cert", "key": "key"}
"""What workers need -> its name in Dask's settings of a role."""
_LOOK_SECONDS = 10.0
_LOSS_LOOK_SECONDS, _LOSS_SECONDS = 2.0, 15.0
"""Between two looks for as long after a worker has gone: its job ends just then, and is to be replaced soon."""


@dataclass(frozen=True)
class Slurm(Cluster):
    """Jobs of Slurm, each with workers, for as long as a sweep runs."""

    settings: JobSettings
    """What a job asks for; its ``logs`` are in a folder that this machine and the nodes see."""
    name: str = "sweep"
    """What the jobs' names carry."""
    jobs: int = 1
    """How many are kept in the queue or running."""
    minimum: int = 1
    """Workers to wait for before the first request."""
    patience: float = 3600.0
    """Seconds without any worker after which a run gives up."""
    interface: str | None = None
    """Network interface by which workers reach the scheduler; default: that of the way out of this machine."""
    port: int = 0
    """Of the scheduler; 0 for a free one."""
    python: str | None = None
    """Python on the nodes; default: that of this process."""
    environment = "ask"

    def connect(self) -> AbstractContextManager[Connection]:
        """A context with a connection; leaving it cancels the jobs.

        Raises
        ------
        ClusterError
            Slurm refuses the jobs or is not there, or the scheduler cannot be started.
        """
        return self._connect()

    def script(self) -> str:
        """The script of its jobs, with words in capitals for what is known only once the scheduler runs."""
        return worker_script(
            f"evalcube-{slug(self.name)}", "tls://HOST:PORT", self.settings, python=self.python
        )

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        folder = Path(self.settings.logs)
        name = f"evalcube-{slug(self.name)}-{secrets.token_hex(3)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ClusterError(
                f"{folder}: the folder of the jobs' logs cannot be made: {error.strerror}. Give another as `logs`"
            ) from None
        with (
            _encryption(folder / f"{name}.tls") as (security, files),
            dask.config.set(_settings()),
            _lost_connections_unsaid(),
            scheduler_here(security, interface=self.interface, port=self.port) as (client, address),
        ):
            script = worker_script(name, address, self.settings, python=self.python, tls=files)
            crew = Crew(name, script, self.jobs, lambda number: folder / f"{number}.log")
            with _SlurmConnection(client, crew) as connection:
                yield connection


class _SlurmConnection(SchedulerHere):
    """A connection that keeps a crew of jobs; leaving it cancels them, also those whose submission is under way."""

    def __init__(self, client: Client, crew: Crew) -> None:
        super().__init__(client)
        self._crew = crew
        # One thread: the crew is used by one call at a time, and the driver never waits for Slurm.
        self._thread = ThreadPoolExecutor(1, "slurm")
        self._looking: Future[list[str]] | None = None
        self._looked_at = monotonic()
        self._notes: list[str] = []
        self._names: set[str] = set()
        self._lost_at = -math.inf

    def __enter__(self) -> _SlurmConnection:
        try:
            self._notes = self._crew.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        # A second Ctrl-C must not leave jobs behind; Slurm's commands end by themselves after a while.
        with interrupts_blocked():
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._crew.end()

    def tend(self, present: Mapping[str, str]) -> Sequence[str]:
        """Replace jobs that have ended; says what became of them.

        Parameters
        ----------
        present
            Address of each worker -> its name, which holds the number of its job.

        Raises
        ------
        ClusterError
            Jobs end one after another before a worker comes from them, or Slurm refuses further ones.
        """
        notes, self._notes = self._notes, []
        if self._looking is not None:
            if not self._looking.done():
                return notes
            looking, self._looking = self._looking, None
            return [*notes, *looking.result()]
        now = monotonic()
        names = set(present.values())
        if self._names - names:
            self._lost_at = now
        self._names = names
        pause = _LOSS_LOOK_SECONDS if now - self._lost_at < _LOSS_SECONDS else _LOOK_SECONDS
        if now - self._looked_at > pause:
            self._looked_at = now
            self._looking = self._thread.submit(self._crew.look, sorted(names))
        return notes


@contextmanager
def _lost_connections_unsaid() -> Iterator[None]:
    """Keep asyncio from printing that a worker ended in the middle of a question: here workers come and go."""

    def is_news(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], CommClosedError))

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        gc.collect()  # what nobody waited for is said when it is collected
        logger.removeFilter(is_news)


def _settings() -> dict[str, object]:
    return {**SETTINGS, "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES}


@contextmanager
def _encryption(folder: Path) -> Iterator[tuple[Security, dict[str, str]]]:
    """Settings that encrypt all connections with a key of this run, and its files for the workers.

    The files are in the folder, which only this user can read; it is removed afterwards.
    """
    security = key_of_run("slurm")
    texts = security.get_tls_config_for_role("worker")
    files = {what: str(folder / f"{what}.pem") for what in _CERTIFICATES}
    try:
        try:
            folder.mkdir(mode=0o700)
            for what, field in _CERTIFICATES.items():
                path = Path(files[what])
                path.touch(mode=0o600)
                path.write_text(str(texts[field]))
        except OSError as error:
            raise ClusterError(
                f"{folder}: the key of this run cannot be kept there: {error.strerror}. Give another folder as `logs`"
            ) from None
        yield security, files
    finally:
        shutil.rmtree(folder, ignore_errors=True)
