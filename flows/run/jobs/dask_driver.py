"""Hands a sweep to a running Dask cluster: its driver becomes a task there, and whoever submitted it may leave.

On a worker the driver is a process of its own, which reads an order, runs the sweep, and says how it goes.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import dask
from distributed import Future, fire_and_forget, get_worker, secede

from evalcube import EvalcubeError
from evalcube.deploy.clusters import Cluster, Connection, ExistingScheduler
from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
from evalcube.deploy.clusters.code import WorkerChoice, line_to_type, source_digest, unlike
from evalcube.flows.config.load import from_mapping
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Event, Finished, Noted, Traffic
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.cluster import present
from evalcube.flows.run.stopping import RunInterrupted
from evalcube.flows.run.sweep import run
from evalcube.flows.state.records import DRIVER, read_driver
from evalcube.flows.state.store import existing_store
from evalcube.stages.generate.dataset.hub.address import lasting
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import absolute

_LINES, _LONGEST = 200, 2000
"""Of the log that is kept beside the cube, and characters of each."""
_TLS = {"ca": "ca_file", "cert": "worker_cert", "key": "worker_key"}
_WAIT_SECONDS = 3600.0
"""So long a driver that was begun anew waits for the one before, which may be out of the scheduler's sight only."""


@dataclass(frozen=True)
class DriverOrder:
    """What a driver needs to know; names of secrets' variables, never secrets."""

    name: str
    """Of the submission, unique."""
    config: Mapping[str, Any]
    """JSON values, with absolute addresses."""
    scheduler: str
    """Address by which the submitter reached it, for people."""
    minimum: int
    patience: float
    choice: Sequence[Any]
    """Fields of the `WorkerChoice` of workers."""
    only: Sequence[str] = ()
    """Which part of the plan is asked, as `run` takes it."""
    address: str = ""
    """Of the scheduler, as the worker reaches it."""
    worker: str = ""
    """Address of the worker that it is on."""
    tls: Mapping[str, str] | None = None
    """Files of the worker's own certificates."""


class DriverBook:
    """A subscriber that keeps beside the cube what the driver says, for whoever reads the cube.

    Parameters
    ----------
    order
        Of the driver.
    lines
        What the drivers before it said.
    """

    def __init__(self, order: DriverOrder, lines: list[str]) -> None:
        self._order = order
        self._lines = lines
        self._state = ""
        self._cube: Cube | None = None

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, (Traffic, BlockDone)) and not self._state:
            # Whatever is checked before the first request was: the submitter need not wait any longer.
            self._state = "asks"
            self._write()
        elif isinstance(event, Noted):
            self.say(event.message)
        elif isinstance(event, Finished):
            self.say(f"ended: {event.reason}")

    def say(self, text: str, state: str = "") -> None:
        """Add a line, and keep the last ones."""
        self._state = state or self._state
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {self._order.worker}: {text}"
        self._lines = [*self._lines, line[:_LONGEST]][-_LINES:]
        self._write()

    def _write(self) -> None:
        document = {
            "name": self._order.name,
            "scheduler": self._order.scheduler,
            "worker": self._order.worker,
            "lines": self._lines,
            "state": self._state,
        }
        # Nobody's loss if it cannot be written: the sweep goes on.
        with suppress(OSError, StorageError):
            if self._cube is None:
                self._cube = Cube.open(str(self._order.config["cube"]))
            self._cube.records.put(DRIVER, json.dumps(document).encode(), durable=False)


def drive(order: DriverOrder) -> dict[str, str]:
    """Run a sweep to its end; what came of it. Goes on where the same submission's driver was lost with its worker."""
    before = driver_record(order)
    book = DriverBook(order, [] if before is None else before["lines"])
    if order.tls is not None:
        dask.config.set(
            {
                "distributed.comm.require-encryption": True,
                "distributed.comm.tls.ca-file": order.tls["ca"],
                "distributed.comm.tls.client": {name: order.tls[name] for name in ("cert", "key")},
            }
        )
    names, resource, priority = order.choice
    cluster = ExistingScheduler(
        order.address,
        patience=order.patience,
        minimum=order.minimum,
        choice=WorkerChoice(tuple(names), resource, priority),
    )
    try:
        if before is not None:
            book.say("the driver goes on here, as the one before was lost")
        summary = run(
            from_mapping(order.config),
            cluster=cluster,
            only=order.only,
            subscribers=[book],
            wait=0.0 if before is None else _WAIT_SECONDS,
            progress=False,
        )
    except RunInterrupted as stopped:
        return {"done": stopped.summary.reason}
    except EvalcubeError as error:
        book.say(f"failed: {error}", "failed")
        return {"failed": str(error)}
    return {"done": summary.reason}


