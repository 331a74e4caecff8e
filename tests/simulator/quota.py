"""Limits that the simulated endpoint enforces: refuses requests with 429 and records how far they went beyond."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from evalcube.deploy.errors import SimulatorError
from tests.simulator.wire import Response, error_response

Headers = tuple[tuple[str, str], ...]
STYLES = ("none", "openai", "anthropic")


@dataclass(frozen=True)
class Limits:
    """What the simulated endpoint allows; None is no limit.

    Raises
    ------
    SimulatorError
        A value is no number in its range, or `style` is none of `STYLES`.
    """

    rpm: float | None = None
    """Requests per minute."""
    tpm: float | None = None
    """Tokens per minute, of prompts and completions."""
    connections: int | None = None
    """Requests in flight at once."""
    window: float = 60.0
    """Seconds over which rates are counted: no such time span may exceed its part of a minute's limit."""
    style: str = "openai"
    """Whose headers report what is left: OpenAI's, Anthropic's or none."""
    says_when: bool = True
    """Whether refusals have a ``Retry-After``."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("rpm", 1, 1e9),
            ("tpm", 1, 1e12),
            ("connections", 1, 1e6),
            ("window", 0.01, 3600),
        ):
            value = getattr(self, name)
            if value is None and name != "window":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise SimulatorError(name, value, f"must be a number from {low:g} to {high:g}")
        if not isinstance(self.says_when, bool):
            raise SimulatorError("says_when", self.says_when, "must be true or false")
        if self.style not in STYLES:
            raise SimulatorError("style", self.style, f"must be one of {', '.join(STYLES)}")


def parse_limits(text: str | bytes) -> Limits:
    """The limits in a JSON object; what it leaves out is unlimited.

    Raises
    ------
    SimulatorError
        The text is no such object, or a limit is wrong.

    Examples
    --------
    >>> parse_limits('{"rpm": 600, "window": 2}').rpm
    600
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise SimulatorError("limits", text, f"must be JSON ({error})") from None
    names = tuple(field.name for field in fields(Limits))
    if not isinstance(entries, dict) or not set(entries) <= set(names):
        raise SimulatorError("limits", entries, f"must be an object; there are {', '.join(names)}")
    return Limits(**entries)


class _Arrival(NamedTuple):
    at: float
    tokens: int
    accepted: bool


class Enforcer:
    """Refuses what goes beyond the limits, and counts it.

    Parameters
    ----------
    limits
        None allows everything.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._arrivals: deque[_Arrival] = deque()
        self._requests = self._tokens = 0
        """Of the arrivals in the window, those that were accepted."""
        self._all_tokens = 0
        self._over = {"rpm": 0, "tpm": 0, "connections": 0}
        self._most_requests = self._most_tokens = 0

    @property
    def _counts(self) -> bool:
        return self.limits.rpm is not None or self.limits.tpm is not None

    def arrive(self, tokens: int, in_flight: int, now: float) -> Response | None:
        """Record a request; the result is its refusal if it is one too many, else None.

        Parameters
        ----------
        tokens
            Tokens of its prompt and its completion.
        in_flight
            Requests in flight, with this one.
        now
            Seconds on a clock that never goes back.
        """
        limits = self.limits
        if self._counts:
            self._forget(now)
        broken = self._broken(tokens, in_flight)
        if self._counts:
            self._arrivals.append(_Arrival(now, tokens, broken is None))
            self._requests += broken is None
            self._tokens += tokens if broken is None else 0
            self._all_tokens += tokens
            self._most_requests = max(self._most_requests, len(self._arrivals))
            self._most_tokens = max(self._most_tokens, self._all_tokens)
        if broken is None:
            return None
        self._over[broken] += 1
        message = f"more than {getattr(limits, broken):g} {broken}"
        again = ("retry-after", f"{self._reset(now) if broken != 'connections' else 0.0:.3f}")
        headers = (again, *self.headers(now)) if limits.says_when else self.headers(now)
        return error_response(429, message, "rate_limit_exceeded", headers)

    def _broken(self, tokens: int, in_flight: int) -> str | None:
        limits = self.limits
        minutes = limits.window / 60.0
        if limits.connections is not None and in_flight > limits.connections:
            return "connections"
        if limits.rpm is not None and self._requests + 1 > limits.rpm * minutes:
            return "rpm"
        if limits.tpm is not None and self._tokens + tokens > limits.tpm * minutes:
            return "tpm"
        return None

    def headers(self, now: float) -> Headers:
        """What is left at `now` (seconds), in headers of the endpoint's style."""
        limits = self.limits
        if limits.style == "none" or not self._counts:
            return ()
        reset = self._reset(now)
        headers: list[tuple[str, str]] = []
        for what, limit, used in (
            ("requests", limits.rpm, self._requests),
            ("tokens", limits.tpm, self._tokens),
        ):
            if limit is None:
                continue
            left = str(max(0, int(limit * limits.window / 60.0) - used))
            if limits.style == "openai":
                headers += [
                    (f"x-ratelimit-remaining-{what}", left),
                    (f"x-ratelimit-reset-{what}", f"{reset:.3f}s"),
                ]
            else:
                date = (datetime.now(UTC) + timedelta(seconds=reset)).isoformat(timespec="milliseconds")
                headers += [
                    (f"anthropic-ratelimit-{what}-remaining", left),
                    (f"anthropic-ratelimit-{what}-reset", date),
                ]
        return tuple(headers)

    def summary(self) -> dict[str, Any]:
        """Refusals by limit, and the most requests and tokens that came in any window, refused ones included."""
        minutes = self.limits.window / 60.0
        return {
            "over": self._over,
            "most_requests": self._most_requests,
            "most_tokens": self._most_tokens,
            "allowed_requests": None if self.limits.rpm is None else self.limits.rpm * minutes,
            "allowed_tokens": None if self.limits.tpm is None else self.limits.tpm * minutes,
        }

    def _reset(self, now: float) -> float:
        """Seconds until the oldest accepted request leaves the window."""
        oldest = next((arrival.at for arrival in self._arrivals if arrival.accepted), now)
        return max(0.0, oldest + self.limits.window - now)

    def _forget(self, now: float) -> None:
        since = now - self.limits.window
        while self._arrivals and self._arrivals[0].at <= since:
            gone = self._arrivals.popleft()
            self._all_tokens -= gone.tokens
            if gone.accepted:
                self._requests -= 1
                self._tokens -= gone.tokens
