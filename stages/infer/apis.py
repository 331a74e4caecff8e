"""How each API is asked: its path, its headers, a request's canonical bytes, and their digest: the key of its reply.

One entry of `APIS` is one kind of endpoint. What its replies look like is in `evalcube.stages.reply.forms`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from evalcube.stages.reply.forms import CHAT, COMPLETIONS, MESSAGES, RESPONSES

Messages = Sequence[Mapping[str, object]]
Fields = dict[str, object]


class ApiError(ValueError):
    """Messages or a sampler that an API cannot carry.

    Parameters
    ----------
    rule
        What rule is broken, and by which value.
    remedy
        What to do.
    param
        The sampler's parameter that is wrong, if it is one.
    """

    def __init__(self, rule: str, remedy: str, param: str | None = None) -> None:
        super().__init__(f"{rule}. {remedy}.")
        self.rule = rule
        self.remedy = remedy
        self.param = param
        """The sampler's parameter that is wrong, if it is one."""


def _as_prompt(messages: Messages) -> Fields:
    roles = [str(message.get("role")) for message in messages]
    if roles != ["user"]:
        raise ApiError(
            f"api: completions takes one text, and the template has {' + '.join(roles) or 'no message'}",
            "Write it as one user message, or use api: chat",
        )
    return {"prompt": messages[0]["content"]}


def _as_turns(messages: Messages) -> Fields:
    """System messages are a field of their own there, whichever place they had."""
    system = [str(message["content"]) for message in messages if message.get("role") in _SYSTEM_ROLES]
    turns = [message for message in messages if message.get("role") not in _SYSTEM_ROLES]
    wrong = sorted({str(turn.get("role")) for turn in turns} - {"user", "assistant"})
    if wrong:
        raise ApiError(
            f"api: messages knows no role {wrong[0]}", "Use system, user and assistant, or another api"
        )
    if not turns:
        raise ApiError("api: messages needs a user message", "Make the question one")
    return {"messages": turns, **({"system": "\n\n".join(system)} if system else {})}


def _flat(tool: object) -> object:
    """A function as a tool of its own; what has another form already stays as it is."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        return tool
    return {
        **{name: function[name] for name in ("name", "description") if name in function},
        "input_schema": (function.get("parameters") or {"type": "object", "properties": {}}),
    }


def _beside_type(tool: object) -> object:
    """A function whose fields stand beside its type."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return tool if not isinstance(function, Mapping) else {"type": "function", **function}


_SYSTEM_ROLES = ("system", "developer")