def keep_driver(order: dict[str, Any]) -> dict[str, Any]:
    """Runs on a worker: keep a sweep's driver in a process of its own; what came of it."""
    worker = get_worker()
    # It waits for days and computes nothing: the thread is the cluster's.
    secede()
    tls = {name: getattr(worker.security, f"tls_{role}", None) for name, role in _TLS.items()}
    there = {
        "address": worker.scheduler.address,
        "worker": worker.address,
        "tls": tls if all(tls.values()) else None,
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "evalcube.flows.run.jobs.dask_driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they are pipes
    # Its input stays open: where it ends, this process has, and the driver with it.
    with process, process.stdin:
        process.stdin.write(json.dumps({**order, **there}) + "\n")
        process.stdin.flush()
        answer = process.stdout.read()
    if not answer:
        ended = f"the driver ended with code {process.returncode}"
        raise RuntimeError(f"{ended}; its own words are in the worker's log")
    outcome: dict[str, Any] = json.loads(answer)
    return outcome


def driver_record(order: DriverOrder) -> dict[str, Any] | None:
    """What the drivers of a submission have said beside the cube; None if they have said nothing."""
    cube = str(order.config["cube"])
    if not Cube.exists(cube):
        return None
    record = read_driver(Cube.open(cube).records)
    return record if record is not None and record["name"] == order.name else None


def _end_with_input() -> None:
    """Stop in good order when the worker is gone: Dask begins the task again elsewhere."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Read an order from standard input, run it, and write what came of it, as JSON, to standard output."""
    order = DriverOrder(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    # Nothing else is written there, whatever a plugin prints.
    with suppress(OSError), os.fdopen(os.dup(1), "w") as output:  # the task may be gone
        # The answer has a copy of standard output; whatever else is printed goes to the worker's log.
        os.dup2(2, 1)
        json.dump(drive(order), output)


if __name__ == "__main__":
    main()


_FIRST_SECONDS = 120.0
"""So long the driver's first answer is waited for: workers import evalcube, and prove that they can take part."""
_LOOK_SECONDS = 0.25
_RETRIES = 3
"""Of a driver whose process was killed while its worker lives."""
_Say = Callable[[str], None]


def submit_to(cluster: Cluster | None, settings: Sweep, only: Sequence[str], say: _Say) -> str:
    """Have a cluster run a sweep, and wait until it asks its first request; return what came of it, for people.

    `only` is the part of the plan that is asked; `say` is called with the driver's lines meanwhile.
    """
    if not isinstance(cluster, ExistingScheduler):
        raise SweepError(
            "a sweep can be submitted to a running Dask cluster or to Slurm, and none is named",
            "Give `scheduler`, the address of one, or a `cluster` with an address or `slurm`; here use `evalcube run`",
        )
    plan = build_plan(settings)
    existing_store(plan, settings.cube)  # what contradicts the config is said now; the driver makes one
    order = DriverOrder(
        f"evalcube-driver-{secrets.token_hex(6)}",
        _config(settings, plan.files),
        cluster.address,
        cluster.minimum,
        cluster.patience,
        cluster.choice,
        tuple(only),
    )
    with cluster.connect() as connection:
        client = connection.client
        _check_workers(connection)
        # Under a key of its own: the same config may be submitted again, to go on with what is left.
        future = client.submit(
            keep_driver,
            asdict(order),
            key=order.name,
            pure=False,
            retries=_RETRIES,
            priority=cluster.choice.priority,
            workers=list(cluster.choice.names) or None,
            resources={cluster.choice.resource: 0} if cluster.choice.resource else None,
        )
        # From now on the scheduler keeps the task though nobody waits for it; it runs again if its worker is lost.
        fire_and_forget(future)
        return _first_answer(future, order, say)


def _first_answer(future: Future[Any], order: DriverOrder, say: _Say) -> str:
    deadline, shown = time.monotonic() + _FIRST_SECONDS, 0
    while time.monotonic() < deadline and not future.done():
        time.sleep(_LOOK_SECONDS)
        with suppress(OSError, StorageError):  # a cube that is being made
            record = driver_record(order)
            if record is None or record.get("state") == "failed":  # which the task's result tells
                continue
            for line in record["lines"][shown:]:
                say(line)
            shown = len(record["lines"])
            if record.get("state") == "asks":
                return "asking"
    if not future.done():
        return f"not begun after {_FIRST_SECONDS:g} s: the cluster has other work"
    if future.status != "finished":
        raise SweepError(
            f"the driver failed with an internal error: {future.exception()!r}", "Look at the worker's log"
        )
    answer: dict[str, Any] = future.result()
    if "failed" in answer:
        raise SweepError(str(answer["failed"]))
    return str(answer["done"])


def _check_workers(connection: Connection) -> None:
    """Refuse a cluster where a worker could not be the driver: it may be begun again on any of them."""
    there = present(connection)
    if not there:
        raise SweepError("the cluster has no worker for the sweep", "Start some, then submit again")
    asked = ask_each(connection.client, unlike, source_digest(), workers=list(there))
    problems = PendingAnswer(connection.client, asked).answer()
    for address in there:
        if problem := problems.get(address, "has no evalcube or a different version, or does not answer"):
            raise SweepError(
                f"worker {address} {problem}: the driver may have to run on any worker",
                f"Type there, and start it again: {line_to_type('python')}",
            )


def _config(settings: Sweep, files: Mapping[str, str]) -> dict[str, Any]:
    """The config as it holds in any directory; it names secrets' variables only."""
    moved = {path: lasting(path) for path in files.values()}
    plain = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    fields: dict[str, Any] = _with_paths(plain, moved)
    return fields | {
        "name": settings.name,
        "cube": absolute(settings.cube),
        "cache": absolute(settings.cache),
    }


def _with_paths(value: Any, moved: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    """A document whose paths of data files do not depend on the directory."""
    if isinstance(value, dict):
        return {name: _with_paths(item, moved) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_paths(item, moved) for item in value]
    return moved.get(value, value) if isinstance(value, str) else value
