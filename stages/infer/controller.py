"""Decides how many requests may be in flight at an endpoint, and how fast they go, from what all workers counted.

Pure: the caller brings the time and the counts. There is one for each endpoint, at the worker if it is alone and at the
driver otherwise (`evalcube.stages.infer.sharing`).

*How many.* The window doubles each round while what the endpoint delivers grows at least half as fast. What it delivers
is, by Little's law, window × tokens ÷ seconds waited, which needs no even flow of answers. Then a window 1.4 times as
large or as small is tried now and then, and kept by the same rule.

*How fast.* Where more than a few are refused, requests go at a pace, first a slower one than what was let through: what
is refused at that one, and at half of it, is refused by chance, whatever the pace, and is simply asked again. From then
on the pace and the window both bound what is asked. What holds requests up climbs, and is cut when they are refused:
towards the value that was refused, longer the more was refused there, then away from it ever faster.

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
_WORTH = 0.5
"""Of a window's growth that what is delivered has to grow: less is not worth longer waits."""
_STEP, _REST = 1.4, 12
"""By which other windows are tried, so large that few answers show a difference; and times as long as a trial in vain
until the next one: these cost below a tenth."""
_ROUGH, _FEW, _PRECISE, _MANY = 0.12, 64, 0.05, 256
"""Relative errors from which on what is delivered is known, in the first rounds and later; and answers that have to
do."""
_TOLERATED = 0.05
"""Share of refused requests that is simply asked again."""
_COST = 0.025
"""Of what is asked until a limit is met again, that was refused there the last time."""
_TRIAL, _BELOW = 0.7, 0.9
"""Of what was let through, the first pace; and where a climb begins, of what was refused."""
_FIRST, _SLOWEST = 10.0, 0.5
"""Requests per second of the first pace at least, as nothing may have been answered yet; and of any."""
_AMPLE = 3.0
"""Times what is let through takes in flight, to which a window is narrowed: the first answers are the short ones."""
_ENOUGH, IN_A_ROW, _RECENT = 20, 8, 80
"""Requests from which on a share of refused ones says something, or so many in a row; and those that it is taken of."""
_SHORT, _LONG = 2.0, 30.0
"""Seconds of a climb, at least and at most."""


class _Baseline(NamedTuple):
    """A window from which another is tried, and what it delivers."""

    window: float
    per_token: float
    """Seconds waited."""


class _Climb:
    """Raises a bound towards the value that was refused, stays about there, then leaves it ever faster."""

    def __init__(self) -> None:
        self.begin(1.0, _SHORT)

    def begin(self, high: float, seconds: float, past: float = 0.0) -> None:
        self.high, self.seconds, self.past = high, max(seconds, _SHORT), past

    def go_on(self, seconds: float) -> None:
        # Not in large steps, as others hear of it late.
        self.past += min(seconds / self.seconds, 0.25)

    @property
    def value(self) -> float:
        faster = 1.0 if self.past < 1.0 else 2.0
        return self.high * (1.0 - (1.0 - _BELOW) * faster * (1.0 - self.past) ** 3)


