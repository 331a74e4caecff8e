"""What an endpoint answered in; what to do about it, out. Pure: no socket, no clock.

The habits of real servers that are told apart here are described in the documentation of endpoints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum

from stages.replybody import parse_body, read_error, token_count


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
_REFUSING_STATUS = {400, 413, 422}
_BROKEN_OFF = {"error", "abort"}
_SHOWN_BYTES = 4096
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
    document = parse_body(body)
    if 200 <= status < 300:
        return _classify_ok(document, body)
    error = read_error(document)
    if status in _REFUSING_STATUS:
        if error.is_filter:
            return Reply(Verdict.FINAL, "filter")
        if error.is_context:
            return Reply(Verdict.FINAL, "context")
    cause, detail = f"http {status}", _one_line(error.message) or _shown(body)
    if status in _RETRY_STATUS:
        return Reply(Verdict.RETRY, cause, detail, retry_after=_retry_after(headers.get("retry-after"), now))
    if status in _FATAL_STATUS:
        return Reply(Verdict.FATAL, cause, detail)
    if 300 <= status < 400:
        return Reply(Verdict.FATAL, "redirect", f"HTTP {status}: give the final base URL in the config")
    return Reply(Verdict.FAILED, cause, detail)


def _classify_ok(document: object, body: bytes) -> Reply:
    if document is None:
        return Reply(Verdict.RETRY, "invalid json", _shown(body))
    if not isinstance(document, dict):
        return Reply(Verdict.RETRY, "wrong shape", "the reply is no JSON object")
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        return Reply(Verdict.RETRY, "no choices", _one_line(read_error(document).message) or _shown(body))
    first = choices[0]
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        return Reply(Verdict.RETRY, "wrong shape", "choices[0] has no message")
    reason = first.get("finish_reason")
    if first.get("error") or (isinstance(reason, str) and reason.lower() in _BROKEN_OFF):
        return Reply(Verdict.RETRY, "broken off", _one_line(read_error(first).message))
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        Verdict.FINAL,
        prompt_tokens=token_count(usage.get("prompt_tokens")) or 0,
        completion_tokens=token_count(usage.get("completion_tokens")) or 0,
    )


def _shown(body: bytes) -> str:
    """The beginning of a body that is no JSON, for people."""
    return _one_line(body[:_SHOWN_BYTES].decode("utf-8", "replace"))


def _one_line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _DETAIL_LIMIT else line[: _DETAIL_LIMIT - 1] + "…"


def _retry_after(value: str | None, now: float) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
