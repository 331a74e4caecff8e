"""What is stored of a reply, and where its parts stand, by API: what `infer` and `process` share.

All replies are JSON objects that name the same few things differently. A streamed reply is put together in the same
form, so that nothing but `evalcube.stages.infer.streams` has to know of streams.

What `infer` stores under a request's digest is a record: one JSON header line (format, HTTP status, seconds), then the
body exactly as the endpoint sent it, so that nothing an endpoint said is lost to a later, better reader. The header
leaves out what has its default: a record that needs no newer field is the same bytes as before the field existed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from evalcube.stages.reply.body import short_text, token_count

ApiName = Literal["chat", "completions", "messages", "responses"]
CHAT: ApiName = "chat"
COMPLETIONS: ApiName = "completions"
MESSAGES: ApiName = "messages"
RESPONSES: ApiName = "responses"
"""Names of the APIs: chat completions, text completions, Anthropic's messages, and OpenAI's responses."""


class Ending(NamedTuple):
    """How an endpoint says that a reply ended."""

    kind: str
    """``stop``, ``length``, ``refused``, ``fault``, ``unknown``; empty where it does not say that it ended."""
    word: str
    """The endpoint's own word, printable and short."""

    @property
    def unusual_word(self) -> str:
        """What sets a whole reply apart from others: an unknown word, or that there is none; else empty."""
        return {"unknown": self.word, "": NO_WORD}.get(self.kind, "")


NO_WORD = "(none)"
"""The mark of a reply without a reason."""

_ENDINGS = {
    "": r"|null|none|nil|undefined|false|(?:finishreason|stopreason)?unspecified",
    "refused": r".*(?:filter|safety|refus|polic|prohibit|recitation|spii|sensitive|guardrail|block|moderat|toxic|harm"
    r"|copyright|flag|violat|complian|censor|inappropriate|forbidden|denied|unsafe|abus).*",
    "fault": r".*(?:error|fail|abort|cancel|timeout|timedout|network|resource|overload|unavail|interrupt|connect|pause"
    r"|exception|crash|ratelimit|quota|preempt|evict|shutdown|shed|expire|kill|closed|reset|lost|broken|internal"
    r"|partial|unfinished|progress|queued).*",
    "length": r".*(?:length|limit|max|context|incomplete|truncat|exceed).*",
    "stop": r"stop.*|end.*|eos.*|complete.*|finish.*|done|toolcalls?|tooluse|functioncall",
}
"""By kind of end which words of all APIs mean it, in lower case and without what is no letter or digit; the first that
matches counts. It goes by stems, since gateways pass on each other's words and make up more."""


def ending_of(reason: object) -> Ending:
    """Return how a reply ended by the reason that it gives; a word that the table lacks is of the kind ``unknown``.

    Examples
    --------
    >>> ending_of("end_turn").kind, ending_of("MAX_TOKENS").kind, ending_of("RECITATION").kind
    ('stop', 'length', 'refused')
    >>> ending_of("network_error").kind, ending_of("null").kind, ending_of("OTHER")
    ('fault', '', Ending(kind='unknown', word='OTHER'))
    """
    if isinstance(reason, str):
        return _named_ending(reason[:_WORD_LIMIT])
    # What is no text says nothing if it is false, and cannot be read if it is not.
    return Ending("unknown", type(reason).__name__) if reason else Ending("", "")


_WORD_LIMIT = 64


