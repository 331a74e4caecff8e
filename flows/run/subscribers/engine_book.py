"""Keeps what serves the models of a run beside the cube, as workers find it out."""

from __future__ import annotations

from evalcube.flows.plan.engines import joined_engines, read_engines, write_engines
from evalcube.flows.plan.plan import Plan
from evalcube.flows.run.events import Event, Traffic
from evalcube.stages.infer.engines import EngineInfo
from evalcube.storage.cube.space import Space


class EngineBook:
    """A subscriber that writes the record of engines when another one is found.

    Parameters
    ----------
    records
        Of the cube.
    plan
        Of the sweep.
    """

    def __init__(self, records: Space, plan: Plan) -> None:
        self._records = records
        self._evaluations: dict[str, list[str]] = {}
        for evaluation in plan.evaluations:
            self._evaluations.setdefault(evaluation.model, []).append(evaluation.eval_id)
        self._known: set[tuple[str, EngineInfo]] = set()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        if not isinstance(event, Traffic) or not event.engines:
            return
        found = {(label, EngineInfo(*info)) for label, infos in event.engines.items() for info in infos}
        news = found - self._known
        if not news:
            return
        self._known |= news
        added = {
            name: [info for model, info in sorted(news) if model == label]
            for label in {label for label, _ in news}
            for name in self._evaluations.get(label, ())
        }
        write_engines(self._records, joined_engines([read_engines(self._records), added]))
