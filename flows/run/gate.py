"""Asks pairs of questions until a policy's lines are settled, at planned looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.views import Policy
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import Counters, Sampling, Selection
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.gate import GateResult, concluded, deciding
from evalcube.flows.read.looks import Sizes, furthest, progress
from evalcube.flows.run.follow.events import Subscriber
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.sweep import run


class Looking(Sampling):
    """Asks, from look to look, what the line needs that is furthest from certain.

    What it decides follows from the cube alone, so that an interrupted run goes on as if it had not been.

    Parameters
    ----------
    policy
        The lines.
    config
        The sweep; its `trials` of each point are the most that are asked.
    models
        The control and the treatment, as for `evalcube.flows.read.sides.side_by_side`.
    """

    def __init__(self, policy: Policy, config: Sweep, models: Sequence[str]) -> None:
        self.selection = Selection()
        self._policy, self._config, self._models = policy, config, models

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:  # noqa: ARG002
        """The next look of the line that is furthest from certain; what is planned already, once none is."""
        sides = deciding([self._config.cube], self._models)
        ids = [row.eval_id for row in plan.evaluations]
        rows = [ids.index(side.eval_id) for side in (sides.first, sides.second)]
        places = {
            (task.label, entry.cell.id): (i, j)
            for i, task in enumerate(plan.tasks)
            for j, entry in enumerate(task.cells)
        }
        trials = np.zeros_like(planned.trials)
        trials[rows] = planned.trials[rows]
        for one in furthest(progress(sides, self._policy, self._config.trials, sizes_of(plan))):
            for row, column in np.argwhere(one.cells).tolist():
                point = sides.points[row][column]
                where = places[point.task, point.cell_id]
                wanted = min(one.next or 0, int(plan.sources[where]))
                for model in rows:
                    trials[(model, *where)] = max(int(trials[(model, *where)]), wanted)
        repeats = np.where(trials > 0, np.maximum(planned.repeats, self._config.repeats), 0)
        return SampleTargets(trials, repeats.astype(np.int32)).rectangular(planned)


def sizes_of(plan: Plan) -> Sizes:
    """Different questions of each point."""
    return {
        (task.label, entry.cell.id): int(plan.sources[i, j])
        for i, task in enumerate(plan.tasks)
        for j, entry in enumerate(task.cells)
    }


def run_gate(
    policy: Policy,
    config: Sweep | Mapping[str, Any] | str | Path,
    models: Sequence[str] = (),
    *,
    subscribers: Sequence[Subscriber] = (),
) -> tuple[GateResult, RunSummary]:
    """Run a sweep as far as a policy needs it, and decide.

    Parameters
    ----------
    policy
        The lines.
    config
        In any form that `evalcube.run` takes. Its `trials` are the plan, and the most that are asked; looks are at 40,
        55, 70, 85 and 100 % of them.
    models
        The control and the treatment; none if the sweep has two evaluations only.
    subscribers
        As for `evalcube.run`.

    Returns
    -------
    tuple
        The decision, and what the run did.

    Raises
    ------
    ConfigError, SweepError, StorageError
        As `evalcube.run` and `evalcube.flows.read.sides.side_by_side`; and if the config asks for a precision.
    """
    settings = as_config(config)
    if settings.precision is not None:
        raise SweepError(
            "`precision` decides about trials itself, and so do a gate's looks", "Give `trials` instead"
        )
    summary = run(settings, sampling=Looking(policy, settings, models), subscribers=subscribers)
    sides = deciding([settings.cube], models)
    lines = progress(sides, policy, settings.trials, sizes_of(build_plan(settings)))
    return concluded(sides, policy, [one.line for one in lines]), summary
