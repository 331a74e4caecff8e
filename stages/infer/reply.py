"""Decides what an endpoint's answer means for its request: it counts, it is tried again, or it has failed.

Pure: no socket, no clock. Headers say how long to wait: ``Retry-After`` (seconds or a date), ``retry-after-ms``, and
pairs of "so many remain" and "full again at": ``x-ratelimit-*`` as OpenAI, its imitators and gateways send it,
``ratelimit-*`` (IETF draft), and ``anthropic-ratelimit-*``. The habits of real servers that make a difference here are
described in the documentation of endpoints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import NamedTuple

from evalcube.stages.reply.body import parse_body, read_error
from evalcube.stages.reply.forms import CHAT, REPLY_FORMS, ReplyForm, ending_of, read_usage

_LIMITS = (
    *(
        (what, f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}")
        for what in ("requests", "tokens")
    ),
    ("", "x-ratelimit-remaining", "x-ratelimit-reset"),
    ("", "ratelimit-remaining", "ratelimit-reset"),
    *(
        (what, f"anthropic-ratelimit-{what}-remaining", f"anthropic-ratelimit-{what}-reset")
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
)
"""For each limit its name, if it has one, the header of what remains, and that of when all is there again."""
_SAME_SECONDS = 2.0
_LONGEST_TEXT = 64
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s|d))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EARLIEST_STAMP = 1e9
"""Numbers from here on are Unix times, from a thousand times as much on in milliseconds."""


class Refill(NamedTuple):
    """A limit of which nothing is left."""

    seconds: float
    """Until more requests are welcome."""
    limit: str
    """Which one: ``requests``, ``tokens``, ``input-tokens``, ``output-tokens``; empty if the headers do not say."""


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the endpoint wants to be asked again; None if it does not say."""
    # First, as it is more exact than the whole seconds of `Retry-After`, which stand beside it.
    exact = headers.get("retry-after-ms")
    if exact is not None:
        seconds = _number(exact)
        if seconds is not None and seconds >= 0:
            return seconds / 1000.0
    value = headers.get("retry-after")
    return None if value is None else seconds_until(value, _endpoint_time(headers, now))


def exhausted_limit(headers: Mapping[str, str], now: float) -> Refill | None:
    """The limit of which the headers say that nothing is left, of several the one that lasts longest; else None."""
    longest: Refill | None = None
    for limit, remaining, reset in _LIMITS:
        left = headers.get(remaining)
        if left is None or _number(left) != 0:
            continue
        seconds = seconds_until(headers.get(reset, ""), _endpoint_time(headers, now))
        if seconds is not None and (longest is None or seconds > longest.seconds):
            longest = Refill(seconds, limit)
    return longest


def seconds_until(value: str, now: float) -> float | None:
    """Seconds from now until a time that a header names; None for what is no time.

    Examples
    --------
    >>> seconds_until("7", 0.0), seconds_until("1m2.5s", 0.0), seconds_until("20ms", 0.0)
    (7.0, 62.5, 0.02)
    >>> seconds_until("1970-01-01T00:00:30Z", 10.0)
    20.0
    """
    value = value.strip()[:_LONGEST_TEXT]
    seconds = _number(value)
    if seconds is not None:
        if seconds >= _EARLIEST_STAMP:
            seconds = (seconds / 1000.0 if seconds >= 1000 * _EARLIEST_STAMP else seconds) - now
        return max(0.0, seconds)
    if _DURATION.fullmatch(value):
        return sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(value))
    date = _date(value)
    if date is None:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)


def _endpoint_time(headers: Mapping[str, str], now: float) -> float:
    """What time it is by the endpoint's clock, by which it names dates; `now` if it does not say, or the same."""
    stamp = seconds_until(headers.get("date", ""), 0.0)
    # A header has whole seconds: where the clocks agree, this process's is more exact.
    return now if stamp is None or abs(stamp - now) <= _SAME_SECONDS else stamp


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


class RetryClass(Enum):
    """What becomes of a request after one attempt."""

    FINAL = "final"
    """The reply counts: an answer, a truncation or a refusal. Cached."""
    RETRY = "retry"
    """Worth another attempt."""
    FAILED = "failed"
    """This request cannot succeed as it is; a transport error, not retried in this run."""
    FATAL = "fatal"
    """No request to this endpoint can succeed (wrong key, unknown model): the model stops."""


