"""Which cluster a run works on, that its workers are there, and whether each of them could take part."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from evalcube.deploy.clusters import (
    Cluster,
    ClusterError,
    Connection,
    ExistingScheduler,
    GivenCluster,
    LocalProcesses,
    MadeCluster,
    ThisProcess,
    open_client,
    refuse_fork,
)
from evalcube.deploy.clusters.code import WorkerChoice
from evalcube.deploy.clusters.registrar import ClusterView
from evalcube.flows.config.cluster import ClusterSection, SlurmSection
from evalcube.flows.config.load import SCHEDULER_VARIABLE, cluster_section
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.run.preflight import Members
from evalcube.flows.run.processes import needs_processes
from evalcube.flows.run.servers import SIMULATED, endpoint_of, is_managed
from evalcube.flows.run.worker.context import Proof, RunContext
from evalcube.flows.run.worker.plugin import install, plugin_name
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.lease import Lease
from evalcube.storage.errors import StorageError, guarded
from evalcube.storage.reach import leave_tokens
from evalcube.storage.urls import absolute


def default_cluster(workers: int | None, trials: int, plan: Plan) -> Cluster:
    """The cluster of a run that names none: this process for few trials, else worker processes."""
    return LocalProcesses(workers) if needs_processes(workers, trials, plan) else ThisProcess()


def described(cluster: Cluster, connection: Connection, workers: int) -> str:
    """Where a run asks, for its notes."""
    if isinstance(cluster, ThisProcess):
        return "few trials: run without worker processes"
    return f"{workers} workers, dashboard {connection.dashboard}"


def chosen_cluster(
    settings: Sweep,
    *,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's, too
    scheduler: str | None = None,
    workers: int | None = None,
) -> Cluster | None:
    """The cluster that a run works on; None if nobody named one and no client is open, so that the run decides."""
    refuse_fork()
    if cluster is not None and (scheduler is not None or workers is not None):
        raise SweepError("`cluster` excludes `scheduler` and `workers`", "Give one of them")
    if isinstance(cluster, Cluster):
        return cluster
    if scheduler is not None:
        return ExistingScheduler(scheduler)
    if workers is not None:
        return LocalProcesses(workers)
    if cluster is not None and not isinstance(cluster, (str, Path, Mapping)):
        return GivenCluster(cluster)
    section = cluster_section(settings, cluster)
    if section is not None:
        return make_cluster(section)
    if (opened := open_client()) is not None:
        return opened
    scheduler = os.environ.get(SCHEDULER_VARIABLE, "").strip()
    return ExistingScheduler(scheduler) if scheduler else None


def make_cluster(section: ClusterSection | SlurmSection) -> Cluster:
    """The cluster that a section of a config describes."""
    if isinstance(section, SlurmSection):
        raise SweepError(
            "`slurm` describes jobs to which a whole sweep is handed",
            "Type `evalcube submit`; or have workers in jobs, with class: dask_jobqueue.SLURMCluster",
        )
    if section.made_of == "local":
        return LocalProcesses(section.scale)
    choice = WorkerChoice(section.workers.names, section.workers.resource or "", section.priority)
    waits: dict[str, Any] = {"minimum": section.minimum, "choice": choice}
    if section.patience is not None:
        waits["patience"] = section.patience
    if section.address is not None:
        # Who waits for workers for so long waits no longer for their scheduler.
        timeout = min(ExistingScheduler.timeout, section.patience or ExistingScheduler.patience)
        return ExistingScheduler(section.address, timeout, **waits)
    return MadeCluster(str(section.made_of), section.options, section.scale, section.tls, **waits)


_POLL_SECONDS = 0.5
_NOTE_SECONDS = 5.0
_AGAIN_SECONDS = 600.0
"""Between two notes that a run still waits."""


def wait_for_workers(
    cluster: Cluster,
    connection: Connection,
    lease: Lease | None,
    note: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Wait until the cluster has its minimum of workers; the run keeps its lease meanwhile, and says that it waits."""
    began = time.monotonic()
    next_note = began + _NOTE_SECONDS
    while True:
        if lease is not None:
            # Jobs may be queued for hours: whoever took the lease over meanwhile has the cube.
            lease.check()
        try:
            view = connection.code.look().answer()
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the cluster's scheduler went away before any request: {error}") from None
        there = view.workers
        for text in connection.tend(there):
            note(text)
        if len(there) >= cluster.minimum or stopped():
            return list(there)
        now = time.monotonic()
        if now - began > cluster.patience:
            if not there:
                raise ClusterError(
                    f"the cluster has had no worker{_chosen(connection, view)} for {cluster.patience:g} s. Look at "
                    f"its queue and logs, raise the cluster's `patience`, and run the same command again."
                )
            note(f"begins with {len(there)} workers of {cluster.minimum}: the others did not come in time")
            return list(there)
        if now > next_note:
            next_note = now + _AGAIN_SECONDS
            note(
                f"waiting for workers{_chosen(connection, view)}: {len(there)} of {cluster.minimum} so far; nothing is "
                f"asked meanwhile"
            )
        time.sleep(_POLL_SECONDS)


def _chosen(connection: Connection, view: ClusterView) -> str:
    """Which workers are waited for where not all will do, and who is there instead."""
    choice = connection.code.choice
    if not (choice.names or choice.resource):
        return ""
    hint = f" (it has {', '.join(view.others)}, which `cluster.workers` leaves out)" if view.others else ""
    return f" {choice}{hint}"


def present(connection: Connection) -> Mapping[str, str]:
    """The cluster's workers that serve and that are used, sorted: address -> the name that they were started with."""
    return connection.code.look().answer().workers


def check_workers(
    settings: Sweep,
    *,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's, too
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """Ask each worker whether it could take part in a sweep."""
    plan, run = build_plan(settings), uuid.uuid4().hex[:12]
    chosen = chosen_cluster(settings, cluster=cluster, scheduler=scheduler) or ThisProcess()
    # Beside the cube, which may not be there yet, or be in use.
    cube, cache = f"{absolute(settings.cube)}.check-{run}", absolute(settings.cache)
    asked = [model for model in settings.models if not is_managed(model)]
    endpoints = tuple(
        endpoint_of(model, address.removeprefix(SIMULATED)) for model in asked for address in model.addresses
    )
    open_cache(cache).close()
    with ExitStack() as stack:
        connection = stack.enter_context(chosen.connect())
        addresses = wait_for_workers(chosen, connection, None, note)
        stack.callback(_remove, cube)
        with guarded(cube, "write beside the sweep's cube"):
            space_of(cube).assemble(lambda draft: draft.put("check", b""))
        tokens = leave_tokens(run, cube, cache)
        proof = Proof(tokens, endpoints, endpoints)
        context = RunContext.of(run, plan, (cube, cache), {}, "", proof)
        admission = Members(connection.code, plugin_name(run), tokens, note)
        stack.callback(admission.close)
        stack.callback(connection.code.remove, plugin_name(run))
        install(connection, context, settings.name)
        admission.first(addresses, lambda: present(connection))
        return admission.verdicts(present(connection))


def _remove(cube: str) -> None:
    with suppress(OSError, StorageError):
        space = space_of(cube)
        if not space.remove():
            space.clear("")
