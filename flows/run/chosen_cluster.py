"""Makes the cluster that a run works on from what a config, a command or a script says about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcube.deploy.clusters import Certificates, Cluster, ExistingScheduler, LocalProcesses
from evalcube.deploy.clusters.code import Choice
from evalcube.deploy.clusters.slurm import JobSettings, Slurm
from evalcube.deploy.clusters.ssh import Host, Login, Ssh
from evalcube.flows.config.cluster import (
    ClusterSection,
    KubernetesSection,
    LocalSection,
    SchedulerSection,
    SlurmSection,
    SshSection,
)
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.config.sites import cluster_section
from evalcube.flows.errors import SweepError
from evalcube.storage.urls import directory_of, is_directory

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"


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
        Address of a running Dask scheduler; default: that of the variable DASK_SCHEDULER_ADDRESS, if nothing else is
        named, the config's `cluster` included.
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
    if scheduler is not None:
        return ExistingScheduler(scheduler)
    if workers is not None:
        return LocalProcesses(workers)
    section = cluster_section(settings, cluster)
    if section is not None:
        return make_cluster(section, settings)
    # Dask's own variable, which its operator sets in every pod.
    scheduler = os.environ.get(SCHEDULER_VARIABLE, "").strip()
    return ExistingScheduler(scheduler) if scheduler else None


def make_cluster(section: ClusterSection, settings: SweepConfig) -> Cluster:
    """The cluster that a section of a config describes, for one sweep."""
    return _MAKERS[type(section)](section, settings)


def script_of(settings: SweepConfig, cluster: str | Path | None = None) -> str:
    """The job script with which a run asks for workers.

    Parameters
    ----------
    settings
        The sweep's config.
    cluster
        As for `chosen_cluster`.

    Raises
    ------
    SweepError
        If it works without jobs.
    """
    found = chosen_cluster(settings, cluster=cluster)
    if not isinstance(found, Slurm):
        raise SweepError(
            "this sweep's cluster has no job scripts",
            "Give one of kind slurm: in the config, or as `cluster`",
        )
    return found.script()


def _local(section: LocalSection, settings: SweepConfig) -> Cluster:  # noqa: ARG001 - the interface of all kinds
    return LocalProcesses(section.workers)


def _scheduler(section: SchedulerSection, settings: SweepConfig) -> Cluster:  # noqa: ARG001
    tls = None if section.tls is None else Certificates(**section.tls.model_dump())
    timeout = min(ExistingScheduler.timeout, section.patience)
    choice = Choice(section.workers.names, section.workers.resource or "", section.priority)
    return ExistingScheduler(section.address, timeout, section.patience, section.minimum, tls, choice)


def _slurm(section: SlurmSection, settings: SweepConfig) -> Cluster:
    return Slurm(
        job_settings(section, settings),
        settings.name,
        jobs=section.jobs.maximum,
        minimum=section.jobs.minimum * section.cores,
        patience=section.patience,
        interface=section.interface,
        port=section.port,
        python=section.python,
    )


def _ssh(section: SshSection, settings: SweepConfig) -> Cluster:
    hosts = tuple(
        Host(one.host, one.user, one.port, one.python or section.python, one.workers or section.workers)
        for one in section.hosts
    )
    return Ssh(
        hosts,
        Login(section.known_hosts, section.identity, section.check_host_keys),
        directory=section.directory,
        variables=_variables(settings, section.environment),
        scheduler_host=section.scheduler_host,
        port=section.port,
        minimum=section.minimum,
        patience=section.patience,
    )


def _kubernetes(section: KubernetesSection, settings: SweepConfig) -> Cluster:  # noqa: ARG001
    raise SweepError(
        "a sweep on Kubernetes is started there",
        "Print its manifests with `evalcube cluster manifest`, and apply them: "
        "`evalcube cluster manifest sweep.yaml | kubectl apply -f -`",
    )


def job_settings(section: SlurmSection, settings: SweepConfig) -> JobSettings:
    """What the jobs of a sweep ask Slurm for; variables with its models' keys go along by name."""
    return JobSettings(
        walltime=section.walltime,
        cores=section.cores,
        memory=section.memory,
        partition=section.partition,
        account=section.account,
        qos=section.qos,
        options=section.options,
        prologue=section.prologue,
        environment=_variables(settings, section.environment),
        logs=str(_logs(section, settings)),
    )


def _variables(settings: SweepConfig, further: Sequence[str]) -> tuple[str, ...]:
    """Names of the variables that workers need: with keys of models, for stores, and further ones."""
    keys = [model.key_env for model in settings.models if model.key_env is not None]
    return tuple(dict.fromkeys((*keys, *_of_stores(settings), *further)))


def _of_stores(settings: SweepConfig) -> list[str]:
    """Variables that are set here and say how object stores are reached; none where all is in directories."""
    if is_directory(settings.cube) and is_directory(settings.cache):
        return []
    return sorted(name for name in os.environ if name.startswith(_STORE_PREFIXES))


def _logs(section: SlurmSection, settings: SweepConfig) -> Path:
    if section.logs is not None:
        return Path(section.logs).expanduser().absolute()
    beside = directory_of(settings.cube).parent if is_directory(settings.cube) else Path.cwd()
    return beside / "slurm-logs"


_STORE_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_")
_MAKERS: Mapping[type, Callable[[Any, SweepConfig], Cluster]] = {
    LocalSection: _local,
    SchedulerSection: _scheduler,
    SlurmSection: _slurm,
    SshSection: _ssh,
    KubernetesSection: _kubernetes,
}
