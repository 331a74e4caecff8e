"""Writes the manifests of a sweep on Kubernetes: a config map, and a DaskJob or a DaskCluster with a Job.

Secrets are named, never held. What is written was checked against the operator's resource definitions, by the tests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evalcube.deploy.errors import DeployError

_LONGEST_NAME = 50
"""Of a cluster: the operator makes names of deployments and services from it, which are longer."""
_LARGEST_CONFIG = 900_000
"""Bytes that a config map holds, about."""
_EMPTY = "\0"
"""Stands for an empty line of the config: no YAML has such a character."""


@dataclass(frozen=True)
class KubernetesJob:
    """What a sweep gets on Kubernetes."""

    name: str
    """Of the cluster, and the beginning of all other names; see `resource_name`."""
    image: str
    """Of scheduler, workers and driver."""
    config: str
    """The sweep's config as YAML."""
    namespace: str | None = None
    """Default: the one in which the manifests are applied."""
    form: Literal["daskjob", "job"] = "daskjob"
    """A DaskJob, or a DaskCluster with a Job."""
    minimum: int = 1
    """Workers that are there from the beginning."""
    maximum: int = 1
    """Workers at most; with more than the minimum, the operator adapts their number."""
    cores: int = 1
    """CPUs of a worker."""
    memory: str = "2Gi"
    """Memory of a worker, as Kubernetes writes it."""
    secrets: tuple[str, ...] = ()
    """Names of secrets, whose entries become variables of driver and workers."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Name of a persistent volume claim -> where it is mounted; the first is the working directory."""
    service_account: str | None = None
    """Of driver and workers, for stores that know pods by it."""
    patience: int = 1800
    """Seconds without any worker after which the run gives up."""
    idle: int = 3600
    """Seconds without work after which a DaskCluster goes."""

    @property
    def port(self) -> int:
        """Of the scheduler."""
        return 8786


def resource_name(text: str) -> str:
    """A name that Kubernetes takes, made from any text.

    Examples
    --------
    >>> resource_name("My first_sweep!"), resource_name("2 models")
    ('my-first-sweep', 'evalcube-2-models')
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "evalcube"
    name = name if name[0].isalpha() else f"evalcube-{name}"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{name[: _LONGEST_NAME - 7].rstrip('-')}-{digest}"


def manifest(job: KubernetesJob) -> str:
    """The manifests as YAML documents, to be applied with kubectl.

    Raises
    ------
    DeployError
        If the config is too large for a config map.
    """
    import jinja2

    if len(job.config.encode()) > _LARGEST_CONFIG:
        raise DeployError(
            f"the config has more than {_LARGEST_CONFIG:,} bytes, and a config map holds no more. Put it into the image"
        )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("evalcube.deploy.kubernetes", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - YAML, in which each value stands as JSON
        keep_trailing_newline=True,
    )
    template = environment.get_template(f"{job.form}.yaml.j2")
    # What is left out leaves empty lines behind; those of the config stay.
    config = "\n".join(line.rstrip() or _EMPTY for line in job.config.splitlines())
    lines = template.render(job=job, config=config).splitlines()
    return "\n".join(line.replace(_EMPTY, "").rstrip() for line in lines if line.strip()) + "\n"
