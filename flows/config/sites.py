"""The clusters that this user has given names to, and files that describe one each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from evalcube.flows.config.cluster import Cluster, ClusterSection, LocalSection
from evalcube.flows.config.findings import dotted, findings, problem_of
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.text import YamlProblem, YamlText
from evalcube.flows.errors import ConfigError, Problem, SweepError

CONFIG_VARIABLE = "XDG_CONFIG_HOME"
_LARGEST_FILE = 1_000_000
"""Bytes."""


class _Wrapped(BaseModel):
    cluster: Cluster


def sites_file() -> Path:
    """Where this user's clusters are described: a mapping of names to what a config's `cluster` may be."""
    home = os.environ.get(CONFIG_VARIABLE, "")
    return Path(home if home.startswith("/") else "~/.config").expanduser() / "evalcube" / "clusters.yaml"


def cluster_section(settings: SweepConfig, cluster: str | Path | None = None) -> ClusterSection | None:
    """The settings of the cluster that is meant for a sweep; None if nobody named one.

    Parameters
    ----------
    settings
        The sweep's config, whose own `cluster` counts last.
    cluster
        See `named_cluster`.

    Raises
    ------
    SweepError
        If there is no such cluster or file.
    ConfigError
        With all problems of the description.
    """
    given = settings.cluster if cluster is None else str(cluster)
    return named_cluster(given) if isinstance(given, str) else given


def named_cluster(name: str) -> ClusterSection:
    """The settings of a cluster.

    Parameters
    ----------
    name
        Of a cluster in this user's file; else the path of a YAML file that describes one, which has a ``/`` or ends
        with ``.yaml``. ``local`` is always there.

    Raises
    ------
    SweepError
        If there is no such cluster or file.
    ConfigError
        With all problems of the description.
    """
    if "/" in name or name.endswith((".yaml", ".yml")):
        return _checked(_read(Path(name).expanduser()), (), name)
    path = sites_file()
    text = _read(path) if path.exists() else None
    known = text.value if text is not None and isinstance(text.value, Mapping) else {}
    if name in known and text is not None:
        return _checked(text, (name,), str(path))
    if name == "local":
        return LocalSection(kind="local")
    remedy = did_you_mean(name, [str(one) for one in known], "Clusters") if known else "There are none yet"
    raise SweepError(
        f"there is no cluster {show(name)} in {path}",
        f"{remedy}{'' if remedy.endswith('?') else '.'} Or give the path of a YAML file, such as ./site.yaml",
    )


def _read(path: Path) -> YamlText:
    # A message is one line, whatever somebody typed.
    shown = str(path) if str(path).isprintable() else show(str(path))
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


def _checked(text: YamlText, path: tuple[str, ...], source: str) -> ClusterSection:
    value = text.value
    for step in path:
        value = value[step] if isinstance(value, Mapping) else None
    if isinstance(value, str):
        problem = Problem(
            source, text.line(path), dotted(path), show(value), "must be a mapping", "Write kind: ..."
        )
        raise ConfigError([problem])
    try:
        made = _Wrapped.model_validate({"cluster": value}).cluster
    except ValidationError as error:
        # The section stands elsewhere in this file than in a config, whose field's name the findings begin with.
        found = [replace(finding, path=(*path, *finding.path[1:])) for finding in findings(error)]
        raise ConfigError([problem_of(finding, source, text) for finding in found]) from None
    assert not isinstance(made, str)  # noqa: S101 - refused above
    return made
