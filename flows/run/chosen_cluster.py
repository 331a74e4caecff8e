"""Makes the cluster that a run works on from what a config, a command or a script says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deploy.clusters import Cluster, ExistingScheduler, LocalProcesses
from flows.config.cluster import ClusterSection, LocalSection, SchedulerSection
from flows.config.models import SweepConfig
from flows.config.sites import named_cluster
from flows.errors import SweepError


def chosen_cluster(
    settings: SweepConfig,
    *,
    cluster: Cluster | str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Cluster | None:
    """The cluster that a run works on; None if nobody named one, so that the run decides.

    Parameters
    ----------
    settings
        The sweep's config, whose own `cluster` counts last.
    cluster
        A cluster, the name of one of this user's, or the path of a file that describes one.
    scheduler
        Address of a running Dask scheduler.
    workers
        Number of local worker processes.

    Raises
    ------
    SweepError
        If more than one is given, or there is no cluster of that name.
    ConfigError
        With all problems of the cluster's description.
    """
    if cluster is not None and (scheduler is not None or workers is not None):
        raise SweepError("`cluster` excludes `scheduler` and `workers`", "Give one of them")
    if isinstance(cluster, Cluster):
        return cluster
    if cluster is not None:
        return make_cluster(named_cluster(str(cluster)), settings)
    if scheduler is not None:
        return ExistingScheduler(scheduler)
    if workers is not None:
        return LocalProcesses(workers)
    if settings.cluster is None:
        return None
    own = settings.cluster
    return make_cluster(named_cluster(own) if isinstance(own, str) else own, settings)


def make_cluster(section: ClusterSection, settings: SweepConfig) -> Cluster:
    """The cluster that a section of a config describes, for one sweep."""
    return _MAKERS[type(section)](section, settings)


def _local(section: LocalSection, settings: SweepConfig) -> Cluster:  # noqa: ARG001 - the interface of all kinds
    return LocalProcesses(section.workers)


def _scheduler(section: SchedulerSection, settings: SweepConfig) -> Cluster:  # noqa: ARG001
    return ExistingScheduler(section.address, patience=section.patience, minimum=section.minimum)


_MAKERS: Mapping[type, Callable[[Any, SweepConfig], Cluster]] = {
    LocalSection: _local,
    SchedulerSection: _scheduler,
}
