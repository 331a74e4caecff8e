"""How far a run is, how fast, what it costs and when it will be done: numbers for displays, from events and a clock."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evalcube.flows.run.events import Asked, Event, Started, Traffic
from evalcube.flows.run.subscribers.duration import waits
from evalcube.flows.run.summary import Tracker

RATE_SECONDS = 10.0
"""Over which rates are shown."""
LEAST_SECONDS = 3.0
"""Before as much time has passed, and `LEAST_TRIALS` are done, nothing is foretold."""
LEAST_TRIALS = 5
SHORTEST_LOOK = 15.0
"""The end is foretold from the last half of the time so far, or from so many seconds."""
_MOST_LOOKS = 600
_MILLION = 1e6


@dataclass(frozen=True)
class ModelProgress:
    """How far one evaluation is."""

    label: str
    done: int
    """Trials that have a result, those of earlier runs included."""
    trials: int
    """Planned ones; 0 if that is not known."""
    rate: float
    """Trials per second of its model over the last seconds."""
    tokens: float
    """Completion tokens per second, in the same way."""
    accuracy: float
    """So far; NaN before it can be compared."""
    waiting: bool
    """Whether its endpoint wants a pause."""

    @property
    def finished(self) -> bool:
        """Whether all planned trials have a result."""
        return 0 < self.trials <= self.done


@dataclass(frozen=True)
class RunProgress:
    """How far a run is at a moment."""

    done: int
    trials: int
    models: tuple[ModelProgress, ...]
    replies: float
    """Per second."""
    tokens: float
    """Completion tokens per second."""
    in_flight: int
    connections: int
    """Requests that may be in flight; 0 if that is not known."""
    cached: int
    errors: int
    retried: int
    waiting: str
    usd: float | None
    """Cost of this run so far; None if no price is declared."""
    usd_at_end: float | None
    """What it will have cost, if what is left costs as much as what was answered; None before that can be said."""
    eta: float | None
    """Seconds until the end; None before that can be said."""
    seconds: float
    """Since the run started."""


@dataclass(frozen=True)
class _Look:
    """Totals of this run at a moment."""

    at: float
    replies: int
    tokens: float
    over: Mapping[str, float]
    """By model: trials that need no further request."""
    answered: Mapping[str, float]
    """By model: of these, those that the endpoint answered."""
    completions: Mapping[str, float]
    """By model: completion tokens."""


class Progress:
    """A subscriber that says how far a run is; safe to ask from any thread.

    Parameters
    ----------
    tracker
        Adds up the events; its clock is the one that counts here.
    """

    def __init__(self, tracker: Tracker | None = None) -> None:
        self._tracker = tracker or Tracker()
        self._looks: list[_Look] = []

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        self._tracker(event)

    def look(self) -> None:
        """Remember how far the run is; to be called about twice a second."""
        traffic = self._tracker.traffic()
        self._looks.append(
            _Look(
                self._tracker.now(),
                traffic.replies,
                traffic.completion_tokens,
                self._over(traffic),
                dict(traffic.answered),
                {model: float(taken[1]) for model, taken in traffic.usage.items()},
            )
        )
        if len(self._looks) > _MOST_LOOKS:
            # The past is needed in less detail than the last seconds.
            half = len(self._looks) // 2
            self._looks[:half] = self._looks[:half:2]

    def now(self) -> RunProgress:
        """How far the run is."""
        tracker, traffic, started = self._tracker, self._tracker.traffic(), self._tracker.started
        then, last = self._window(RATE_SECONDS)
        span = last.at - then.at
        usd = _cost(started, traffic)
        done = self._done(traffic)
        return RunProgress(
            done=done,
            trials=0 if started is None else started.trials,
            models=self._models(traffic, then, last),
            replies=(last.replies - then.replies) / span if span else 0.0,
            tokens=(last.tokens - then.tokens) / span if span else 0.0,
            in_flight=traffic.in_flight,
            connections=self._connections(),
            cached=tracker.cached,
            errors=tracker.transport,
            retried=sum(traffic.retries.values()),
            waiting=waits(traffic.waiting),
            usd=usd,
            usd_at_end=self._cost_at_end(usd, traffic),
            eta=self._eta(),
            seconds=tracker.seconds,
        )

    def _done(self, traffic: Traffic) -> int:
        """Trials with a result; replies count when they arrive, before their block is graded."""
        started = self._tracker.started
        if started is None:
            return 0
        graded = sum(self._tracker.done().values())
        return min(started.done + max(graded, traffic.replies + self._tracker.cached), started.trials)

    def _asked(self) -> tuple[Asked, ...]:
        """What is to ask."""
        started = self._tracker.started
        return () if started is None else started.asked

    def _over(self, traffic: Traffic) -> dict[str, float]:
        """By model: trials of this run that need no further request."""
        blocks: dict[str, float] = {}
        most: dict[str, float] = {}
        cached: dict[str, float] = {}
        graded, hits, lost = self._tracker.done(), self._tracker.cached_by_model(), self._tracker.lost()
        for place, asked in enumerate(self._asked()):
            name = asked.model
            blocks[name] = blocks.get(name, 0) + graded.get(place, 0) + lost.get(place, 0)
            most[name] = most.get(name, 0) + asked.left
            cached[name] = cached.get(name, 0) + hits.get(place, 0)
        return {
            name: max(blocks[name], min(traffic.answered.get(name, 0) + cached[name], most[name]))
            for name in blocks
        }

    def _window(self, seconds: float) -> tuple[_Look, _Look]:
        """The last look, and the one so many seconds before it, or the first."""
        if not self._looks:
            empty = _Look(0.0, 0, 0.0, {}, {}, {})
            return empty, empty
        last = self._looks[-1]
        place = bisect_left(self._looks, last.at - seconds, key=lambda one: one.at)
        return self._looks[min(place, max(len(self._looks) - 2, 0))], last

    def _models(self, traffic: Traffic, then: _Look, last: _Look) -> tuple[ModelProgress, ...]:
        tracker, started = self._tracker, self._tracker.started
        if started is None:
            return ()
        span, graded, accuracies = last.at - then.at, tracker.done(), tracker.accuracies()
        over, names = self._over(traffic), [asked.model for asked in started.asked]
        found = []
        for place, label in enumerate(started.models):
            asked = started.asked[place] if place < len(started.asked) else None
            before = started.recorded[place] if place < len(started.recorded) else 0
            done, rate, tokens = before + graded.get(place, 0), 0.0, 0.0
            if asked is not None:
                if names.count(asked.model) == 1:
                    done = max(done, before + round(over.get(asked.model, 0)) - tracker.lost().get(place, 0))
                rate, tokens = (
                    (one.get(asked.model, 0) - other.get(asked.model, 0)) / span if span else 0.0
                    for one, other in ((last.over, then.over), (last.completions, then.completions))
                )
            waiting = (asked.model if asked else label) in traffic.waiting
            accuracy = accuracies.get(place, math.nan)
            trials = 0 if asked is None else asked.trials
            found.append(ModelProgress(label, done, trials, rate, tokens, accuracy, waiting))
        return tuple(found)

    def _connections(self) -> int:
        """Of the endpoints of which something is left to ask."""
        over = self._looks[-1].over if self._looks else {}
        left: dict[int, list[int]] = {}
        for asked in self._asked():
            if asked.left > over.get(asked.model, 0):
                left.setdefault(asked.endpoint, []).append(asked.connections)
        return sum(min(limits) for limits in left.values())

    def _eta(self) -> float | None:
        """Seconds until the last endpoint has answered, each at its own pace; None while nobody knows when to go on."""
        groups = _groups(self._asked())
        if not groups or not self._looks:
            return None
        ends, paces, idle = [], [], []
        for models, trials in groups:
            over, answered = (partial(self._count, name, models) for name in ("over", "answered"))
            left = trials - over(-1)
            if left <= 0:
                continue
            # Answers of the cache come in no time and say nothing of the pace, unless there are no others.
            pace = self._pace(answered if answered(-1) else over)
            if pace is None:
                idle.append(left)
            else:
                paces.append(pace)
                ends.append(left / pace)
        if idle and not paces:
            return None
        # Of an endpoint that has not answered yet nothing is known but how others do.
        ends += [left * len(paces) / sum(paces) for left in idle]
        return max(ends, default=0.0)

    def _count(self, name: str, models: Sequence[str], place: int) -> float:
        """Trials of some models at a look: ``over`` or ``answered``."""
        counts: Mapping[str, float] = getattr(self._looks[place], name)
        return sum(counts.get(model, 0.0) for model in models)

    def _pace(self, over: Callable[[int], float]) -> float | None:
        """Trials per second of an endpoint over the last half of its time; None before it can be said.

        Parameters
        ----------
        over
            Its trials at a look; asked of few of them, as there may be hundreds of looks and of models.
        """
        if over(-1) < LEAST_TRIALS:
            return None
        begun = next(place for place in range(len(self._looks)) if over(place) > 0)
        first, last = max(begun - 1, 0), self._looks[-1]
        lived = last.at - self._looks[first].at
        if lived < LEAST_SECONDS:
            return None
        since = last.at - max(lived / 2, min(lived, SHORTEST_LOOK))
        place = max(first, bisect_left(self._looks, since, key=lambda one: one.at))
        place = min(place, len(self._looks) - 2)
        span = last.at - self._looks[place].at
        gained = over(-1) - over(place)
        return gained / span if span > 0 and gained > 0 else None

    def _cost_at_end(self, usd: float | None, traffic: Traffic) -> float | None:
        started = self._tracker.started
        if usd is None or started is None:
            return None
        over = self._over(traffic)
        left: dict[str, float] = {}
        for asked in started.asked:
            left[asked.model] = left.get(asked.model, 0) + asked.left
        rest, done = sum(left.values()) - sum(over.values()), sum(over.values())
        total = usd
        for model, price in started.prices.items():
            spent, answers = (
                _price(price, traffic.usage.get(model, (0.0, 0.0))),
                traffic.answered.get(model, 0),
            )
            if model in left:
                missing = max(left[model] - over.get(model, 0), 0)
                if missing and not answers and any(price):
                    return None
                total += missing * spent / answers if answers else 0.0
            elif rest > 0:  # it judges only, each output of the others
                total += spent * rest / done if done else 0.0
        return total


def _groups(asked: Sequence[Asked]) -> list[tuple[list[str], float]]:
    """Models that share an endpoint, and how many trials are to be asked of them."""
    found: dict[int, tuple[list[str], float]] = {}
    for one in asked:
        names, trials = found.get(one.endpoint, ([], 0.0))
        found[one.endpoint] = (names if one.model in names else [*names, one.model], trials + one.left)
    return list(found.values())


def _cost(started: Started | None, traffic: Traffic) -> float | None:
    """USD of this run's requests; None if no price is declared."""
    if started is None or not started.prices:
        return None
    return sum(_price(price, traffic.usage.get(model, (0.0, 0.0))) for model, price in started.prices.items())


def _price(price: Sequence[float], tokens: Sequence[float]) -> float:
    return (price[0] * tokens[0] + price[1] * tokens[1]) / _MILLION
