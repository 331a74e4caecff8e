"""Puts a streamed reply together to the body that the endpoint would have sent whole. Pure.

A stream holds the same fields as a whole reply, bit by bit. Texts of one field are joined; of anything else the last
that came counts. So what reads replies needs to know nothing of streams.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from evalcube.stages.infer.sse import Events, TooLargeError
from evalcube.stages.reply.body import parse_body, read_error
from evalcube.stages.reply.forms import CHAT, COMPLETIONS, MESSAGES, RESPONSES

_PART_COST = 256
"""Bytes that a field takes beside its text."""
_VERBOSITY = 64
_DONE = b"[DONE]"
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Statuses that errors have where they come before the stream, by their code or type."""


class BadEventError(Exception):
    """An event that is no JSON object; holds its data."""


class Assembly:
    """A reply as far as it has come.

    Parameters
    ----------
    limit
        Most bytes of what is kept of it.
    """

    def __init__(self, limit: int) -> None:
        self.complete = False
        """Whether the endpoint said that this is all."""
        self.begun = False
        """Whether any text, reasoning or call of a tool came."""
        self.error: Mapping[str, object] | None = None
        """The error that ended it, if one did."""
        self._left = limit

    def add(self, data: bytes) -> None:
        """Take `data`, that of one event.

        Raises
        ------
        BadEventError
            If it is no JSON object.
        TooLargeError
            If the reply becomes larger than allowed.
        """
        if data.strip() == _DONE:
            self.complete = True
            return
        if self.complete or self.error is not None:
            return
        event = parse_body(data)
        if not isinstance(event, dict):
            raise BadEventError(data)
        if event.get("error"):
            self.error = event
            return
        self._take(event, len(data))

    def body(self) -> bytes:
        """The reply as one body."""
        return json.dumps(self._document(), separators=(",", ":")).encode()

    @property
    def ended(self) -> bool:
        """Whether the reply is whole: the endpoint said so, or at least why it stopped to write."""
        raise NotImplementedError

    def _take(self, event: dict[str, Any], size: int) -> None:
        raise NotImplementedError

    def _document(self) -> dict[str, Any]:
        raise NotImplementedError

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLargeError


