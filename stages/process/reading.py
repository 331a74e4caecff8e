"""A record of a reply in; its text, reasoning trace, finish reason and sizes out. Never raises on hostile replies."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

from stages.record import Record

TEXT_LIMIT = 4_000_000
"""Characters of answer and of reasoning that are read; an endpoint that sends more is cut."""

_THINK_OPEN = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
_LENGTH_REASONS = {"length", "max_tokens", "model_length"}
_FILTER_REASONS = {"content_filter", "safety", "refusal"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says."""

    answer: str
    """The text after the reasoning trace."""
    reasoning: str
    """The reasoning trace; empty if the model shows none."""
    finish: str
    """``stop``, ``length``, ``context`` (the prompt did not fit) or ``refused``."""
    prompt_tokens: int
    """-1 where the endpoint does not say."""
    completion_tokens: int
    """-1 where the endpoint does not say."""
    latency: float
    """Seconds."""


def read_reply(record: Record) -> Reading:
    """Read a reply that counts.

    The record of an HTTP error counts only if it says that the prompt does not fit, or was filtered.
    """
    document = _document(record.body)
    if record.status >= 300:
        finish = "refused" if _is_filtered(document) else "context"
        return Reading("", "", finish, -1, 0, record.latency)
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    answer, reasoning = split_reasoning(_text(message.get("content")), _reasoning_field(message))
    return Reading(
        answer,
        reasoning,
        _finish(choice.get("finish_reason"), message),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        record.latency,
    )


def split_reasoning(content: str, field: str = "") -> tuple[str, str]:
    """Split a message into the final answer and the reasoning trace.

    The trace is the API's own reasoning field where there is one, and whatever stands in a think block. A block that
    is never closed is all trace and no answer; a closing tag without an opening one ends a trace that began in the
    prompt's template.

    Examples
    --------
    >>> split_reasoning("<think>2+2</think>Answer: 4")
    ('Answer: 4', '2+2')
    >>> split_reasoning("so 4</think>Answer: 4")
    ('Answer: 4', 'so 4')
    >>> split_reasoning("<think>so")
    ('', 'so')
    """
    content, field = content[:TEXT_LIMIT], field[:TEXT_LIMIT]
    last = max(_THINK_CLOSE.finditer(content), key=re.Match.start, default=None)
    if last is not None:
        trace, answer = content[: last.start()], content[last.end() :]
        opened = _THINK_OPEN.search(trace)
        if opened is not None and not trace[: opened.start()].strip():
            trace = trace[opened.end() :]
    else:
        opened = _THINK_OPEN.search(content)
        if opened is None:
            return content, field
        answer, trace = content[: opened.start()], content[opened.end() :]
    return answer, f"{field}\n{trace}" if field and trace else field or trace


def _document(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _is_filtered(document: dict[str, object]) -> bool:
    error = document.get("error", document)
    fields = error if isinstance(error, dict) else {}
    return any(
        "content" in str(fields.get(key, "")).lower() and "context" not in str(fields.get(key, "")).lower()
        for key in ("code", "type")
    )


def _text(content: object) -> str:
    """Content as text; some servers send a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _reasoning_field(message: dict[str, object]) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _finish(reason: object, message: dict[str, object]) -> str:
    name = reason.lower() if isinstance(reason, str) else ""
    if name in _LENGTH_REASONS:
        return "length"
    if name in _FILTER_REASONS or message.get("refusal"):
        return "refused"
    return "stop"


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return -1
    return int(value) if 0 <= value < 2**31 else -1
