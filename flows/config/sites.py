"""The description of a cluster that is meant for a sweep: the config's own, or one that is given apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from evalcube.flows.config.cluster import Cluster, ClusterSection, SlurmSection
from evalcube.flows.config.findings import findings, problem_of
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.text import YamlProblem, YamlText
from evalcube.flows.errors import ConfigError, Problem, SweepError

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
"""Dask's own, which its operator sets in every pod."""
_LARGEST_FILE = 1_000_000
"""Bytes."""


class _Wrapped(BaseModel):
    cluster: Cluster


def cluster_section(
    settings: Sweep, cluster: str | Path | Mapping[str, Any] | None = None
) -> ClusterSection | SlurmSection | None:
    """The description of the cluster that is meant for a sweep; None if nobody gave one.

    Parameters
    ----------
    settings
        The sweep's config, whose own `cluster` counts last.
    cluster
        What a config's `cluster` may be, or the path of a YAML file that holds such.

    Raises
    ------
    SweepError
        If there is no such file.
    ConfigError
        With all problems of the description.
    """
    section = settings.cluster if cluster is None else _checked(cluster)
    return section if section is None or section.slurm is None else section.slurm


def _checked(cluster: str | Path | Mapping[str, Any]) -> ClusterSection:
    value: Any = cluster
    source, text = "cluster", YamlText("")
    if isinstance(cluster, Path) or (isinstance(cluster, str) and cluster.endswith((".yaml", ".yml"))):
        source = str(cluster) if str(cluster).isprintable() else show(str(cluster))
        text = _read(Path(cluster).expanduser(), source)
        value = text.value
    try:
        return _Wrapped.model_validate({"cluster": value}).cluster
    except ValidationError as error:
        # What stands in a config below the name of the field stands at the top here.
        found = [replace(finding, path=finding.path[1:]) for finding in findings(error)]
        raise ConfigError([problem_of(finding, source, text) for finding in found]) from None


def _read(path: Path, shown: str) -> YamlText:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise SweepError(f"{shown}: larger than {_LARGEST_FILE:,} bytes", "Give the file of a cluster")
        return YamlText(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise SweepError(f"{shown}: not UTF-8 text", "Save the file as UTF-8") from None
    except OSError as error:
        raise SweepError(f"{shown}: {error.strerror}", "Check the path of the cluster's file") from None
    except YamlProblem as error:
        raise ConfigError([Problem(shown, error.line, "", "", error.rule, error.remedy)]) from None
