"""What a config says about a model's own server: the command that starts it, and how it is looked after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from evalcube.flows.config import values
from evalcube.flows.config.field_types import Given, optional
from evalcube.flows.config.secrecy import secret_word
from evalcube.flows.config.section import Number, Section, StorePath

SERVED = "serve:"
"""Endpoint of a model that has a server of its own: its address is known when that has been started."""
PresetName = Literal["vllm", "sglang", "llama.cpp", "ollama"]

_COMMAND_REMEDY = "Write a list such as [my-server, -p, '{port}'], or one text"
_ENV_REMEDY = "Have the server read it from a variable, and name that under env_from"
_NO_VARIABLE = "must be the name of an environment variable"


def _arguments(value: object) -> tuple[str, ...]:
    return values.words(value, _COMMAND_REMEDY, _ENV_REMEDY)


def _command(value: object) -> tuple[str, ...]:
    return values.command(value, _COMMAND_REMEDY, _ENV_REMEDY)


def _env(value: object) -> dict[str, str]:
    """Check plain variables of the server's environment."""
    variables = _variables(value)
    for name, text in variables.items():
        if secret_word(name) is not None:
            raise values.refusal(
                "a variable of this name carries a secret", _ENV_REMEDY, secret=True, where=("\0key", name)
            )
        values.word(text, (name,), _ENV_REMEDY)
    return variables


def _env_from(value: object) -> dict[str, str]:
    """Check variables that are taken from others, whose values no config holds."""
    variables = _variables(value)
    for name, source in variables.items():
        try:
            values.key_env(source)
        except PydanticCustomError:
            raise values.refusal(
                _NO_VARIABLE, "Write {HF_TOKEN: HF_TOKEN}", secret=True, where=(name,)
            ) from None
    return variables


def _variables(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise values.refusal("must be a mapping of variables to texts", "Write {NAME: 'text'}", secret=True)
    for name in value:
        if not isinstance(name, str) or not values.VARIABLE.fullmatch(name):
            where = ("\0key", str(name))
            raise values.refusal(_NO_VARIABLE, "Use letters, digits and _", secret=True, where=where)
    return dict(value)


class Serve(Section):
    """A server that the run starts on this machine, and stops at its end.

    Parameters
    ----------
    preset
        A known server, instead of command.
    command
        Program and arguments, a list or one text, with {port}, {host} and {model}; runs without a shell.
    model
        Weights: a name on a model hub, or a path; default: the model's `model`.
    args
        Further arguments of the preset's command.
    start_limit
        Seconds until it must answer.
    env
        Further environment variables; nothing secret.
    env_from
        Environment variable of the server -> NAME of the run's environment variable that holds its value; for secrets.
    """

    preset: PresetName | None = None
    command: Given[
        str | Sequence[str] | None, Annotated[tuple[str, ...], BeforeValidator(_command)] | None
    ] = optional()
    model: StorePath | None = None
    args: Given[str | Sequence[str], Annotated[tuple[str, ...], BeforeValidator(_arguments)]] = optional(())
    start_limit: Number = Field(default=1200.0, gt=0, le=86_400)
    env: Annotated[dict[str, str], BeforeValidator(_env)] = Field(default={})
    env_from: Annotated[dict[str, str], BeforeValidator(_env_from)] = Field(default={})

    @model_validator(mode="after")
    def _one_way_to_start(self) -> Self:
        if (self.preset is None) == (self.command is None):
            remedy = "Write {preset: vllm} or {command: 'my-server -p {port}'}"
            raise values.refusal("needs either preset or command", remedy)
        if self.command is not None and self.args:
            raise values.refusal("excludes command", "Put them into the command", where=("args",))
        texts = (*(self.command or ()), *self.args, *self.env.values())
        if self.command is not None and not any("{port}" in word for word in texts):
            remedy = "Put {port} where the port stands, in command or env"
            raise values.refusal("must tell the server its port", remedy, where=("command",))
        return self
