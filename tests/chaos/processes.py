"""A folder in; the processes of a sweep, which can be killed, stopped and started again one by one, out."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from tests.chaos import served
from tests.ports import free_ports
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
WORKER_TTL = 6.0
"""Seconds of silence after which the scheduler takes a worker for dead."""

_SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{WORKER_TTL:g}s",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "True",
    "PYTHONPATH": str(ROOT),
    "COLUMNS": "200",
    "OMP_NUM_THREADS": "1",
}


class Fleet:
    """A simulator, a scheduler with workers under nannies, and one driver.

    Parameters
    ----------
    folder
        Gets logs, tallies and temporary files.
    workers
        Number of nannies, and worker processes of a local cluster.
    """

    def __init__(self, folder: Path, workers: int = 2, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.tally = folder / "tally"
        self.scratch = folder / "tmp"
        for place in (self.tally, self.scratch, folder / "log"):
            place.mkdir(parents=True, exist_ok=True)
        self.port, self._scheduler_port = free_ports(2)
        self.env = {**os.environ, **_SETTINGS, "TMPDIR": str(self.scratch), **(settings or {})}
        self._workers = workers
        self._simulator: subprocess.Popen[bytes] | None = None
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._nannies: list[subprocess.Popen[bytes]] = []
        self.driver: subprocess.Popen[bytes] | None = None
        self.local = False
        """Whether the driver has workers of its own."""
        self._runs = 0
        self._lost = 0

    @property
    def scheduler_address(self) -> str:
        return f"tcp://127.0.0.1:{self._scheduler_port}"

    @property
    def endpoint(self) -> str:
        return f"sim:http://127.0.0.1:{self.port}/v1"

    def serve(self) -> None:
        """Have the simulator run."""
        if not _runs(self._simulator):
            self._lost = served.in_flight(self.tally)  # what a killed simulator had in hand ended with it
            module = ("-m", "tests.chaos.served", "--port", str(self.port), "--tally", str(self.tally))
            self._simulator = self._start("simulator", *module)
            wait_for(lambda: _listens(self.port), "the simulator to listen")

    def assemble(self) -> None:
        """Have the scheduler and all nannies run."""
        if not _runs(self._scheduler):
            options = ("--host", "127.0.0.1", "--port", str(self._scheduler_port), "--no-dashboard")
            self._scheduler = self._start("scheduler", "-m", "dask", "scheduler", *options)
            wait_for(lambda: _listens(self._scheduler_port), "the scheduler to listen")
        self._nannies = [nanny for nanny in self._nannies if _runs(nanny)]
        for _ in range(self._workers - len(self._nannies)):
            options = ("--nanny", "--no-dashboard", "--host", "127.0.0.1", "--nthreads", "2")
            place = ("--local-directory", str(self.scratch), "--death-timeout", "60")
            started = self._start("worker", "-m", "dask", "worker", self.scheduler_address, *options, *place)
            self._nannies.append(started)

    def drive(self, *arguments: str, local: bool) -> None:
        """Start the driver."""
        self._runs += 1
        self.local = local
        where = ("--workers", str(self._workers)) if local else ("--scheduler", self.scheduler_address)
        self.driver = self._start(
            f"driver-{self._runs}",
            "-m",
            "tests.chaos.drive",
            "run",
            *arguments,
            *where,
            "--quiet",
            start_new_session=True,
        )

    def driver_log(self) -> str:
        """What the newest driver said."""
        return (self.folder / "log" / f"driver-{self._runs}.log").read_text(errors="replace")

    def find(self, target: str) -> list[int]:
        """Process ids of what is to be struck; several of them are alike. Empty if there is none now."""
        own = _processes(self.driver)
        if target == "driver" or (self.local and target in ("scheduler", "nanny")):
            return own  # in a local cluster these live in the driver
        if target == "tree":
            return [*own, *(child.pid for pid in own for child in _children(pid))]
        if target == "worker":
            parents = own if self.local else [pid for nanny in self._nannies for pid in _processes(nanny)]
            return sorted(child.pid for pid in parents for child in _children(pid) if _is_worker(child))
        if target == "nanny":
            return [pid for nanny in self._nannies for pid in _processes(nanny)]
        return _processes(self._simulator if target == "simulator" else self._scheduler)

    def in_flight(self) -> int:
        """Requests in flight."""
        return served.in_flight(self.tally) - self._lost

    def requests(self) -> int:
        """Requests that arrived so far."""
        return served.requests(self.tally)

    def end(self, pids: Sequence[int]) -> None:
        """Kill processes and wait until they are gone."""
        found = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
        send(pids, signal.SIGKILL)
        for child in (self.driver, self._scheduler, self._simulator, *self._nannies):
            if child is not None and child.pid in pids:
                child.wait()
        wait_for(lambda: not any(_lives(process) for process in found), "killed processes to end")

    def dismiss(self) -> None:
        """Let the scheduler and all workers end in order, also those whose nanny was killed."""
        self.local = False  # a driver that had a cluster of its own is over
        send([*self.find("nanny"), *self.find("scheduler")], signal.SIGTERM)
        # Each look reads the environment of all processes of the machine.
        wait_for(lambda: not self._at_work(), "the cluster to end", pause=0.5)

    def _at_work(self) -> list[int]:
        """Workers, and whatever else was started for the cluster and runs; not the simulator."""
        for process in (self.driver, self._scheduler, *self._nannies):
            if process is not None:
                process.poll()  # nobody else collects what has ended
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.environ().get("TMPDIR") == str(self.scratch)
                if ours and process.pid not in self.find("simulator") and _lives(process):
                    found.append(process.pid)
        return found

    def close(self) -> None:
        """Kill everything."""
        pids = [*self.find("tree"), *self.find("worker"), *self.find("nanny")]
        pids += [*self.find("scheduler"), *self.find("simulator")]
        send(pids, signal.SIGKILL)
        for process in (self.driver, self._scheduler, self._simulator, *self._nannies):
            if process is not None:
                process.kill()  # also one that was not found, as it had just begun
                process.wait(60)

    def _start(self, log: str, *arguments: str, start_new_session: bool = False) -> subprocess.Popen[bytes]:
        with (self.folder / "log" / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=start_new_session,
            )


@contextlib.contextmanager
def fleet(folder: Path, workers: int = 2, settings: dict[str, str] | None = None) -> Iterator[Fleet]:
    """A fleet of which nothing is left afterwards."""
    made = Fleet(folder, workers, settings)
    try:
        yield made
    finally:
        made.close()


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes that may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for(condition: object, what: str, *, pause: float = 0.02) -> None:
    """Wait until `condition` returns true."""
    wait_until(condition, told=lambda: f"waited in vain for {what}", pause=pause)


def _runs(process: subprocess.Popen[bytes] | None) -> bool:
    return process is not None and process.poll() is None


def _processes(process: subprocess.Popen[bytes] | None) -> list[int]:
    return [process.pid] if process is not None and _runs(process) else []


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_worker(process: psutil.Process) -> bool:
    try:
        words = " ".join(process.cmdline())
        # One that is forked has the command line of what it is forked from.
        forked = "forkserver" in words and "forkserver" in " ".join(process.parent().cmdline())
        return _lives(process) and (forked or "spawn_main" in words)
    except (psutil.NoSuchProcess, AttributeError):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