EFFORT = "effort"
"""The sampler's parameter that says how much a model is to think, spelt as each API has it."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True)
class Api:
    """How one kind of endpoint is asked."""

    name: str
    path: str
    """What follows the base URL."""
    write: Callable[[Messages], Fields] = lambda messages: {"messages": messages}
    """Messages as fields of the request."""
    key_header: str = "authorization"
    """Header that carries the key."""
    key_prefix: str = "Bearer "
    """What stands before the key in it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with each request, unless the config has others of these names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The sampler's parameters that have another name there."""
    effort: str = "reasoning_effort"
    """Where requests have the effort; a dot parts field and subfield."""
    listed: frozenset[str] = frozenset()
    """Parameters that must be a list there; a text becomes a list of one."""
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Parameters that requests have unless the sampler has others."""
    tool: Callable[[object], object] = lambda tool: tool
    """A tool in OpenAI's form as it is offered there."""
    required: tuple[str, ...] = ()
    """Parameters that no request may lack."""
    known: frozenset[str] | None = None
    """All parameters that there are; None if servers have further ones of their own."""
    unknown: frozenset[str] = frozenset()
    """Parameters of other APIs that servers would silently ignore."""
    stream: bytes = b',"stream":true,"stream_options":{"include_usage":true}}'
    """End of a request that is answered in a stream."""

    def params(self, sampler: Mapping[str, object]) -> Fields:
        """The sampler's parameters under the names that they have here; null ones are left out."""
        for problem in self.problems(sampler):
            raise problem
        spelt = self.spelt(sampler).items()
        named = ((self.renamed.get(name, name), value) for name, value in spelt if value is not None)
        fields = {
            name: [value] if name in self.listed and isinstance(value, str) else value
            for name, value in named
        }
        tools = fields.get("tools")
        if isinstance(tools, (list, tuple)):
            fields["tools"] = [self.tool(tool) for tool in tools]
        return fields

    def spelt(self, sampler: Mapping[str, object]) -> Mapping[str, object]:
        """The sampler with its effort where requests have it.

        Examples
        --------
        >>> APIS["messages"].spelt({"effort": "low", "top_k": 5})
        {'top_k': 5, 'output_config': {'effort': 'low'}}
        """
        if EFFORT not in sampler:
            return sampler
        plain = {name: value for name, value in sampler.items() if name != EFFORT}
        effort, (name, _, inner) = sampler[EFFORT], self.effort.partition(".")
        if effort is None:
            return plain
        there = plain.get(name)
        return {
            **plain,
            name: {**(there if isinstance(there, dict) else {}), inner: effort} if inner else effort,
        }

    def takes(self, name: str) -> bool:
        """Whether there is such a parameter, under its chat name or the API's own."""
        own = self.renamed.get(name, name)
        return own not in self.unknown and (self.known is None or own in self.known)

    def problems(self, sampler: Mapping[str, object]) -> Iterator[ApiError]:
        """What of `sampler` the API cannot carry, each parameter's problem by itself."""
        spelled_by: dict[str, str] = {}
        for name, value in sampler.items():
            own = self.renamed.get(name, name)
            if not self.takes(name):
                yield ApiError(f"{name!r} is no parameter of api: {self.name}", "Remove it", name)
            elif name == EFFORT:
                yield from self._effort_problems(sampler)
            elif own in spelled_by:
                rule = f"{name!r} and {spelled_by[own]!r} are one parameter of api: {self.name}"
                yield ApiError(rule, "Remove one", name)
            elif value is not None:
                spelled_by[own] = name
        for name in self.required:
            if name not in spelled_by:
                yield ApiError(f"{name!r} is required by api: {self.name}", f"Add {name}: 1024")

    def _effort_problems(self, sampler: Mapping[str, object]) -> Iterator[ApiError]:
        effort, (name, _, inner) = sampler[EFFORT], self.effort.partition(".")
        if effort is None:
            return
        if effort not in EFFORTS:
            rule = f"effort must be one of {', '.join(EFFORTS)}, got {effort!r:.40}"
            yield ApiError(rule, f"Write {self.effort} for another that the server knows", EFFORT)
        there = sampler.get(name)
        if (inner in there) if inner and isinstance(there, dict) else there is not None:
            yield ApiError(
                f"'{EFFORT}' and '{self.effort}' are one parameter of api: {self.name}", "Remove one", EFFORT
            )


# The last three are known there, but more than one answer, or the prompt among them, could not be graded.
_CHAT_ONLY = frozenset({EFFORT}).union(
    (
        "audio chat_template_kwargs functions function_call modalities parallel_tool_calls prediction "
        "prompt reasoning reasoning_effort response_format thinking tool_choice tools top_logprobs "
        "verbosity best_of echo suffix"
    ).split()
)
_MESSAGES_PARAMS = frozenset({EFFORT}).union(
    (
        "max_tokens metadata output_config service_tier stop_sequences temperature thinking tools top_k top_p"
    ).split()
)
_RESPONSES_PARAMS = frozenset({EFFORT}).union(
    (
        "include max_output_tokens max_tool_calls metadata parallel_tool_calls prompt_cache_key reasoning "
        "safety_identifier service_tier store temperature text tool_choice tools top_logprobs top_p "
        "truncation"
    ).split()
)

