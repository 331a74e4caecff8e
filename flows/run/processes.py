"""Whether a run that names no cluster starts worker processes, and what is begun for them before Dask is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalcube.deploy import fork_server

if TYPE_CHECKING:
    from evalcube.deploy.clusters import Cluster
    from evalcube.flows.plan.plan import Plan

_FEW, _FEW_FOREIGN = 100_000, 10_000
"""Trials that one process does: 800 to 2 700 a second, as fast as nearly all endpoints, for two thirds of the CPU that
several processes take. Code of others may take milliseconds for each."""
_IMPORTED = ("distributed.nanny", "evalcube.flows.run.worker.plugin")


def needs_processes(workers: int | None, trials: int, plan: Plan) -> bool:
    """Whether a run without a cluster starts worker processes."""
    return workers is not None or trials > (_FEW_FOREIGN if plan.packages or plan.code else _FEW)


def begin_processes(cluster: Cluster | None, workers: int | None, trials: int, plan: Plan) -> None:
    """Begin to import what worker processes need, if the run will start some."""
    forks = needs_processes(workers, trials, plan) if cluster is None else cluster.forks
    if forks:
        fork_server.begin(_IMPORTED)
