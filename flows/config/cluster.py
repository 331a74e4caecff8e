"""What a config says about where a sweep works: the section `cluster`, by kind; no part of the sweep's identity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.section import Flag, Name, Section, Whole

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")
_LONGEST_SECONDS = 366 * 86_400


def seconds(value: object) -> object:
    """The seconds that a time stands for: ``90s``, ``20m``, ``2h``, ``1d``, ``01:30:00`` or ``1-12:00:00``."""
    if isinstance(value, str):
        if (match := _WITH_UNIT.fullmatch(value.strip())) is not None:
            value = float(match[1]) * _UNITS[match[2]]
        elif (match := _CLOCK.fullmatch(value.strip())) is not None:
            days, hours, minutes, rest = (int(part or 0) for part in match.groups())
            value = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    # A bare number would be minutes to Slurm and seconds to everybody else.
    if not isinstance(value, float) or not 1 <= value <= _LONGEST_SECONDS:
        raise values.refusal("must be a time from 1s to 366d", "Write it as in 90s, 20m, 2h, 1d or 01:30:00")
    return value


def _word(value: object) -> object:
    # These go into the lines of a job script that a shell or sbatch reads.
    if isinstance(value, str) and re.fullmatch(r"[\w@%+=:,./-]{1,256}", value, re.ASCII):
        return value
    raise values.refusal(
        "must be one word of letters, digits and @%+=:,./-", "Write it as your site names it"
    )


def _line(value: object) -> object:
    if isinstance(value, str) and value.strip() and len(value) <= 4096 and value.isprintable():
        return value
    raise values.refusal("must be one line of text", "Give each line as an item of its own")


def _memory(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,3})?[KMGT]", value):
        return value
    raise values.refusal("must be a size such as 4G or 500M", "Write digits and one of K, M, G, T")


def _walltime(value: object) -> object:
    found = seconds(value)
    if isinstance(found, float) and found < 60:
        raise values.refusal("must be at least 1m", "Slurm counts in minutes")
    return found


Seconds = Annotated[float, BeforeValidator(seconds)]
Word = Annotated[str, BeforeValidator(_word)]
Line = Annotated[str, BeforeValidator(_line)]
Variable = Annotated[str, BeforeValidator(values.variable)]


class LocalSection(Section):
    """Worker processes on this machine."""

    kind: Literal["local"] = Field(description="Which kind of cluster this is.")
    workers: Whole | None = Field(
        None, ge=1, le=256, description="Worker processes; default: one per core, at most eight."
    )


class TlsSection(Section):
    """Files that prove to a cluster who is talking."""

    ca: Line = Field(description="PEM file of the authority that signed the cluster's certificates.")
    cert: Line = Field(description="PEM file of the driver's certificate.")
    key: Line = Field(description="PEM file of its private key.")


class ChosenWorkers(Section):
    """Which workers of a Dask cluster a run uses; those of whom all holds that is given."""

    names: tuple[Line, ...] = Field((), description="Their names or addresses.")
    resource: Line | None = Field(
        None,
        description="Name of a Dask resource, which workers have that were started with NAME=1 among their resources.",
    )


def _workers(value: object) -> object:
    if isinstance(value, str):
        return {"names": [value]}
    if isinstance(value, (list, tuple)) and value:
        return {"names": value}
    if isinstance(value, (Mapping, ChosenWorkers)) and value:
        return value
    raise values.refusal(
        "must be names of workers, or a mapping with a resource", "Write [node1, node2] or {resource: eval}"
    )


class SchedulerSection(Section):
    """A Dask cluster that somebody else runs."""

    kind: Literal["scheduler"] = Field(description="Which kind of cluster this is.")
    address: Annotated[str, BeforeValidator(_line)] = Field(
        description="The scheduler's address, such as tcp://host:8786."
    )
    minimum: Whole = Field(1, ge=1, le=100_000, description="Workers to wait for before the first request.")
    patience: Seconds = Field(
        60.0, description="How long a run waits without any worker before it gives up, such as 20m."
    )
    workers: Annotated[ChosenWorkers, BeforeValidator(_workers)] = Field(
        ChosenWorkers(),
        description="Which of its workers are used: names or addresses, or {resource: NAME}; default: all.",
    )
    priority: Whole = Field(
        0,
        ge=-1000,
        le=1000,
        description="How urgent the run is beside others' tasks, which have 0 as a rule; higher goes first.",
    )
    tls: TlsSection | None = Field(
        None, description="Certificates for a tls:// address; default: those of Dask's own configuration."
    )


class Jobs(Section):
    """How many jobs of a batch system."""

    minimum: Whole = Field(1, ge=1, le=10_000, description="Jobs to wait for before the first request.")
    maximum: Whole = Field(ge=1, le=10_000, description="Jobs that are kept in the queue or running.")

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.maximum < self.minimum:
            raise values.refusal(f"must be at most maximum ({self.maximum})", "Lower it", where=("minimum",))
        return self


def _jobs(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"maximum": value}
    if isinstance(value, (Mapping, Jobs)):
        return value
    raise values.refusal("must be a number of jobs or a mapping", "Write 8 or {minimum: 2, maximum: 8}")


class SlurmSection(Section):
    """Jobs of Slurm, each with workers."""

    kind: Literal["slurm"] = Field(description="Which kind of cluster this is.")
    jobs: Annotated[Jobs, BeforeValidator(_jobs)] = Field(
        Jobs(maximum=1), description="How many: 8 or {minimum: 2, maximum: 8}."
    )
    walltime: Annotated[float, BeforeValidator(_walltime)] = Field(
        3600.0, description="Of each job, such as 1h; its workers retire before and are replaced."
    )
    cores: Whole = Field(1, ge=1, le=1024, description="CPUs of a job; it has as many worker processes.")
    memory: Annotated[str, BeforeValidator(_memory)] = Field(
        "4G", description="Memory of a job, as Slurm writes it, such as 4G."
    )
    partition: Word | None = Field(None, description="Partition; default: the site's.")
    account: Word | None = Field(None, description="Account that the jobs are charged to.")
    qos: Word | None = Field(None, description="Quality of service.")
    interface: Word | None = Field(
        None, description="Network interface by which workers reach this machine, such as ib0."
    )
    port: Whole = Field(
        0, ge=0, le=65_535, description="Port of the scheduler on this machine; default: a free one."
    )
    python: Line | None = Field(
        None, description="Python on the nodes, whose packages the workers use; default: this process's own."
    )
    container: Line | None = Field(
        None,
        description="Command that starts a container, for what `submit` runs: apptainer exec image.sif.",
    )
    prologue: tuple[Line, ...] = Field(
        (), description="Shell lines before the workers start, such as [module load python, source keys.sh]."
    )
    environment: tuple[Variable, ...] = Field(
        (),
        description="NAMES of further variables that jobs get from here; key_env of the models go by themselves.",
    )
    options: tuple[Line, ...] = Field(
        (), description="Further options of sbatch, as they are, such as ['-C cpu']."
    )
    logs: Line | None = Field(
        None,
        description="Folder of the jobs' logs, which this machine and the nodes see; default: beside the cube.",
    )
    patience: Seconds = Field(
        3600.0,
        description="How long a run waits in the queue without any worker before it gives up, such as 6h.",
    )


class SshHost(Section):
    """One host with workers."""

    host: Word = Field(description="Name or address; what ~/.ssh/config says of it holds.")
    user: Word | None = Field(None, description="Login there; default: as ~/.ssh/config says, or as here.")
    port: Whole | None = Field(None, ge=1, le=65_535, description="Of its SSH server; default: 22.")
    python: Line | None = Field(None, description="Python there; default: that of the cluster.")
    workers: Whole | None = Field(
        None, ge=1, le=1024, description="Worker processes there; default: as the cluster says."
    )


def _host(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(?:([\w.-]+)@)?([\w.-]+)(?::(\d{1,5}))?", value, re.ASCII)
    if match is None or value.startswith("-"):
        raise values.refusal("must be a host such as node1 or ada@node1:22", "Or write {host: node1}")
    user, host, port = match.groups()
    return {"host": host, "user": user, "port": None if port is None else int(port)}


class SshSection(Section):
    """Workers on hosts that SSH reaches."""

    kind: Literal["ssh"] = Field(description="Which kind of cluster this is.")
    hosts: tuple[Annotated[SshHost, BeforeValidator(_host)], ...] = Field(
        min_length=1,
        description="Hosts, such as [node1, ada@node2, {host: node3, python: /opt/py/bin/python}].",
    )
    python: Line = Field("python3", description="Python on the hosts, with what evalcube needs.")
    workers: Whole = Field(1, ge=1, le=1024, description="Worker processes on each host.")
    known_hosts: Line | None = Field(
        None, description="File with the hosts' keys; default: ~/.ssh/known_hosts."
    )
    check_host_keys: Flag = Field(
        True,
        description="Whether a host must have the key that is known of it; leave it on outside of tests.",
    )
    identity: Line | None = Field(
        None, description="File with the private key; default: those of ~/.ssh and of the agent."
    )
    directory: Line | None = Field(None, description="Folder for temporary files on the hosts.")
    environment: tuple[Variable, ...] = Field(
        (),
        description="NAMES of further variables that workers get from here; key_env of the models go by themselves.",
    )
    scheduler_host: Word | None = Field(
        None,
        description="This machine's address as hosts reach it; default: that of the way to the first host.",
    )
    port: Whole = Field(
        0, ge=0, le=65_535, description="Of the scheduler on this machine; default: a free one."
    )
    minimum: Whole = Field(1, ge=1, le=100_000, description="Workers to wait for before the first request.")
    patience: Seconds = Field(
        300.0, description="How long a run waits without any worker before it gives up, such as 20m."
    )


def _kube_memory(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,3})?(Ki|Mi|Gi|Ti)", value):
        return value
    raise values.refusal("must be a size such as 4Gi or 500Mi", "Write digits and one of Ki, Mi, Gi, Ti")


def _kube_name(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", value):
        return value
    raise values.refusal(
        "must be a name of Kubernetes: small letters, digits and dashes", "Write it as kubectl shows it"
    )


def _mount(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"/[\w./-]{1,256}", value, re.ASCII) and ".." not in value:
        return value
    raise values.refusal("must be the absolute path at which the claim is mounted", "Write it as in /results")


KubeName = Annotated[str, BeforeValidator(_kube_name)]


class KubernetesSection(Section):
    """Pods of Kubernetes, which Dask's operator starts from manifests."""

    kind: Literal["kubernetes"] = Field(description="Which kind of cluster this is.")
    image: Word | None = Field(
        None, description="Image of all pods, such as registry.example/evalcube:0.1.0."
    )
    name: KubeName | None = Field(None, description="Of the cluster; default: made from the sweep's name.")
    namespace: KubeName | None = Field(None, description="Default: where the manifests are applied.")
    workers: Annotated[Jobs, BeforeValidator(_jobs)] = Field(
        Jobs(maximum=1), description="How many: 8 or {minimum: 2, maximum: 8}, then as many as have work."
    )
    cores: Whole = Field(1, ge=1, le=1024, description="CPUs of a worker.")
    memory: Annotated[str, BeforeValidator(_kube_memory)] = Field(
        "2Gi", description="Memory of a worker, as Kubernetes writes it, such as 2Gi."
    )
    secrets: tuple[KubeName, ...] = Field(
        (), description="NAMES of secrets, whose entries become environment variables of driver and workers."
    )
    claims: dict[KubeName, Annotated[str, BeforeValidator(_mount)]] = Field(
        {}, description="Name of a volume claim -> where it is mounted; the first is the working directory."
    )
    service_account: KubeName | None = Field(None, description="Service account of driver and workers.")
    patience: Seconds = Field(
        1800.0, description="How long the run waits without any worker before it gives up, such as 1h."
    )


