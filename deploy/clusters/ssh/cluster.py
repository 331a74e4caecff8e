"""A Dask cluster whose scheduler is in this process and whose workers are on hosts that SSH reaches."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import dask
from distributed import Client
from distributed.security import Security

from evalcube.deploy.clusters.base import Cluster, ClusterError, Connection
from evalcube.deploy.clusters.local import SETTINGS, interrupts_blocked
from evalcube.deploy.clusters.scheduler_here import SchedulerHere, key_of_run, scheduler_here
from evalcube.deploy.clusters.ssh.host import Host, Login, RemoteWorkers

T = TypeVar("T")

_MOST_FAILURES = 3
_AGAIN_SECONDS = (2.0, 10.0, 30.0)
"""Before the first, second and every further attempt to start a host's workers again."""
_CLOSING_SECONDS = 20.0


@dataclass(frozen=True)
class Ssh(Cluster):
    """Worker processes on hosts that SSH reaches, for as long as a sweep runs."""

    hosts: tuple[Host, ...]
    """Where workers run."""
    login: Login = field(default_factory=Login)
    """How hosts are logged in to."""
    threads: int = 2
    """Task threads per worker; requests in flight need none."""
    directory: str | None = None
    """Folder for workers' temporary files on the hosts; default: that of Dask."""
    variables: tuple[str, ...] = ()
    """Names of this process's environment variables that workers get, such as those with keys."""
    scheduler_host: str | None = None
    """This machine's address, as workers reach it; default: the one from which the first host is reached."""
    port: int = 0
    """Of the scheduler; 0 for a free one."""
    minimum: int = 1
    """Workers to wait for before the first request."""
    patience: float = 300.0
    """Seconds without any worker after which a run gives up."""
    environment = "ask"

    def connect(self) -> AbstractContextManager[Connection]:
        """A context with a connection; leaving it ends the workers, and so does the end of this process.

        Raises
        ------
        ClusterError
            No host can be logged in to, or the scheduler cannot be started.
        """
        return self._connect()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        try:
            import asyncssh
        except ImportError:
            raise ClusterError("clusters of kind ssh need a package: pip install 'evalcube[ssh]'") from None
        logging.getLogger(asyncssh.__name__).setLevel(
            logging.CRITICAL
        )  # what fails is said by this process, once
        with _Loop() as loop, dask.config.set(SETTINGS):
            hosts = [RemoteWorkers(host, self.login) for host in self.hosts]
            problems = loop.wait(_connect_all(hosts))
            address = self._address_here(hosts, problems)
            security = key_of_run("ssh")
            with scheduler_here(security, host=address, port=self.port) as (client, scheduler):
                starting = _Starting(self, scheduler, security)
                with _SshConnection(client, loop, hosts, starting, problems) as connection:
                    yield connection

    def _address_here(self, hosts: Sequence[RemoteWorkers], problems: Mapping[str, str]) -> str:
        reached = [host.address_here for host in hosts if host.host.name not in problems]
        if not reached:
            listed = "\n".join(f"  {name}: {problem}" for name, problem in list(problems.items())[:5])
            raise ClusterError(f"no host of the cluster can be used:\n{listed}")
        return self.scheduler_host or reached[0]


