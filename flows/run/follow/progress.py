"""How far a run is, how fast, what it costs and when it will be done: its events added up."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.run.follow.events import (
    KILLED,
    Asked,
    BlockDone,
    Event,
    Extended,
    LookedUp,
    Started,
    Traffic,
    address_of,
)

RATE_SECONDS = 10.0
"""Over which rates are shown."""

FloatArray = npt.NDArray[np.float64]


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
    traffic: Traffic
    """Of all workers together."""
    replies: float
    """Per second."""
    tokens: float
    """Completion tokens per second."""
    connections: int
    """Requests that may be in flight; 0 if that is not known."""
    usd: float | None
    """Cost of this run so far; None if no price is declared."""
    eta: float | None
    """Seconds until the last model has answered, if each goes on as it did; None before the first answer."""


@dataclass(frozen=True)
class _Look:
    """Totals of this run at a moment."""

    at: float
    traffic: Traffic
    over: Mapping[str, int]
    """By model: trials that need no further request."""


class ReuseCounter:
    """What the cache answered of each block when it was first looked up: only that is not this run's own."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, ...]] = set()
        self._free: dict[tuple[int, ...], int] = {}
        """By block as it was first cut, hits of its first look-up that are not counted yet."""

    def note_look_up(self, event: LookedUp) -> None:
        """Take in what the cache answers of a block; the first time counts, as the run fills the cache itself."""
        self._free.setdefault(tuple(event.key), event.cached)

    def count(self, event: BlockDone) -> BlockDone:
        """The event with the count of what was found again; of a block that is graded once more, all is."""
        key, hits, origin = tuple(event.key), event.cached, tuple(event.origin)
        if key in self._seen:
            return replace(event, found_again=hits)
        self._seen.add(key)
        free = min(hits, self._free.get(origin, hits))
        if origin in self._free:
            self._free[origin] -= free
        return replace(event, found_again=hits - free)


