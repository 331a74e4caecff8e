"""Keeps one worker within what an endpoint turned out to take, together with the other workers. Pure: no clock.

All workers look for refusals; one of them, the first, leads: it alone tries whether more is allowed, and the others
follow its pace. It takes about a second until they know, so a pace says from when on it holds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from evalcube.stages.infer.aimd import Window
from evalcube.stages.infer.concurrency import InFlightEvidence
from evalcube.stages.infer.pacing import Pace, Turns
from evalcube.stages.infer.rate_finder import RateFinder

_NOTICE_SECONDS = 2.0
"""Until all workers have heard of another pace."""
_SAME_RATE = 0.06
"""Relative difference of rates at which as many requests are in flight, about."""
_WORTH = 0.7
"""Share of a bound on requests in flight below which it does not help to bound them."""
_HELD_SECONDS = 4.0
"""How long a worker that was refused waits for the leader's next pace."""
_REPEAT_SECONDS = 5.0
"""How often a leader says its pace again, so that the others know that it is there."""
_LEADERLESS_SECONDS = 20.0
"""Without a word of the leader after which the others look for themselves: it may have nothing to ask."""
_TRIAL_SECONDS = 300.0
"""After a bound on the requests in flight did not help, none is tried for so long; doubled each time."""
UNLIMITED = math.inf
"""Rate of a pace that ends all pacing."""


class News(NamedTuple):
    """What other workers should hear; compared with what they heard last."""

    refused: float = -math.inf
    """When the request was sent whose refusal slowed this worker down last, seconds on the shared clock."""
    pace: Pace | None = None
    """What this worker leads to."""
    by_chance: float = 0.0
    """Share of requests that are refused whatever the pace; said with a pace."""


NO_NEWS = News()


