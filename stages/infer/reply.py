"""What an endpoint answered, or how it failed, in; what to do about it, out. Pure: no socket, no clock.

The habits of real servers that are told apart here are described in the documentation of endpoints.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum


class Verdict(Enum):
    """What becomes of a request after one attempt."""

    FINAL = "final"
    """The reply counts: an answer, a truncation or a refusal. Cached."""
    RETRY = "retry"
    """Worth another attempt."""
    FAILED = "failed"
    """This request cannot succeed as it is; a transport error, not retried in this run."""
    FATAL = "fatal"
    """No request to this endpoint can succeed (wrong key, unknown model): the model stops."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One attempt's result."""

    verdict: Verdict
    cause: str = ""
    """Short name of what went wrong, for tables: ``http 429``, ``timeout``, ``invalid json``."""
    detail: str = ""
    """What the endpoint said, bounded; for people."""
    retry_after: float | None = None
    """Seconds that the endpoint asked to wait."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def retryable(self) -> bool:
        """Whether another attempt makes sense."""
        return self.verdict is Verdict.RETRY


_RETRY_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_FATAL_STATUS = {401, 402, 403, 404, 405}
_CONTEXT_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_CONTEXT_PHRASES = (
    "context length",
    "context size",
    "context window",
    "maximum context",
    "prompt is too long",
    "reduce the length of the",
)
_FILTER_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_DETAIL_LIMIT = 300


def classify(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Reply:
    """Tell what an HTTP reply means.

    Parameters
    ----------
    status, headers, body
        The reply; `headers` is a case-insensitive mapping or has lower-case keys.
    now
        Unix time in seconds, for a ``Retry-After`` that is a date.
    """
    if 200 <= status < 300:
        return _classify_ok(body)
    detail = error_text(body)
    if status in {400, 413, 422}:
        if is_context_error(body):
            return Reply(Verdict.FINAL, "context")
        if is_filter_error(body):
            return Reply(Verdict.FINAL, "filter")
    cause = f"http {status}"
    if status in _RETRY_STATUS:
        return Reply(Verdict.RETRY, cause, detail, retry_after=_retry_after(headers.get("retry-after"), now))
    if status in _FATAL_STATUS:
        return Reply(Verdict.FATAL, cause, detail)
    if 300 <= status < 400:
        return Reply(Verdict.FATAL, "redirect", f"HTTP {status}: give the final base URL in the config")
    return Reply(Verdict.FAILED, cause, detail)


def _classify_ok(body: bytes) -> Reply:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Reply(Verdict.RETRY, "invalid json", _clip(body.decode("utf-8", "replace")))
    if not isinstance(document, dict):
        return Reply(Verdict.RETRY, "wrong shape", "the reply is no JSON object")
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        return Reply(Verdict.RETRY, "no choices", error_text(body))
    first = choices[0]
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        return Reply(Verdict.RETRY, "wrong shape", "choices[0] has no message")
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        Verdict.FINAL,
        prompt_tokens=whole(usage.get("prompt_tokens")) or 0,
        completion_tokens=whole(usage.get("completion_tokens")) or 0,
    )


def whole(value: object) -> int | None:
    """A token count as an endpoint gave it; None for anything that is no count (NaN, text, negative, huge)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if 0 <= value < 2**31 else None


def is_context_error(body: bytes) -> bool:
    """Tell whether an error body says that the prompt does not fit the model's context."""
    code, kind, message = _error_fields(body)
    if {code, kind} & _CONTEXT_CODES:
        return True
    lowered = message.lower()
    return any(phrase in lowered for phrase in _CONTEXT_PHRASES)


def is_filter_error(body: bytes) -> bool:
    """Tell whether an error body says that the prompt was refused by a content filter."""
    code, kind, _ = _error_fields(body)
    return bool({code, kind} & _FILTER_CODES)


def _error_fields(body: bytes) -> tuple[str, str, str]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return "", "", ""
    error = document.get("error", document) if isinstance(document, dict) else {}
    if not isinstance(error, dict):
        return "", "", str(error)[:4096]
    code, kind = (str(error.get(key, ""))[:4096].lower() for key in ("code", "type"))
    return code, kind, str(error.get("message", ""))[:4096]


def error_text(body: bytes) -> str:
    """What an error body says, in one bounded line."""
    _, _, message = _error_fields(body[:65536])
    return _clip(message or body[:4096].decode("utf-8", "replace"))


def _clip(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:4096]).split())
    return line if len(line) <= _DETAIL_LIMIT else line[: _DETAIL_LIMIT - 1] + "…"


def _retry_after(value: str | None, now: float) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
