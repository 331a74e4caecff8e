"""Suites: packaged configs without models, which are loaded by name with models to measure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePath

from evalcube.flows.config.load import MODELS, load_config, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.near_names import close_name, did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import ConfigError, Problem, SweepError, need_text, no_bare_text

_NAMED = re.compile(r"([^=:/#]+)=(.+)", re.DOTALL)
_KEY_OF = re.compile(r"(.+)=([^=]+)", re.DOTALL)


def model_section(models: Sequence[str], key_envs: Sequence[str] = ()) -> list[dict[str, object]]:
    """Make the ``models`` section of a config; its values are checked with the config.

    Parameters
    ----------
    models
        Each ``[NAME=]ENDPOINT``: ``sim:``, ``local:smollm2``, ``local:/path/model.gguf`` or
        ``https://host/v1#MODEL``, where MODEL is the name that the server knows.
    key_envs
        Each the name of an environment variable with an API key, for all http(s) endpoints, or ``NAME=VARIABLE``
        for the model of that name.

    Raises
    ------
    ConfigError
        If a URL names no model, or a key belongs to none of the models.

    Examples
    --------
    >>> model_section(["sim:", "mine=https://h/v1#org/m"])[1]
    {'name': 'mine', 'endpoint': 'https://h/v1', 'model': 'org/m'}
    """
    section = [_model(text) for text in models]
    remote = [model for model in section if str(model["endpoint"]).startswith("http")]
    for text in key_envs:
        if not remote:
            raise _failure(
                "`key_envs`",
                show(text),
                "no model has an http(s) endpoint",
                "Give one with `models`, or leave it out",
            )
        _give_key(text, remote)
    return section


def _model(text: str) -> dict[str, object]:
    named = _NAMED.fullmatch(need_text("models", text))
    name, endpoint = (named[1], named[2]) if named else ("", text)
    if not endpoint.startswith(("http://", "https://")):
        return {"name": name or _local_name(endpoint), "endpoint": endpoint}
    endpoint, _, model = endpoint.partition("#")
    if not model:
        raise _failure(
            MODELS,
            show(text),
            "a URL must say which model to ask there",
            f"Write {_shown(endpoint)}#MODEL",
        )
    return {"name": name or model, "endpoint": endpoint, "model": model}


def _local_name(endpoint: str) -> str:
    """A name for an endpoint on this machine; for anything else the text itself, which the config refuses."""
    if endpoint == "sim" or endpoint.startswith("sim:"):
        return "simulated"
    if endpoint in ("local", "local:"):
        return "smollm2"
    rest = endpoint.removeprefix("local:")
    return PurePath(rest).stem or "model" if rest.endswith(".gguf") else rest.strip() or "model"


def _give_key(text: str, remote: list[dict[str, object]]) -> None:
    named = _KEY_OF.fullmatch(text)
    if named is None:
        for model in remote:
            model.setdefault("key_env", text)
        return
    chosen = [model for model in remote if model["name"] == named[1]]
    if not chosen:
        names = [str(model["name"]) for model in remote]
        remedy = did_you_mean(named[1], names, "Models with http(s) endpoints")
        raise _failure("`key_envs`", "", f"no model {show(named[1])} has an http(s) endpoint", remedy)
    for model in chosen:
        model["key_env"] = named[2]


def _shown(endpoint: str) -> str:
    return show(endpoint).strip("'")


def _failure(source: str, value: str, rule: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(source, None, "", value, rule, remedy)])


MARK = "# models:"
"""How the line begins in whose place a copy of a suite has its models."""

_SAMPLE = """\
models:
  # An endpoint is "sim:", local:smollm2, local:/path/model.gguf or https://host/v1; see `evalcube init`.
  - name: simulated
    endpoint: "sim:"
"""


def initial_config() -> str:
    """A commented config to start from, which is valid as it stands."""
    return resources.files("evalcube.flows.config").joinpath("initial.yaml").read_text(encoding="utf-8")


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
        As for `evalcube.flows.config.suites.model_section`.

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
        As for `evalcube.flows.config.suites.model_section`; for a file they take the place of its models.

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
