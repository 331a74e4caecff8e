"""What a run did: its events added up, its summary, and how far it used its endpoints' limits."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.unnamed import Unnamed
from evalcube.flows.run.events import (
    TALLY,
    BlockDone,
    Event,
    Extended,
    Started,
    Traffic,
    address_of,
)
from evalcube.flows.run.limit_use import FoundLimit, LimitUse
from evalcube.flows.run.poison_isolation import KILLED
from evalcube.flows.run.summary_words import lines_of, table_of
from evalcube.stages.analyze.render.shown import Shown

if TYPE_CHECKING:
    from evalcube.stages.analyze.render.table import TableSpec

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ModelSummary:
    """One evaluation after a run."""

    model: str
    trials: int
    """Trials of the target."""
    done: int
    """Recorded as finished."""
    transport: int
    """Transport errors, which the next run asks again."""


@dataclass(frozen=True)
class Saved:
    """What the trials that the cache answered would have cost if they had been asked."""

    prompt_tokens: int
    """As the endpoints counted them."""
    completion_tokens: int
    """As the endpoints counted them."""
    usd: float | None
    """At the config's prices, of models that have some; None if none has."""


@dataclass(frozen=True)
class RunSummary(Shown):
    """What a run did, and what is left; printed, it says so in words."""

    reason: str
    """``complete``, ``incomplete`` (transport errors are left) or ``stopped``."""
    cube: str
    cache: str
    seconds: float
    trials: int
    """Trials of the target, repeats included."""
    done: int
    """Of these, finished; by this run or earlier ones."""
    transport: int
    cached: int
    """Trials that the cache answered in this run, of what other runs had asked."""
    sent: int
    """Requests sent, retries included; what a killed worker sent in its last half second is not known."""
    prompt_tokens: int
    completion_tokens: int
    retries: dict[str, int] = field(default_factory=dict)
    """By cause."""
    causes: dict[str, int] = field(default_factory=dict)
    """Transport errors of this run, by cause."""
    details: dict[str, str] = field(default_factory=dict)
    """One thing that an endpoint said, by cause."""
    usd: float | None = None
    """Cost of this run's requests at the config's prices; None if it declares none."""
    spent: dict[str, float] = field(default_factory=dict)
    """Tokens and USD of all runs so far; answers of the cache are free."""
    found_again: int = 0
    """Trials whose replies this run had received and paid for, when a worker died and its blocks were done again."""
    bound: str = ""
    """The bound under ``spend:`` that stopped the run."""
    ordered: str = ""
    """Who stopped it with `evalcube stop`, for people."""
    graded: int = 0
    """Trials that this run finished, those from the cache included."""
    asking_seconds: float = 0.0
    """From the first request to the last answer."""
    limits: tuple[LimitUse, ...] = ()
    """For each endpoint that was asked, the limit that was used most, and how far."""
    found_limits: tuple[FoundLimit, ...] = ()
    """For each endpoint that refused requests because of a limit that was found out, that limit."""
    saved: Saved | None = None
    """What the cache saved this run; None if it answered nothing."""
    refused: tuple[str, ...] = ()
    """What to write in the config, for each evaluation whose parameters its endpoint does not take."""
    models: tuple[ModelSummary, ...] = ()
    in_batches: int = 0
    """Requests in batches that were not waited for."""
    unrated: int = 0
    """Recorded trials that not all judges have rated, which the next run has them do."""
    pending: int = 0
    """Trials of the plan that are not done and were not asked for, where a part of it was."""
    unnamed: Unnamed | None = None
    """What the cube has and the config does not name."""

    @property
    def efficiency(self) -> float | None:
        """Use of the limit that was used most, and for long, about from 0 to 1; None if nothing was asked."""
        most = max(self.limits, key=lambda use: use.used * use.seconds, default=None)
        return None if most is None else most.used

    @property
    def trials_per_second(self) -> float:
        """Trials that this run finished, by its whole duration."""
        return self.graded / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> int:
        """Trials still to do."""
        return self.trials - self.done

    def _table(self) -> TableSpec:
        return table_of(self)

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def records(self) -> list[dict[str, Any]]:
        """The evaluations: their trials, and how many of them are done."""
        return [asdict(model) for model in self.models]

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return {
            **asdict(self),
            "left": self.left,
            "efficiency": self.efficiency,
            "trials_per_second": self.trials_per_second,
        }


