"""Hands a sweep to a running Dask cluster: its driver becomes a task there, and whoever submitted it may leave."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distributed import Future, fire_and_forget

from evalcube.deploy.clusters import Connection, ExistingScheduler
from evalcube.deploy.clusters.asking import Question, ask_each
from evalcube.deploy.clusters.code import line_to_type, source_digest, unlike
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.jobs.dask_driver import DriverOrder, keep_driver, said_by
from evalcube.flows.run.workers import present
from evalcube.flows.state.store import existing_store
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import absolute

_FIRST_SECONDS = 120.0
"""So long the driver's first answer is waited for: workers import evalcube, and prove that they can take part."""
_LOOK_SECONDS = 0.25
_RETRIES = 3
"""Of a driver whose process was killed while its worker lives."""
_Say = Callable[[str], None]


def submit_to(cluster: ExistingScheduler, settings: Sweep, say: _Say) -> str:
    """Have a cluster run a sweep, and wait until it asks its first request; what came of it, for people.

    Parameters
    ----------
    cluster
        The cluster.
    settings
        The sweep's config.
    say
        Called with what the driver says meanwhile.

    Raises
    ------
    SweepError
        If the sweep cannot run as configured, the workers lack evalcube, or the driver refuses it.
    StorageError
        If the cube belongs to another config.
    ClusterError
        If the cluster cannot be reached.
    """
    plan = build_plan(settings)
    existing_store(plan, settings.cube)  # what contradicts the config is said now; the driver makes one
    order = DriverOrder(
        f"evalcube-driver-{secrets.token_hex(6)}",
        _config(settings, plan.files),
        cluster.address,
        cluster.minimum,
        cluster.patience,
        cluster.choice,
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
    deadline, told = time.monotonic() + _FIRST_SECONDS, 0
    while time.monotonic() < deadline and not future.done():
        time.sleep(_LOOK_SECONDS)
        with suppress(OSError, StorageError):  # a cube that is being made
            said = said_by(order)
            if said is None or said.get("state") == "failed":  # which the task's result tells
                continue
            for line in said["lines"][told:]:
                say(line)
            told = len(said["lines"])
            if said.get("state") == "asks":
                return "asking"
    if not future.done():
        return f"not begun after {_FIRST_SECONDS:g} s: the cluster has other work"
    if future.status != "finished":
        raise SweepError(f"the driver ended by a defect: {future.exception()!r}", "Look at the worker's log")
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
    found = Question(connection.client, asked).answer()
    for address in there:
        if problem := found.get(address, "has no evalcube, or quite another one, or does not answer"):
            raise SweepError(
                f"worker {address} {problem}: the driver may have to run on any worker",
                f"Type there, and start it again: {line_to_type('python')}",
            )


def _config(settings: Sweep, files: Mapping[str, str]) -> dict[str, Any]:
    """The config as it holds in any directory; it names secrets' variables only."""
    moved = {path: str(Path(path).absolute()) for path in files.values()}
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
