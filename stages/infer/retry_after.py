"""Reads from response headers how long the endpoint asks to wait. Pure: the caller brings the time.

Understood are ``Retry-After`` (seconds or a date), ``retry-after-ms``, and pairs of "so many remain" and "full again
at": ``x-ratelimit-*`` as OpenAI, its imitators and gateways send it, ``ratelimit-*`` (IETF draft), and
``anthropic-ratelimit-*``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

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
    """Seconds until the endpoint wants to be asked again; None if it does not say.

    Parameters
    ----------
    headers
        Response headers: a case-insensitive mapping, or one with lower-case keys.
    now
        Unix time in seconds.
    """
    exact = headers.get("retry-after-ms")
    if exact is not None:
        seconds = _number(exact)
        if seconds is not None and seconds >= 0:
            return seconds / 1000.0
    value = headers.get("retry-after")
    return None if value is None else seconds_until(value, _endpoint_time(headers, now))


def exhausted(headers: Mapping[str, str], now: float) -> Refill | None:
    """The limit of which the headers say that nothing is left, of several the one that lasts longest; else None.

    Parameters
    ----------
    headers
        Response headers: a case-insensitive mapping, or one with lower-case keys.
    now
        Unix time in seconds.
    """
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

    Parameters
    ----------
    value
        Seconds, a Unix time in seconds or milliseconds, a duration, or a date of HTTP or ISO 8601. What is in the past
        is 0.
    now
        Unix time in seconds.

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
