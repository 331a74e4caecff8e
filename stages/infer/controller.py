"""A controller that decides how many requests are in flight at an endpoint, and how fast they go; turns at its pace.

Pure: the caller brings the time and the counts. There is one for each endpoint, at the worker if it is alone and at the
driver otherwise (`evalcube.stages.infer.sharing`).

*How many.* Another window is tried, and kept if the endpoint delivers at least half as much more as there is more in
flight; by Little's law it delivers window × tokens ÷ seconds waited, which needs no even flow of answers. The first
trials double the window, later ones are smaller steps up and down, far apart.

*How fast.* Where more than a few are refused, requests go at a pace that climbs: from below the rate that was let
through towards it, about it, then away from it ever faster, until requests are refused again. The more were refused,
the longer the next climb. What is refused at half of the rate that is let through as well is refused by chance: it is
simply asked again. Where all are refused, few are asked until one is let through. Where requests are refused only if
more are in flight than ever passed, that is the window.

References
----------
S. Ha, I. Rhee, L. Xu (2008). CUBIC: a new TCP-friendly high-speed TCP variant. ACM SIGOPS Operating Systems Review
42(5), 64-74. https://doi.org/10.1145/1400097.1400105
J. D. C. Little (1961). A proof for the queuing formula L = λW. Operations Research 9(3), 383-387.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from evalcube.stages.infer.counts import Counts

START, MOST = 16, 256
"""In flight at first, and at most, over all workers."""
IN_A_ROW, _ENOUGH = 8, 20
"""Answers or refusals from which on something is decided: fewer may be by accident; and requests that show a rate, of
which twice as many show a share."""
_STEP = 1.4
"""To another window after the first rounds: so large that few answers show a difference."""
_PART, _TRIAL, _REST = 0.25, 256, 4096
"""Answers that tell how good a window is: in the first rounds such a part of it that each round is enough, and later;
and after a trial in vain, which costs below a tenth of that."""
_TOLERATED, _COST = 0.03, 0.02
"""Share of refused requests that is simply asked again; and what part of a climb's requests the last refused ones are
to be: a climb that was too short is followed by one that is longer."""
_BELOW = 0.9
"""Of the rate that is let through, where a climb begins."""
_MOST_BY_CHANCE = 0.4
"""Share that may be refused by chance: a limit without a burst refuses half of what comes too early."""
_SLOWEST, _FIRST = 0.5, 10.0
"""Requests per second while all are refused, to see when it is over; and of the first pace at least."""
_SHORT, _LONG = 2.0, 60.0
"""Seconds of a climb to the rate that was let through, at least and at most: limits are by the minute or shorter."""


class Controller:
    """The window and the pace of one endpoint, for all workers. All times are seconds on one clock."""

    def __init__(self, start: float, most: float, timeout: float, now: float, workers: int = 1) -> None:
        self.epoch = 1
        """What began under another window or pace says nothing of the present one."""
        self.window = float(min(start, most))
        """Requests in flight."""
        self.pace: float | None = None
        """Requests per second; None while nothing bounds them."""
        self._searching = start < most
        self.resize(most, timeout, workers)
        self.growing, self._up = self._searching, False
        """Whether these are the first rounds; and whether a larger window is the next to be tried."""
        self._rest = 0.0
        self._base: tuple[float, float] | None = None
        """The window from which this one is tried, and its seconds per token."""
        self._high, self._seconds, self._past = 0.0, _SHORT, 0.0
        """Rate that is let through, seconds of a climb to it, and how many times as many have passed."""
        self._clean = 0.0
        """The last pace of a climb at which next to nothing was refused but by chance."""
        self._steady = False
        """Whether that held for long enough to tell."""
        self._chance, self._before = 0.0, 0.0
        """Share that is refused whatever the pace; and the one that was refused at a faster pace."""
        self._testing = False
        """Whether the pace is half of the rate that was let through, to see what is refused by chance."""
        self._shut = False
        """Whether all are refused."""
        self._held, self._by_rate = (0, 0.0), False
        """Since when the window is what passed at most, and the one before; and whether that was in vain."""
        self._now = self._begun = now
        self._delay = 0.0
        """Seconds that a refusal took at most: as long nothing is known of what is asked now, begun at `_begun`."""
        self._recent_sent = self._recent_refused = 0.0
        self._mark = (now, Counts())
        """When the rate began to be counted, and all counts then."""
        self._seen = self._cut_at = Counts()

    def resize(self, most: float, timeout: float, workers: int) -> None:
        """Have other bounds."""
        self._most, self._timeout, self._least = float(most), timeout, float(min(workers, most))
        declared = not self._searching and self.pace is None
        self._set_window(self._most if declared else self.window)

    @property
    def top_rate(self) -> float | None:
        """Requests per second that the endpoint lets through at most, as far as is known."""
        return None if self.pace is None or self._shut else self._high

    def look(self, now: float, counts: Counts) -> bool:
        """Adapt to what was counted until now; returns whether anything changed."""
        seen, self._seen, self._now = self._seen, replace(counts), now
        self._delay = max(self._delay, counts.delay)
        before, sent = (self.epoch, self.window, self.pace), counts.all_sent - seen.all_sent
        if counts.epoch != seen.epoch:
            seen = seen.at(counts.epoch)
        self._recent_sent += counts.sent - seen.sent
        self._recent_refused += counts.refused - seen.refused
        # Halved now and then, so that older requests count for less and less.
        if self._recent_sent > 2 * _ENOUGH:
            self._recent_sent /= 2.0
            self._recent_refused /= 2.0
        if counts.epoch == self.epoch:
            self._decide(now, counts, sent)
            if self._searching and not self._shut:
                self._search(counts)
        return before != (self.epoch, self.window, self.pace)

    def _decide(self, now: float, counts: Counts, sent: int) -> None:
        # Too much was in flight, at whichever pace: half of it, and search again from there.
        if counts.overloads:
            self.growing, self._searching, self._up = False, True, True
            self._move(self.window / 2.0, None)
        elif self._shut and counts.sent - counts.refused > 1 and self._is_known(now):
            self._cut(now, counts)
        elif self._shut:
            if counts.refused >= IN_A_ROW and self.pace is not None:
                self._set_pace(self.pace / 4.0)
        elif self._is_overdone(counts):
            self._slow_down(now, counts)
        elif self._testing:
            self._test(now, counts)
        elif self.pace is not None:
            self._climb(counts, sent)

    # Refusals

    @property
    def _share(self) -> float:
        return self._recent_refused / max(self._recent_sent, 1.0)

    def _is_known(self, now: float) -> bool:
        """Whether most of what was asked since the last change would be refused by now."""
        return now - self._begun >= 2.0 * self._delay

    def _is_overdone(self, counts: Counts) -> bool:
        """Whether more is refused than is tolerated, of the last requests or of all since the last change."""
        if counts.refused and counts.pause >= 0.5:
            return True
        chance = _MOST_BY_CHANCE if self._testing else self._chance
        return any(
            refused > 2.0 + (1.3 * chance + _TOLERATED) * sent + 2.0 * math.sqrt(chance * sent)
            and (sent >= _ENOUGH or refused >= IN_A_ROW)
            for sent, refused in ((self._recent_sent, self._recent_refused), (counts.sent, counts.refused))
        )

    def _slow_down(self, now: float, counts: Counts) -> None:
        """Ask less: a smaller window, a slower pace, or only now and then where all are refused."""
        by_window = IN_A_ROW <= counts.most_passed < counts.least_refused and not self._by_rate
        all_refused = self._share >= 0.8 and not counts.pause
        if self.epoch == self._held[0] and (all_refused or not by_window):
            # A climb has most in flight when it meets a rate, too: refused with fewer, it is no matter of how many.
            self._by_rate = True
            self._set_window(self._held[1])
        if all_refused:
            self._shut = True
            self._set_pace(self.pace / 4.0 if self.pace else max(self._rate(now, counts) / 4.0, _FIRST))
        elif by_window:
            former, self._searching = self.window, True
            self._unbound()
            self._stay(counts.most_passed)
            self._held = (self.epoch, former)
        else:
            self._cut(now, counts)

    def _cut(self, now: float, counts: Counts) -> None:
        """Begin a climb to the rate that is let through; half of it is tested first if that is not known well."""
        share, then, pace, span_known = self._share, self._cut_at, self.pace, 0.0
        steady = pace is not None and not self._shut and self._steady
        if pace is None:
            self._high, self._before = max(self._rate(now, counts), _FIRST), share
        elif self._shut:
            span_known = now - self._mark[0] if self._clean else 0.0
            self._high, self._mark = max(self._rate(now, counts), pace * (1.0 - share)), (now, self._seen)
        elif steady:
            self._high, span_known = self._clean, 4.0 * self._seconds
        elif counts.sent > counts.refused:
            self._high = pace * min(max(math.sqrt((1.0 - share) / (1.0 - self._chance)), 0.7), 0.9)
        self._high = max(self._high, _SLOWEST)
        if span_known:
            refused = counts.all_refused - then.all_refused - self._chance * (counts.all_sent - then.all_sent)
            self._seconds = min(max(refused / self._high + counts.pause, 0.0) / _COST, span_known, _LONG)
        self._seconds = max(self._seconds, _SHORT, _ENOUGH / self._high)
        self._testing = not steady
        self._past, self._shut, self._steady, self._cut_at = 0.0, False, False, self._seen
        self._clean = self._climb_pace
        self._set_pace(self._high / 2.0 if self._testing else self._clean)

    def _rate(self, now: float, counts: Counts) -> float:
        """What was let through per second, of what is not refused by chance."""
        begun, then = self._mark
        return (counts.let_through - then.let_through) / max(now - begun, 1.0) / (1.0 - self._chance)

    def _set_pace(self, pace: float) -> None:
        self.pace = max(pace, _SLOWEST)
        self._next()

    def _unbound(self) -> None:
        self.pace, self._testing, self._clean = None, False, 0.0
        self._next()

    def _test(self, now: float, counts: Counts) -> None:
        """Take what is refused at half of the rate that is let through for what is refused by chance."""
        if counts.sent < (2 * _ENOUGH if counts.refused else _ENOUGH) or not self._is_known(now):
            return
        share = counts.refused / counts.sent
        if share > _MOST_BY_CHANCE:
            self._cut(now, counts)
            return
        self._testing = False
        self._high *= (1.0 - self._chance) / (1.0 - share)
        self._chance = share
        if share > 0.6 * self._before > 0.0:
            # It made no difference.
            self._unbound()
        else:
            self._clean = self._climb_pace
            self._set_pace(self._clean)
        self._before = 0.0

    def _climb(self, counts: Counts, sent: int) -> None:
        """Raise the pace as far as it is used; have none where the window holds requests up."""
        assert self.pace is not None  # noqa: S101 - it is what is raised
        if self.pace > 1.5 * self._high and counts.answers > max(IN_A_ROW, counts.passed / 2):
            self._unbound()
            return
        if counts.sent >= 2 * _ENOUGH:
            # What is too fast is refused as well: the least that was seen is by chance.
            share = counts.refused / counts.sent
            self._chance = min(self._chance, share + 2.0 * math.sqrt(share / counts.sent))
        if counts.refused <= 1.0 + self._chance * counts.sent:
            self._clean, self._steady = self.pace, counts.sent >= 2 * _ENOUGH
        self._past += min(sent / self.pace / self._seconds, 0.25)
        self.pace = self._climb_pace

    @property
    def _climb_pace(self) -> float:
        faster = 1.0 if self._past < 1.0 else 2.0
        return self._high * (1.0 - (1.0 - _BELOW) * faster * (1.0 - self._past) ** 3)

    # The best window

    def _search(self, counts: Counts) -> None:
        """Keep the present window, or go back to the one before; then try another.

        None is so large that an answer would take over a third of the time-out on average, by what it takes now.
        """
        first = self.growing
        enough = max(IN_A_ROW / 2, _PART * self.window) if first else _TRIAL
        if counts.answers < max(enough, self._rest):
            return
        per_token = counts.waited / counts.tokens
        fits = self._timeout / 3.0 * counts.answers / counts.waited
        if counts.answers < IN_A_ROW and fits < 2.0:
            return  # half as many decide only where twice the window surely fits, as for most in the first round
        if self._base is not None:
            more = self.window / self._base[0]
            if math.log(per_token / self._base[1]) > 0.5 * math.log(more):
                self._stay(self._base[0])
                return
        step = 2.0 if first else _STEP if self._up else 1.0 / _STEP
        if first and counts.answers >= 4.0 * self.window:
            # Where decisions come late, as for several workers, several rounds were seen at once.
            step = 4.0
        next_window = min(max(float(round(self.window * min(step, fits))), self._least), self._most)
        if next_window == self.window:
            self._stay(self.window)
        else:
            self._rest = 0.0
            self._move(next_window, (self.window, per_token))

    def _stay(self, window: float) -> None:
        self._rest = 0.0 if self.growing else _REST
        self.growing, self._up = False, not self._up
        self._move(window, None)

    def _move(self, window: float, base: tuple[float, float] | None) -> None:
        self._base = base
        self._set_window(window)
        self._next()

    def _set_window(self, window: float) -> None:
        self.window = min(max(window, self._least), self._most)

    def _next(self) -> None:
        self.epoch += 1
        self._begun = self._now
        self._recent_sent = self._recent_refused = 0.0


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


def next_pace(pace: Pace | None, rate: float | None, since: float, workers: int) -> Pace | None:
    """Another rate from some time on, so that no two turns come close together; None for none."""
    if rate is None or (pace is not None and pace.rate == rate):
        return None if rate is None else pace
    # Small numbers are exact; what is taken away is a whole number of rounds.
    turn = 0.0 if pace is None else pace.turn_at(since) % (2 * workers)
    return Pace(rate, since, turn)


class Turns:
    """One worker's turns; none are needed while there is no pace."""

    def __init__(self) -> None:
        self.pace: Pace | None = None
        """The present one; None where no turns are needed."""
        self._workers, self._rank, self._used = 1, 0, 0
        self._later: tuple[Pace, int, int] | None = None

    def follow(self, pace: Pace | None, now: float, workers: int, rank: int) -> None:
        """Take another pace from when it says, None for none, as number `rank` of `workers` that take turns."""
        # Until then all workers keep to the present one: two paces at once would be more than either.
        if pace is not None and self.pace is not None and pace.since > now:
            self._later = pace, workers, rank
            return
        self.pace, self._workers, self._rank, self._later = pace, max(workers, 1), rank, None
        if pace is not None:
            self._used = math.floor(self._own(pace, now) + _TOLERANCE)

    def wait(self, now: float) -> float:
        """Seconds until a request may start."""
        self._switch(now)
        if self.pace is None:
            return 0.0
        own = self._own(self.pace, now)
        passed = math.floor(own + _TOLERANCE)
        in_time = self._workers == 1 or own - passed < _LATEST or self._turns_saved(self.pace) > 1
        if passed > self._used and in_time:
            return 0.0
        wait = (max(passed, self._used) + 1 - own) * self._workers / self.pace.rate
        return wait if self._later is None else min(wait, self._later[0].since - now)

    def take(self, now: float) -> None:
        """Use a turn."""
        self._switch(now)
        if self.pace is not None:
            own, saved = self._own(self.pace, now), self._turns_saved(self.pace)
            passed = math.floor(own + _TOLERANCE)
            self._used = max(self._used + 1, passed - saved + 1)
            if self._workers == saved == 1 and own - passed >= _LATEST:
                # Nobody else has turns: those to come are as much later.
                self.pace, self._used = Pace(self.pace.rate, now, 0.0), 0

    def _turns_saved(self, pace: Pace) -> int:
        """How many turns that passed may be caught up with, the present one among them."""
        return max(1, int(_BURST_SECONDS * pace.rate / self._workers))

    def _switch(self, now: float) -> None:
        if self._later is not None and now >= self._later[0].since:
            self.follow(self._later[0], now, *self._later[1:])

    def _own(self, pace: Pace, now: float) -> float:
        return (pace.turn_at(now) - self._rank) / self._workers
