"""Faults on purpose: rules as data, the choice of the requests that they strike, and what becomes of their replies.

Which requests are struck follows from the request's digest and from how often it was tried, never from a
clock: the same load always meets the same faults.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from evalcube.deploy.errors import SimulatorError
from tests.simulator.wire import JSON, Ending, Response, error_response, json_response

Body = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """One fault: what goes wrong, and for which requests.

    Raises
    ------
    SimulatorError
        A value is unknown, of a wrong type or out of range.
    """

    kind: str
    """One of `KINDS`."""
    share: float = 1.0
    """Share of the requests that are struck, chosen by digest."""
    first: int | None = None
    """Number of attempts of each request that are struck, the first ones; None strikes all."""
    times: int | None = None
    """Most strikes of this rule over all requests; None has no limit."""
    model: str | None = None
    """Only requests to the simulated model of this name."""
    status: int = 500
    """Status code of kinds ``status`` and ``stream_error``."""
    retry_after: str | None = None
    """``Retry-After`` of kind ``status``; ``date+5`` becomes the HTTP date five seconds from now."""
    body: str | None = None
    """Body of kinds ``status`` and ``wrong_type``."""
    seconds: float = 0.05
    """Kind ``drip``: seconds between two bytes."""
    megabytes: int = 16
    """Kinds ``huge`` and ``gzip_bomb``: size of the (unpacked) body."""

    def __post_init__(self) -> None:
        if self.kind not in tuple(KINDS):  # a tuple, as what JSON brings need not be hashable
            raise SimulatorError("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        for name, low, high in _LIMITS:
            _check(name, getattr(self, name), low, high, whole=name not in ("share", "seconds"))
        for name in ("model", "retry_after", "body"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise SimulatorError(name, getattr(self, name), "must be text")
        if self.retry_after is not None and not self.retry_after.isprintable():
            raise SimulatorError("retry_after", self.retry_after, "must fit on one line")


_LIMITS: tuple[tuple[str, float, float], ...] = (
    ("share", 0, 1),
    ("first", 1, 1_000_000),
    ("times", 1, 1_000_000_000),
    ("status", 200, 599),
    ("seconds", 0.001, 3600),
    ("megabytes", 1, 1024),
)
_OPTIONAL = ("first", "times")


def _check(name: str, value: object, low: float, high: float, *, whole: bool) -> None:
    if value is None and name in _OPTIONAL:
        return
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        noun = "a whole number" if whole else "a number"
        raise SimulatorError(name, value, f"must be {noun} from {low:g} to {high:g}")


def parse_rules(text: str | bytes) -> tuple[Rule, ...]:
    """The rules in a JSON list of objects.

    Raises
    ------
    SimulatorError
        The text is no such list, or a rule is wrong; the error's field names it, as in ``rules[0].share``.

    Examples
    --------
    >>> parse_rules('[{"kind": "status", "status": 429, "first": 1}]')[0].status
    429
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise SimulatorError("rules", text, f"must be JSON ({error})") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SimulatorError("rules", entries, "must be a list of objects")
    return tuple(_rule(index, entry) for index, entry in enumerate(entries))


_NAMES = tuple(field.name for field in fields(Rule))


def _rule(index: int, entry: Mapping[str, Any]) -> Rule:
    for name in entry:
        if name not in _NAMES:
            raise SimulatorError(f"rules[{index}].{name}", entry[name], f"there are {', '.join(_NAMES)}")
    if "kind" not in entry:
        raise SimulatorError(f"rules[{index}].kind", None, "is required")
    try:
        return Rule(**entry)
    except SimulatorError as error:
        raise SimulatorError(f"rules[{index}].{error.field}", error.value, error.rule) from None


