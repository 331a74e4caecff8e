"""Spreads requests evenly: at a common pace, each worker has turns of its own among those of all.

Servers that allow no bursts refuse a request that comes too soon after another worker's. So the turns are counted on a
clock that all workers share, and each takes its own. Pure: the caller brings the time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_BURST_SECONDS = 0.02
"""Turns that may be caught up with, where a busy machine let them pass."""
_LATEST = 0.15
"""Of the time between two of a worker's turns, in which one may still be used: a later start would come too soon before
the next worker's."""
_TOLERANCE = 1e-6
"""Of a turn; what rounding takes away."""


class Pace(NamedTuple):
    """A rate for all workers together, and where its turns lie."""

    rate: float
    """Requests per second."""
    since: float
    """Seconds on the clock that workers share, from which on it holds."""
    turn: float
    """Number of the turn at that moment, which need not be whole."""

    def turn_at(self, now: float) -> float:
        """Number of the turn at a moment, seconds on the shared clock."""
        return self.turn + (now - self.since) * self.rate

    def followed_by(self, rate: float, since: float, workers: int) -> Pace:
        """Another rate from some time on, so that no two turns come close together."""
        # Small numbers are exact; what is taken away is a whole number of rounds.
        return Pace(rate, since, self.turn_at(since) % (2 * max(workers, 1)))


class Turns:
    """One worker's turns; none are needed while there is no pace."""

    def __init__(self) -> None:
        self._workers, self._rank = 1, 0
        self._pace: Pace | None = None
        self._later: Pace | None = None
        self._used = 0

    @property
    def paced(self) -> bool:
        """Whether requests have to wait for a turn."""
        return self._pace is not None

    def share_out(self, workers: int, rank: int, now: float) -> None:
        """Be number `rank` of `workers` that take turns."""
        self._workers, self._rank = max(workers, 1), max(rank, 0)
        self._forget_turns(now)

    def follow(self, pace: Pace | None, now: float) -> None:
        """Take another pace, from when it says; None for none."""
        if pace is not None and self._pace is not None and pace.since > now:
            self._later = pace
            return
        self._pace, self._later = pace, None
        self._forget_turns(now)

    def next_pace(self, rate: float, now: float, delay: float) -> Pace:
        """A pace that goes on from this one `delay` seconds from now."""
        return (self._pace or Pace(rate, now + delay, 0.0)).followed_by(rate, now + delay, self._workers)

    def wait(self, now: float) -> float:
        """Seconds until a request may start."""
        self._switch(now)
        if self._pace is None:
            return 0.0
        own = self._own(self._pace, now)
        passed = math.floor(own + _TOLERANCE)
        if passed > self._used and (
            self._workers == 1 or own - passed < _LATEST or self._saved(self._pace) > 1
        ):
            return 0.0
        each = self._workers / self._pace.rate
        wait = (max(passed, self._used) + 1 - own) * each
        return wait if self._later is None else min(wait, self._later.since - now)

    def take(self, now: float) -> None:
        """Use a turn."""
        self._switch(now)
        if self._pace is not None:
            own = self._own(self._pace, now)
            passed = math.floor(own + _TOLERANCE)
            saved = self._saved(self._pace)
            self._used = max(self._used + 1, passed - saved + 1)
            if self._workers == saved == 1 and own - passed >= _LATEST:
                # Nobody else has turns: those to come are as much later.
                self._pace, self._used = Pace(self._pace.rate, now, 0.0), 0

    def _saved(self, pace: Pace) -> int:
        """How many turns that passed may be caught up with, the present one among them."""
        return max(1, int(_BURST_SECONDS * pace.rate / self._workers))

    def _switch(self, now: float) -> None:
        if self._later is not None and now >= self._later.since:
            self.follow(self._later, now)

    def _own(self, pace: Pace, now: float) -> float:
        """Number of this worker's turns by now."""
        return (pace.turn_at(now) - self._rank) / self._workers

    def _forget_turns(self, now: float) -> None:
        if self._pace is not None:
            self._used = math.floor(self._own(self._pace, now) + _TOLERANCE)
