"""Counts by model what became of a worker's requests, also for the worker's Prometheus endpoint."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from evalcube.flows.run.events import Traffic
from evalcube.stages.infer.jobs import Result


@dataclass
class ModelCounts:
    """One model on one worker, since the run began there."""

    requests: int = 0
    """Attempts of blocks that are over, retries included."""
    hits: int = 0
    """Trials that the cache answered."""
    answers: int = 0
    """Trials answered by a request of this run and graded."""
    seconds: float = 0.0
    """That these answers took, in sum."""
    failures: Counter[str] = field(default_factory=Counter)
    """Requests given up, by cause."""


class Meter:
    """Counts by label of the model; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, ModelCounts] = {}

    def asked(self, model: str, results: Sequence[Result]) -> None:
        """Add what became of a block's requests."""
        with self._lock:
            counts = self._models.setdefault(model, ModelCounts())
            counts.requests += sum(result.attempts for result in results)
            counts.failures.update(result.cause for result in results if result.kind == "failed")

    def graded(self, model: str, *, hits: int, answers: int, seconds: float) -> None:
        """Add a block that was graded."""
        with self._lock:
            counts = self._models.setdefault(model, ModelCounts())
            counts.hits += hits
            counts.answers += answers
            counts.seconds += seconds

    def failures(self) -> dict[str, dict[str, int]]:
        """Requests given up, by model and cause."""
        with self._lock:
            return {model: dict(counts.failures) for model, counts in self._models.items()}

    def totals(self) -> dict[str, dict[str, float]]:
        """The other counts as plain values, by model and name."""
        names = ("requests", "hits", "answers", "seconds")
        with self._lock:
            return {
                model: {name: getattr(counts, name) for name in names}
                for model, counts in self._models.items()
            }


def publish(run: str, meter: Meter, traffic: Callable[[], Traffic | None]) -> Callable[[], None]:
    """Show a run on this worker's ``/metrics``, which Dask serves where `prometheus_client` is installed.

    Parameters
    ----------
    run
        Name of the run, a label of all its metrics.
    meter
        Counts by model.
    traffic
        Returns the worker's totals so far; None while there are none.

    Returns
    -------
    Callable
        Takes the run off again; may be called more than once.
    """
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return lambda: None
    collector = _Collector(run, meter, traffic)
    REGISTRY.register(collector)

    def stop() -> None:
        with suppress(KeyError):
            REGISTRY.unregister(collector)

    return stop


class _Collector:
    """Makes the metrics when they are asked for, so that counting costs nothing more."""

    def __init__(self, run: str, meter: Meter, traffic: Callable[[], Traffic | None]) -> None:
        self._run = run
        self._meter = meter
        self._traffic = traffic

    def describe(self) -> Iterator[Any]:
        """Claim no name: another run on this worker has the same ones."""
        yield from ()

    def collect(self) -> Iterator[Any]:
        """All metrics of the run."""
        totals, traffic = self._meter.totals(), self._traffic() or Traffic()
        for name, said in (("requests", "Requests, retries included."), ("hits", "Trials from the cache.")):
            yield self._counter(name, said, ("model",), [((m,), n[name]) for m, n in totals.items()])
        failures = [
            ((model, cause), count)
            for model, causes in self._meter.failures().items()
            for cause, count in causes.items()
        ]
        yield self._counter("failures", "Requests given up.", ("model", "cause"), failures)
        tokens = [
            ((model, kind), count)
            for model, counts in traffic.usage.items()
            for kind, count in zip(("prompt", "completion"), counts, strict=True)
        ]
        yield self._counter("tokens", "Tokens of replies that count.", ("model", "kind"), tokens)
        retries = [((cause,), count) for cause, count in traffic.retries.items()]
        yield self._counter("retries", "Requests tried again.", ("cause",), retries)
        yield from self._latency(totals)
        yield self._gauge("in_flight", "Requests in flight.", (), [((), traffic.in_flight)])
        waiting = [((model,), pause["seconds"]) for model, pause in traffic.waiting.items()]
        yield self._gauge(
            "waiting_seconds", "Until an endpoint that asked for it is asked again.", ("model",), waiting
        )

    def _counter(
        self, name: str, said: str, labels: Sequence[str], rows: Iterable[tuple[tuple[str, ...], float]]
    ) -> Any:  # noqa: ANN401 - of a package that may be missing
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(f"evalcube_{name}", said, labels=["run", *labels])
        for values, count in rows:
            family.add_metric([self._run, *values], count)
        return family

    def _latency(self, totals: Mapping[str, Mapping[str, float]]) -> Iterator[Any]:
        from prometheus_client.core import SummaryMetricFamily

        said = "Seconds from request to answer, of answers that count."
        family = SummaryMetricFamily("evalcube_latency_seconds", said, labels=["run", "model"])
        for model, counts in totals.items():
            family.add_metric([self._run, model], int(counts["answers"]), counts["seconds"])
        yield family

    def _gauge(
        self, name: str, said: str, labels: Sequence[str], rows: Iterable[tuple[tuple[str, ...], float]]
    ) -> Any:  # noqa: ANN401 - of a package that may be missing
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(f"evalcube_{name}", said, labels=["run", *labels])
        for values, value in rows:
            family.add_metric([self._run, *values], value)
        return family