class Reply(NamedTuple):
    """One attempt's result."""

    retry_class: RetryClass
    """What becomes of the request."""
    cause: str = ""
    """Short name of what went wrong, for tables: ``http 429``, ``timeout``, ``invalid json``."""
    detail: str = ""
    """What the endpoint said, bounded; for people."""
    retry_after: float | None = None
    """Seconds that the endpoint asked to wait."""
    exhausted: float | None = None
    """Seconds until the endpoint takes requests again, where its headers say that none are left."""
    limit: str = ""
    """Name of the limit of which they say so; see `evalcube.stages.infer.reply.Refill`."""
    prompt_tokens: int = 0
    """As the endpoint counted them; 0 where it does not say."""
    completion_tokens: int = 0
    """As the endpoint counted them; 0 where it does not say."""
    cached_tokens: int = 0
    """Of the prompt's, those that it had in its cache; 0 where it does not say."""
    page: bool = False
    """Whether it is a web page, as an address has that is none of an API."""
    text_bytes: int = 0
    """Of the texts in it, where it counts and does not say how many tokens they are."""
    has_reason: bool = True
    """Whether it says why it ended, where it counts."""
    is_refusal: bool = False
    """Whether it may be about this request alone, and then is the outcome of its trial."""
    refused: str = ""
    """The parameter that is not taken; see `evalcube.stages.reply.body`."""

    @property
    def is_final(self) -> bool:
        """Whether the reply counts."""
        return self.retry_class is RetryClass.FINAL

    @property
    def retryable(self) -> bool:
        """Whether another attempt makes sense."""
        return self.retry_class is RetryClass.RETRY


_CAPACITY_STATUS = {408, 409, 420, 423, 424, 425, 429, 430, 449, 460, 498, 499}
"""What servers and their gateways say, beside all from 500 on, when another moment would do."""
_FATAL_STATUS = {401, 402, 403, 404, 405, 407, 410}
"""What is about the account, the model or the address."""
_FORBIDDEN = 403
_REFUSING_STATUS = {400, 413, 422}
_UNPAID_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
"""What some endpoints say with status 429, though no waiting helps."""
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
"""Statuses that errors have where they come before a stream, by their code or type."""
_PAGE = "a web page instead of JSON: is the endpoint an OpenAI-compatible base URL, ending in /v1?"
_OF_ADDRESS = {404, 405}
_SHOWN_BYTES = 4096
_DETAIL_LIMIT = 300


def classify(status: int, headers: Mapping[str, str], body: bytes, now: float, api: str = CHAT) -> Reply:
    """What an HTTP reply means; never raises, whatever the reply holds."""
    reply = (
        _classify_ok(headers, body, now, REPLY_FORMS[api])
        if 200 <= status < 300
        else _classify_error(status, headers, body, now)
    )
    refill = exhausted_limit(headers, now)
    return reply if refill is None else reply._replace(exhausted=refill.seconds, limit=refill.limit)


