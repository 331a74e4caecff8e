"""Reads a config from a YAML file, a text or a mapping; what is wrong becomes one `ConfigError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evalcube.flows.config import raw_config, rules
from evalcube.flows.config.cluster import Cluster, ClusterSection, SlurmSection
from evalcube.flows.config.findings import failure, reported
from evalcube.flows.config.models import MOST_REPEATS, Sweep
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import SweepError, need_number, need_path
from evalcube.stages.named_code import allow_code
from evalcube.storage.urls import at_home

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
"""Dask's own, which its operator sets in every pod."""
MODELS = "`models`"
"""Source of the problems of models that are given beside a config: the parameter of `load_sweep` and `load_suite`."""


def load_config(
    path: str | Path,
    *,
    models: Sequence[Mapping[str, object]] | None = None,
    judges: Sequence[Mapping[str, object]] = (),
) -> Sweep:
    """Read a config file."""
    return parse_config(*raw_config.text_of(path), models=models, judges=judges, folder=Path(path).parent)


def cluster_section(
    settings: Sweep, cluster: str | Path | Mapping[str, Any] | None = None
) -> ClusterSection | SlurmSection | None:
    """The description of the cluster that is meant for a sweep; None if nobody gave one."""
    section = settings.cluster if cluster is None else _given_cluster(cluster)
    return section if section is None or section.slurm is None else section.slurm


def _given_cluster(cluster: str | Path | Mapping[str, Any]) -> ClusterSection:
    value: Any = cluster
    source, read = "cluster", None
    if isinstance(cluster, Path) or (isinstance(cluster, str) and cluster.endswith((".yaml", ".yml"))):
        text, source = raw_config.text_of(at_home(cluster), "Check the path of the cluster's file")
        read = raw_config.yaml_of(text, source)
        value = read.value
    with reported(source, ClusterSection, read):
        return TypeAdapter[ClusterSection](Cluster).validate_python(value)


def parse_config(
    text: str,
    source: str = "config",
    *,
    models: Sequence[Mapping[str, object]] | None = None,
    judges: Sequence[Mapping[str, object]] = (),
    folder: Path | None = None,
) -> Sweep:
    """Read a config from YAML text; files that it names may be in a folder."""
    raw, source, read = raw_config.named(text, source)
    raw = raw if folder is None else raw_config.beside(raw, folder)
    if models is None:
        return rules.check_config(Sweep, raw, source, read)
    own = raw.get("models")
    ranked = own if isinstance(own, list) and not judges else []
    judging = [entry for entry in ranked if isinstance(entry, Mapping) and entry.get("measured") is False]
    raw |= {"judges": [*judges]} if judges else {}
    raw = _without_control(raw, [str(model.get("name")) for model in models])
    return rules.check_config(Sweep, {**raw, "models": [*models, *judging]}, source, read, models_from=MODELS)


def _without_control(raw: dict[str, object], names: Sequence[str]) -> dict[str, object]:
    """The config without a variant in use that is none of these models: they took its place."""
    composite = raw.get("composite")
    named = composite.get("control") if isinstance(composite, dict) else None
    if not isinstance(composite, dict) or not isinstance(named, str):
        return raw
    if named.replace(" · ", " / ").split(" / ")[0].strip() in names:
        return raw
    return {**raw, "composite": {key: value for key, value in composite.items() if key != "control"}}


def as_config(
    config: Sweep | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    repeats: int | None = None,
) -> Sweep:
    """Make a config from whatever form it is given in."""
    if isinstance(config, (str, Path)):
        config = load_config(config)
    elif isinstance(config, Sweep):
        # It may come from another process.
        allow_code(raw_config.named_code(config.model_dump(include={"tasks", "templates"})))
    else:
        config = from_mapping(config, cube=cube)
    update = {name: value for name, value in (("cube", cube), ("cache", cache)) if value is not None}
    update = {name: need_path(name, value) for name, value in update.items()}
    if repeats is not None:
        need_number("repeats", repeats, whole=True)
        if not 1 <= repeats <= MOST_REPEATS:
            remedy = f"Give one from 1 to {MOST_REPEATS:,}"
            raise SweepError(f"`repeats`: {repeats} is no number of times", remedy)
    return config.model_copy(update=update if repeats is None else {**update, "repeats": repeats})


def from_mapping(mapping: Mapping[str, object], *, cube: str | Path | None = None) -> Sweep:
    """Make a config from plain values, as `Sweep.model_dump` gives them."""
    if not isinstance(mapping, Mapping):
        raise failure("config", f"the config must be a mapping, got {show(mapping)}", "Give a dict")
    return rules.check_config(Sweep, raw_config.plain(mapping), "config", None, cube=cube)