class Fields:
    """Fields of one object that come bit by bit.

    Parameters
    ----------
    spend
        Called with the bytes of whatever is kept; raises when they are too many.
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        self._spend = spend
        self._texts: dict[str, io.StringIO] = {}
        self._others: dict[str, Any] = {}
        self._costs: dict[str, int] = {}
        """Of what the others hold, by field."""

    def add(self, name: str, value: object, size: int) -> bool:
        """Take a bit of field `name` from an event of `size` bytes; returns whether `value` is text or a list."""
        if value is None:
            return False
        if isinstance(value, str):
            if name not in self._texts:
                self._spend(len(name) + _PART_COST)
                self._texts[name] = io.StringIO()
            self._spend(len(value))
            self._texts[name].write(value)
            return bool(value)
        known = self._others.get(name)
        if isinstance(known, list) and isinstance(value, list):
            self._charge(name, self._costs[name] + size)
            known.extend(value)
        else:
            self._charge(name, size)
            self._others[name] = value
        return isinstance(value, list) and bool(value)

    def set(self, name: str, value: object, size: int) -> None:
        """Take field `name` whole from an event of `size` bytes: `value` comes once, or the last one counts."""
        if value is not None:
            self._charge(name, size)
            self._others[name] = value

    def _charge(self, name: str, cost: int) -> None:
        if name not in self._costs:
            self._spend(len(name) + _PART_COST)
        self._spend(cost - self._costs.get(name, 0))
        self._costs[name] = cost

    def get(self, name: str) -> object:
        """The field `name` if it came whole; None if it did not."""
        return self._others.get(name)

    def plain(self) -> dict[str, Any]:
        """All fields; texts, and then parts, where a field had both."""
        merged: dict[str, Any] = {name: text.getvalue() for name, text in self._texts.items()}
        for name, value in self._others.items():
            both = isinstance(value, list) and merged.get(name)
            merged[name] = [{"type": "text", "text": both}, *value] if both else value
        return merged


_REASONING = ("reasoning_content", "reasoning", "thinking")


class ChoiceAssembly(Assembly):
    """Chunks of chat and text completions.

    Parameters
    ----------
    limit
        See `Assembly`.
    message
        Field of the choice that holds the message; None if the choice is the message.
    """

    def __init__(self, limit: int, message: str | None) -> None:
        super().__init__(limit)
        self._message_field = message
        self._top = Fields(self._spend)
        self._choice = Fields(self._spend)
        self._message = Fields(self._spend)
        self._any = False
        """Whether there was a choice at all."""

    @property
    def ended(self) -> bool:
        """Whether the endpoint said that the reply is whole, or at least why it ended."""
        return self.complete or self._choice.get("finish_reason") is not None

    def _take(self, event: dict[str, Any], size: int) -> None:
        for name in ("id", "created", "model", "usage", "timings", "system_fingerprint", "provider"):
            if event.get(name) != self._top.get(name):
                self._top.set(name, event.get(name), size)
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._take_choice(choice, size)

    def _take_choice(self, choice: dict[str, Any], size: int) -> None:
        self._any = True
        if choice.get("error"):
            self.error = choice
            return
        self._choice.set("finish_reason", choice.get("finish_reason"), size)
        if self._message_field is None:
            self.begun |= self._message.add("text", choice.get("text"), size)
            return
        for name, value in _object(choice.get("delta")).items():
            if name == "role":
                continue
            text = self._message.add(name, value, size)
            self.begun |= text and (name in ("content", "tool_calls") or name in _REASONING)

    def _document(self) -> dict[str, Any]:
        message = self._message.plain()
        choice: dict[str, Any] = {"index": 0, **self._choice.plain()}
        if self._message_field is None:
            choice |= {"text": "", **message}
        else:
            choice[self._message_field] = {"role": "assistant", "content": None, **message}
        return {**self._top.plain(), "choices": [choice] if self._any else []}


class MessageAssembly(Assembly):
    """Events of the messages API: a message begins, its blocks come one after another, the message ends."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._top = Fields(self._spend)
        self._usage = Fields(self._spend)
        self._blocks: dict[int, Fields] = {}

    @property
    def ended(self) -> bool:
        """Whether the endpoint said that the reply is whole, or at least why it ended."""
        return self.complete or self._top.get("stop_reason") is not None

    def _take(self, event: dict[str, Any], size: int) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self._take_fields(event.get("message"), size)
        elif kind == "message_delta":
            self._take_fields({**_object(event.get("delta")), "usage": event.get("usage")}, size)
        elif kind == "message_stop":
            self.complete = True
        elif kind in ("content_block_start", "content_block_delta"):
            part = event.get("content_block" if kind == "content_block_start" else "delta")
            self._take_block(event.get("index"), _object(part), size, start=kind == "content_block_start")

    def _take_fields(self, fields: object, size: int) -> None:
        for name, value in _object(fields).items():
            if name == "usage":
                for what, count in _object(value).items():
                    self._usage.set(what, count, size)
            elif name != "content":
                self._top.set(name, value, size)

    def _take_block(self, index: object, part: dict[str, Any], size: int, *, start: bool) -> None:
        if not isinstance(index, int):
            return
        if index not in self._blocks:
            self._spend(4 * _PART_COST)
            self._blocks[index] = Fields(self._spend)
        for name, value in part.items():
            if name != "type":
                text = self._blocks[index].add(name, value, size)
                self.begun |= text and name in ("text", "thinking", "partial_json")
            elif start:
                self._blocks[index].set("type", value, size)

    def _document(self) -> dict[str, Any]:
        content = [self._blocks[index].plain() for index in sorted(self._blocks)]
        # A server that never says how a block begins sends text.
        blocks = [{"type": "text", **block} for block in content]
        document = {**self._top.plain(), "usage": self._usage.plain()}
        if blocks or document.keys() != {"usage"}:
            document["content"] = blocks
        return document