@lru_cache(maxsize=256)
def _named_ending(reason: str) -> Ending:
    letters = re.sub(r"[\W_]", "", reason.lower())
    kinds = (kind for kind, pattern in _ENDINGS.items() if re.fullmatch(pattern, letters))
    return Ending(next(kinds, "unknown"), short_text(reason))


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Names of the fields in the replies of one API."""

    listed: bool
    """Whether the answer is the first of ``choices``, or the document itself."""
    message: str | None
    """Field of the answer that holds the message; None if the answer is the message."""
    content: str
    """Field of the message that holds its text or its parts."""
    finish: str
    """Field of the answer that says why it ended."""
    prompt_tokens: str
    """Field of ``usage``."""
    completion_tokens: str
    """Field of ``usage``."""
    reasoning_tokens: tuple[str, ...] = ("completion_tokens_details.reasoning_tokens", "reasoning_tokens")
    """Where ``usage`` has those of the completion that are reasoning: the first of these that it has."""
    cached_tokens: tuple[str, ...] = (
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    )
    """Where it has tokens of the prompt that the endpoint had in its cache."""
    apart: tuple[str, ...] = ()
    """Fields of ``usage`` with tokens of the prompt that are not among `prompt_tokens`."""
    read: Callable[[dict[str, object]], dict[str, object]] = dict
    """Makes what the other fields speak of out of a reply."""


def _as_choice(document: dict[str, object]) -> dict[str, object]:
    """A response as a chat completion: its items of output together are the message of one choice.

    Examples
    --------
    >>> said = {"type": "message", "content": [{"type": "output_text", "text": "4"}]}
    >>> _as_choice({"output": [said], "status": "completed"})["choices"]
    [{'message': {'content': '4', 'reasoning': '', 'refusal': '', 'tool_calls': []}, 'finish_reason': 'completed'}]
    """
    output = document.get("output")
    status = document.get("status")
    if document.get("error") or status in ("failed", "cancelled"):
        return {
            **document,
            "choices": [{"message": {}, "finish_reason": "error", "error": document.get("error")}],
        }
    if not isinstance(output, list) or status in ("queued", "in_progress"):
        return {**document, "choices": None}
    items = [item for item in output if isinstance(item, dict)]
    message = {
        "content": _join_texts(items, "message", "content", "text"),
        "reasoning": _join_texts(items, "reasoning", "content", "text")
        or _join_texts(items, "reasoning", "summary", "text"),
        "refusal": _join_texts(items, "message", "content", "refusal"),
        "tool_calls": [
            {"id": number, "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
            for number, item in enumerate(items, 1)
            if item.get("type") == "function_call"
        ],
    }
    details = document.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return {**document, "choices": [{"message": message, "finish_reason": reason or status}]}


def _join_texts(items: list[dict[str, object]], kind: str, parts: str, name: str) -> str:
    """Texts of the parts of items of one kind."""
    texts = []
    for item in items:
        listed = item.get(parts) if item.get("type") == kind else None
        texts += (
            [part.get(name) for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
        )
    return "".join(text for text in texts if isinstance(text, str))


REPLY_FORMS: Mapping[str, ReplyForm] = MappingProxyType(
    {
        CHAT: ReplyForm(True, "message", "content", "finish_reason", "prompt_tokens", "completion_tokens"),
        COMPLETIONS: ReplyForm(True, None, "text", "finish_reason", "prompt_tokens", "completion_tokens"),
        MESSAGES: ReplyForm(
            False,
            None,
            "content",
            "stop_reason",
            "input_tokens",
            "output_tokens",
            ("output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"),
            ("cache_read_input_tokens",),
            ("cache_creation_input_tokens", "cache_read_input_tokens"),
        ),
        RESPONSES: ReplyForm(
            True,
            "message",
            "content",
            "finish_reason",
            "input_tokens",
            "output_tokens",
            ("output_tokens_details.reasoning_tokens",),
            ("input_tokens_details.cached_tokens",),
            read=_as_choice,
        ),
    }
)
"""The form of replies, by name of the API."""


class Usage(NamedTuple):
    """Tokens as an endpoint counted them; -1 where it does not say."""

    prompt: int = -1
    completion: int = -1
    reasoning: int = -1
    """Those of the completion that are reasoning."""
    cached: int = -1
    """Those of the prompt that the endpoint had in its cache."""


def read_usage(usage: object, form: ReplyForm) -> Usage:
    """Tokens of prompt and completion as the endpoint counted them; -1 where it does not say.

    Examples
    --------
    >>> read_usage({"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 2}, REPLY_FORMS["messages"])
    Usage(prompt=107, completion=2, reasoning=-1, cached=100)
    >>> read_usage({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 99}}, REPLY_FORMS["chat"])
    Usage(prompt=9, completion=-1, reasoning=-1, cached=9)
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt = _first_count(usage, (form.prompt_tokens,))
    for name in form.apart:
        part = _first_count(usage, (name,))
        if part >= 0:
            prompt = min(part + max(prompt, 0), _MOST)
    cached = _first_count(usage, form.cached_tokens)
    return Usage(
        prompt,
        _first_count(usage, (form.completion_tokens,)),
        # Some count reasoning beside the completion: more of it than that is what they say.
        _first_count(usage, form.reasoning_tokens),
        min(cached, prompt) if prompt >= 0 else cached,  # what is not sent is not saved
    )


_MOST = 2**31 - 1


def _first_count(usage: dict[str, object], paths: tuple[str, ...]) -> int:
    """The first count at one of some places, of which a dot parts field and subfield; -1 without any."""
    for path in paths:
        name, _, inner = path.partition(".")
        value = usage.get(name)
        if value is None:  # of most of the places
            continue
        count = token_count(value.get(inner) if inner and isinstance(value, dict) else value)
        if count is not None:
            return count
    return -1


_FORMAT = 1
_HEADER_LIMIT = 1024
_PLAIN = re.compile(rb'\{"format":1,"status":(\d{1,4}),"latency":(\d{1,9}\.\d{6})\}\n')
"""The header of most records; others are read as JSON."""


class Record(NamedTuple):
    """A reply that counts."""

    status: int
    """HTTP status."""
    latency: float
    """Seconds from sending the request to the last byte of the reply, for the attempt that counted.

    NaN where it came with a batch, which has no time of its own for each request.
    """
    body: bytes
    """The response body, decompressed."""
    first_token: float = math.nan
    """Seconds from sending the request to the first text or reasoning; NaN where the reply was not streamed."""
    api: str = CHAT
    """Which of `evalcube.stages.reply.forms.REPLY_FORMS` the body has."""

    imported: bool = False
    """Whether another tool got the reply and graded it; the body then has a field ``imported`` with its grade.

    It stands in the header, which no endpoint can write: a reply with such a field in its body has no say in its grade.
    """

    def encode(self) -> bytes:
        """The record as bytes: the header line, then the body.

        Examples
        --------
        >>> Record.decode(Record(200, 0.25, b"{}").encode())
        Record(status=200, latency=0.25, body=b'{}', first_token=nan, api='chat', imported=False)
        """
        first = "" if math.isnan(self.first_token) else f',"first_token":{self.first_token:.6f}'
        kind = "" if self.api == CHAT else f',"api":"{self.api}"'
        flag = ',"imported":true' if self.imported else ""
        latency = "NaN" if math.isnan(self.latency) else f"{self.latency:.6f}"
        header = f'{{"format":{_FORMAT},"status":{self.status},"latency":{latency}{first}{kind}{flag}}}\n'
        return header.encode() + self.body

    @classmethod
    def decode(cls, data: bytes) -> Record:
        """The record that `encode` wrote."""
        plain = _PLAIN.match(data)
        if plain is not None:
            return cls(int(plain[1]), float(plain[2]), data[plain.end() :])
        end = data.find(b"\n", 0, _HEADER_LIMIT)
        try:
            fields = json.loads(data[: max(end, 0)])
            if fields["format"] == _FORMAT:
                status, latency, body = int(fields["status"]), float(fields["latency"]), data[end + 1 :]
                api = fields.get("api", CHAT)
                if api in REPLY_FORMS:
                    first = float(fields.get("first_token", math.nan))
                    return cls(status, latency, body, first, api, fields.get("imported") is True)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            pass
        raise ValueError("not a record of a reply, or one of a newer format")