APIS: Mapping[str, Api] = MappingProxyType(
    {
        CHAT: Api(CHAT, "/chat/completions"),
        COMPLETIONS: Api(
            COMPLETIONS,
            "/completions",
            _as_prompt,
            renamed={"max_completion_tokens": "max_tokens"},
            unknown=_CHAT_ONLY,
        ),
        MESSAGES: Api(
            MESSAGES,
            "/messages",
            _as_turns,
            key_header="x-api-key",
            key_prefix="",
            headers={"anthropic-version": "2023-06-01"},
            effort="output_config.effort",
            renamed={"stop": "stop_sequences", "max_completion_tokens": "max_tokens"},
            listed=frozenset({"stop_sequences"}),
            tool=_flat,
            required=("max_tokens",),
            known=_MESSAGES_PARAMS,
            stream=b',"stream":true}',
        ),
        RESPONSES: Api(
            RESPONSES,
            "/responses",
            lambda messages: {"input": messages},
            effort="reasoning.effort",
            fixed={"store": False},  # a sweep never refers to an earlier response
            renamed={"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"},
            tool=_beside_type,
            known=_RESPONSES_PARAMS,
            stream=b',"stream":true}',
        ),
    }
)
"""All APIs by name."""


# One for all: `json.dumps` with such arguments makes an encoder for each call.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_REQUEST = b'"request":0'
"""No value has these bytes, as quotes within texts are escaped."""


class Request(NamedTuple):
    """One request in its only form: sent as it stands, and digested as it stands."""

    body: bytes
    """Canonical JSON: keys sorted, no spaces, ASCII."""
    digest: str
    """SHA-256 over the body and the repeat index, 64 hex digits.

    Where the API is not chat, its name enters, too; and the model's revision, where one is declared. Neither the
    endpoint's address nor any secret does, so that a moved server or a new key keeps its cache; nor whether the reply
    is streamed, as the answer is the same.
    """


def build_request(
    model: str,
    messages: Sequence[Mapping[str, object]],
    sampler: Mapping[str, object],
    repeat: int = 0,
    api: str = CHAT,
    **beside_name: object,
) -> Request:
    """The request for one trial's repeat.

    Examples
    --------
    >>> build_request("m", [{"role": "user", "content": "hi"}], {"temperature": 0}).body
    b'{"messages":[{"content":"hi","role":"user"}],"model":"m","temperature":0}'
    """
    if api == CHAT:
        fields: dict[str, object] = {**APIS[CHAT].spelt(sampler), "messages": messages, "model": model}
    else:
        kind = APIS[api]
        fields = {**kind.fixed, **kind.params(sampler), **kind.write(messages), "model": model}
        beside_name["api"] = api
    seed = fields.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        fields["seed"] = repeat_seed(seed, repeat)
    body = _canonical(fields).encode()
    head, tail = _around(repeat, **beside_name)
    return Request(body, hashlib.sha256(head + body + tail).hexdigest())


_CONTROL = ({"role": "user", "content": "1+1="},)


def build_control(body: bytes, api: str) -> bytes:
    """Return a request like another one, of which only what it asks is something that nobody refuses.

    Examples
    --------
    >>> build_control(b'{"messages":[{"content":"hi","role":"user"}],"model":"m","top_p":1}', "chat")
    b'{"messages":[{"content":"1+1=","role":"user"}],"model":"m","top_p":1}'
    """
    fields = json.loads(body)
    fields.pop("system", None)
    return _canonical({**fields, **APIS[api].write(_CONTROL)}).encode()


@lru_cache(maxsize=1024, typed=True)
def _around(repeat: int, **beside_name: object) -> tuple[bytes, bytes]:
    """What a digest is made of before and after a body: canonical JSON, without encoding the request twice."""
    head, key, tail = _canonical({**beside_name, "repeat": repeat, "request": 0}).encode().partition(_REQUEST)
    return head + key[:-1], tail


def repeat_seed(seed: int, repeat: int) -> int:
    """A 31-bit seed of its own for each repeat; repeat 0 keeps the declared one.

    Examples
    --------
    >>> repeat_seed(7, 0)
    7
    >>> repeat_seed(7, 1) == repeat_seed(7, 1) != repeat_seed(7, 2)
    True
    """
    if repeat == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{repeat}".encode()).digest()[:4], "big") >> 1
