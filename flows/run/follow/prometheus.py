"""Shows what became of a worker's requests on the worker's Prometheus endpoint, while a run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from evalcube.flows.run.follow.events import Traffic

_Rows = Mapping[Any, Sequence[float]]
"""By the values of the labels, what is said."""


def publish(run: str, traffic: Callable[[], Traffic | None]) -> Callable[[], None]:
    """Show a run on this worker's ``/metrics``, which Dask serves where `prometheus_client` is installed.

    Parameters
    ----------
    run
        Name of the run, a label of all its metrics.
    traffic
        Returns the worker's totals so far; None while there are none.

    Returns
    -------
    Callable
        Takes the run off again; may be called more than once.
    """
    try:
        from prometheus_client import REGISTRY, core
    except ImportError:
        return lambda: None

    class Collector:
        """Makes the metrics when they are asked for, so that counting costs nothing more."""

        def describe(self) -> Iterator[Any]:
            """Claim no name: another run on this worker has the same ones."""
            yield from ()

        def collect(self) -> Iterator[Any]:
            """All metrics of the run."""
            now = traffic() or Traffic()
            models = now.models.items()
            kinds = ("prompt", "completion")
            tokens = ((model, zip(kinds, counts, strict=False)) for model, counts in now.usage.items())
            waits = {(model,): (pause["seconds"],) for model, pause in now.waiting.items()}

            def made(kind: Any, name: str, said: str, labels: Sequence[str], rows: _Rows) -> Any:  # noqa: ANN401 - of a package that may be missing
                family = kind(f"evalcube_{name}", said, labels=["run", *labels])
                for values, numbers in rows.items():
                    family.add_metric([run, *values], *numbers)
                return family

            def counted(name: str, said: str, labels: Sequence[str], rows: _Rows) -> Any:  # noqa: ANN401
                return made(core.CounterMetricFamily, name, said, labels, rows)

            requests = {(model,): (counts["requests"],) for model, counts in models}
            yield counted("requests", "Requests, retries included.", ["model"], requests)
            hits = {(model,): (counts["hits"],) for model, counts in models}
            yield counted("hits", "Trials from the cache.", ["model"], hits)
            taken = {(model, kind): (count,) for model, each in tokens for kind, count in each}
            yield counted("tokens", "Tokens of replies that count.", ["model", "kind"], taken)
            failed = {(cause,): (count,) for cause, count in now.failures.items()}
            yield counted("failures", "Requests given up.", ["cause"], failed)
            retried = {(cause,): (count,) for cause, count in now.retries.items()}
            yield counted("retries", "Requests tried again.", ["cause"], retried)
            said = "Seconds from request to answer, of answers that count."
            answers = {(model,): (int(counts["answers"]), counts["seconds"]) for model, counts in models}
            yield made(core.SummaryMetricFamily, "latency_seconds", said, ["model"], answers)
            gauge, said = core.GaugeMetricFamily, "Until an endpoint that asked for it is asked again."
            yield made(gauge, "in_flight", "Requests in flight.", [], {(): (now.in_flight,)})
            yield made(gauge, "waiting_seconds", said, ["model"], waits)

    collector = Collector()
    REGISTRY.register(collector)

    def stop() -> None:
        with suppress(KeyError):
            REGISTRY.unregister(collector)

    return stop
