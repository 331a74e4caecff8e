"""Makes the `models` section of a config from models written in short, as NAME=ENDPOINT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from evalcube.flows.config.load import MODELS
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import ConfigError, Problem, need_text

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
