"""Finds the rate of requests that an endpoint takes, from what it answers and what it refuses. Pure: no clock.

An endpoint that refuses little is not slowed down. One that refuses much is asked slowly, then faster until it
refuses again: that rate is too high, and the next ones approach it and go beyond it in small steps, so that few
requests are spent on looking whether more is allowed by now. Between two refusals a limit of the usual kinds (a bucket
of tokens, a window) has let through what it refills in that time, which is the best guess of its rate there is.

References
----------
D.-M. Chiu, R. Jain (1989). Analysis of the increase and decrease algorithms for congestion avoidance in computer
networks. Computer Networks and ISDN Systems 17(1), 1-14. https://doi.org/10.1016/0169-7552(89)90019-6
S. Ha, I. Rhee, L. Xu (2008). CUBIC: a new TCP-friendly high-speed TCP variant. ACM SIGOPS Operating Systems Review
42(5), 64-74. https://doi.org/10.1145/1400097.1400105
"""

from __future__ import annotations

import math

from evalcube.stages.infer.chance import ChanceRefusals

_TOLERATED = 0.07
"""Share of refused requests below which an endpoint is not slowed down."""
_WEIGHT = 0.005
"""Of the newest request in that share: about two hundred count."""
_IN_A_ROW = 4
"""Refusals without an answer between them that are enough, too."""
_FEW, _ALL_OF_THE_LAST = 0.5, 8
"""Share of refused requests, and refusals in a row, below which most are let through."""
_BY_ACCIDENT = 1e-3
"""Probability of refusals in a row below which they are no accident."""
_DOUBTED_SECONDS = 60.0
"""How long after refusals seemed to come by chance a limit shows that they did not."""
_SURE_SECONDS = 30.0
"""How long refusals are then taken for a limit's; doubled each time."""
_SLOWEST = 0.2
"""Requests per second that are tried at least, of all workers."""
_FIRST = 10.0
"""Requests per second to begin with, at least."""
_IDLE = 0.5
"""Requests per second while nothing at all is let through."""
_LONGEST_WAIT = 3.0
"""Seconds of waiting for a refusal that are made up for by risking none."""
_EPISODE_SECONDS = 5.0
"""Time without an answer after which a limit is taken to count in windows."""
_BURST_SHARE = 0.7
_FACTOR = 2.0
"""By which rates grow while none was refused."""
_DOUBLING_ANSWERS, _DOUBLING_SECONDS = 3, 0.2
_APPROACH_ANSWERS, _APPROACH_SECONDS = 10, 1.0
_PROBE_ANSWERS, _PROBE_SECONDS, _SHARED_PROBE_SECONDS = 100, 5.0, 10.0
_PROBE_STEP, _LARGEST_STEP = 0.01, 0.32
_DOUBTFUL_ANSWERS, _DOUBTFUL_SECONDS, _DOUBTFUL_STEP = 20, 2.0, 0.05
"""The same where the rate that was refused is in doubt: refused once only, or left behind."""
_LIKE = 0.1
"""Relative difference of two rates that confirm each other."""
_NEAR = 0.97
"""Of the rate that was refused: from here on steps are small."""
_PAUSES_APART = 20.0
"""Times as long as the endpoint made us wait after the last refusal, no further one is risked."""
_BORNE, _REPAID = 1.5, 0.02
"""Refusals after which a rate is too high, and what each request takes off: at a busy machine some come too early."""
_BORNE_BY_CHANCE, _TIMES_CHANCE = 8.0, 1.25
"""The same where some are refused by chance, and how many times as many of those are made up for."""
_LEAST_CUT, _LARGEST_CUT = 0.97, 0.5
_ENOUGH = 10
"""Answers from which a rate is measured."""
_BINDING = 0.7
"""Share of a rate that must be used before a higher one is tried."""