KINDS: Mapping[str, type[Section]] = {
    "slurm": SlurmSection,
    "ssh": SshSection,
    "kubernetes": KubernetesSection,
    "scheduler": SchedulerSection,
    "local": LocalSection,
}
CLUSTER_TAGS = ("\0name", *(f"\0{kind}" for kind in KINDS))
"""Names of the forms of a cluster, a name and its kinds; no key of a config can be one."""


def _known(value: object) -> object:
    if isinstance(value, str):
        return values.name(value)
    if isinstance(value, Section):
        return value
    if not isinstance(value, Mapping):
        raise values.refusal(
            "must be the name of a cluster or a mapping with its kind", "Write {kind: slurm, jobs: 8}"
        )
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        what = "is missing" if kind is None else f"must be one of {', '.join(KINDS)}"
        raise values.refusal(what, f"Write kind: {' or '.join(KINDS)}", where=("kind",), told=kind is None)
    return value


def _form(value: Any) -> str:  # noqa: ANN401 - any value
    if isinstance(value, str):
        return "\0name"
    return f"\0{value['kind'] if isinstance(value, Mapping) else value.kind}"


ClusterSection = SlurmSection | SshSection | KubernetesSection | SchedulerSection | LocalSection
Cluster = Annotated[
    Annotated[
        Annotated[Name, Tag("\0name")]
        | Annotated[SlurmSection, Tag("\0slurm")]
        | Annotated[SshSection, Tag("\0ssh")]
        | Annotated[KubernetesSection, Tag("\0kubernetes")]
        | Annotated[SchedulerSection, Tag("\0scheduler")]
        | Annotated[LocalSection, Tag("\0local")],
        Discriminator(_form),
    ],
    BeforeValidator(_known),
]
"""The settings of a cluster, or the name of one of this user's (see `evalcube.flows.config.sites`)."""
