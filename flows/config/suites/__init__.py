"""Suites: packaged configs without models, which are loaded by name with models to measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from evalcube.flows.config.load import load_config, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.near_names import close_name, did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.suites.endpoints import model_section
from evalcube.flows.errors import ConfigError, Problem, SweepError, need_text, no_bare_text

MARK = "# models:"
"""How the line begins in whose place a copy of a suite has its models."""

_SAMPLE = """\
models:
  # An endpoint is "sim:", local:smollm2, local:/path/model.gguf or https://host/v1; see `evalcube init`.
  - name: simulated
    endpoint: "sim:"
"""


def suite_names() -> list[str]:
    """The packaged suites."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def suite_text(name: str) -> str:
    """The YAML text of a suite.

    Raises
    ------
    SweepError
        If there is none of that name.
    """
    known = suite_names()
    if need_text("name", name) not in known:
        raise SweepError(f"there is no suite {show(name)}", did_you_mean(name, known, "Suites"))
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def load_suite(name: str, models: Sequence[str], key_envs: Sequence[str] = ()) -> Sweep:
    """A packaged suite, with models to measure.

    Parameters
    ----------
    name
        One of `suite_names`.
    models, key_envs
        As for `evalcube.flows.config.suites.endpoints.model_section`.

    Returns
    -------
    Sweep
        A config as `load_config` returns it.

    Raises
    ------
    SweepError
        If there is no such suite.
    ConfigError
        If there are no models, or they are wrong.

    Examples
    --------
    >>> load_suite("quick", ["sim:"]).cube
    'results/quick.zarr'
    """
    text = suite_text(name)
    no_bare_text(models=models, key_envs=key_envs)
    section = model_section(models or (), key_envs or ())
    if not section:
        raise _problem(
            f"suite {name}", "has no models of its own", f"Give some, as in: evalcube run {name} --model sim:"
        )
    return parse_config(text, f"suite {name}", models=section)


def load_sweep(target: str | Path, models: Sequence[str] = (), key_envs: Sequence[str] = ()) -> Sweep:
    """The config of a path, or else of a suite.

    Parameters
    ----------
    target
        Path of a config, or a suite's name. A file of that name wins.
    models, key_envs
        As for `evalcube.flows.config.suites.endpoints.model_section`; for a file they take the place of its models.

    Raises
    ------
    ConfigError
        If there is neither such a file nor such a suite, or with all problems of the config.
    SweepError
        If there are keys without models.
    """
    if key_envs and not models:
        raise SweepError("`key_envs` goes with `models`", "Give `models`, or key_env in the config")
    path = Path(target)
    known = suite_names()
    if not path.is_file() and str(target) in known:
        return load_suite(str(target), models, key_envs)
    if not path.exists() and path.name == str(target) and path.suffix not in (".yaml", ".yml"):
        near = close_name(str(target), known)
        listed = f"Suites: {', '.join(known)}; a config is a YAML file, which `evalcube init` writes"
        raise _problem(
            show(str(target)),
            "no such file, and no suite of that name",
            f"Did you mean '{near}'? {listed}" if near else listed,
        )
    return load_config(path, models=model_section(models, key_envs) if models else None)


def suite_copy(name: str, models: Sequence[str] = (), key_envs: Sequence[str] = ()) -> str:
    """The text of a suite with models in it, to be edited.

    Raises
    ------
    SweepError
        If there is no such suite.
    ConfigError
        If the models are wrong.
    """
    text = suite_text(name)
    if models or key_envs:
        load_suite(name, models, key_envs)
    block = _models_text(model_section(models, key_envs)) if models else _SAMPLE
    lines = text.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if line.startswith(MARK))
    return "".join([*lines[:at], block, *lines[at + 1 :]])


def _models_text(section: Sequence[dict[str, object]]) -> str:
    """The section as YAML; JSON's texts are YAML, too."""
    lines = ["models:\n"]
    for model in section:
        first, *others = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in model.items())
        lines += [f"  - {first}", *(f"    {line}" for line in others)]
    return "".join(lines)


def _problem(source: str, rule: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(source, None, "", "", rule, remedy)])
