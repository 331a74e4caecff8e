"""What a config says about a model's own server: the command that starts it, and how it is looked after."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from evalcube.flows.config import values
from evalcube.flows.config.given import Given, optional
from evalcube.flows.config.secrecy import looks_secret, secret_word
from evalcube.flows.config.section import Number, Section, StorePath

SERVED = "serve:"
"""Endpoint of a model that has a server of its own: its address is known when that has been started."""
PresetName = Literal["vllm", "sglang", "llama.cpp", "ollama"]

_MOST_ARGUMENTS = 256
_COMMAND_REMEDY = "Write a list such as [my-server, -p, '{port}'], or one text"
_ENV_REMEDY = "Have the server read it from a variable, and name that under env_from"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def _arguments(value: object) -> tuple[str, ...]:
    """Check words of a command; a text is split as a shell does, and no shell ever sees it."""
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError:  # a quote without its end
            raise values.refusal("has a quote that does not end", _COMMAND_REMEDY, secret=True) from None
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_ARGUMENTS:
        raise values.refusal(
            f"must be a text, or a list of at most {_MOST_ARGUMENTS} words", _COMMAND_REMEDY, secret=True
        )
    for index, word in enumerate(value):
        _word(word, (index,))
    return tuple(value)


def _word(word: object, where: tuple[str | int, ...]) -> None:
    if not isinstance(word, str) or len(word) > values.LONGEST_PATH * 4 or "\0" in word:
        raise values.refusal("must be a text", "Put quotes round it", secret=True, where=where)
    # Of a path, its folders are none: a snapshot of weights lies below long names with digits.
    if "://" in word or "/" not in word:
        _refuse_secret(word, where)
    values.unicode(word)


def _refuse_secret(text: str, where: tuple[str | int, ...]) -> None:
    if looks_secret(text):
        raise values.refusal(
            "looks like a key, and is no place for one", _ENV_REMEDY, secret=True, where=where
        )


def _command(value: object) -> tuple[str, ...]:
    words = _arguments(value)
    if not words or not words[0].strip():
        raise values.refusal("must begin with a program", _COMMAND_REMEDY, secret=True)
    return words


def _env(value: object) -> dict[str, str]:
    """Check plain variables of the server's environment."""
    for name, text in _variables(value).items():
        if secret_word(name) is not None:
            raise values.refusal(
                "a variable of this name carries a secret", _ENV_REMEDY, secret=True, where=("\0key", name)
            )
        _word(text, (name,))
    return dict(_variables(value))


def _env_from(value: object) -> dict[str, str]:
    """Check variables that are taken from others, whose values no config holds."""
    for name, source in _variables(value).items():
        try:
            values.key_env(source)
        except PydanticCustomError:
            raise values.refusal(
                "must be the name of an environment variable",
                "Write {HF_TOKEN: HF_TOKEN}",
                secret=True,
                where=(name,),
            ) from None
    return dict(_variables(value))


def _variables(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise values.refusal("must be a mapping of variables to texts", "Write {NAME: 'text'}", secret=True)
    for name in value:
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise values.refusal(
                "must be the name of an environment variable",
                "Use letters, digits and _",
                secret=True,
                where=("\0key", str(name)),
            )
    return value


class Serve(Section):
    """A server that the run starts for a model, on this machine, and stops at its end.

    Parameters
    ----------
    preset
        Which server: vllm, sglang, llama.cpp or ollama; in place of command.
    command
        Program and arguments, a list or one text, with {port}, {host} and {model} in place of these; no shell
        runs it.
    model
        Weights to serve: a name on a model hub, or a path; default: what is sent as model.
    args
        Further arguments of the preset's command.
    start_limit
        Seconds until it must be healthy.
    env
        Variables of its environment, beside those of the run; nothing secret.
    env_from
        Variable of its environment -> NAME of the run's variable with the value, for secrets.
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
            raise values.refusal(
                "needs either preset or command",
                "Write {preset: vllm} or {command: 'my-server -p {port}'}",
            )
        if self.command is not None and self.args:
            raise values.refusal("excludes command", "Put them into the command", where=("args",))
        told = (*(self.command or ()), *self.args, *self.env.values())
        if self.command is not None and not any("{port}" in word for word in told):
            raise values.refusal(
                "must tell the server its port",
                "Put {port} where the port stands, in command or env",
                where=("command",),
            )
        return self
