"""Decides how many requests may be in flight at an endpoint, and how fast they go. Pure: the caller brings the time.

Each worker has a controller of its own, and tells no other: those that share an endpoint yield when it refuses, and
grow while it delivers more, so that they come to fair shares as TCP's connections do.

*How many.* The window doubles each round while what the endpoint delivers grows at least half as fast. What it delivers
is, by Little's law, window × tokens ÷ seconds waited, which needs no even flow of answers. Then a window 1.4 times as
large or as small is tried now and then, and kept by the same rule.

*How fast.* An endpoint that refuses more than a few is asked at a pace: what it let through since the last time that it
refused, which is what a limit of the usual kinds (a bucket of tokens, a window) has refilled in between. The first pace
is slower, as a trial: where as many are refused as before, they are refused whatever the pace, and are simply asked
again. Where those that are refused began with clearly more in flight than others, the window is bounded instead.

References
----------
D.-M. Chiu, R. Jain (1989). Analysis of the increase and decrease algorithms for congestion avoidance in computer
networks. Computer Networks and ISDN Systems 17(1), 1-14. https://doi.org/10.1016/0169-7552(89)90019-6
J. D. C. Little (1961). A proof for the queuing formula L = λW. Operations Research 9(3), 383-387.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from evalcube.stages.infer.pacing import Pace, Turns

START, MOST = 16, 256
"""In flight at first, and at most, over all workers."""
_WORTH = 0.5
"""Of a window's growth that what is delivered has to grow: less is not worth longer waits."""
_STEP = 1.4
"""By which other windows are tried: so large that a difference is seen in few answers."""
_REST = 12
"""Times as long as a trial that failed, until the next one: trials in vain cost below a tenth."""
_PRECISE, _MOST_ANSWERS = 0.05, 256
"""Relative error from which on what is delivered counts as known, and answers that have to do."""
_TOLERATED = 0.05
"""Share of refused requests that is simply asked again."""
_FIRST, _SLOWEST = 10.0, 0.5
"""Requests per second of the first pace at least, as nothing may have been answered yet; and of any."""
_TRIAL, _BELOW = 0.7, 0.97
"""Of the rate that was let through: the pace of a trial, and any other one."""
_ENOUGH, _IN_A_ROW, _RECENT = 20, 8, 40
"""Requests from which on the share of refused ones says something, or so many refused in a row; and those that count
in that share."""
_NOTICE, _REPEAT, _LEADERLESS = 2.0, 5.0, 20.0
"""Seconds until all workers have heard of another pace, after which it is said again, and without a word of the leader
after which the others decide for themselves: it may have nothing to ask."""
_CATCH_UP = 0.02
"""Seconds of turns that a busy machine let pass and may catch up with."""


class Mark(NamedTuple):
    """What a request is judged by when its answer comes."""

    started: float
    """Seconds on the caller's clock."""
    in_flight: int
    """Requests in flight when it started, itself among them."""
    epoch: int
    """Of the controller: what began under another window or pace says nothing of the present one."""