class Limiter:
    """The limits of an endpoint that nobody declared.

    Parameters
    ----------
    window
        Of the same endpoint.
    """

    def __init__(self, window: Window) -> None:
        self.news = NO_NEWS
        self.finder = RateFinder()
        self.offset = 0.0
        """What makes this worker's clock the one that all share, seconds."""
        self._window = window
        self._turns = Turns()
        self._evidence = InFlightEvidence()
        self._workers, self._rank = 1, 0
        self._heard_at = self._published_at = self._paced_since = -math.inf
        self._evidence_rate = 0.0
        """At about which what is known of requests in flight was seen."""
        self._level = 0.0
        """To which they were bound first."""
        self._counts_in_flight = False
        """Whether refusals bound what is in flight, not the rate."""
        self._trial_at, self._trial_seconds = -math.inf, _TRIAL_SECONDS

    @property
    def paced(self) -> bool:
        """Whether requests have to wait for their turn."""
        return self._turns.paced

    @property
    def lets_most_through(self) -> bool:
        """Whether the endpoint refuses the smaller part of what it is asked."""
        return self.finder.lets_most_through

    @property
    def found_rate(self) -> float | None:
        """Requests per second of all workers that the endpoint takes, as far as it was found out."""
        return self.finder.found

    @property
    def found_connections(self) -> int | None:
        """Requests in flight of all workers that it takes, as far as it was found out."""
        bound = self._counts_in_flight and self._window.limit < self._window.ceiling and self.finder.answered
        return self._window.limit * self._workers if bound else None

    def share_out(self, workers: int, rank: int, ceiling: float | None, now: float) -> None:
        """Be number `rank` of `workers`; `ceiling` is the declared rate of all of them, requests per second."""
        if workers:
            self._workers, self._rank = workers, rank
            self.finder.workers = workers
            self.finder.ceiling = math.inf if ceiling is None else ceiling
            self.finder.delay = _NOTICE_SECONDS if workers > 1 else 0.0
            self._turns.share_out(workers, rank, now + self.offset)

    def wait(self, now: float) -> float:
        """Seconds until a request may start."""
        return self._turns.wait(now + self.offset)

    def take(self, now: float) -> None:
        """Note that a request starts."""
        self._turns.take(now + self.offset)
        self.finder.leads = self._leads(now)
        if self.finder.sent(now) or (self.finder.leads and now - self._published_at > _REPEAT_SECONDS):
            self._publish(now)

    def accepted(self, now: float, in_flight: int) -> None:
        """Note that a request was let through, which started when so many were in flight."""
        if self.finder.rate is not None:
            self._evidence.accepted(in_flight)
        self.finder.leads = self._leads(now)
        if self.finder.accepted(now):
            self._publish(now)
        elif self._counts_in_flight and self.finder.leads and now - self._published_at > _REPEAT_SECONDS:
            self._publish_bound(now)

    def refused(self, now: float, started: float, in_flight: int, waiting: int, pause: float) -> bool:
        """Note that a request was refused; returns whether requests became fewer by it.

        Parameters
        ----------
        now
            When that was answered.
        started
            When it was sent.
        in_flight
            Requests that were in flight by then.
        waiting
            Requests in flight now.
        pause
            Seconds that the endpoint asked to wait.
        """
        paced = self.finder.rate is not None
        if paced and started >= self._paced_since:
            self._evidence.refused(in_flight)
        if self._counts_in_flight and not self._leads(now):
            return False
        if self._counts_in_flight and self._window.limit < _WORTH * self._level:
            self.finder.begin(now, pause)
        elif not self.finder.refused(now, started, waiting, pause):
            return False
        if self.finder.rate is None:
            self._go_free(now)
            return False
        if paced:
            level = self._evidence.level(self._workers)
            if level is not None and now >= self._trial_at and self._leads(now):
                self._bound_in_flight(level, now, started)
                return True
        elif self._counts_in_flight:
            # Bounding them did not help: it was the rate.
            self._counts_in_flight = False
            self._trial_at, self._trial_seconds = now + self._trial_seconds, 2 * self._trial_seconds
            self._window.open()
            self._evidence.clear()
        self._slow_down(now)
        self.news = self.news._replace(refused=started + self.offset)
        return True

    @property
    def counts_in_flight(self) -> bool:
        """Whether a refusal is one too many in flight."""
        return self._counts_in_flight

    def blocked(self, now: float, seconds: float) -> None:
        """Note that the endpoint wants no request for some seconds."""
        self.finder.blocked(now, seconds)

    def hear(self, news: News, now: float) -> None:
        """Take over what another worker learned.

        Parameters
        ----------
        news
            Of that worker, without what was heard before.
        now
            When that was heard.
        """
        pace = news.pace
        if pace is not None and self._rank != 0:
            self._heard_at = now
            self.finder.chance.assume(news.by_chance)
            if pace.rate == UNLIMITED:
                self.finder.leave()
                self._turns.follow(None, now + self.offset)
                if pace.turn and not self._counts_in_flight:
                    self._window.bound(pace.turn)
                self._counts_in_flight = pace.turn > 0.0
            else:
                if self._counts_in_flight:
                    self._counts_in_flight = False
                    self._window.open()
                self.finder.adopt(pace.rate, pace.since - self.offset)
                self._turns.follow(pace, now + self.offset)
        heard = news.refused > -math.inf and self._leads(now) and not self._counts_in_flight
        if heard and self.finder.heard_refusal(now, news.refused - self.offset):
            if self.finder.rate is None:
                self._go_free(now)
            else:
                self._slow_down(now)

    def _go_free(self, now: float) -> None:
        """Pace nothing any more."""
        self._turns.follow(None, now + self.offset)
        if self._leads(now):
            pace = Pace(UNLIMITED, now + self.offset, 0.0)
            self.news = self.news._replace(pace=pace, by_chance=self.finder.chance.share)

    def _leads(self, now: float) -> bool:
        return self._workers == 1 or self._rank == 0 or now - self._heard_at > self._patience

    @property
    def _patience(self) -> float:
        """Seconds in which a leader would have been heard; with few requests it speaks seldom."""
        return max(_LEADERLESS_SECONDS, 10.0 * self._workers / (self.finder.rate or 1.0))

    def _slow_down(self, now: float) -> None:
        if self._workers > 1 and self._turns.paced:
            # Until others know the new pace no turn is used: the next one would be refused like this one.
            self._turns.hold(_HELD_SECONDS, now + self.offset)
        if self._leads(now) or not self._turns.paced:
            self._publish(now)

    def _publish(self, now: float) -> None:
        rate = self.finder.rate
        if rate is None:
            return
        self._published_at = now
        if abs(rate - self._evidence_rate) > _SAME_RATE * rate:
            # What is in flight depends on the rate: at different ones it says nothing.
            self._evidence.clear()
            self._evidence_rate = rate
        delay = self.finder.delay if self._turns.paced else 0.0
        if not self._turns.paced:
            self._paced_since = now
        pace = self._turns.next_pace(rate, now + self.offset, delay)
        self._turns.follow(pace, now + self.offset)
        if self._leads(now):
            self.news = self.news._replace(pace=pace, by_chance=self.finder.chance.share)

    def _bound_in_flight(self, level: float, now: float, started: float) -> None:
        self._counts_in_flight, self._level = True, level
        self.finder.leave()
        self._turns.follow(None, now + self.offset)
        self._evidence.clear()
        self._window.bound(level)
        self.news = self.news._replace(refused=started + self.offset)
        self._publish_bound(now)

    def _publish_bound(self, now: float) -> None:
        self._published_at = now
        self.news = self.news._replace(pace=Pace(UNLIMITED, now + self.offset, float(self._window.limit)))


def news_since(now: News, before: News) -> News:
    """What is new in `now`."""
    return News(
        now.refused if now.refused != before.refused else -math.inf,
        now.pace if now.pace != before.pace else None,
        now.by_chance if now.pace != before.pace else 0.0,
    )