class Controller:
    """The window and the pace of one endpoint, for all workers. All times are seconds on one clock."""

    def __init__(self, start: float, most: float, timeout: float, now: float, workers: int = 1) -> None:
        self.epoch = 1
        """What began under another window or pace says nothing of the present one."""
        self.window = float(min(start, most))
        """Requests in flight."""
        self.pace: float | None = None
        """Requests per second; None while nothing bounds them."""
        self.paced = True
        """Whether it is the pace that holds requests up, and not the window, where there are both."""
        self._searching = start < most
        self._wide = self.window
        """The window before a trial of a slower pace."""
        self.resize(most, timeout, workers)
        self._growing, self._up = self._searching, False
        """Whether these are the first rounds; and whether a larger window is the next to be tried."""
        self._rest = 0
        self._base: _Baseline | None = None
        self._trial: tuple[float, float] | None = None
        """Share refused before a trial of a slower pace, and at it; 0 before it is known."""
        self._chance = 0.0
        """Share that is refused whatever the pace."""
        self._rate = 0.0
        """What was let through before the trial."""
        self._short = 0
        """Cuts in a row that came early."""
        self._clean = 0.0
        """The pace at which nothing was refused yet."""
        self._pacing, self._widening = _Climb(), _Climb()
        self._cut_at, self._cut_let, self._cut_refused = now, 0, 0
        self._opened_at, self._opened_passed, self._cycles = now, 0, 0
        """When all were refused for the last time, or at first, and what had been let through by then."""
        self._shut: float | None = None
        """Since when nothing was let through."""
        self._passed_at, self._row, self._row_sent = now, 0, 0
        self._recent_sent = self._recent_refused = 0.0
        self._stepped_at, self._stepped, self._stepped_let = now, 0, 0
        self._seen, self._looked = Counts(), now

    def resize(self, most: float, timeout: float, workers: int) -> None:
        """Have other bounds."""
        self._most, self._timeout, self._least = float(most), timeout, float(workers)
        declared = not self._searching and self.pace is None
        self.window = max(self._most if declared else min(self.window, self._most), self._least)

    @property
    def found(self) -> float | None:
        """Requests per second that the endpoint lets through at most, as far as is known."""
        return self._pacing.high if self.pace is not None and self._trial is None and self.paced else None

    def look(self, now: float, counts: Counts) -> bool:
        """Adapt to what was counted until now; returns whether anything changed."""
        seen, self._seen, self._looked = self._seen, replace(counts), now
        begun = counts.epoch != seen.epoch
        sent = counts.sent - (0 if begun else seen.sent)
        refused = counts.refused - (0 if begun else seen.refused)
        let = counts.let_through - seen.let_through
        before = self.epoch, self.window, self.pace
        self._recent_sent += sent
        self._recent_refused += refused
        if self._recent_sent > _RECENT:
            self._recent_sent /= 2.0
            self._recent_refused /= 2.0
        if counts.all_passed > seen.all_passed:
            if self._shut is not None:
                self._reopened(now, counts)
            self._passed_at, self._row, self._row_sent, self._shut = now, 0, 0, None
        else:
            self._row += refused
            self._row_sent += sent
            if self._shut is None and self._all_refused:
                self._shut = self._passed_at
        if self.pace is not None and not counts.refused:
            self._clean = self.pace
        if before[0] == self.epoch:
            self._decide(now, counts, sent, let)
        return before != (self.epoch, self.window, self.pace)

    def _decide(self, now: float, counts: Counts, sent: int, let: int) -> None:
        slow = counts.answers >= IN_A_ROW and counts.slow > counts.answers / 2
        if counts.overloads or (slow and self.window > self._least):
            mean = counts.waited / max(counts.answers, 1)
            self._growing, self._base = False, None
            self._set_window(
                self.window * (0.5 if counts.overloads else min(0.9, self._timeout / 3.0 / mean))
            )
            self._next()
        elif self._trial is not None:
            self._try(now, counts)
        elif self._is_overdone(counts):
            self._cut(now, counts)
        elif self.pace is not None:
            self._climb(now, counts, sent, let)
        elif self._searching:
            self._search(counts)
        # Refusals come at once, but a whole window may have gone out just now.
        if self._chance and counts.passed >= 3 * _ENOUGH:
            # What is too fast is refused as well: the least that was seen is by chance.
            share = counts.refused_share
            self._chance = min(self._chance, share + math.sqrt(share * (1.0 - share) / counts.sent))
            self._chance *= self._chance >= _TOLERATED / 2.0

    # Refusals

    @property
    def _all_refused(self) -> bool:
        return self._row >= IN_A_ROW and self._row >= 0.8 * self._row_sent

    @property
    def _recent_share(self) -> float:
        return self._recent_refused / max(self._recent_sent, 1.0)

    def _is_overdone(self, counts: Counts) -> bool:
        """Whether more is refused than is tolerated."""
        if counts.refused and counts.pause >= 0.5:
            return True
        if counts.refused < 3 or self._all_refused:
            return counts.refused >= 3
        if counts.sent < (2 * _ENOUGH if self._chance else _ENOUGH // 2):
            return False
        doubt = self._chance * (1.0 - self._chance) / max(self._recent_sent, 1.0)
        return self._recent_share > self._chance + _TOLERATED + 2.0 * math.sqrt(doubt)

    def _cut(self, now: float, counts: Counts) -> None:
        """Make less what held requests up: the pace or the window; both, if the last cut was of no use."""
        # Refusals come at once: what has not been answered yet counts as let through.
        let = counts.let_through - self._cut_let
        if self.pace is None:
            self._rate = let / max(now - self._cut_at, 1.0) / (1.0 - self._chance)
            self._begin_trial(counts, max(_TRIAL * self._rate, _FIRST))
        elif self._all_refused:
            self._set_pace(self.pace / 4.0, 0.0, 1.0)
        else:
            self._cut_bounds(now, counts, let)
        if let >= 3 or not self._cut_let:
            self._cut_at, self._cut_let = now, counts.let_through
        self._cut_refused = counts.all_refused
        self._next()

    def _cut_bounds(self, now: float, counts: Counts, let: int) -> None:
        assert self.pace is not None  # noqa: S101 - else there is nothing to cut
        excess = min(counts.all_refused - self._cut_refused, 3 * counts.refused) - self._chance * counts.sent
        seconds = max(excess, 3.0) / _COST / self.pace + 20.0 * counts.pause
        early = (self._pacing if self.paced else self._widening).past < 0.5
        self._short = self._short + 1 if early else 0
        if self.paced:
            self._narrow(self.pace, counts)
        if early or not self.paced:
            high = self.window * min(max(1.0 - counts.refused_share, _TRIAL), 0.97 if self.paced else 1.0)
            self._widening.begin(high, min(seconds, 2.0 * self._widening.seconds))
            self._set_window(self._widening.value)
        if not early and not self.paced:
            return
        above = (self._recent_share - self._chance) / (1.0 - self._chance)
        rate = self._clean
        if let < 3:
            rate = self.pace / 2.0
        elif early or self._chance:
            rate = self.pace * math.sqrt(min(max(1.0 - above, 0.1), 1.0))
        if counts.pause >= 0.5 and let >= 3:
            # All waited for a part of the time only: the limit is not above twice what was let through.
            rate = min(rate, 2.0 * let / max(now - self._cut_at, 1.0))
        if self._short > 1 and counts.refused_share < 0.5 and not counts.pause:
            self._rate, self._short = rate, 0
            self._begin_trial(counts, max(_TRIAL * rate, _SLOWEST))
        else:
            self._set_pace(max(rate, self.pace / 4.0), seconds)

    def _narrow(self, rate: float, counts: Counts) -> None:
        """Let not much more be in flight than what is let through takes, by Little's law."""
        if counts.passed >= IN_A_ROW:
            taken = rate * (1.0 - self._chance) * counts.spent / counts.passed
            if _AMPLE * taken + 2.0 < self.window:
                self._set_window(_AMPLE * taken + 2.0)
                self._widening.begin(self.window, _SHORT, 1.0)

    def _set_pace(self, high: float, seconds: float, past: float = 0.0) -> None:
        self._pacing.begin(max(high, _SLOWEST), min(seconds, 2.0 * self._pacing.seconds, _LONG), past)
        self.pace = self._pacing.value

    def _begin_trial(self, counts: Counts, pace: float) -> None:
        self._trial, self.pace, self._wide = (counts.refused_share, 0.0), pace, self.window
        # Else a window that is not narrowed would go on from another one.
        self._widening.begin(self.window, _SHORT, 1.0)

    def _try(self, now: float, counts: Counts) -> None:
        """End a trial of a slower pace: what is refused there, and at half of it, is refused by chance."""
        assert self._trial is not None  # noqa: S101 - else nothing is tried
        assert self.pace is not None  # noqa: S101 - as above
        share = counts.refused_share
        if (counts.sent >= _ENOUGH and share > 0.6) or self._all_refused:
            self._trial = None
            self._cut(now, counts)
            return
        if counts.sent < (2.5 * _ENOUGH if counts.refused else _ENOUGH):
            return
        (before, first), self._trial = self._trial, None
        self._cut_at, self._cut_let, self._cut_refused = now, counts.let_through, counts.all_refused
        if share > _TOLERATED and not first:
            # Half of what comes a little too early for a limit without a burst is refused, at many a pace.
            self._trial, self.pace = (before, share), max(self.pace / 2.0, _SLOWEST)
            self._next()
            return
        self._chance = 0.0
        if first and counts.refused >= 2 and share < 0.45 and not counts.pause:
            self._chance = (share + first) / 2.0
        self._narrow(max(self._rate, self.pace), counts)
        self._next()
        if self._chance > 0.3 * before and before < 0.45:
            # It made no difference.
            self.pace = None
            self._set_window(self._wide)
            return
        rate = self.pace if first and not self._chance else self._rate
        self._pacing.seconds = _SHORT
        self._set_pace(max(rate / (1.0 - self._chance), self.pace), _SHORT, 1.0)

    def _reopened(self, now: float, counts: Counts) -> None:
        """Take the rate of a whole cycle: from the end of one refusal of everything to the end of the next."""
        if self._shut is None or now - self._shut < _SHORT or self.pace is None:
            return
        cycle = now - self._opened_at
        rate = (counts.all_passed - self._opened_passed) / cycle / (1.0 - self._chance)
        self._trial = None
        # The first one may have been a server's restart, after which all is as it was.
        seconds, past = (2.0 * cycle, 0.4) if self._cycles else (_SHORT, 1.0)
        self._cycles += 1
        self._pacing.begin(max(0.99 * rate, _SLOWEST), seconds, past)
        self.pace = self._pacing.value
        self._opened_at, self._opened_passed = now, counts.all_passed
        self._cut_at, self._cut_let, self._cut_refused = now, counts.let_through, counts.all_refused
        self._next()

    def _climb(self, now: float, counts: Counts, sent: int, let: int) -> None:
        """Raise what holds requests up."""
        assert self.pace is not None  # noqa: S101 - else nothing bounds them
        self._stepped += sent
        self._stepped_let += let
        seconds = now - self._stepped_at
        if seconds < 1.0 or seconds * self.pace < 5.0:
            return
        self.paced = self._stepped >= 0.75 * seconds * self.pace
        some, self._stepped_at, self._stepped, self._stepped_let = self._stepped_let > 0, now, 0, 0
        if self.paced and some:
            self._pacing.go_on(seconds)
            self.pace = self._pacing.value
        elif some and self.window < self._most:
            self._widening.go_on(seconds)
            self._set_window(self._widening.value)
        elif not self.paced and self.window >= self._most and counts.sent > 5 * _ENOUGH:
            self.pace, self._growing = None, self._searching
            self._next()

    # The best window

    def _search(self, counts: Counts) -> None:
        if self._growing:
            rounds = max(IN_A_ROW, min(self.window, _FEW))
            if counts.answers >= rounds and counts.is_known(_ROUGH, _FEW, 8):
                self._grow(counts)
        elif counts.answers >= self._rest and counts.is_known(_PRECISE, _MANY, 16):
            self._try_another(counts)

    def _worth(self, counts: Counts, base: _Baseline) -> float:
        """Logarithm of how much more is delivered than at another window, less what has to be."""
        return (1.0 - _WORTH) * math.log(self.window / base.window) - math.log(
            counts.per_token / base.per_token
        )

    def _grow(self, counts: Counts) -> None:
        """End the first rounds where twice the window delivers less than half as much again."""
        base, full = self._base, self.window >= self._most
        worth = base is None or self._worth(counts, base) >= 0.0
        if worth and not full:
            # Where decisions come late, as for several workers, several rounds were seen at once.
            step = 2.0 if counts.answers < 4.0 * self.window else 4.0
            self._move(step * self.window, _Baseline(self.window, counts.per_token))
        elif not worth or counts.is_known(_PRECISE, _MANY, 16):
            self._growing = self._up = False
            self._move(self.window if worth or base is None else base.window, None)

    def _try_another(self, counts: Counts) -> None:
        """Keep the present window or go back to the one before; then try another."""
        base = self._base
        back = base is not None and self._worth(counts, base) < 0.0
        other = min(
            max(float(round(self.window * (_STEP if self._up else 1.0 / _STEP))), self._least), self._most
        )
        if back or other == self.window:
            self._up, self._rest = not self._up, _REST * counts.answers
            self._move(base.window if base is not None and back else self.window, None)
        else:
            self._rest = 0
            self._move(other, _Baseline(self.window, counts.per_token))

    def _move(self, window: float, base: _Baseline | None) -> None:
        self._base = base
        self._set_window(window)
        self._next()

    def _set_window(self, window: float) -> None:
        self.window = min(max(window, self._least), self._most)

    def _next(self) -> None:
        self.epoch += 1
        self._stepped_at, self._stepped, self._stepped_let = self._looked, 0, 0
        self._recent_sent = self._recent_refused = 0.0
        self._row = self._row_sent = 0