class ResponseAssembly(Assembly):
    """Events of the responses API: texts grow, and the last event has the whole response once more."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._response: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """Whether the whole response came."""
        return self.complete

    def _take(self, event: dict[str, Any], size: int) -> None:
        kind = str(event.get("type"))
        if kind.endswith(".delta"):
            self.begun |= bool(event.get("delta"))
        elif kind == "error":
            self.error = {"error": event}
        elif kind == "response.failed":
            self.error = {"error": _object(event.get("response")).get("error") or event}
        elif kind in ("response.completed", "response.incomplete"):
            self._spend(size)
            self._response, self.complete = _object(event.get("response")), True

    def _document(self) -> dict[str, Any]:
        return self._response


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


ASSEMBLIES: Mapping[str, Callable[[int], Assembly]] = MappingProxyType(
    {
        CHAT: lambda limit: ChoiceAssembly(limit, "message"),
        COMPLETIONS: lambda limit: ChoiceAssembly(limit, None),
        MESSAGES: MessageAssembly,
        RESPONSES: ResponseAssembly,
    }
)
"""Makes an assembly from a limit in bytes, by API."""


class CutError(Exception):
    """The stream ended before the reply did."""


class ReplyStream:
    """A streamed reply, from the first byte to the last.

    Parameters
    ----------
    api
        One of `evalcube.stages.infer.apis.APIS`.
    limit
        Most bytes of the reply that it is put together to. The stream itself, which says the same at greater length,
        may have `_VERBOSITY` times as many; it is not kept.
    """

    def __init__(self, api: str, limit: int) -> None:
        self.first_token = math.nan
        """Seconds until the first text or reasoning came."""
        self.latency = math.nan
        """Seconds until the last byte of the reply came."""
        self._events = Events(limit)
        self._assembly = ASSEMBLIES[api](limit)
        self._left = limit * _VERBOSITY

    def feed(self, piece: bytes, seconds: float) -> bool:
        """Take a piece of the stream; returns whether the reply is over.

        Parameters
        ----------
        piece
            Bytes as they arrived, cut anywhere.
        seconds
            Time since the request was sent.

        Raises
        ------
        BadEventError
            If an event is no JSON object.
        TooLargeError
            If the reply, or an event, or all of the stream is larger than allowed.
        """
        self._left -= len(piece)
        if self._left < 0:
            raise TooLargeError
        assembly = self._assembly
        for data in self._events.feed(piece):
            assembly.add(data)
        if assembly.begun and math.isnan(self.first_token):
            self.first_token = seconds
        self.latency = seconds
        return assembly.complete or assembly.error is not None

    def result(self) -> tuple[int, bytes]:
        """The HTTP status and the body that a whole reply would have had.

        Raises
        ------
        CutError
            If it is not whole.
        TooLargeError
            If its last event is too large.
        """
        try:
            for data in self._events.finish():
                self._assembly.add(data)
        except BadEventError:
            raise CutError from None
        error = self._assembly.error
        if error is not None:
            return error_status(error), json.dumps(error).encode()
        if not self._assembly.ended:
            raise CutError
        return 200, self._assembly.body()


def error_status(event: Mapping[str, object]) -> int:
    """The HTTP status that the error in `event` would have had before the stream; 500 if nothing says which.

    Examples
    --------
    >>> error_status({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    529
    >>> error_status({"error": {"message": "slow down", "code": 429}})
    429
    """
    error = read_error(dict(event))
    if error.is_filter or error.is_context:
        return 400
    if error.code.isascii() and error.code.isdecimal() and 400 <= int(error.code[:4]) < 600:
        return int(error.code[:4])
    return _STATUS.get(error.code) or _STATUS.get(error.kind) or 500