class Tracker:
    """Adds up events; safe to read from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._lock = threading.Lock()
        self._workers: dict[str, Traffic] = {}
        self._there: dict[str, str] = {}
        """By address, the process that reported last from there: of one before it nothing is in flight."""
        self._reported_at: dict[str, float] = {}
        self._began: dict[str, float] = {}
        """By worker, the moment on this clock from which it counts its seconds, as far as messages were quick."""
        self._tallies: dict[int, Counter[tuple[int, int, int]]] = {}
        self._done: Counter[int] = Counter()
        self._cached: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._saved: dict[int, FloatArray] = {}
        self.started: Started | None = None
        self.begun = self.now()
        self._seen: set[tuple[int, ...]] = set()
        self._asked_from = self._asked_to = 0.0
        self.cached = 0
        self.found_again = 0
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
        self.cached += hits
        self.found_again += event.found_again
        self.transport += event.transport
        self.causes.update(event.causes)
        for cause, detail in event.details.items():
            before = self.details.get(cause, "")
            # Every trial that kills is to be found; of what an endpoint says, one example will do.
            self.details[cause] = f"{before}; {detail}" if before and cause == KILLED else detail
        self._done[event.model] += event.trials
        self._cached[event.model] += hits
        # Of what this run itself had paid before a worker died, the cache saved nothing.
        share = hits / event.cached if event.cached else 0.0
        self._saved[event.model] = self._saved.get(event.model, 0.0) + share * np.array(
            event.saved, np.float64
        )
        self._lost[event.model] += event.transport + event.missing
        counts = self._tallies.setdefault(event.model, Counter())
        for task, slot, *columns in event.tally:
            counts.update({(task, slot, column): count for column, count in enumerate(columns)})

    @property
    def blocks(self) -> int:
        """Blocks graded by this run."""
        return len(self._seen)

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
            reports, waiting = list(self._workers.values()), self._waiting()
            in_flight = sum(self._workers[name].in_flight for name in self._there.values())
            asked = self._asked_spans()
        retries: Counter[str] = Counter()
        failures: Counter[str] = Counter()
        usage: dict[str, FloatArray] = {}
        models: dict[str, dict[str, float]] = {}
        answered: Counter[str] = Counter()
        for report in reports:
            answered.update(report.answered)
            for model, counts in report.models.items():
                total = models.setdefault(model, {})
                for name, count in counts.items():
                    total[name] = total.get(name, 0) + count
            for model, tokens in report.usage.items():
                usage[model] = usage.get(model, 0.0) + np.array(tokens, dtype=np.float64)
            retries.update(report.retries)
            failures.update(report.failures)
        return Traffic(
            asked=asked,
            sent=sum(report.sent for report in reports),
            replies=sum(report.replies for report in reports),
            in_flight=in_flight,
            prompt_tokens=sum(report.prompt_tokens for report in reports),
            completion_tokens=sum(report.completion_tokens for report in reports),
            usage={model: tuple(tokens.tolist()) for model, tokens in usage.items()},
            answered=dict(answered),
            retries=dict(retries),
            failures=dict(failures),
            models=models,
            waiting=waiting,
            found=_strictest_found(reports),
        )

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

    def cached_by_model(self) -> dict[int, int]:
        """Trials that the cache answered in this run, of what other runs had asked, by evaluation."""
        with self._lock:
            return dict(self._cached)

    def saved(self) -> dict[int, tuple[float, float]]:
        """Tokens of prompts and of completions that the cache saved this run, by evaluation."""
        with self._lock:
            return {model: (float(tokens[0]), float(tokens[1])) for model, tokens in self._saved.items()}

    def lost(self) -> dict[int, int]:
        """Trials that this run leaves without a result, by evaluation."""
        with self._lock:
            return dict(self._lost)

    def accuracies(self) -> dict[int, float]:
        """Share of right answers of what this run and earlier ones have graded, by evaluation, as a leaderboard has it.

        The mean over tasks, each point with its weight in the first plan. None of an evaluation that lacks trials of
        some ranked point: it is not to be compared with others yet.
        """
        from evalcube.stages.analyze.formulas.design import (
            design_factors,  # with `scipy`, which takes a while
        )

        with self._lock:
            started = self.started
            counts = {model: dict(counted) for model, counted in self._tallies.items()}
        if started is None or started.tallies is None or started.ranked is None or not started.ranked.any():
            return {}
        found = {}
        for model, before in enumerate(started.tallies):
            tally = before.copy()
            for place, count in counts.get(model, {}).items():
                tally[place] += count
            if (tally[started.ranked, 0] > 0).all():
                base = np.zeros(started.ranked.shape) if started.base is None else started.base
                factors = design_factors(tally, base, labels=TALLY) * started.ranked
                trials, right = np.moveaxis((tally * factors[..., np.newaxis]).sum(axis=1), -1, 0)
                used = trials > 0
                found[model] = float((right[used] / trials[used]).mean())
        return found


def _strictest_found(reports: Sequence[Traffic]) -> dict[str, dict[str, float | None]]:
    """Limits that workers found out; of several workers' the strictest."""
    strictest_found: dict[str, dict[str, float | None]] = {}
    for report in reports:
        for model, limits in report.found.items():
            mine = strictest_found.setdefault(model, {})
            for name, value in limits.items():
                known = mine.get(name)
                mine[name] = known if value is None else value if known is None else min(known, value)
    return strictest_found
