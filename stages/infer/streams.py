"""Puts a streamed reply together to the body that the endpoint would have sent whole. Pure.

A stream holds the same fields as a whole reply, bit by bit. Texts of one field are joined, of counts the largest
counts, of anything else the last that came. So what reads replies needs to know nothing of streams.

An event is a piece of the reply, nothing, or an error. What is no piece is nothing if the reply's end is known, and an
error if it is not. A reply is whole with a reason, with the API's own closing event, or with ``[DONE]``.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from evalcube.stages.infer.fields import PART_COST, BadEventError, Fields, as_object
from evalcube.stages.infer.reply import error_status
from evalcube.stages.infer.sse import ERROR, Events, TooLargeError
from evalcube.stages.reply.body import parse_body, read_error
from evalcube.stages.reply.forms import MESSAGES, REPLY_FORMS, RESPONSES, ending_of

_VERBOSITY = 64
_EVENT_COST = 128
"""Bytes of a stream that an event takes beside its data."""
_DONE = b"[DONE]"
_EVENT = re.compile(rb"(?:data|event|id|retry)?:")
"""How a stream of events begins, whatever the reply's content type says."""
_BLANK = b" \t\r\n\xef\xbb\xbf"


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
        self.foreign: Mapping[str, object] | None = None
        """The first event that is no piece of a reply."""
        self._has_pieces = False
        self._left = limit

    def add(self, data: bytes, name: bytes = b"") -> None:
        """Take the data and the name of one event."""
        data = data.strip()
        if data == _DONE:
            self.complete = True
            return
        # Whatever follows the end is no part of the reply.
        if self.complete or self.error is not None:
            return
        event = parse_body(data)
        # Some servers put each event into a list of one.
        if isinstance(event, list) and event:
            event = event[0]
        if (
            isinstance(event, dict)
            and name != ERROR
            and not event.get("error")
            and self._take(event, len(data))
        ):
            self._has_pieces = True
            return
        fields = as_object(event)
        text = event if isinstance(event, str) else data[:PART_COST].decode("utf-8", "replace")
        if name == ERROR or fields.get("error"):
            self.error = fields or {"error": text or "error"}
        elif event is None and data.startswith(b"{") and not self.has_reason:
            raise BadEventError
        elif event or (event is None and data not in (b"", b"null")):
            self.foreign = self.foreign or fields or {"error": text}

    def body(self) -> bytes:
        """The reply as one body."""
        return json.dumps(self._document(), separators=(",", ":")).encode()

    @property
    def has_reason(self) -> bool:
        """Whether the endpoint said why it stopped to write."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        """Whether the reply is whole."""
        # Anything may follow a reason; without one, what is no piece may be an error that nobody calls so.
        return self.has_reason or (self.complete and self._has_pieces and self.foreign is None)

    def _take(self, event: dict[str, Any], size: int) -> bool:
        """Take a piece of the reply; returns whether it is one."""
        raise NotImplementedError

    def _document(self) -> dict[str, Any]:
        raise NotImplementedError

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLargeError


_SHOWN = frozenset(
    {"content", "text", "tool_calls", "reasoning_content", "reasoning", "thinking", "reasoning_details"}
)
"""Fields of a message with which a reply begins."""


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
    def has_reason(self) -> bool:
        """Whether the choice has one."""
        return bool(ending_of(self._choice.get("finish_reason")).kind)

    def _take(self, event: dict[str, Any], size: int) -> bool:
        for name in ("id", "created", "model", "timings", "system_fingerprint", "provider"):
            if event.get(name) != self._top.get(name):
                self._top.set(name, event.get(name), size)
        usage, choices = event.get("usage"), event.get("choices")
        if usage:
            self._top.grow("usage", usage, size)
        is_piece = bool(usage)
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                is_piece = True
                # Nobody asks for more than one; some send others all the same.
                if choice.get("index") in (0, None):
                    self._take_choice(choice, size)
        return is_piece

    def _take_choice(self, choice: dict[str, Any], size: int) -> None:
        self._any = True
        if choice.get("error"):
            self.error = choice
            return
        reason = choice.get("finish_reason")
        if reason and (kind := ending_of(reason).kind) and (kind != "stop" or not self.has_reason):
            self._choice.set("finish_reason", reason, size)  # what broke or cut it is not taken back
        whole = as_object(choice.get("message"))
        for name, value in (
            whole or as_object(choice.get("delta")) or {"content": choice.get("text")}
        ).items():
            if name == "role":
                continue
            if self._message_field is None and name == "content":
                name = "text"  # noqa: PLW2901 - as completions call it, whoever sends them in the form of chat
            if whole:
                self._message.complete(name, value, size)
            elif self._message.add(name, value, size) and name in _SHOWN:
                self.begun = True

    def _document(self) -> dict[str, Any]:
        message = self._message.plain()
        choice = {"index": 0, **self._choice.plain()}
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
        self._blocks: dict[int, Fields] = {}

    @property
    def has_reason(self) -> bool:
        """Whether the message has one."""
        return bool(ending_of(self._top.get("stop_reason")).kind)

    def _take(self, event: dict[str, Any], size: int) -> bool:
        kind = event.get("type")
        if kind == "message_start":
            self._take_fields(event.get("message"), size)
        elif kind == "message":  # a whole one
            self._take_fields(event, size)
        elif kind == "message_delta":
            self._take_fields({**as_object(event.get("delta")), "usage": event.get("usage")}, size)
        elif kind == "message_stop":
            self.complete = True
        elif kind in ("content_block_start", "content_block_delta"):
            part = event.get("content_block" if kind == "content_block_start" else "delta")
            self._take_block(event.get("index"), as_object(part), size, start=kind == "content_block_start")
        else:
            return kind in ("content_block_stop", "ping")
        return True

    def _take_fields(self, fields: object, size: int) -> None:
        for name, value in as_object(fields).items():
            if name == "usage":
                self._top.grow(name, value, size)
            elif name == "content":
                for index, part in enumerate(value if isinstance(value, list) else ()):
                    self._take_block(index, as_object(part), size, start=True)
            elif name != "stop_reason" or ending_of(value).kind:
                self._top.set(name, value, size)

    def _take_block(self, index: object, part: dict[str, Any], size: int, *, start: bool) -> None:
        if not isinstance(index, int):
            return
        if index not in self._blocks:
            self._spend(4 * PART_COST)
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
        document = self._top.plain()
        if blocks or document.keys() - {"usage"}:
            document["content"] = blocks
        return document


_WHOLE = frozenset({"response.completed", "response.incomplete", "response.cancelled"})


class ResponseAssembly(Assembly):
    """Events of the responses API: texts grow, and the last event has the whole response once more."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._response: dict[str, Any] = {}

    @property
    def has_reason(self) -> bool:
        """Whether the whole response came."""
        return bool(self._response)

    @property
    def is_whole(self) -> bool:
        """The same: its pieces are not kept."""
        return self.has_reason

    def _take(self, event: dict[str, Any], size: int) -> bool:
        kind = str(event.get("type"))
        if kind.endswith(".delta"):
            self.begun |= bool(event.get("delta"))
        elif kind == "error":
            self.error = {"error": event}
        elif kind == "response.failed":
            self.error = {"error": as_object(event.get("response")).get("error") or event}
        elif kind in _WHOLE or event.get("object") == "response":
            self._spend(size)
            self._response, self.complete = as_object(event.get("response")) or event, True
        return kind.startswith("response.")

    def _document(self) -> dict[str, Any]:
        return self._response


