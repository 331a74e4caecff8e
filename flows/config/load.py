"""Reads a config from a YAML file, a text or a mapping; what is wrong becomes one `ConfigError`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from evalcube.flows.config.cluster import Cluster, ClusterSection, SlurmSection
from evalcube.flows.config.findings import failure, findings, problem_of, reported, sorted_error
from evalcube.flows.config.kept_questions import mappings, nodes, offer_missing
from evalcube.flows.config.models import MOST_REPEATS, Sweep
from evalcube.flows.config.recipes import with_suites
from evalcube.flows.config.rules import check
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.section import Name, Section
from evalcube.flows.config.templates import code_of
from evalcube.flows.config.text import DEEPEST, YamlProblem, YamlText
from evalcube.flows.config.views import Policy, ViewConfig
from evalcube.flows.errors import SweepError, need_number, need_path
from evalcube.stages.named_code import allow_code, folder_code

LARGEST_FILE = 10_000_000
"""Bytes."""
SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
"""Dask's own, which its operator sets in every pod."""
MODELS = "`models`"
"""Source of the problems of models that are given beside a config: the parameter of `load_sweep` and `load_suite`."""
_START = "Write a first config with: evalcube init"


def load_config(
    path: str | Path,
    *,
    models: Sequence[Mapping[str, object]] | None = None,
    judges: Sequence[Mapping[str, object]] = (),
) -> Sweep:
    """Read a config file.

    Parameters
    ----------
    path
        A YAML file.
    models, judges
        Those of the command line, used instead of the file's; no judges are those of the file.

    Returns
    -------
    Sweep
        The validated config.

    Raises
    ------
    ConfigError
        If the file cannot be read, or with all problems of its content.
    """
    text, source = _text(path)
    return parse_config(text, source, models=models, judges=judges)


def _text(path: str | Path, start: str = _START) -> tuple[str, str]:
    """The text of a file, and what it is called in problems; `start` is the remedy where there is none."""
    source = _printable(str(path))
    data = _read(Path(path), source, start)
    try:
        return data.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        rule = f"not UTF-8 text: byte 0x{data[error.start]:02x} at position {error.start}"
        raise failure(source, rule, "Save the file as UTF-8", line=line) from None