class Tracker:
    """A subscriber that adds up events; safe to read from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._lock = threading.Lock()
        self._workers: dict[str, Traffic] = {}
        self._there: dict[str, str] = {}
        """By address, the process that reported last from there: of one before it nothing is in flight."""
        self._reported_at: dict[str, float] = {}
        self._began: dict[str, float] = {}
        """By worker, the moment on this clock from which it counts its seconds, as far as messages were quick."""
        self._done: Counter[int] = Counter()
        self._cached: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._saved: dict[int, FloatArray] = {}
        self._looks: deque[_Look] = deque()
        self.started: Started | None = None
        self.begun = self.now()
        self._seen: set[tuple[int, ...]] = set()
        self._asked_from = self._asked_to = 0.0
        self.found_again = 0
        self.transport = 0
        self.causes: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        with self._lock:
            if isinstance(event, Started):
                self.started, self.begun = event, self.now()
                self._looks.append(_Look(self.begun, self._traffic(), {}))
            elif isinstance(event, Extended) and self.started is not None:
                asked = event.asked or self.started.asked
                self.started = replace(self.started, trials=event.trials, asked=asked)
            elif isinstance(event, Traffic):
                self._note_asking(event)
                self._workers[event.worker] = event
                self._there[address_of(event.worker)] = event.worker
                self._reported_at[event.worker] = self.now()
            elif isinstance(event, BlockDone):
                self._add_block(event)

    def _note_asking(self, event: Traffic) -> None:
        before, now = self._workers.get(event.worker, Traffic()), self.now()
        if event.sent:
            began = now - event.active
            self._began[event.worker] = min(self._began.get(event.worker, began), began)
            self._asked_from = self._asked_from or began
        if event.in_flight or (event.sent, event.replies) != (before.sent, before.replies):
            self._asked_to = now

    def _add_block(self, event: BlockDone) -> None:
        key = tuple(event.key)
        if key in self._seen:
            return
        self._seen.add(key)
        hits = event.cached - event.found_again
        self.found_again += event.found_again
        self.transport += event.transport
        self.causes.update(event.causes)
        for cause, detail in event.details.items():
            before = self.details.get(cause, "")
            # Every trial that kills is to be found; of what an endpoint says, one example will do.
            self.details[cause] = f"{before}; {detail}" if before and cause == KILLED else detail
        self._done[event.model] += event.trials
        self._cached[event.model] += hits
        self._lost[event.model] += event.transport + event.missing
        # Of what this run itself had paid before a worker died, the cache saved nothing.
        share = hits / event.cached if event.cached else 0.0
        saved = share * np.array(event.saved, np.float64)
        self._saved[event.model] = self._saved.get(event.model, 0.0) + saved

    @property
    def blocks(self) -> int:
        """Blocks graded by this run."""
        return len(self._seen)

    @property
    def cached(self) -> int:
        """Trials that the cache answered in this run, of what other runs had asked."""
        return sum(self._cached.values())

    @property
    def seconds(self) -> float:
        """Since the sweep started."""
        return self.now() - self.begun

    @property
    def asking_seconds(self) -> float:
        """From the first request to the last sign of one, to about half a second."""
        return self._asked_to - self._asked_from if self._asked_from else 0.0

    def traffic(self) -> Traffic:
        """Totals over all workers, those that died included, of which nothing is in flight any more."""
        with self._lock:
            return self._traffic()

    def _traffic(self) -> Traffic:
        reports = list(self._workers.values())
        names = ("answered", "late", "retries", "failures")
        totals: dict[str, Counter[str]] = {name: Counter() for name in names}
        usage: dict[str, FloatArray] = {}
        models: dict[str, Counter[str]] = {}
        for report in reports:
            for name, total in totals.items():
                total.update(getattr(report, name))
            for model, counts in report.models.items():
                models.setdefault(model, Counter()).update(counts)
            for model, tokens in report.usage.items():
                usage[model] = usage.get(model, 0.0) + np.array(tokens, dtype=np.float64)
        sums = ("sent", "replies", "prompt_tokens", "completion_tokens")
        added: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in sums}
        added |= {name: dict(total) for name, total in totals.items()}
        return Traffic(
            **added,
            asked=self._asked_spans(),
            in_flight=sum(self._workers[name].in_flight for name in self._there.values()),
            usage={model: tuple(tokens.tolist()) for model, tokens in usage.items()},
            models={model: dict(counts) for model, counts in models.items()},
            waiting=self._waiting(),
            found=_found([self._workers[name] for name in self._there.values()] or reports),
        )

    @property
    def any_replaced(self) -> bool:
        """Whether a worker has come in the place of another, which ended before it said all that it had sent."""
        return len(self._workers) > len(self._there)

    def _asked_spans(self) -> dict[str, tuple[float, float]]:
        """By model, from when to when any worker asked it, on this clock."""
        spans: dict[str, tuple[float, float]] = {}
        for worker, began in self._began.items():
            for model, (begun, ended) in self._workers[worker].asked.items():
                first, last = spans.get(model, (math.inf, -math.inf))
                spans[model] = min(first, began + begun), max(last, began + ended)
        return spans

    def _waiting(self) -> dict[str, dict[str, Any]]:
        """Pauses that are not over yet by now; of several workers' the longest."""
        found: dict[str, dict[str, Any]] = {}
        now = self.now()
        for worker, report in self._workers.items():
            for model, pause in report.waiting.items():
                # By the clock, as a worker that died reports no end of it.
                left = pause["seconds"] - (now - self._reported_at[worker])
                if left > found.get(model, {"seconds": 0.0})["seconds"]:
                    found[model] = {"seconds": left, "reason": pause["reason"]}
        return found

    def done(self) -> dict[int, int]:
        """Trials finished by this run, by evaluation."""
        with self._lock:
            return dict(self._done)

    def saved(self) -> dict[int, tuple[float, float]]:
        """Tokens of prompts and of completions that the cache saved this run, by evaluation."""
        with self._lock:
            return {model: (float(tokens[0]), float(tokens[1])) for model, tokens in self._saved.items()}

    def progress(self) -> RunProgress:
        """How far the run is; its rates are those since the first of the last seconds in which this was asked."""
        with self._lock:
            traffic, started = self._traffic(), self.started or Started("", "", 0, 0, ())
            now = _Look(self.now(), traffic, self._over(started.asked, traffic))
            self._looks.append(now)
            while len(self._looks) > 2 and self._looks[0].at < now.at - RATE_SECONDS:
                self._looks.popleft()
            then = self._looks[0]
            graded, lost = self._done.total(), self._lost.total()
            prices, usage = started.prices, traffic.usage
            span = now.at - then.at or math.inf
            return RunProgress(
                # Replies count when they arrive, before their block is graded.
                done=min(started.done + max(graded, sum(now.over.values()) - lost), started.trials),
                trials=started.trials,
                models=self._models(started, then, now),
                traffic=traffic,
                replies=(traffic.replies - then.traffic.replies) / span,
                tokens=(traffic.completion_tokens - then.traffic.completion_tokens) / span,
                connections=_connections(started.asked, now.over, traffic),
                usd=sum(price_of(prices[model], usage[model]) for model in prices if model in usage)
                if prices
                else None,
                eta=_eta(started.asked, now),
            )

    def _over(self, asked: Sequence[Asked], traffic: Traffic) -> dict[str, int]:
        """By model: trials of this run that need no further request."""
        graded: Counter[str] = Counter()
        replied = Counter(traffic.answered)
        for place, one in enumerate(asked):
            graded[one.model] += self._done[place] + self._lost[place]
            replied[one.model] += self._cached[place]
        return {model: max(graded[model], min(replied[model], left)) for model, left in _left(asked).items()}

    def _models(self, started: Started, then: _Look, now: _Look) -> tuple[ModelProgress, ...]:
        span = now.at - then.at or math.inf
        sharing = Counter(one.model for one in started.asked)
        found = []
        for place, label in enumerate(started.models):
            done = self._done[place]
            asked = started.asked[place] if place < len(started.asked) else Asked(label, 0, 0, -1, 0)
            model = asked.model
            if sharing[model] == 1:
                done = max(done, now.over[model] - self._lost[place])
            done += started.recorded[place] if place < len(started.recorded) else 0
            before, tokens = (look.traffic.usage.get(model, (0, 0))[1] for look in (then, now))
            rate = (now.over.get(model, 0) - then.over.get(model, 0)) / span
            waiting = model in now.traffic.waiting
            found.append(ModelProgress(label, done, asked.trials, rate, (tokens - before) / span, waiting))
        return tuple(found)