class RateFinder:
    """The rate of one endpoint. Rates are of all workers together, answers are this worker's.

    All times are in seconds on one clock.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        """Requests per second that the endpoint takes; None while no limit shows."""
        self.ceiling = math.inf
        """Rate that the config allows."""
        self.workers = 1
        self.leads = True
        """Whether higher rates are tried here; else another worker does it."""
        self.delay = 0.0
        """Seconds until all workers follow a new rate."""
        self.refused_rate: float | None = None
        """The last rate that was too high."""
        self._refused_share = 0.0
        self._in_a_row = 0
        self._debt = 0.0
        """Refusals at the present rate, less what is tolerated."""
        self.chance = ChanceRefusals()
        self._chance_from, self._sure_seconds = -math.inf, _SURE_SECONDS
        """Until when going slower is not thought to be in vain, as that was wrong before."""
        self._left = (-math.inf, 0.0, 0.0)
        """When the rate was left as refusals seemed to come by chance, that rate, and the one refused before."""
        self._total = 0
        self._begun: float | None = None
        self._second, self._now_count, self._last_count = -math.inf, 0, 0
        self._effective = -math.inf
        """From when on the present rate holds: earlier requests say nothing about it."""
        self._before = (0.0, math.inf)
        """The rate before, if it was a lower one, and from when on it held."""
        self._since = 0
        """Requests that were sent under the present rate."""
        self._refused_since = 0
        """Those of them that were refused."""
        self._confirmed = False
        """Whether it was refused more than once."""
        self._pause = 0.0
        self._measured = (-math.inf, 0)
        """Time of the last refusal that counted, and the answers by then."""
        self._blocked_at: float | None = None
        """Since when nothing was let through."""
        self._asked = 0.0
        """Longest time that the endpoint asked to wait meanwhile."""
        self._episode = (0.0, 0)
        """Time since which windows are measured, and the answers by then."""

    @property
    def found(self) -> float | None:
        """The rate, once it is more than a guess: one that the endpoint refused is known, and this one is below it.

        Where nothing at all was let through there is no telling a limit from an endpoint that is out of order.
        """
        if self.rate is None or self.refused_rate is None or not self.answered:
            return None
        return min(self.rate, _NEAR * self.refused_rate)

    @property
    def answered(self) -> bool:
        """Whether anything was let through so far."""
        return self._total > 0

    @property
    def lets_most_through(self) -> bool:
        """Whether those that are refused are the smaller part, and not all of the last ones."""
        return self._refused_share < _FEW and self._in_a_row < _ALL_OF_THE_LAST

    def adopt(self, rate: float, since: float) -> None:
        """Take over the rate that another worker leads to."""
        if self.rate is not None and rate < self.rate:
            self.refused_rate = self.rate
        self._set(rate, since)

    def leave(self) -> None:
        """Go without a rate, as it turned out to be no limit of rates."""
        self.rate = self.refused_rate = None
        self._refused_share = 0.0

    def accepted(self, now: float) -> bool:
        """Note that a request was let through; returns whether the rate changed.

        Parameters
        ----------
        now
            When it was answered.
        """
        self._refused_share *= 1.0 - _WEIGHT
        in_a_row, self._in_a_row = self._in_a_row, 0
        if self._begun is None:
            self._begun, self._episode = now, (now, 0)
        if now - self._second >= 1.0:
            self._last_count = self._now_count if now - self._second < 2.0 else 0
            self._second, self._now_count = now, 0
        self._now_count += 1
        self._total += 1
        if self.rate is None:
            self._blocked_at = None
            self.chance.count(refused=False)
            return False
        blocked, self._blocked_at = self._blocked_at, None
        # Where requests are few anyhow, one that was refused is no sign that nothing was let through.
        closed = self._asked >= _EPISODE_SECONDS or in_a_row >= _IN_A_ROW
        if closed and blocked is not None and now - blocked >= _EPISODE_SECONDS and self.leads:
            return self._end_episode(blocked, now)
        return False

    def sent(self, now: float) -> bool:
        """Note that a request starts; returns whether the rate changed.

        Refusals come at once and answers late, so that what was sent and not refused says sooner what is borne.
        """
        self._since += now >= self._effective
        self._debt = max(self._debt - _REPAID - _TIMES_CHANCE * self.chance.share, 0.0)
        return self._blocked_at is None and self._grow(now)

    def blocked(self, now: float, seconds: float = 0.0) -> None:
        """Note that the endpoint wants no request, for some seconds if it says so."""
        if self._blocked_at is None:
            self._blocked_at, self._asked = now, 0.0
        self._asked = max(self._asked, seconds)

    def refused(self, now: float, started: float, in_flight: int, pause: float = 0.0) -> bool:
        """Note that a request was refused; returns whether the rate changed.

        Parameters
        ----------
        now
            When that was answered.
        started
            When the request was sent.
        in_flight
            Requests that wait for an answer by now.
        pause
            Seconds that the endpoint asked to wait.
        """
        self._refused_share += _WEIGHT * (1.0 - self._refused_share)
        self._in_a_row += 1
        if self._begun is None:
            self._begun, self._episode = now, (now, 0)
        self.blocked(now, pause)
        if self.rate is None:
            self.chance.count(refused=True)
            if self._is_limit(in_flight):
                self.begin(now, pause)
            return self.rate is not None
        return self._refused_at_rate(now, started, pause)

    def _refused_at_rate(self, now: float, started: float, pause: float, *, own: bool = True) -> bool:
        if started < self._effective:
            # Those in flight together report the same refusal; but if the rate was raised meanwhile, it was too high
            # before.
            rate, effective = self._before
            if started < effective:
                return False
            self.rate = rate
        else:
            self._refused_since += own
        self._debt += 1.0
        if self._debt < (_BORNE_BY_CHANCE if self.chance.share else _BORNE) and not pause:
            return False
        self._cut(now, pause)
        return True

    def _is_limit(self, in_flight: int) -> bool:
        """Whether refusals are so many that requests are to be paced."""
        # Refusals come at once: those in flight may all have been let through.
        if self.chance.share:
            return self.chance.is_exceeded(in_flight)
        if self._in_a_row < in_flight or self._refused_share**self._in_a_row > _BY_ACCIDENT:
            return False
        return self._in_a_row >= _IN_A_ROW or self._refused_share >= _TOLERATED

    def heard_refusal(self, now: float, started: float) -> bool:
        """Note that another worker was refused what it sent at `started`; returns whether the rate changed."""
        if self.rate is not None:
            # It was refused more than is tolerated, or it would not have said so.
            self._debt += _BORNE_BY_CHANCE
            return self._refused_at_rate(now, started, 0.0, own=False)
        if self.chance.share and started < self._effective:
            # It did not know yet that refusals come by chance.
            return False
        self.begin(now, 0.0)
        return True

    def begin(self, now: float, pause: float) -> None:
        """Take a first rate: less than what was let through just now, part of which was a burst.

        Parameters
        ----------
        now
            When the request was refused that showed a limit.
        pause
            Seconds that the endpoint asked to wait.
        """
        self._measured, self._pause = (now, self._total), pause
        left, rate, refused_rate = self._left
        if self.chance.share and now - left < _DOUBTED_SECONDS:
            # It was a limit after all: go on where it was left.
            self.chance.assume(0.0)
            self._chance_from, self.refused_rate = now + self._sure_seconds, refused_rate
            self._sure_seconds *= 2
            self._set(rate, now + max(self.delay, pause))
            return
        self._set(max(_BURST_SHARE * self._recent(now), _FIRST), now + max(self.delay, pause))

    def _cut(self, now: float, pause: float) -> None:
        rate = self.rate or _FIRST
        at, before = self._measured
        answers, seconds = self._total - before, now - at
        self._note_stage(rate)
        share = self.chance.guess() if now >= self._chance_from and not self.chance.share else 0.0
        if share:
            self._leave_by_chance(now, rate, share)
            return
        # Of two cuts in a row the second is larger: the first one had no effect.
        new = rate * (_LARGEST_CUT if answers < 2 else 1.0 / _FACTOR if answers < _ENOUGH else _LEAST_CUT)
        if answers >= _ENOUGH and seconds > 0.0:
            asked = answers / (1.0 - self.chance.share)
            new = min(max(asked * self.workers / seconds, rate * _LARGEST_CUT), rate * _LEAST_CUT)
        if answers or self.refused_rate is None:
            self._measured = now, self._total
            last, self.refused_rate = self.refused_rate, rate
            self._confirmed = last is not None and abs(rate - last) < _LIKE * last
        least = _IDLE if answers == 0 else _SLOWEST
        self._pause = pause
        self._set(min(max(new, least), rate), now + max(self.delay, pause))

    def _note_stage(self, rate: float) -> None:
        if not self.chance.share:
            self.chance.note(rate, self._since, self._refused_since)

    def _leave_by_chance(self, now: float, rate: float, share: float) -> None:
        """Go at full speed, where it will show whether a limit refuses more than a `share` by chance."""
        self.chance.assume(share)
        self._left = now, rate, self.refused_rate or rate
        self.leave()
        self._effective = now + self.delay

    def _grow(self, now: float) -> bool:
        """Go faster, if the present rate was used and borne for long enough; returns whether it changed."""
        rate, seconds = self.rate or _FIRST, now - self._effective
        answers, least, new = self._next_step(rate)
        if not self.leads or rate >= self.ceiling:
            return False
        if self._since * self.workers < answers or seconds < max(least, self.delay):
            return False
        if self._since * self.workers < _BINDING * rate * seconds:
            # What was sent was less: begin to measure anew, as it may be more from now on.
            self._note_stage(rate)
            self._since, self._refused_since, self._effective = 0, 0, now
            return False
        self._note_stage(rate)
        self._set(min(new, self.ceiling), now + self.delay)
        return True

    def _next_step(self, rate: float) -> tuple[int, float, float]:
        """Answers and seconds after which a higher rate is tried, and that rate."""
        refused = self.refused_rate
        if refused is None:
            return _DOUBLING_ANSWERS, _DOUBLING_SECONDS, rate * _FACTOR
        if rate < _NEAR * refused:
            new = rate + max((refused * (_NEAR + 0.01) - rate) / 2, rate * _PROBE_STEP)
            return _APPROACH_ANSWERS, _APPROACH_SECONDS, new
        patience = _PAUSES_APART * min(self._pause, _LONGEST_WAIT)
        if self._confirmed and rate <= 1.03 * refused:
            seconds = _SHARED_PROBE_SECONDS if self.delay else _PROBE_SECONDS
            return _PROBE_ANSWERS, max(seconds, patience), rate * (1.0 + _PROBE_STEP)
        # Beyond what was refused: the limit is another one, so that steps grow.
        step = min(_DOUBTFUL_STEP * max(rate / refused, 1.0) ** 2, _LARGEST_STEP)
        return _DOUBTFUL_ANSWERS, max(_DOUBTFUL_SECONDS, patience), rate * (1.0 + step)

    def _end_episode(self, blocked: float, now: float) -> bool:
        """After a time in which nothing was let through: a window is over, so the rate is what went into it."""
        at, before = self._episode
        self._episode = now, self._total
        answers = self._total - before
        if now - at <= 0.0:
            return False
        self.refused_rate = max(answers * self.workers / (now - at), _SLOWEST)
        # Of several workers this is an estimate from one, which may have had more or less than its part.
        self._measured, self._confirmed = (now, self._total), not self.delay
        self._pause = now - blocked
        self._set(self.refused_rate, now + self.delay)
        return True

    def _recent(self, now: float) -> float:
        """Requests per second of all workers that were let through in the last one or two seconds."""
        seconds = now - self._second
        if seconds > 2.0:
            return 0.0
        if self._last_count and seconds < 1.0:
            return (self._last_count + self._now_count) * self.workers / (1.0 + seconds)
        return self._now_count * self.workers / max(seconds, 1.0)

    def _set(self, rate: float, effective: float) -> None:
        raised = self.rate is not None and rate > self.rate
        self._before = (self.rate or 0.0, self._effective) if raised else (0.0, math.inf)
        self._debt = 0.0
        self._since = self._refused_since = 0
        self.rate, self._effective = min(max(rate, _SLOWEST), self.ceiling), effective
