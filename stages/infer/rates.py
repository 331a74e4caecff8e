"""Shares an endpoint's limits out to workers, and decides when a worker's next request may start.

Pure: the caller brings the time, in seconds on any clock that does not go backwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from evalcube.stages.infer.counts import Mark
from evalcube.stages.infer.sharing import Gate, Setting

_BURST_SECONDS = 0.1
"""Unused time that may be caught up with; so short that no minute has noticeably more than its share."""
_MARGIN = 0.99
"""Share of a rate that is aimed at, as requests that leave evenly do not arrive evenly."""
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one endpoint, for the whole cluster. None is no limit."""

    connections: int
    """Requests in flight at once, at most."""
    requests_per_minute: float | None = None
    """Attempts that may start."""
    tokens_per_minute: float | None = None
    """Tokens of prompts and completions."""
    start: int | None = None
    """Requests in flight at first, where the best number up to `connections` is looked for."""

    @property
    def is_searched(self) -> bool:
        """Whether the number of requests in flight is looked for, and not declared."""
        return self.start is not None and self.start < self.connections

    @property
    def first(self) -> int:
        """Requests in flight at first."""
        return self.connections if self.start is None else min(self.start, self.connections)

    def of_run(self, runs: int, place: int) -> Quota:
        """Return the part of one of several runs, by its place among them; nothing where there are more than limits."""
        whole, remainder = divmod(self.connections, runs)
        return Quota(
            whole + (place < remainder),
            self.requests_per_minute and self.requests_per_minute / runs,
            self.tokens_per_minute and self.tokens_per_minute / runs,
            self.start and -(-self.start // runs),
        )


def strictest(quotas: Iterable[Quota]) -> Quota:
    """The limits under which each of `quotas` is kept.

    Examples
    --------
    >>> strictest([Quota(8, 100.0), Quota(4, None, 5e4)])
    Quota(connections=4, requests_per_minute=100.0, tokens_per_minute=50000.0, start=None)
    """
    every = tuple(quotas)
    return Quota(
        min(quota.connections for quota in every),
        min((q.requests_per_minute for q in every if q.requests_per_minute is not None), default=None),
        min((q.tokens_per_minute for q in every if q.tokens_per_minute is not None), default=None),
        min((quota.start for quota in every if quota.start is not None), default=None),
    )


class TokenBucket:
    """A token bucket. What costs more than it holds may start when it is full, and is paid off afterwards.

    In any time span T it lets no more through than ``rate * T``, one tenth of a second's worth, and one request.

    Parameters
    ----------
    rate
        Units per second.
    unit
        Least that it holds when full, and all that it holds at first: a run does not begin with a burst.
    now
        Seconds on any clock, as in all methods.
    phase
        Part of that unit which is missing at first.
    """

    __slots__ = ("_at", "_full", "_level", "_rate", "_unit")

    def __init__(self, rate: float, unit: float, now: float, phase: float = 0.0) -> None:
        self._rate = rate
        self._unit = unit
        self._full = max(unit, rate * _BURST_SECONDS)
        self._level = unit * (1.0 - phase)
        self._at = now

    def retune(self, rate: float, now: float) -> None:
        """Go on at `rate` units per second; what was saved or owed stays, as far as there is room for it."""
        self._fill(now)
        self._rate = rate
        self._full = max(self._unit, rate * _BURST_SECONDS)
        self._level = min(self._level, self._full)

    def wait(self, cost: float, now: float) -> float:
        """Seconds until something that costs `cost` units may start; infinite at no rate."""
        if not self._rate:
            return math.inf
        self._fill(now)
        lack = min(cost, self._full) - self._level
        # Rounding must not have a full bucket wait for a billionth of a token.
        return lack / self._rate if lack > _TOLERANCE * self._full else 0.0

    def take(self, cost: float, now: float) -> None:
        """Pay `cost` units; a negative cost gives back what was paid too much."""
        self._fill(now)
        self._level = min(self._level - cost, self._full)

    def _fill(self, now: float) -> None:
        # Whoever brings an earlier time, as two callers may within one turn, changes nothing.
        if now > self._at:
            self._level = min(self._full, self._level + (now - self._at) * self._rate)
            self._at = now


class Throttle:
    """All limits of one endpoint on one worker: connections, rates, overload, and pauses that the endpoint asks for.

    `now` is in seconds on any clock, the same one in all methods.
    """

    def __init__(self) -> None:
        self.gate = Gate()
        self.window = 0
        """Most requests in flight, now."""
        self.in_flight = 0
        self._requests: TokenBucket | None = None
        self._tokens: TokenBucket | None = None
        self._paused_until = -math.inf
        self._quota = Quota(0)
        self.timed = False
        """Whether `wait` depends on the time; if not, only on the requests in flight."""

    def retune(self, quota: Quota, now: float, timeout: float = math.inf, workers: int = 1) -> None:
        """Be one of `workers` that share a quota; see `Gate.resize`."""
        self._quota = quota
        self.gate.resize(quota.first, quota.connections, timeout, now, workers)
        self._use(now)

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request takes."""
        return self._tokens is not None

    def pause(self, seconds: float, now: float) -> None:
        """Let nothing start for `seconds`; of several pauses the one that ends last counts."""
        self._paused_until = max(self._paused_until, now + seconds)
        self._update()

    def note_passed(self, now: float, mark: Mark, tokens: float) -> None:
        """See `Gate.note_passed`."""
        self.gate.note_passed(now, mark, tokens)
        self._update()

    def note_refused(self, now: float, mark: Mark, pause: float) -> bool:
        """See `Gate.note_refused`."""
        slowed = self.gate.note_refused(now, mark, pause)
        self._update()
        return slowed

    def note_overload(self, now: float, mark: Mark) -> bool:
        """See `Gate.note_overload`."""
        slowed = self.gate.note_overload(now, mark)
        self._update()
        return slowed

    def obey(self, setting: Setting, now: float, worker: str = "") -> None:
        """See `Gate.obey`."""
        self.gate.obey(setting, now, worker)
        self._use(now)

    def stop(self, stops: int, now: float) -> None:
        """See `Gate.stop`."""
        self.gate.stop(stops)
        self._use(now)

    def wait(self, tokens: float, now: float) -> float:
        """Seconds until a request of `tokens` tokens may start; infinite until one in flight ends."""
        if self.in_flight >= self.window:
            return math.inf
        wait = self._paused_until - now
        if wait <= 0.0:
            wait, self._paused_until = 0.0, -math.inf
            self._update()
        wait = max(wait, self.gate.wait(now))
        if self._requests is not None:
            wait = max(wait, self._requests.wait(1.0, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(tokens, now))
        return wait

    def start(self, tokens: float, now: float) -> None:
        """Note that a request of `tokens` tokens starts."""
        self.in_flight += 1
        self.gate.start(now)
        if self._requests is not None:
            self._requests.take(1.0, now)
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def correct(self, tokens: float, now: float) -> None:
        """Note that a request took `tokens` more than were guessed, or fewer if negative."""
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def _use(self, now: float) -> None:
        """Keep to this worker's part of the declared rates."""
        quota, part, phase = self._quota, self.gate.rate * _MARGIN / 60.0, self.gate.phase
        # Not before something may start: the first bucket is as full as the worker's place among the others says.
        if self.gate.window or self._requests or self._tokens:
            self._requests = _retune_bucket(self._requests, quota.requests_per_minute, part, 1.0, phase, now)
            self._tokens = _retune_bucket(self._tokens, quota.tokens_per_minute, part, 0.0, phase, now)
        self._update()

    def _update(self) -> None:
        self.window = self.gate.window
        self.timed = (
            self.gate.is_paced
            or self.gate.is_braked
            or not (self._requests is self._tokens is None and self._paused_until == -math.inf)
        )


def _retune_bucket(
    bucket: TokenBucket | None, per_minute: float | None, part: float, unit: float, phase: float, now: float
) -> TokenBucket | None:
    if per_minute is None:
        return None
    if bucket is None:
        return TokenBucket(per_minute * part, unit, now, phase)
    bucket.retune(per_minute * part, now)
    return bucket
