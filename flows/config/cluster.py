"""What a config says about where a sweep works: the section `cluster`; no part of the sweep's identity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.field_types import Given, Many, One, optional
from evalcube.flows.config.section import Flag, Params, Section, Whole

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d)")
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d):(\d\d)")
_LONGEST_SECONDS = 366 * 86_400


def seconds(value: object) -> object:
    """The seconds that a time stands for: ``90s``, ``20m``, ``2h``, ``1d``, ``01:30:00`` or ``1-12:00:00``."""
    if isinstance(value, str):
        if (match := _WITH_UNIT.fullmatch(value.strip())) is not None:
            value = float(match[1]) * _UNITS[match[2]]
        elif (match := _CLOCK.fullmatch(value.strip())) is not None:
            days, hours, minutes, secs = (int(part or 0) for part in match.groups())
            value = float(((days * 24 + hours) * 60 + minutes) * 60 + secs)
    # A bare number would be minutes to Slurm and seconds to everybody else.
    if not isinstance(value, float) or not 1 <= value <= _LONGEST_SECONDS:
        raise values.refusal("must be a time from 1s to 366d", "Write it as in 90s, 20m, 2h, 1d or 01:30:00")
    return value


def _line(value: object) -> object:
    if isinstance(value, str) and value.strip() and len(value) <= 4096 and value.isprintable():
        return value
    raise values.refusal("must be one line of text", "Give each line as an item of its own")


Seconds = Annotated[float, BeforeValidator(seconds)]
Line = Annotated[str, BeforeValidator(_line)]


class ChosenWorkers(Section):
    """Which workers a run uses: those that meet all conditions.

    Parameters
    ----------
    names
        Names or addresses of workers.
    resource
        Name of a Dask resource; workers have it if they were started with --resources NAME=1.
    """

    names: Many[Line] = optional(())
    resource: Line | None = None


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


class SlurmSection(Section):
    """The Slurm job of `evalcube submit`.

    Parameters
    ----------
    options
        Options of sbatch, such as [--time=04:00:00, --cpus-per-task=8, --mem=64G, --gres=gpu:1].
    prologue
        Shell lines before the run starts, such as [module load python, source keys.sh].
    command
        Command of evalcube on the nodes, such as `apptainer exec image.sif evalcube`; default: that of the
        environment in which you submit.
    """

    options: Many[Line] = optional(())
    prologue: Many[Line] = optional(())
    command: Line | None = None


_CLASS: dict[str, Any] = {"class": (Line | None, Field(default=None))}
"""`class` is no name in Python, and so no attribute of a class body."""


class ClusterSection(create_model("_Made", __base__=Section, **_CLASS)):  # type: ignore[misc]  # a base that is made
    """Where a sweep runs: on this machine, an existing Dask scheduler, or a new cluster.

    Parameters
    ----------
    class
        Class of a new Dask cluster, such as distributed.SSHCluster or dask_jobqueue.SLURMCluster; or `local`.
    address
        Address of an existing Dask scheduler, such as tcp://host:8786.
    options
        Arguments of the class.
    scale
        Number of workers; default: the class's own.
    tls
        Whether connections of a new cluster are encrypted, if its class supports it.
    minimum
        Workers to wait for before the first request.
    patience
        How long a run waits for workers: 90s, 20m, 2h, 1d; default: 60s, or 1h for a new cluster.
    workers
        Which workers are used: names or addresses, or {resource: NAME}; default: all.
    priority
        Priority of the run among the scheduler's tasks; higher goes first.
    slurm
        The Slurm job of `evalcube submit`.
    """

    address: Line | None = None
    options: Params = Field(default={})
    scale: Whole | None = Field(default=None, ge=1, le=100_000)
    tls: Flag = True
    minimum: Whole = Field(default=1, ge=1, le=100_000)
    patience: Given[str | None, Seconds | None] = optional()
    workers: Given[
        ChosenWorkers | str | Sequence[str], Annotated[ChosenWorkers, BeforeValidator(_workers)]
    ] = optional(ChosenWorkers())
    priority: Whole = Field(default=0, ge=-1000, le=1000)
    slurm: One[SlurmSection | None] = optional()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(value is not None for value in (self.made_of, self.address, self.slurm)) != 1:
            raise values.refusal(
                "must have one of address, class and slurm", "Write address: tcp://host:8786"
            )
        return self

    @property
    def made_of(self) -> str | None:
        """Name of the class of a cluster that is made."""
        name: str | None = vars(self)["class"]
        return name


def _as_mapping(value: object) -> object:
    """A mapping for what is written as one word."""
    if value == "local":
        return {"class": "local"}
    if isinstance(value, str) and re.fullmatch(r"[a-z]+://\S+", value):
        return {"address": value}
    if isinstance(value, (Mapping, ClusterSection)):
        return value
    raise values.refusal(
        "must be local, the address of a scheduler, or a mapping",
        "Write tcp://host:8786, or {class: dask_jobqueue.SLURMCluster, options: {...}}",
    )


Cluster = Annotated[ClusterSection, BeforeValidator(_as_mapping)]