class _PolicyFile(Section):
    """A file with a policy, which may be a whole config."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    policy: Policy


def load_policy(path: str | Path) -> Policy:
    """Read the section ``policy`` of a YAML file, which may be a whole config; the rest of it is not looked at.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ConfigError
        If the file cannot be read, or with all problems of the section.
    """
    text, source = _text(path)
    parsed, mapping = _parsed(text, source, "Write a section such as policy: {critical: [{noninferior: 1}]}")
    with reported(source, parsed):
        return _PolicyFile.model_validate(mapping).policy


def as_policy(policy: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """A policy from whatever form it is given in; see `load_policy`."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, Mapping):
        return load_policy(need_path("policy", policy))
    with reported("policy"):
        return Policy.model_validate(dict(policy))


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
    ConfigError
        If there is no such file, or with all problems of the description.
    """
    section = settings.cluster if cluster is None else _given_cluster(cluster)
    return section if section is None or section.slurm is None else section.slurm


def _given_cluster(cluster: str | Path | Mapping[str, Any]) -> ClusterSection:
    value: Any = cluster
    source, parsed = "cluster", None
    if isinstance(cluster, Path) or (isinstance(cluster, str) and cluster.endswith((".yaml", ".yml"))):
        text, source = _text(Path(cluster).expanduser(), "Check the path of the cluster's file")
        parsed = _yaml(text, source)
        value = parsed.value
    with reported(source, parsed, root=ClusterSection):
        return TypeAdapter[ClusterSection](Cluster).validate_python(value)


def noted_views(config: Mapping[str, object]) -> dict[str, ViewConfig]:
    """The views of the config that a cube notes, which may be a stranger's: nothing else of it is looked at.

    Raises
    ------
    ConfigError
        With all problems of the views.
    """
    with reported("the config in the cube's notes", at=("views",)):
        return TypeAdapter(dict[Name, ViewConfig]).validate_python(config.get("views") or {})


def parse_config(
    text: str,
    source: str = "config",
    *,
    models: Sequence[Mapping[str, object]] | None = None,
    judges: Sequence[Mapping[str, object]] = (),
) -> Sweep:
    """Read a config from YAML text.

    Parameters
    ----------
    text
        YAML 1.2.
    source
        Where the text is from: the start of each problem; its stem is the default name.
    models, judges
        Those of the command line, used instead of the text's; models that only judge stay, unless judges are given.

    Raises
    ------
    ConfigError
        With all problems of the text.
    """
    source = _printable(source)
    parsed, mapping = _parsed(text, source, _START)
    stem = Path(source).stem[:128].strip()
    raw = {"name": stem or "sweep", **mapping}
    if models is None:
        return _validate(raw, source, parsed)
    written = raw.get("models")
    kept = written if isinstance(written, list) and not judges else []
    judging = [model for model in kept if _only_judges(model)]
    raw |= {"judges": [*judges]} if judges else {}
    raw = _without_control(raw, [str(model.get("name")) for model in models])
    return _validate({**raw, "models": [*models, *judging]}, source, parsed, models_from=MODELS)


def _without_control(raw: dict[str, object], names: Sequence[str]) -> dict[str, object]:
    """The config without a variant in use that is none of these models: they took its place."""
    composite = raw.get("composite")
    named = composite.get("control") if isinstance(composite, dict) else None
    if not isinstance(composite, dict) or not isinstance(named, str):
        return raw
    if named.replace(" · ", " / ").split(" / ")[0].strip() in names:
        return raw
    return {**raw, "composite": {key: value for key, value in composite.items() if key != "control"}}


def written_config(path: Path) -> dict[str, object]:
    """A config as it is written, with nothing checked but that it is YAML.

    Raises
    ------
    ConfigError
        If it is none.
    """
    return _parsed(*_text(path), _START)[1]


def _parsed(text: str, source: str, start: str) -> tuple[YamlText, dict[str, object]]:
    """The text as YAML, and the mapping that it is; `start` is the remedy of an empty one."""
    parsed = _yaml(text, source)
    if parsed.value is None:
        raise failure(source, "the config is empty", start, line=1)
    if not isinstance(parsed.value, dict):
        rule = f"the config must be a mapping, got {show(parsed.value)}"
        raise failure(source, rule, "Begin with lines such as models:, samplers:, tasks:", line=1)
    return parsed, parsed.value


def _yaml(text: str, source: str) -> YamlText:
    try:
        return YamlText(text)
    except YamlProblem as error:
        raise failure(source, error.rule, error.remedy, line=error.line) from None


def _only_judges(model: object) -> bool:
    return isinstance(model, Mapping) and model.get("measured") is False


def as_config(
    config: Sweep | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    repeats: int | None = None,
) -> Sweep:
    """Make a config from whatever form it is given in.

    Parameters
    ----------
    config
        A config, a mapping of the same form, or the path of a YAML file.
    cube, cache
        Addresses that replace the config's.
    repeats
        Times that each question is asked, in place of the config's.

    Raises
    ------
    ConfigError
        With all problems.
    """
    if isinstance(config, (str, Path)):
        config = load_config(config)
    elif isinstance(config, Sweep):
        allow_code(
            named_code(config.model_dump(include={"tasks", "templates"}))
        )  # it may come from another process
    else:
        config = from_mapping(config, cube=cube)
    update = {name: value for name, value in (("cube", cube), ("cache", cache)) if value is not None}
    update = {name: need_path(name, value) for name, value in update.items()}
    if repeats is not None:
        need_number("repeats", repeats, whole=True)
        if not 1 <= repeats <= MOST_REPEATS:
            raise SweepError(
                f"`repeats`: {repeats} is no number of times", f"Give one from 1 to {MOST_REPEATS:,}"
            )
    return config.model_copy(update=update if repeats is None else {**update, "repeats": repeats})


def from_mapping(mapping: Mapping[str, object], *, cube: str | Path | None = None) -> Sweep:
    """Make a config from plain values, as `Sweep.model_dump` gives them.

    Parameters
    ----------
    mapping
        The values.
    cube
        Address of the cube that may keep the questions of files that are gone; default: that of the mapping.

    Raises
    ------
    ConfigError
        With all problems of the mapping.
    """
    if not isinstance(mapping, Mapping):
        raise failure("config", f"the config must be a mapping, got {show(mapping)}", "Give a dict")
    plain = _plain(mapping, DEEPEST)
    return _validate(plain if isinstance(plain, dict) else {}, "config", None, cube=cube)


def _plain(value: object, levels: int) -> object:
    """Copy; sections (which Python users may put in) become mappings of what was given, keys texts, as in YAML."""
    if levels == 0:
        raise failure("config", f"nested deeper than {DEEPEST} levels", "Flatten it")
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, levels - 1) for item in value]
    return value


def _validate(
    raw: dict[str, object],
    source: str,
    text: YamlText | None,
    *,
    models_from: str = "",
    cube: str | Path | None = None,
) -> Sweep:
    # Whoever gives a config may run what it names. A cube's own notes come here only after `acting_config` has looked.
    raw, found = with_suites(raw)
    allow_code(named_code(raw))
    try:
        config = Sweep.model_validate(raw)
        offer_missing(raw.get("tasks"), str(cube or config.cube))
        found += [] if found else check(config)
    except ValidationError as error:
        found += findings(error)
    if found:
        raise sorted_error(
            problem_of(finding, models_from, None)
            if models_from and finding.path[:1] == ("models",)
            else problem_of(finding, source, text)
            for finding in found
        )
    return config


def named_code(config: Mapping[str, object]) -> set[str]:
    """Each ``module:function`` that a config names as a grader, its templates that have code, and folders of tasks."""
    templates = config.get("templates")
    sources = templates.values() if isinstance(templates, Mapping) else ()
    found = {code for source in sources if (code := code_of(source))}
    tasks = list(mappings(config.get("tasks")))
    graders = [task[key] for task in tasks for key in ("grader", "reader") if key in task]
    found |= {text for text in nodes(graders) if isinstance(text, str) and ":" in text}
    folders = nodes([task["include_path"] for task in tasks if "include_path" in task])
    return found | {folder_code(path) for path in folders if isinstance(path, str)}


def _printable(source: str) -> str:
    return source if source.isprintable() else ascii(source)


def _read(path: Path, source: str, start: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise failure(source, "no such file", _nearby(path, start)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise failure(source, f"cannot be read: {reason}", "Give a .yaml file that you can read") from None
    if len(data) > LARGEST_FILE:
        raise failure(source, f"larger than {LARGEST_FILE:,} bytes", "Split it into several configs")
    return data


def _nearby(path: Path, start: str) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix in (".yaml", ".yml")]
    except OSError:
        return f"There is no folder {path.parent}, either. {start}"
    close = difflib.get_close_matches(path.name, names, n=3)
    if not close:
        return start
    meant = " or ".join(repr(str(path.with_name(name))) for name in close)
    return f"Did you mean {meant}? If not: {start[0].lower()}{start[1:]}"
