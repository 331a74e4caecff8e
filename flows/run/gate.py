"""Asks pairs of questions until a policy's lines are settled, at planned looks that say which is asked next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.views import LEVELS, Policy, PolicyRule, doubts, refuse_unknown
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Subscriber
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import Counters, Sampling, Selection
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read import gate
from evalcube.flows.read.decision import remember_decision
from evalcube.flows.read.gate import FUTILE, GateResult, PolicyLine, conclude
from evalcube.flows.read.sides import SideBySide, side_by_side
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.sweep import run
from evalcube.stages.analyze.formulas import margins
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.analyze.formulas.sequential import conditional_power, look_levels
from evalcube.stages.reply.status import Status

LOOKS = (0.4, 0.55, 0.7, 0.85, 1.0)
"""Shares of the planned questions at which is looked: before two fifths next to nothing could be decided."""
Sizes = Mapping[tuple[str, str], int]
"""Different questions of each point, by label of its task and id of its cell."""


@dataclass(frozen=True)
class Progress:
    """How far a line is."""

    line: PolicyLine
    """As of its last look."""
    cells: npt.NDArray[np.bool_]
    """Its points, shape (task, params)."""
    next: int | None
    """Trials of each of its points at the next look; None if it is asked no further."""


def progress(
    sides: SideBySide, policy: Policy, trials: int, sizes: Sizes, *, to_the_end: bool = False
) -> list[Progress]:
    """Each line at the last of its looks for which the answers are there.

    The looks of a line are at fixed numbers of its questions, in the order of the seed, whatever else is asked
    meanwhile. At each it may be shown, or refuted, each at its own level that is due there. A line that is unlikely to
    be either in the end stays open and is asked no further, unless `to_the_end`: no level counts on that it stops.
    """
    followed = []
    own = np.zeros(sides.planned.shape[1:3], dtype=np.int64)
    for row, points in enumerate(sides.points):
        own[row, : len(points)] = [sizes.get((point.task, point.cell_id), 0) for point in points]
    for role in LEVELS:
        lines = list(gate.places(sides, policy, role))
        for rule, task, tier, cells in lines:
            blank = PolicyLine(role, task, tier, rule.claim, math.nan)
            stops = _stops(cells, trials, own)
            line, due = _follow_line(sides, rule, blank, cells, stops, len(lines), own, to_the_end=to_the_end)
            followed.append(Progress(line, cells, due))
    return followed


def furthest(lines: Sequence[Progress]) -> list[Progress]:
    """Which lines are asked next: all that had no look; then the critical one that is least likely to be shown.

    None once that cannot change the decision: a critical line was refuted, or given up.
    """
    critical = [look for look in lines if look.line.role == "critical"]
    if any(look.next is None and look.line.outcome != "shown" for look in critical):
        return []
    begun = [look for look in lines if look.next is not None and not look.line.look]
    if begun:
        return begun
    return sorted((look for look in critical if look.next is not None), key=lambda look: look.line.chance)[:1]


def _stops(cells: npt.NDArray[np.bool_], trials: int, own: npt.NDArray[np.int64]) -> dict[float, int]:
    """Share of what a line's points will tell -> trials of each of its points, of each look.

    That of the largest point: each has told at least as much by then, however it weighs and varies, so that no look
    spends more of the level than is due.
    """
    most = min(trials, int(own[cells].max(initial=0)))
    numbers = (math.ceil(share * trials) for share in LOOKS)
    return {min(number / most, 1.0): number for number in numbers} if most else {}


def _follow_line(
    sides: SideBySide,
    rule: PolicyRule,
    line: PolicyLine,
    cells: npt.NDArray[np.bool_],
    stops: Mapping[float, int],
    lines: int,
    own: npt.NDArray[np.int64],
    *,
    to_the_end: bool,
) -> tuple[PolicyLine, int | None]:
    """A line from look to look, as far as the answers go and until it is settled, and trials of the next look."""
    line = replace(line, looks=len(stops))
    shown, refuted = (
        look_levels(tuple(stops), level) if stops else () for level in (margins.LEVEL, margins.LEVEL / lines)
    )
    due = None
    for look, (share, trials) in enumerate(stops.items()):
        window = sides.cut(cells, trials)
        if not _are_answered(window, cells, np.minimum(own, trials)):
            due = trials
            break
        line = gate.measure(window, rule, replace(line, look=look + 1), cells)
        line = gate.settle(line, shown[look], refuted[look])
        line = _with_chances(line, share, shown[-1], refuted[-1])
        hopeless = max(line.chance, line.chance_refuted) < FUTILE
        if line.outcome != "open" or (hopeless and not to_the_end):
            break
    return (_with_interval(line, shown[max(line.look - 1, 0)]) if stops else line), due


def _are_answered(window: SideBySide, cells: npt.NDArray[np.bool_], due: npt.NDArray[np.int64]) -> bool:
    """Whether both were asked all that is due at a look; what failed is lacking, and no reason to wait."""
    waiting = (window.planned & (window.status == int(Status.MISSING))).any(axis=(-2, -1))
    planned = window.planned.any(axis=-1).sum(axis=-1)
    return bool(((planned >= due) & ~waiting)[:, cells].all())


def _with_chances(line: PolicyLine, share: float, shown: float, refuted: float) -> PolicyLine:
    """The line with its chances at the last look, where these are its levels, which an open one has before that."""
    if not line.questions or share >= 1.0:
        return replace(line, chance=0.0, chance_refuted=0.0)

    def chance(truth: float, side: float, p: float, level: float) -> float:
        drift = side * margins.inside_score(truth, line.worth / share, line.claim, line.margin)
        return conditional_power(float(-ndtri(p)), share, drift, float(-ndtri(level)))

    truth = line.change if line.claim == "superior" else 0.0
    return replace(
        line,
        chance=chance(truth, 1.0, line.p_shown, shown),
        chance_refuted=chance(line.change, -1.0, line.p_refuted, refuted),
    )


def _with_interval(line: PolicyLine, level: float) -> PolicyLine:
    """The line with an interval that holds at all looks together, inside the margin where the line is shown.

    The score of `margins` is Wilson's, of the share (1 + change)/2.
    """
    if not line.questions:
        return line
    confidence = 1.0 - 2.0 * level
    bounds = wilson_bounds((1.0 + line.change) / 2.0 * line.worth, line.worth, confidence=confidence)
    lower, upper = (float(2.0 * bound - 1.0) for bound in bounds[1:3])
    return replace(line, lower=lower, upper=upper, level=confidence)


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
    to_the_end
        Whether also lines are asked on that are unlikely to be shown or refuted.
    """

    def __init__(self, policy: Policy, config: Sweep, models: Sequence[str], *, to_the_end: bool) -> None:
        self.selection = Selection()
        self._policy, self._config, self._models = policy, config, models
        self._to_the_end = to_the_end

    def progress(self, plan: Plan) -> tuple[SideBySide, list[Progress]]:
        """The two, and how far each line is."""
        sides = side_by_side([self._config.cube], self._models)
        sizes = {point: int(plan.sources[index]) for point, index in plan.places.items()}
        return sides, progress(sides, self._policy, self._config.trials, sizes, to_the_end=self._to_the_end)

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:  # noqa: ARG002
        """The next look of the line that is furthest from certain; what is planned already, once none is."""
        sides, lines = self.progress(plan)
        ids = [row.eval_id for row in plan.evaluations]
        rows = [ids.index(side.eval_id) for side in (sides.first, sides.second)]
        places = plan.places
        trials = np.zeros_like(planned.trials)
        trials[rows] = planned.trials[rows]
        for look in furthest(lines):
            for row, column in np.argwhere(look.cells).tolist():
                point = sides.points[row][column]
                where = places[point.task, point.cell_id]
                wanted = min(look.next or 0, int(plan.sources[where]))
                trials[(rows, *where)] = np.maximum(trials[(rows, *where)], wanted)
        repeats = np.where(trials > 0, np.maximum(planned.repeats, self._config.repeats), 0)
        return SampleTargets(trials, repeats.astype(np.int32)).rectangular(planned)


def run_gate(
    policy: Policy,
    config: Sweep | Mapping[str, Any] | str | Path,
    models: Sequence[str] = (),
    *,
    to_the_end: bool = False,
    subscribers: Sequence[Subscriber] = (),
) -> tuple[GateResult, RunSummary]:
    """Run a sweep as far as a policy needs it, and decide; `to_the_end` as of `Looking`."""
    settings = as_config(config)
    if settings.precision is not None:
        raise SweepError(
            "`precision` decides about trials itself, and so do a gate's looks", "Give `trials` instead"
        )
    plan = build_plan(settings)
    refuse_unknown(policy, plan.task_names, plan.tiers)
    looking = Looking(policy, settings, models, to_the_end=to_the_end)
    summary = run(settings, _sampling=looking, subscribers=subscribers)
    sides, lines = looking.progress(plan)
    sides.refuse_altered()
    result = conclude(sides, [look.line for look in lines], [*doubts(policy), *gate.note_if_swapped(sides)])
    remember_decision(settings.cube, result)
    return result, summary