def _left(asked: Sequence[Asked]) -> Counter[str]:
    """By model, trials that the run had to ask when it began."""
    left: Counter[str] = Counter()
    for one in asked:
        left[one.model] += one.left
    return left


def _eta(asked: Sequence[Asked], now: _Look) -> float | None:
    rest = {model: left - now.over[model] for model, left in _left(asked).items() if left > now.over[model]}
    if asked and not rest:
        return 0.0
    answered, spans = now.traffic.answered, now.traffic.asked
    ends = [
        left * (now.at - spans[model][0]) / answered[model]
        for model, left in rest.items()
        if model in spans and answered.get(model)
    ]
    return max(ends, default=None)


def _connections(asked: Sequence[Asked], over: Mapping[str, int], traffic: Traffic) -> int:
    """Of the endpoints of which something is left to ask: as many as are declared, or as were found so far."""
    limits: dict[int, float] = {}
    for one in asked:
        if one.left > over[one.model]:
            most = traffic.found.get(one.model, {}).get("window") or one.connections
            limits[one.endpoint] = min(most, limits.get(one.endpoint, most))
    return int(sum(limits.values()))


def price_of(price: Sequence[float], tokens: Sequence[float]) -> float:
    """What tokens cost in USD, at prices per million: of prompts, of completions, and of prompts that were cached."""
    return sum(each * count for each, count in zip(price, tokens, strict=False)) / 1e6


def _found(reports: Sequence[Traffic]) -> dict[str, dict[str, float | None]]:
    """What workers found out: the strictest rate, and the requests in flight of all of them."""
    found: dict[str, dict[str, float | None]] = {}
    for report in reports:
        for model, limits in report.found.items():
            mine = found.setdefault(model, {})
            for name, value in limits.items():
                known = [each for each in (mine.get(name), value) if each is not None]
                mine[name] = min(known, default=None) if name == "requests" else sum(known) or None
    return found


_SHOWN_WAITS = 3


def duration(seconds: float) -> str:
    """A time span for people.

    Examples
    --------
    >>> duration(61.7), duration(7322)
    ('1:02', '2:02:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def waits(waiting: Mapping[str, Mapping[str, Any]]) -> str:
    """What a run waits for and how long, for people; empty where it does not.

    Parameters
    ----------
    waiting
        See `evalcube.flows.run.follow.events.Traffic.waiting`.

    Examples
    --------
    >>> waits({"gpt": {"seconds": 44.2, "reason": "429: requests, Retry-After"}})
    'waiting 45 s for gpt (429: requests, Retry-After)'
    """
    texts = [
        f"waiting {math.ceil(pause['seconds'])} s for {model} ({pause['reason']})"
        for model, pause in waiting.items()
    ]
    more = [f"and for {len(texts) - _SHOWN_WAITS} more"] if len(texts) > _SHOWN_WAITS else []
    return ", ".join(texts[:_SHOWN_WAITS] + more)