class _Loop:
    """An event loop in a thread of its own, in which connections live."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="evalcube-ssh", daemon=True)

    def __enter__(self) -> _Loop:
        with interrupts_blocked():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Have some work done there; what it returns."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # a Ctrl-C while it was waited for
            raise


class _Starting:
    """With which words and variables the workers of a host are started, each time under another name."""

    def __init__(self, cluster: Ssh, scheduler: str, security: Security) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        # What encrypts the connections goes the way of the keys: over SSH, and into no file.
        said = security.get_tls_config_for_role("worker")
        config: dict[str, Any] = {
            **SETTINGS,
            "distributed.comm.require-encryption": True,
            "distributed.comm.tls.ca-file": said["ca_file"],
            "distributed.comm.tls.worker.cert": said["cert"],
            "distributed.comm.tls.worker.key": said["key"],
        }
        with dask.config.set(config):
            kept = dask.config.serialize({"distributed": dask.config.get("distributed")})
        self._variables = {"DASK_INTERNAL_INHERIT_CONFIG": kept}

    def of(self, host: Host) -> tuple[str, list[str], dict[str, str]]:
        """Name of the workers to come, what Python is to run, and variables."""
        name = f"evalcube-{host.name.replace(':', '-')}-{secrets.token_hex(3)}"
        words = ["-P", "-m", "distributed.cli.dask_worker", self._scheduler, "--name", name]
        words += ["--nthreads", str(self._cluster.threads), "--nworkers", str(host.workers)]
        # A worker that has lost the scheduler for so long ends, whatever became of the connection.
        words += ["--death-timeout", "60", "--no-dashboard"]
        if self._cluster.directory is not None:
            words += ["--local-directory", self._cluster.directory]
        own = {name: os.environ[name] for name in self._cluster.variables if name in os.environ}
        return name, words, {**own, **self._variables}


class _SshConnection(SchedulerHere):
    """A connection that starts a host's workers again when they end."""

    def __init__(
        self,
        client: Client,
        loop: _Loop,
        hosts: Sequence[RemoteWorkers],
        starting: _Starting,
        problems: Mapping[str, str],
    ) -> None:
        super().__init__(client)
        self._loop = loop
        self._starting = starting
        self._crews = [_Crew(host) for host in hosts]
        self._notes = [f"{name}: {problem}; it is tried again" for name, problem in problems.items()]

    def __enter__(self) -> _SshConnection:
        return self

    def __exit__(self, *_: object) -> None:
        # A second Ctrl-C must not leave workers behind; they would end by themselves, but later.
        with interrupts_blocked():
            self._loop.wait(_close_all([crew.remote for crew in self._crews]))

    def tend(self, present: Mapping[str, str]) -> Sequence[str]:
        """Start the workers of hosts that have none; says what became of them.

        Parameters
        ----------
        present
            Address of each worker -> its name, which begins with that of its start.

        Raises
        ------
        ClusterError
            On every host they end one time after another, before one of them was there.
        """
        notes, self._notes = self._notes, []
        now = monotonic()
        for crew in self._crews:
            notes += crew.look(present.values(), now)
            if crew.due(now):
                name, words, variables = self._starting.of(crew.remote.host)
                crew.begin(name, self._loop.begin(crew.remote.start(words, variables)))
        if all(crew.given_up for crew in self._crews):
            said = "\n".join(f"  {crew.remote.host.name}: {crew.problem}" for crew in self._crews[:5])
            raise ClusterError(f"on no host of the cluster a worker comes up:\n{said}")
        return notes


class _Crew:
    """What is known of the workers of one host."""

    def __init__(self, remote: RemoteWorkers) -> None:
        self.remote = remote
        self.problem = ""
        """Why its workers were not there last time."""
        self.given_up = False
        self._name = ""
        self._starting: Future[str] | None = None
        self._came = False
        self._failures = 0
        self._next_at = 0.0
        self._up = False

    def begin(self, name: str, starting: Future[str]) -> None:
        """Note that its workers are being started, under a name."""
        self._name, self._starting, self._came, self._up = name, starting, False, True

    def due(self, now: float) -> bool:
        """Whether its workers are to be started now."""
        return not self._up and not self.given_up and now >= self._next_at

    def look(self, names: Collection[str], now: float) -> list[str]:
        """See what became of them; returns what the user should read."""
        if not self._up:
            return []
        if not self._came and any(name.startswith(self._name) for name in names):
            self._came, self._failures = True, 0
        if self._starting is not None:
            if not self._starting.done():
                return []
            problem, self._starting = self._starting.result(), None
            return self._ended(problem, now) if problem else []
        if self.remote.running:
            return []
        said = self.remote.said
        return self._ended("its workers ended" + (f":\n{said}" if said and not self._came else ""), now)

    def _ended(self, problem: str, now: float) -> list[str]:
        self._up = False
        came = self._came
        self._failures += 1
        self._next_at = now + _AGAIN_SECONDS[min(self._failures, len(_AGAIN_SECONDS)) - 1]
        self.given_up = not came and self._failures >= _MOST_FAILURES
        news = problem != self.problem or self.given_up
        self.problem = problem
        then = "nothing more is started there" if self.given_up else "others are started in their place"
        return [f"{self.remote.host.name}: {problem}; {then}"] if news or came else []


async def _connect_all(hosts: Sequence[RemoteWorkers]) -> dict[str, str]:
    """Log in to all; why that failed, by the names of those where it did."""
    problems = await asyncio.gather(*(host.connect() for host in hosts))
    return {host.host.name: problem for host, problem in zip(hosts, problems, strict=True) if problem}


async def _close_all(hosts: Sequence[RemoteWorkers]) -> None:
    await asyncio.gather(*(host.close() for host in hosts), return_exceptions=True)
