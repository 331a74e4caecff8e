"""What a config says about the end of a run: a program that is started then, or an address that is told."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.secrecy import looks_secret
from evalcube.flows.config.section import Number, Section

Ending = Literal["complete", "incomplete", "stopped", "failed"]
ENDINGS: tuple[Ending, ...] = ("complete", "incomplete", "stopped", "failed")
_MOST_WORDS, _LONGEST_WORD = 64, 4096
_VARIABLE_REMEDY = "Export the secret as an environment variable, which the program reads"
_URL_REMEDY = "Export the address as an environment variable, and give its name as webhook_env"


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not 0 < len(value) <= _MOST_WORDS:
        raise values.refusal(
            "must be a list of a program and its arguments",
            "Write [notify-send, evalcube]; for a shell [sh, -c, ...]",
        )
    for index, text in enumerate(value):
        if not isinstance(text, str) or "\0" in text or len(text) > _LONGEST_WORD:
            raise values.refusal("must be a text", "Put quotes round it", where=(index,))
        if looks_secret(text):
            raise values.refusal(
                "looks like a secret, and is no place for one", _VARIABLE_REMEDY, secret=True, where=(index,)
            )
    if not value[0].strip():
        raise values.refusal("must begin with a program", "Write [notify-send, evalcube]")
    return tuple(value)


def _webhook(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > values.LONGEST_PATH:
        raise values.refusal("must be an address", _URL_REMEDY, secret=True)
    try:
        parts = urlsplit(value)
        found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        found = False
    if not found:
        raise values.refusal("must be http(s)://host/path", _URL_REMEDY, secret=True)
    # The addresses of chat services let whoever knows them write there.
    if looks_secret(value) or "?" in value:
        raise values.refusal("looks like an address with a secret in it", _URL_REMEDY, secret=True)
    return value


class OnEnd(Section):
    """What is done when a run has ended; no part of the sweep's identity, and never kept in a cube."""

    command: Annotated[tuple[str, ...], BeforeValidator(_command)] | None = Field(
        None, description="Program and arguments, started without a shell; the summary as JSON is its input."
    )
    webhook: Annotated[str, BeforeValidator(_webhook)] | None = Field(
        None, description="Address to which the summary is posted as JSON."
    )
    webhook_env: Annotated[str, BeforeValidator(values.key_env)] | None = Field(
        None,
        description="NAME of the environment variable that holds that address, where whoever knows it may write.",
    )
    key_env: Annotated[str, BeforeValidator(values.key_env)] | None = Field(
        None, description="NAME of the environment variable whose value is sent as bearer token."
    )
    when: tuple[Ending, ...] = Field(
        ENDINGS, min_length=1, description="After which ends: complete, incomplete, stopped, failed."
    )
    timeout: Number = Field(30.0, gt=0, le=3600, description="Seconds that it may take.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.command is None and self.webhook is None and self.webhook_env is None:
            raise values.refusal(
                "must name a command or a webhook", "Write {command: [notify-send, evalcube]}"
            )
        if self.webhook is not None and self.webhook_env is not None:
            raise values.refusal("webhook and webhook_env exclude each other", "Give one of them")
        if self.key_env is not None and self.webhook is None and self.webhook_env is None:
            raise values.refusal(
                "key_env is for a webhook", "Give the webhook, too; a command has the environment"
            )
        return self