def _classify_error(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Reply:
    error = read_error(parse_body(body))
    if status in _REFUSING_STATUS:
        if error.is_filter:
            return Reply(RetryClass.FINAL, "filter")
        if error.is_context:
            return Reply(RetryClass.FINAL, "context")
    cause, detail = f"http {status}", one_line(error.message) or _excerpt(body)
    if status in _OF_ADDRESS and _is_page(body):
        detail = _PAGE
    if status == _FORBIDDEN and error.is_moderation:
        return Reply(RetryClass.FAILED, cause, detail, is_refusal=True)
    if status in _FATAL_STATUS or {error.code, error.kind} & _UNPAID_CODES:
        return Reply(RetryClass.FATAL, cause, detail)
    # All of 500 and above: gateways have numbers of their own there, and another moment may do.
    if status >= 500 or status in _CAPACITY_STATUS:
        return Reply(RetryClass.RETRY, cause, detail, retry_after=retry_after(headers, now))
    # Not followed: the key would go along to wherever it leads.
    if 300 <= status < 400:
        return Reply(RetryClass.FATAL, "redirect", f"HTTP {status}: give the final base URL in the config")
    return Reply(RetryClass.FAILED, cause, detail, is_refusal=status >= 400)


def error_status(event: object) -> int:
    """The HTTP status that the error in `event` would have had before the stream; 500 if nothing says which.

    Examples
    --------
    >>> error_status({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    529
    >>> error_status({"error": {"message": "slow down", "code": 429}})
    429
    """
    error = read_error(event)
    if error.is_filter or error.is_context:
        return 400
    if error.code.isascii() and error.code.isdecimal() and 400 <= int(error.code[:4]) < 600:
        return int(error.code[:4])
    return _STATUS.get(error.code) or _STATUS.get(error.kind) or 500


def _classify_ok(headers: Mapping[str, str], body: bytes, now: float, form: ReplyForm) -> Reply:
    document = parse_body(body)
    if document is None:
        page = _is_page(body)
        detail = _PAGE if page else _excerpt(body) or "the reply is empty"
        return Reply(RetryClass.RETRY, "invalid json", detail, page=page)
    if not isinstance(document, dict):
        return Reply(RetryClass.RETRY, "wrong shape", "the reply is no JSON object")
    # Some answer 200 to everything, and say in the body what went wrong.
    if document.get("error"):  # whatever stands beside it
        return _classify_error(error_status(document), headers, body, now)
    document = form.read(document)
    first: object = document
    if form.listed:
        choices = document.get("choices")
        if not isinstance(choices, list) or not choices:
            detail = one_line(read_error(document).message) or _excerpt(body)
            return Reply(RetryClass.RETRY, "no choices", detail, is_refusal=choices == [])
        first = choices[0]
    if not isinstance(first, dict) or not _has_message(first, form):
        message = one_line(read_error(document).message)
        return Reply(RetryClass.RETRY, "wrong shape", message or "the reply has no message in it")
    end = ending_of(first.get(form.finish))
    if first.get("error") or end.kind == "fault":
        return Reply(RetryClass.RETRY, "broken off", one_line(read_error(first).message) or end.word)
    prompt, completion, _, cached = (max(count, 0) for count in read_usage(document.get("usage"), form))
    return Reply(
        RetryClass.FINAL,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=min(cached, prompt),
        text_bytes=0 if completion else _text_bytes(first.get(form.message or form.content)),
        has_reason=bool(end.kind),
    )


_NO_TEXTS = frozenset({"role", "type", "id"})


def _text_bytes(message: object) -> int:
    """Return the bytes of all texts in a message, however deep."""
    size, values = 0, [message]
    while values:
        value = values.pop()
        if isinstance(value, str):
            size += len(value.encode("utf-8", "replace"))
        elif isinstance(value, dict):
            values += (part for name, part in value.items() if name not in _NO_TEXTS)
        elif isinstance(value, list):
            values += value
    return size


_ELSEWHERE = ("text", "parts", "output", "response", "answer")
"""Fields in which some servers have a text, and no API."""


def _has_message(answer: dict[str, object], form: ReplyForm) -> bool:
    """Whether there is something to read; what it holds may be null, as some say so that there is no text."""
    message = answer if form.message is None else answer.get(form.message)
    if not isinstance(message, dict) or (form.message is None and form.content not in message):
        return False
    content = message.get(form.content)
    if not isinstance(content, str | list | None):
        return False
    return bool(content) or form.message is None or not any(map(message.get, _ELSEWHERE))


class EndHabit:
    """Whether an endpoint says why its replies end: one that does so, and once does not, has cut that reply."""

    def __init__(self) -> None:
        self._gives_reasons = False

    def judge(self, reply: Reply) -> Reply:
        """Return `reply`, or what becomes of one that has no reason where others had."""
        if not reply.is_final or reply.cause:
            return reply
        self._gives_reasons |= reply.has_reason
        if reply.has_reason or not self._gives_reasons:
            return reply
        return Reply(RetryClass.RETRY, "cut reply", "the reply does not say why it ended, as others did")


def _is_page(body: bytes) -> bool:
    return body[:_SHOWN_BYTES].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _excerpt(body: bytes) -> str:
    """The beginning of a body that is no JSON, for people."""
    return one_line(body[:_SHOWN_BYTES].decode("utf-8", "replace"))


def one_line(text: str) -> str:
    """A text as it can be shown: on one line, printable, and at most 300 characters long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _DETAIL_LIMIT else line[: _DETAIL_LIMIT - 1] + "…"