_ASSEMBLIES: Mapping[str, Callable[[int], Assembly]] = MappingProxyType(
    {MESSAGES: MessageAssembly, RESPONSES: ResponseAssembly}
)
"""By API whose streams have events of their own, what makes an assembly from a limit in bytes."""


def assembly_of(api: str, limit: int) -> Assembly:
    """Return an empty assembly for the streams of an API: pieces of choices, unless they have events of their own."""
    own = _ASSEMBLIES.get(api)
    return own(limit) if own else ChoiceAssembly(limit, REPLY_FORMS[api].message)


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
        self._assembly = assembly_of(api, limit)
        self._limit, self._left = limit, limit * _VERBOSITY
        self._body: bytearray | None = bytearray()
        """What came, if it is no stream of events but a document; None of a stream."""

    def feed(self, piece: bytes, seconds: float) -> bool:
        """Take a piece of the stream; returns whether the reply is over."""
        self._left -= len(piece)
        if self._left < 0:
            raise TooLargeError
        assembly = self._assembly
        if self._body is not None:
            text = piece if self._body else piece.lstrip(_BLANK)
            if not text:
                deque(self._events.feed(piece), maxlen=0)  # which counts lines that say nothing
                return False
            self._body += text
            self.latency = seconds
            if len(self._body) > self._limit:
                raise TooLargeError
            # Some answer with one whole document although a stream was asked for.
            if not _EVENT.match(self._body):
                return False
            piece, self._body = bytes(self._body), None
        for data in self._events.feed(piece):
            self._left -= _EVENT_COST
            assembly.add(data, self._events.name)
        if assembly.begun and math.isnan(self.first_token):
            self.first_token = seconds
        self.latency = seconds
        return assembly.complete or assembly.error is not None

    def result(self) -> tuple[int, bytes]:
        """The HTTP status and the body that a whole reply would have had."""
        if self._body is not None:
            return 200, bytes(self._body)
        assembly = self._assembly
        try:
            for data in self._events.finish():
                assembly.add(data, self._events.name)
        except BadEventError:
            # A last event that cannot be read was cut with the connection.
            raise CutError from None
        error = assembly.error
        if error is None and not assembly.is_whole:
            error = assembly.foreign
            if error and error.get("choices") == [] and assembly.complete and not assembly.begun:
                return 200, json.dumps(error).encode()  # the whole of what was to be said
            if error is None or not read_error(error).message:
                raise CutError
        if error is not None:
            return error_status(error), json.dumps(error).encode()
        return 200, assembly.body()
