"""Decides when a request is tried again, and when an endpoint is given up.

Pure policies: who uses them brings the clock and the socket.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.sharing import Gate

T = TypeVar("T")
Policy = Generator[float, Reply, Reply]
"""Takes the reply of each attempt, and yields the seconds to wait before the next; see `backoff`."""

_MOST_DOUBLINGS = 30
UNREACHABLE = frozenset({"connect", "dns", "tls"})
_NO_WAY = UNREACHABLE | {"proxy", "address"}
_OF_ONE_MODEL = frozenset({"http 403", "http 404", "http 405", "tls"})
"""The last one as each model believes authorities of its own."""
_REFUSAL = frozenset({"http 429", "http 498", "http 503", "http 529"})
_OVERLOAD = _REFUSAL | {"http 408", "http 504", "http 524", "timeout"}
_TOO_MANY = "http 429"
_REFUSED_KEY = "http 401"
_LONGEST_WAIT = 600.0
_LONGEST_REFILL = 60.0


def concerns_model(reply: Reply) -> bool:
    """Whether `reply` is about the model that was asked for, so that others at the endpoint may go on."""
    return reply.cause in _OF_ONE_MODEL


def is_overload(reply: Reply) -> bool:
    """Whether `reply` says that the endpoint has too much to do."""
    return reply.cause in _OVERLOAD and reply.retryable


def is_refusal(reply: Reply) -> bool:
    """Whether `reply` turns a request away, which others or the same one a moment later need not be."""
    return reply.cause in _REFUSAL and reply.retryable


def is_beyond_limit(reply: Reply) -> bool:
    """Whether it is a limit that turned a request away; status 503 alone may as well be an outage."""
    return is_refusal(reply) and (reply.cause == _TOO_MANY or reply.retry_after is not None)


def turn_of(gate: Gate, base: float) -> Callable[[Reply], float | None]:
    """Lets requests that were refused come back by the pace of `gate`, see `backoff`.

    At a pace they wait for nothing else. Where there is none, each waits as long as before its first retry: refusals
    that go on bring about a pace. Those that may be an outage have waits that double while most requests get them.
    """

    def turn(reply: Reply) -> float | None:
        if is_beyond_limit(reply) or (is_refusal(reply) and gate.lets_through):
            return 0.0 if gate.is_paced else base
        return None

    return turn


def is_let_through(reply: Reply) -> bool:
    """Whether `reply` shows that no limit held the request up, whatever became of it then."""
    return reply.is_final or (reply.cause.startswith("http ") and not is_overload(reply))


def longest_pause(reply: Reply) -> float:
    """Seconds in which the endpoint wants no request at all: 0 as a rule, 600 at most.

    Where the endpoint says itself when to come back (``Retry-After``), that alone counts. Else it is 60 at most, as the
    headers of rate limits may count what does not concern us, and name the time at which all is there again.
    """
    if reply.retry_after is not None:
        return min(reply.retry_after, _LONGEST_WAIT) if is_overload(reply) else 0.0
    return 0.0 if reply.exhausted is None else min(reply.exhausted, _LONGEST_REFILL)


def pause_reason(reply: Reply) -> str:
    """Why `longest_pause` is what it is, for people; made of fixed words only, none of them the endpoint's.

    Examples
    --------
    >>> from evalcube.stages.infer.reply import Reply, RetryClass
    >>> pause_reason(Reply(RetryClass.RETRY, "http 429", retry_after=45.0, exhausted=360.0, limit="requests"))
    '429: requests, Retry-After'
    >>> pause_reason(Reply(RetryClass.FINAL, exhausted=5.0, limit="tokens"))
    'tokens, rate-limit headers'
    """
    source = "rate-limit headers" if reply.retry_after is None else "Retry-After"
    text = f"{reply.limit}, {source}" if reply.limit else source
    return text if reply.is_final else f"{reply.cause.removeprefix('http ')}: {text}"


def backoff(
    retries: int,
    *,
    base: float = 0.5,
    cap: float = 60.0,
    longest: float = _LONGEST_WAIT,
    jitter: float = 0.5,
    patient: Callable[[Reply], bool] = lambda _: False,
    turn: Callable[[Reply], float | None] = lambda _: None,
) -> Policy:
    """Yield the seconds to wait before each attempt; return the first reply that is not worth a retry, or the last.

    Examples
    --------
    >>> policy = backoff(1, jitter=0.5)
    >>> next(policy)
    0.0
    >>> from evalcube.stages.infer.reply import Reply, RetryClass
    >>> policy.send(Reply(RetryClass.RETRY, "timeout"))
    0.5
    """
    reply = yield 0.0
    for attempt in itertools.count():
        # A key that was refused is only worth another attempt if there is another one by now: that costs no retry.
        renewed = attempt == 0 and reply.cause == _REFUSED_KEY
        if not reply.retryable or (attempt >= retries and not renewed and not patient(reply)):
            break
        steady = turn(reply)
        growing = min(base * 2.0 ** min(attempt, _MOST_DOUBLINGS), cap) if steady is None else steady
        if reply.retry_after is None:
            # From half to one and a half of it: requests that were refused together must not come back together.
            reply = yield growing * (0.5 + jitter)
        else:
            # Never before the endpoint's own time; from the second pause on not at once either, as some always say 0.
            asked, spread = min(reply.retry_after, longest), base if steady is None else steady
            reply = yield max(asked, growing / 2.0 if attempt and steady is None else 0.0) + spread * jitter
    return reply


async def retry(
    first: tuple[Reply, T],
    attempt: Callable[[Reply, int], Awaitable[tuple[Reply, T] | None]],
    policy: Policy,
    pause: Callable[[float, Reply], Awaitable[bool]],
    retries: Counter[str],
) -> tuple[Reply, T, int]:
    """The last reply of a request after its first attempt, what came with it, and the number of all attempts."""
    (reply, value), attempts = first, 1
    next(policy)
    while True:
        try:
            wait = policy.send(reply)
        except StopIteration:
            return reply, value, attempts
        # A pause that ends early means that nothing more is sent: then the last reply stands.
        again = None if await pause(wait, reply) else await attempt(reply, attempts)
        if again is None:
            return reply, value, attempts
        retries[reply.cause] += 1
        reply, value = again
        attempts += 1


def is_unfit(reply: Reply) -> bool:
    """Whether `reply`, if it is the first one, says that the model cannot be asked there at all."""
    return reply.retry_class is RetryClass.FATAL or reply.cause in UNREACHABLE or reply.page


def is_unreachable(reply: Reply) -> bool:
    """Whether nobody answered at the address, whatever the request was."""
    return reply.cause in _NO_WAY


FIRST_REQUESTS = 3
"""Different requests that fail alike after which a model is given up that never answered."""


class Breaker:
    """Decides when an endpoint is to be given up, rather than fail a million requests one by one.

    Any one request may be refused for what it says, the first one too. So it takes several in a row that fail alike,
    each in a way that may be that of all: refused, as with a wrong key, or without a connection.

    Parameters
    ----------
    most_failures
        Number of requests in a row that must fail where others were answered.
    """

    def __init__(self, most_failures: int) -> None:
        self._most_failures = most_failures
        # Of one that never answered, few tell as much as many: a wrong key or address fails all alike.
        self._limit = min(most_failures, FIRST_REQUESTS)
        self._cause = ""
        self._in_a_row = 0

    def note_success(self) -> None:
        """Note a reply that counts."""
        # An endpoint that has answered can be asked: from now on some requests may be at fault themselves.
        self._limit, self._in_a_row = self._most_failures, 0

    def note_failure(self, reply: Reply) -> bool:
        """Note a request's last reply, which does not count; returns whether the endpoint is to be given up."""
        # Another kind of failure, such as a timeout, neither counts here nor ends the row.
        if is_unfit(reply) or reply.is_refusal:
            cause = "unreachable" if reply.cause in UNREACHABLE else reply.cause
            self._in_a_row = self._in_a_row + 1 if cause == self._cause else 1
            self._cause = cause
        return self._in_a_row >= self._limit
