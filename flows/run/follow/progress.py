"""Progress of a run: its events added up to trials done, rates, cost and the time that is left."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.events import KILLED, Asked, BlockDone, Event, Extended, Started, Traffic, address_of

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
    """Answers of its model per second, since it was first asked."""
    waiting: bool
    """Whether its endpoint wants a pause."""

    @property
    def is_finished(self) -> bool:
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
    """Per second, since the first request."""
    usd: float | None
    """Cost of this run so far; None if no price is declared."""
    eta: float | None
    """Seconds until the last model has answered, each at its rate so far; None before the first answer."""


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
        self.started: Started | None = None
        self.begun = self.now()
        self._seen: set[tuple[int, ...]] = set()
        self.transport = 0
        self.causes: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        with self._lock:
            if isinstance(event, Started):
                self.started, self.begun = event, self.now()
            elif isinstance(event, Extended) and self.started is not None:
                asked = event.asked or self.started.asked
                self.started = replace(self.started, trials=event.trials, asked=asked)
            elif isinstance(event, Traffic):
                began = self.now() - event.active
                if event.sent:
                    self._began[event.worker] = min(self._began.get(event.worker, began), began)
                self._workers[event.worker] = event
                self._there[address_of(event.worker)] = event.worker
                self._reported_at[event.worker] = self.now()
            elif isinstance(event, BlockDone):
                self._add_block(event)

    def _add_block(self, event: BlockDone) -> None:
        key = tuple(event.key)
        if key in self._seen:
            return
        self._seen.add(key)
        self.transport += event.transport
        self.causes.update(event.causes)
        for cause, detail in event.details.items():
            before = self.details.get(cause, "")
            # Every trial that kills is to be found; of what an endpoint says, one example will do.
            self.details[cause] = f"{before}; {detail}" if before and cause == KILLED else detail
        self._done[event.model] += event.trials
        self._cached[event.model] += event.cached
        self._lost[event.model] += event.transport + event.missing

    @property
    def blocks(self) -> int:
        """Blocks graded by this run."""
        return len(self._seen)

    @property
    def cached(self) -> int:
        """Answers from the cache in this run."""
        return sum(self._cached.values())

    @property
    def seconds(self) -> float:
        """Since the sweep started."""
        return self.now() - self.begun

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
        current = [self._workers[name] for name in self._there.values()]
        return Traffic(
            **added,
            asked=self._asked_spans(),
            in_flight=sum(report.in_flight for report in current),
            usage={model: tuple(tokens.tolist()) for model, tokens in usage.items()},
            models={model: dict(counts) for model, counts in models.items()},
            waiting=self._waiting(),
            found=_join_limits(current),
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
        pauses: dict[str, dict[str, Any]] = {}
        now = self.now()
        for worker, report in self._workers.items():
            for model, pause in report.waiting.items():
                # By the clock, as a worker that died reports no end of it.
                left = pause["seconds"] - (now - self._reported_at[worker])
                if left > pauses.get(model, {"seconds": 0.0})["seconds"]:
                    pauses[model] = {"seconds": left, "reason": pause["reason"]}
        return pauses

    def done(self) -> dict[int, int]:
        """Trials finished by this run, by evaluation."""
        with self._lock:
            return dict(self._done)

    def progress(self) -> RunProgress:
        """How far the run is; its rates are those of all of it."""
        with self._lock:
            traffic, started = self._traffic(), self.started or Started("", "", 0, 0, ())
            left: Counter[str] = Counter()
            for asked in started.asked:
                left[asked.model] += asked.left
            over = self._over(started.asked, traffic, left)
            now, prices, usage = self.now(), started.prices, traffic.usage
            seconds = {model: (now - begun) or math.inf for model, (begun, _) in traffic.asked.items()}
            rates = {model: traffic.answered.get(model, 0) / span for model, span in seconds.items()}
            whole = max(seconds.values(), default=math.inf)
            return RunProgress(
                # Replies count when they arrive, before their block is graded.
                done=min(
                    started.done + max(self._done.total(), over.total() - self._lost.total()), started.trials
                ),
                trials=started.trials,
                models=self._models(started, over, rates, traffic),
                traffic=traffic,
                replies=traffic.replies / whole,
                usd=sum(price_of(prices[model], usage[model]) for model in prices if model in usage)
                if prices
                else None,
                eta=_eta(left - over, rates) if left else None,
            )

    def _over(self, asked: Sequence[Asked], traffic: Traffic, left: Mapping[str, int]) -> Counter[str]:
        """By model: trials of this run that need no further request."""
        graded: Counter[str] = Counter()
        replied = Counter(traffic.answered)
        for number, row in enumerate(asked):
            graded[row.model] += self._done[number] + self._lost[number]
            replied[row.model] += self._cached[number]
        return Counter(
            {model: max(graded[model], min(replied[model], count)) for model, count in left.items()}
        )

    def _models(
        self, started: Started, over: Mapping[str, int], rates: Mapping[str, float], traffic: Traffic
    ) -> tuple[ModelProgress, ...]:
        sharing = Counter(row.model for row in started.asked)
        rows = []
        for number, label in enumerate(started.models):
            done = self._done[number]
            asked = started.asked[number] if number < len(started.asked) else Asked(label, 0, 0)
            if sharing[asked.model] == 1:
                done = max(done, over[asked.model] - self._lost[number])
            done += started.recorded[number] if number < len(started.recorded) else 0
            rate, waiting = rates.get(asked.model, 0.0), asked.model in traffic.waiting
            rows.append(ModelProgress(label, done, asked.trials, rate, waiting))
        return tuple(rows)


def _eta(rest: Mapping[str, int], rates: Mapping[str, float]) -> float | None:
    """Seconds until the last model has answered the rest; None while no model with a rest has answered anything."""
    if not rest:
        return 0.0
    spans = [count / rates[model] for model, count in rest.items() if rates.get(model)]
    return max(spans, default=None)


def price_of(price: Sequence[float], tokens: Sequence[float]) -> float:
    """What tokens cost in USD, at prices per million: of prompts, of completions, and of prompts that were cached."""
    return sum(each * count for each, count in zip(price, tokens, strict=False)) / 1e6


def _join_limits(reports: Sequence[Traffic]) -> dict[str, dict[str, float | None]]:
    """Limits that workers measured: the strictest rate, and the requests in flight of all of them."""
    joined: dict[str, dict[str, float | None]] = {}
    for report in reports:
        for model, limits in report.found.items():
            mine = joined.setdefault(model, {})
            for name, value in limits.items():
                # A rate is the endpoint's as a whole, of which the strictest holds; requests in flight add up.
                values = [each for each in (mine.get(name), value) if each is not None]
                mine[name] = min(values, default=None) if name == "requests" else sum(values) or None
    return joined


_SHOWN_WAITS = 3


def duration(seconds: float) -> str:
    """A time span for people.

    Examples
    --------
    >>> duration(61.7), duration(7322)
    ('1:02', '2:02:02')
    """
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def eta_text(seconds: float | None) -> str:
    """A time that is left for people, where one is known."""
    return "–" if seconds is None else duration(seconds)


def waits(waiting: Mapping[str, Mapping[str, Any]]) -> str:
    """What a run waits for and how long, for people; empty where it does not.

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