class Injector:
    """Chooses the rule that strikes a request, and counts strikes by kind.

    Parameters
    ----------
    rules
        In order of precedence.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.struck: dict[str, int] = {}
        self._left = [rule.times for rule in self.rules]

    def pick(self, digest: bytes, attempt: int, model: str) -> Rule | None:
        """The first rule that fits a request, which counts as a strike of it; None if no rule fits.

        Parameters
        ----------
        digest
            The request's digest, 32 bytes.
        attempt
            How often this request was seen, counting now: 1 is the first attempt.
        model
            Name of the simulated model.
        """
        for index, rule in enumerate(self.rules):
            left = self._left[index]
            if left == 0 or not _strikes(index, rule, digest, attempt, model):
                continue
            if left is not None:
                self._left[index] = left - 1
            self.struck[rule.kind] = self.struck.get(rule.kind, 0) + 1
            return rule
        return None


def _strikes(index: int, rule: Rule, digest: bytes, attempt: int, model: str) -> bool:
    if rule.model is not None and rule.model != model:
        return False
    if rule.first is not None and attempt > rule.first:
        return False
    if rule.share >= 1.0:
        return True
    # The rule's place goes into the digest, so that two rules strike independently of each other.
    word = hashlib.sha256(b"fault %d " % index + digest).digest()[:8]
    return int.from_bytes(word) < rule.share * 2**64


def apply(rule: Rule, body: Body) -> Response:
    """The response that a rule makes of a good reply.

    Parameters
    ----------
    rule
        The rule that strikes.
    body
        The good reply, a chat completion; it may be changed.
    """
    return KINDS[rule.kind](rule, body)


def _status(rule: Rule, _: Body) -> Response:
    headers = () if rule.retry_after is None else (("retry-after", _retry_after(rule.retry_after)),)
    if rule.body is not None:
        return Response(rule.body.encode(errors="replace"), rule.status, JSON, headers)
    return error_response(rule.status, "a simulated fault", "simulated", headers)


def _retry_after(text: str) -> str:
    seconds = text.removeprefix("date+")
    if seconds == text or not seconds.isdecimal():
        return text
    return format_datetime(datetime.now(UTC) + timedelta(seconds=int(seconds)), usegmt=True)


def _wrong_type(rule: Rule, _: Body) -> Response:
    page = rule.body or "<html><body><h1>Welcome to the hotel network</h1></body></html>"
    return Response(page.encode(errors="replace"), content_type="text/html; charset=utf-8")


def _bad_json(_: Rule, body: Body) -> Response:
    whole = json_response(body).body
    return Response(whole[: len(whole) // 2])


def _choices(change: Callable[[list[Any]], list[Any]]) -> Callable[[Rule, Body], Response]:
    return lambda _, body: json_response({**body, "choices": change(body["choices"])})


def _message(change: Mapping[str, Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda choices: [
        {**choice, "message": {**choice["message"], **change}, "finish_reason": _finish(change, choice)}
        for choice in choices
    ]


def _finish(change: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in change else str(choice["finish_reason"])


def _parts(choices: list[Any]) -> list[Any]:
    content = choices[0]["message"]["content"]
    half = len(content) // 2
    parts = [{"type": "text", "text": content[:half]}, {"type": "text", "text": content[half:]}]
    return _message({"content": parts})(choices)


_TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def _without_usage(_: Rule, body: Body) -> Response:
    return json_response({key: value for key, value in body.items() if key != "usage"})


def _nan(_: Rule, body: Body) -> Response:
    return json_response({**body, "usage": dict.fromkeys(body["usage"], float("nan"))})


def _huge(rule: Rule, body: Body) -> Response:
    return json_response({**body, "padding": "x" * (rule.megabytes << 20)})


def _gzip_bomb(rule: Rule, _: Body) -> Response:
    return Response(_bomb(rule.megabytes), headers=(("content-encoding", "gzip"),))


@lru_cache(maxsize=2)
def _bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(b'{"choices":[{"message":{"content":"')]
    pieces += [packer.compress(b"0" * (1 << 20)) for _ in range(megabytes)]
    pieces += [packer.compress(b'"}}]}'), packer.flush()]
    return b"".join(pieces)


def _good(body: Body) -> Response:
    return json_response(body)


KINDS: Mapping[str, Callable[[Rule, Body], Response]] = MappingProxyType(
    {
        "status": _status,
        "reset": lambda _, body: _good(body)._replace(head_share=0.0, ending=Ending.RESET),
        "reset_head": lambda _, body: _good(body)._replace(head_share=0.5, ending=Ending.RESET),
        "reset_body": lambda _, body: _good(body)._replace(body_share=0.5, ending=Ending.RESET),
        "cut_body": lambda _, body: _good(body)._replace(body_share=0.5, ending=Ending.CLOSE),
        "hang": lambda _, body: _good(body)._replace(head_share=0.0, ending=Ending.HANG),
        "drip": lambda rule, body: _good(body)._replace(drip=rule.seconds),
        "wrong_type": _wrong_type,
        "bad_json": _bad_json,
        "wrong_shape": lambda _, __: json_response(["not", "a", "completion"]),
        "empty_choices": _choices(lambda _: []),
        "null_content": _choices(_message({"content": None})),
        "parts_content": _choices(_parts),
        "missing_usage": _without_usage,
        "nan": _nan,
        "huge": _huge,
        "redirect_loop": lambda _, __: Response(b"", 307, headers=(("location", "/v1/chat/completions"),)),
        "gzip_bomb": _gzip_bomb,
        "duplicate": _choices(lambda choices: choices * 2),
        "tool_calls": _choices(_message({"content": None, "tool_calls": [_TOOL_CALL]})),
        "stream_error": _status,
        "stream_end": _bad_json,
        "stream_stall": lambda _, body: _good(body)._replace(body_share=0.5, ending=Ending.HANG),
        "no_done": lambda _, body: _good(body),
        "wrong_model": lambda _, body: json_response({**body, "model": "another-model"}),
    }
)
"""Every kind of fault, and what it makes of a good reply that is not streamed."""
STREAM_KINDS = frozenset({"stream_error", "stream_end", "stream_stall", "no_done"})
"""Those that strike a stream between its events; any other first strikes the reply that is then streamed."""