class _Delivery:
    """What is delivered at one window, from the waits and tokens of its answers."""

    __slots__ = ("answers", "both", "tokens", "tokens_square", "waited", "waited_square", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.answers = 0
        self.waited = self.tokens = self.waited_square = self.both = self.tokens_square = 0.0

    def add(self, wait: float, tokens: float) -> None:
        self.answers += 1
        self.waited += wait
        self.tokens += tokens
        self.waited_square += wait * wait
        self.both += wait * tokens
        self.tokens_square += tokens * tokens

    @property
    def error(self) -> float:
        """Relative standard error of seconds per token."""
        if self.answers < 8 or self.waited <= 0.0:
            return math.inf
        ratio = self.waited / self.tokens
        spread = self.waited_square - 2.0 * ratio * self.both + ratio * ratio * self.tokens_square
        return math.sqrt(max(spread, 0.0)) / self.waited

    @property
    def known(self) -> bool:
        return self.answers >= 16 and (self.error < _PRECISE or self.answers >= _MOST_ANSWERS)

    def worth_over(self, other: _Delivery) -> float:
        """Logarithm of how much more it delivers than another, less what it has to; positive where it is worth it."""
        grown = math.log(self.window / other.window)
        per_token = self.waited / self.tokens * other.tokens / other.waited
        return (1.0 - _WORTH) * grown - math.log(per_token)


class Controller:
    """The window and the pace of one endpoint, on one worker. All times are seconds on one clock."""

    def __init__(self) -> None:
        self.epoch = 0
        self.pace: float | None = None
        """Requests per second; None while nothing bounds them."""
        self._most, self._window, self._timeout = 1.0, 1.0, math.inf
        self._searching = self._growing = self._up = False
        """Whether the best window is looked for, in the first rounds, and above the present one."""
        self._rest = 0
        self._here = _Delivery(1.0)
        self._base: _Delivery | None = None
        """What the window delivers from which another is tried."""
        self._median = 0.0
        """Of the seconds waited, about."""
        self._due = 0.0
        """When the next request may start."""
        self._idle = 0
        """How many in a row did not have to wait for the pace."""
        self._held_up = False
        self._ceiling = math.inf
        """Rate that the endpoint refused."""
        self._doubtful, self._pause = True, 0.0
        """Whether it was another one the last time, and the seconds that the endpoint asked to wait then."""
        self._sent = self._refused = self._passed = 0
        """Requests of this epoch: all, those refused, and those let through."""
        self._share, self._row = 0.0, 0
        """Share of refused ones among the last forty, and how many came in a row."""
        self._chance = self._expected = 0.0
        """Share that is refused whatever the pace; and the share before a trial, which tells whether it is."""
        self._total = 0
        self._since = self._before = (0.0, 0)
        """Time of the last refusals that counted, with `_total` by then; and of those before."""
        self._shut: float | None = None
        """Since when nothing was let through."""
        self._in_flight = _InFlight()
        self._workers, self._rank, self.offset = 1, 0, 0.0
        """Those who share the endpoint; and what makes this worker's clock the one that all of them have, seconds."""
        self.complaints = 0
        """How often the leader was to be told of refusals."""
        self._turns = Turns()
        self._told: Pace | None = None
        self._used = self._raises = 0
        self._told_at = self._heard_at = self._effective = -math.inf

    @property
    def window(self) -> int:
        """Most requests in flight, now."""
        return max(int(self._window), 1)

    @property
    def found(self) -> tuple[float | None, int | None]:
        """Requests per second, and requests in flight, that the endpoint refused to exceed; None where it does not."""
        paced = self.pace is not None and math.isfinite(self._ceiling) and self._total > 0
        return self._ceiling if paced else None, self.window if self._in_flight.bounds else None

    @property
    def lets_most_through(self) -> bool:
        """Whether those that are refused are the smaller part, and not all of the last ones."""
        return self._share < 0.5 and self._row < _IN_A_ROW

    def resize(
        self, start: float, most: float, timeout: float, now: float, workers: int = 1, rank: int = 0
    ) -> None:
        """Be given another part of the endpoint; a window that is declared is one that starts with the most."""
        self._workers, self._rank = max(workers, 1), max(rank, 0)
        self._turns.share_out(workers, rank, now + self.offset)
        first, reached = self._most == 1.0, self._window >= self._most
        self._searching, self._timeout, self._most = start < most, timeout, max(most, 1.0)
        if first or (reached and not self._searching):
            self._growing = self._up = self._searching
            self._since = self._before = (now, 0)
            self._set(start)
        elif self._window > self._most:
            self._set(self._most)

    def wait(self, now: float) -> float:
        """Seconds until a request may start by the pace."""
        if self.pace is None:
            return 0.0
        wait = self._turns.wait(now + self.offset) if self._turns.paced else self._due - now
        self._held_up |= wait > 0.0
        return wait

    def epoch_at(self, now: float) -> int:
        """The epoch of a request that starts now: none, while the pace is another one than the one decided on."""
        return self.epoch if now >= self._effective else -1

    def news(self, now: float) -> Pace | None:
        """What the others are to be told: the pace of all, if this worker leads; to be called now and then."""
        if self._workers == 1 or self._rank:
            return None
        if self.pace is None and self._told is None and not self._in_flight.bounds:
            return None
        told, in_force = self._told, now - self._told_at >= _NOTICE + 0.5
        if told is not None and self.pace == told.rate and in_force:
            self.pace = self._raised(told.rate)
        rate = math.inf if self.pace is None else self.pace
        if told is not None and rate == told.rate and now - self._told_at < _REPEAT:
            return None
        if told is None or rate != told.rate:
            self._used = 0
            if self.pace is None:
                self._told = Pace(rate, 0.0, float(self.window) if self._in_flight.bounds else 0.0)
                self._turns.follow(None, now + self.offset)
            else:
                self._told = self._turns.next_pace(rate, now + self.offset, _NOTICE)
                self._turns.follow(self._told, now + self.offset)
        self._told_at = now
        return self._told

    def _raised(self, rate: float) -> float:
        """The next pace of all workers, if this one was used and borne."""
        if self._expected or self._used < 3:
            return rate
        if rate < 0.95 * self._ceiling:
            return min(2.0 * rate, 0.96 * self._ceiling)
        self._raises += 1
        return rate * (1.0 + min((0.03 if self._doubtful else 0.01) * 2.0 ** (self._raises // 4), 0.32))

    def hear(self, pace: Pace, now: float) -> None:
        """Take over what the leader says."""
        self._heard_at = now
        if pace.rate < math.inf:
            if pace.rate != self.pace:
                self._next_epoch()
                self._effective = max(pace.since - self.offset, now)
            self.pace = pace.rate
            self._in_flight.bounds = False
            self._turns.follow(pace, now + self.offset)
            return
        self._turns.follow(None, now + self.offset)
        self.pace = None
        if pace.turn and not self._in_flight.bounds:
            self._in_flight.bounds = True
            self._set(pace.turn)

    @property
    def _leads(self) -> bool:
        """Whether the pace is that of all workers."""
        return self._rank == 0 and self._workers > 1

    def _led(self, now: float) -> bool:
        """Whether another worker decides on the pace."""
        return self._rank > 0 and now - self._heard_at < _LEADERLESS

    def start(self, now: float) -> None:
        """Note that a request starts; `now` matters only where there is a pace."""
        self._sent += 1
        if self._expected and self._sent >= 3 * _ENOUGH and self._refused < 0.5 * self._expected * self._sent:
            self._expected = 0.0
        if self.pace is None:
            return
        held_up, self._held_up = self._held_up, False
        self._idle = 0 if held_up else self._idle + 1
        if self._idle > 2 * _ENOUGH and self._chance:
            self.pace = None
            return
        if self._turns.paced:
            self._used += held_up
            self._turns.take(now + self.offset)
            return
        if held_up and not self._expected:
            self.pace = self._grown(self.pace, 1)
        saved = _CATCH_UP if _CATCH_UP * self.pace >= 2.0 else 0.0
        self._due = max(self._due, now - saved) + 1.0 / self.pace

    def _grown(self, pace: float, requests: int) -> float:
        """The pace after so many more: fast to where it was refused, then slowly, then ever faster."""
        every = 30 if self._doubtful else 200
        step = 0.1 / every * 2.0 ** min(self._sent * requests / every, 9.0) / (1.0 + 0.1 * pace * self._pause)
        return pace * (1.0 + requests * min(step if pace >= 0.95 * self._ceiling else 0.02, 0.02))

    def passed(self, now: float, mark: Mark, tokens: float) -> None:
        """Note that a request was let through, and how many tokens came back."""
        self._share *= 1.0 - 1.0 / _RECENT
        self._row = 0
        self._total += 1
        waited = now - mark.started
        if self._shut is not None and mark.started > self._shut:
            self._reopened(now, now - self._shut)
        mine = mark.epoch == self.epoch
        self._passed += mine
        self._median = self._median * (1.05 if waited > self._median else 1.0 / 1.05) or waited
        if self._chance and self._sent > 10 * _ENOUGH and self._refused < self._chance / 4.0 * self._sent:
            self._chance = 0.0
        if self.pace is not None or self._in_flight.bounds:
            self._in_flight.passed(mark.in_flight)
        if (
            mine
            and self._searching
            and self._median > self._timeout / 3.0
            and self._passed >= self._window / 2.0
        ):
            self._shorten()
        elif mark.in_flight >= 0.8 * self._window:
            self._use(waited, tokens or 1.0, mine=mine)

    def _shorten(self) -> None:
        """Have fewer in flight, as half of them wait for longer than a third of what they may."""
        part = max(self._timeout / 3.0 / self._median, 0.5)
        self._growing, self._up, self._base = False, False, None
        self._median *= part
        self._set(0.9 * part * self._window)
        self._passed = 0

    def _use(self, waited: float, tokens: float, *, mine: bool) -> None:
        """Adapt the window to an answer that began while it was full."""
        if self._in_flight.bounds:
            self._grow_by(1.0 / max(8.0 * self._window, 100.0))
        elif self.pace is not None or self._growing:
            self._grow_by(1.0 if self._median <= self._timeout / 3.0 else 0.0)
        elif not self._searching:
            self._grow_by(1.0 / self._window)
        if mine and self._searching and self.pace is None and not self._in_flight.bounds:
            self._here.add(waited, tokens)
            if self._growing:
                self._grow()
            elif self._here.known and self._here.answers >= self._rest:
                self._try_another()

    def overloaded(self, mark: Mark) -> bool:
        """Note a time-out or another word of overload; returns whether requests became fewer by it."""
        if mark.epoch != self.epoch:
            return False
        self._growing = False
        self._set(self._window / 2.0)
        return True

    def refused(self, now: float, mark: Mark, pause: float) -> bool:
        """Note that a request was refused, and asked to wait for `pause` seconds; returns whether that counted."""
        self._share += (1.0 - self._share) / _RECENT
        self._row += 1
        if self._shut is None and (self._row >= _IN_A_ROW or pause > 1.0):
            self._shut = now
        if mark.epoch != self.epoch:
            return False
        self._refused += 1
        if not pause:
            if self.pace is not None or self._in_flight.bounds:
                self._in_flight.refused(mark.in_flight)
            known = self._refused + self._passed
            # Refusals come at once: those that are not answered yet may all have been let through.
            waiting = self._sent - known
            if self._refused < 3 or (known < max(_ENOUGH, waiting) and self._row < max(_IN_A_ROW, waiting)):
                return False
        return self._judge(now, pause)

    def told(self, now: float) -> None:
        """Slow all down, as another worker is refused more than is tolerated."""
        if self._leads and now >= self._effective and not self._in_flight.bounds:
            self._slow_down(now, self._share, 0.0)

    def _judge(self, now: float, pause: float) -> bool:
        """Slow down, if refusals are more than is tolerated."""
        share = self._refused / max(self._sent, 1)
        if self._led(now) and not self._in_flight.bounds:
            # The leader is told, and decides.
            if self._share < _TOLERATED:
                return False
            self.complaints += 1
            self._next_epoch()
            return True
        if self._expected:
            if self._sent >= 1.5 * _ENOUGH and self._refused >= 6 and 0.5 < share / self._expected < 2.0:
                # Going slower changed nothing.
                self._chance, self._expected = share, 0.0
                self._next_epoch()
                return False
            if self._sent < 6 * _ENOUGH and share < 0.5:
                return False
            self._expected = 0.0
        if self._chance:
            few = share < 1.25 * self._chance + _TOLERATED
            if few or (self._sent < 1.5 * _ENOUGH and self._row < _IN_A_ROW):
                return False
        elif self._share < _TOLERATED and not pause:
            return False
        self._slow_down(now, share, pause)
        return True

    def _slow_down(self, now: float, share: float, pause: float) -> None:
        self._growing = False
        since, before = self._since
        rate = (self._total - before) / max(now - since, 0.05) / (1.0 - self._chance)
        if self._leads:
            rate *= self._workers
        first = self.pace is None
        verdict = self._in_flight.verdict
        if self._in_flight.bounds:
            if verdict is None:
                self._window = max(0.92 * self._window, 1.0)
                self._next_epoch()
                return
            self._in_flight.bounds, first, self.pace = False, False, max(rate, _SLOWEST)
        elif not first and verdict is not None:
            self._in_flight.bounds, self.pace, self._expected = True, None, 0.0
            self._window = max(verdict, 1.0)
            self._next_epoch()
            return
        trial = 3 <= self._refused < 0.6 * self._sent and not pause
        trial = trial and (first or self._chance > 0.0 or self._sent < 2 * _ENOUGH)
        self._expected, self._chance = (self._chance or share) if trial else 0.0, 0.0
        if first or self.pace is None:
            self.pace, self._ceiling = max(_TRIAL * rate, _FIRST), math.inf
            self._in_flight.clear()
        elif self._passed < 3:
            self.pace = max(self.pace / 2.0, _SLOWEST)
            self._in_flight.clear()
        else:
            last, self._ceiling = self._ceiling, math.sqrt(min(rate, self.pace) * self.pace)
            self._doubtful = not abs(self._ceiling - last) < 0.1 * last
            self.pace = max((_TRIAL if trial else _BELOW) * min(rate, self.pace), self.pace / 4.0, _SLOWEST)
        if first or self._passed >= 3:
            self._before, self._since = self._since, (now, self._total)
        self._due, self._pause, self._raises = now + 1.0 / self.pace, pause, 0
        # Until the others have heard of it, what is refused says nothing of it.
        self._effective = now + _NOTICE + 0.5 if self._leads else now
        self._next_epoch()

    def _reopened(self, now: float, seconds: float) -> None:
        """Take the rate of a whole cycle: from one refusal of everything to the end of the next."""
        self._shut = None
        if self.pace is None or seconds < 2.0:
            return
        since, before = self._before
        self._ceiling = (self._total - before) / (now - since) / (1.0 - self._chance)
        if self._leads:
            self._ceiling *= self._workers
        self.pace, self._due = max(_BELOW * self._ceiling, _SLOWEST), now
        self._before = self._since = (now, self._total)
        self._doubtful = False
        self._next_epoch()

    def _next_epoch(self) -> None:
        self.epoch += 1
        self._sent = self._refused = self._passed = 0
        self._here, self._base = _Delivery(self._window), None
        # What was refused in the epochs before is acted upon.
        self._share *= 0.5

    def _grow_by(self, part: float) -> None:
        self._window = min(self._window + part, self._most)

    def _set(self, window: float) -> None:
        self._window = min(max(window, 1.0), self._most)
        self._here = _Delivery(self._window)
        self.epoch += 1

    def _grow(self) -> None:
        """End the first rounds where twice the window surely delivers less than half as much again."""
        here, base = self._here, self._base
        full = here.window >= self._most
        if base is not None and here.worth_over(base) + 2.0 * math.hypot(here.error, base.error) < 0.0:
            self._growing, self._base, self._up = False, None, False
            self._set(base.window)
        elif base is not None and full and here.known:
            self._growing, self._base, self._up = False, None, False
        elif not full and (self._window >= 2.0 * here.window or self._window >= self._most):
            self._base = here
            self._set(self._window)

    def _try_another(self) -> None:
        """Keep the present window or go back to the one before; then try another."""
        here, base = self._here, self._base
        if base is not None and here.worth_over(base) < 0.0:
            self._up, self._base, self._rest = not self._up, None, _REST * here.answers
            self._set(base.window)
            return
        up = self._up and self._median <= self._timeout / 3.0
        other = min(max(round(here.window * (_STEP if up else 1.0 / _STEP)), 1), self._most)
        if other == here.window:
            self._up, self._base, self._rest = not up, None, _REST * here.answers
            self._set(here.window)
            return
        self._base, self._rest = here, 0
        self._set(other)


class _InFlight:
    """Whether an endpoint refuses because of what is in flight: then refused ones began with clearly more than others.

    At a pace, a limit of the rate refuses whatever is in flight.
    """

    def __init__(self) -> None:
        self.bounds = False
        self._needed = 60
        self.clear()

    def clear(self) -> None:
        self._refused: deque[int] = deque(maxlen=16)
        self._number = 0
        self._mean = self._square = 0.0

    def passed(self, in_flight: int) -> None:
        self._number += 1
        weight = max(0.01, 1.0 / self._number)
        change = in_flight - self._mean
        self._mean += weight * change
        self._square += weight * (change * change - self._square)

    def refused(self, in_flight: int) -> None:
        self._refused.append(in_flight)

    @property
    def verdict(self) -> float | None:
        """Level at which it refuses, or, where it was thought to, 0 if it does not; None where there is no telling."""
        count, level = len(self._refused), sum(self._refused) / max(len(self._refused), 1)
        if self.bounds:
            if count < 16 or level >= self._mean:
                return None
            self._needed *= 4
            self._refused.clear()
            return 0.0
        deviation = math.sqrt(self._square)
        if count < 6 or self._number < self._needed or self._mean < 2.0:
            return None
        if level - self._mean <= 1.2 * deviation or deviation <= 0.33 * math.sqrt(self._mean):
            return None
        self._refused.clear()
        return level - 1.0
