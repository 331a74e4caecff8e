"""Reads what a request asks for, and refuses it as the API that it speaks would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.simulator.__main__ import identity, most_tokens, stops
from evalcube.deploy.simulator.profile import Profile, parse
from tests.simulator.forms import CHAT, COMPLETIONS, RESPONSES, Form
from tests.simulator.wire import Response, error_response


class Asked(NamedTuple):
    """A request that passed all checks."""

    model: str
    """The model's name with its profile, as the request has it."""
    name: str
    """The simulated model's name alone."""
    profile: Profile
    messages: list[Mapping[str, object]]
    limit: int | None
    """Most tokens of the completion; None leaves it to the model."""
    stop: list[str]
    """Texts before which it is to end."""
    stream: bool
    tools: bool
    """Whether it offers tools."""
    identity: bytes
    """What the reply follows from: the body, without the fields that ask for a stream."""


class RefusedError(Exception):
    """A request that gets an error response instead of a completion."""

    def __init__(self, response: Response) -> None:
        self.response = response
        super().__init__(response.status)


_parse = lru_cache(maxsize=1024)(parse)


def checked(form: Form, body: bytes, headers: Mapping[bytes, bytes]) -> Asked:
    """What a request asks for.

    Parameters
    ----------
    form
        The API that it speaks.
    body
        The request's body.
    headers
        Its headers, by lower-case name.

    Raises
    ------
    RefusedError
        That API would refuse it.
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(error_response(400, "the body is no JSON", "invalid_json")) from None
    if not isinstance(fields, dict):
        raise _bad("body", "must be an object")
    read = fields
    if form is RESPONSES:
        read = {**fields, "messages": fields.get("input"), "max_tokens": fields.get("max_output_tokens")}
    name, profile = _model(fields.get("model"))
    if fields.get("n") not in (None, 1):
        raise _bad("n", "must be 1")
    stream = fields.get("stream") is True
    messages = _spoken(form, read, headers)
    try:
        limit, stop = most_tokens(read), stops(read)
    except ValueError as error:
        raise RefusedError(error_response(400, str(error), "invalid_value")) from None
    return Asked(
        fields["model"],
        name,
        profile,
        messages,
        limit,
        stop,
        stream,
        bool(fields.get("tools")),
        identity(fields, body),
    )


def _spoken(
    form: Form, fields: Mapping[str, object], headers: Mapping[bytes, bytes]
) -> list[Mapping[str, object]]:
    if form is COMPLETIONS:
        prompt = fields.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise _bad("prompt", "must be text")
        return [{"role": "user", "content": prompt}]
    messages = _messages(fields.get("messages"))
    if form in (CHAT, RESPONSES):
        return messages
    if not headers.get(b"anthropic-version"):
        raise _bad("anthropic-version", "header is required")
    for name in fields:
        if name not in _MESSAGES_FIELDS:
            raise _bad(name, "is an extra input that is not permitted")
    if fields.get("max_tokens") is None:
        raise _bad("max_tokens", "is required")
    if not {message["role"] for message in messages} <= {"user", "assistant"}:
        raise _bad("messages", "must have the roles user and assistant; system is a field of its own")
    system = fields.get("system", "")
    if not isinstance(system, str):
        raise _bad("system", "must be text")
    return [{"role": "system", "content": system}, *messages] if system else messages


_MESSAGES_FIELDS = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tools",
        "top_k",
        "top_p",
    }
)


def _bad(field: str, rule: str) -> RefusedError:
    return RefusedError(error_response(400, f"{field} {rule}", "invalid_value"))


def _model(model: object) -> tuple[str, Profile]:
    if not isinstance(model, str):
        raise _bad("model", "must be text")
    try:
        return _parse(model)
    except SimulatorError as error:
        raise RefusedError(error_response(404, f"no such model: {error}", "model_not_found")) from None


def _messages(messages: object) -> list[Mapping[str, object]]:
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", "must be a list of at least one message")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise _bad("messages", "must be objects with a role")
    return messages
