"""The part of a plan that one run asks, such as one model or some trials; the rest of the plan stays pending."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.limits import Precision as PrecisionConfig
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError, need_name, no_bare_text
from evalcube.flows.plan.filters import Where, cells_of, split_condition
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import MOST_TRIALS, SampleTargets

if TYPE_CHECKING:
    from evalcube.stages.analyze.formulas.allocation import PrecisionTarget

Counters = npt.NDArray[np.float64]
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Selection:
    """Some cells of a sweep, those that fulfil all conditions; all cells without any."""

    where: Where = ()
    """Conditions on evaluations and points, as readers of cubes take them."""
    parameter: str = "where"
    """The parameter that has them, for messages."""

    def mask(self, plan: Plan) -> npt.NDArray[np.bool_]:
        """Return which cells are chosen, shape (model, task, params)."""
        # What the config does not name is not asked, although the cube has it.
        named: npt.NDArray[np.bool_] = plan.named_cells
        if not self.where:
            return named
        try:
            chosen = cells_of(plan, self.where)
        except SweepError as error:
            raise SweepError(error.message.replace("`where`", f"`{self.parameter}`"), error.remedy) from error
        if not (chosen & named).any():
            raise SweepError(
                f"`{self.parameter}`: what has {' and '.join(map(str, self.where))} is in the cube, and the config "
                "does not name it",
                "Add it to the config, or select something else",
            )
        return chosen & named


class Sampling(ABC):
    """Decides how far cells are measured, in rounds: asked again after each, until it wants no more."""

    selection: Selection
    """The cells that it decides on."""

    @abstractmethod
    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:
        """The targets of the next round."""

    def models(self, plan: Plan) -> Sequence[int]:
        """Evaluations that any round may want more of."""
        return [int(i) for i in np.flatnonzero(self.selection.mask(plan).any(axis=(1, 2)))]

    def notes(self) -> Mapping[str, object]:
        """What has to be kept beside the cube, as JSON values, until a run has done all that it wants."""
        return {}


def as_configured(config: Sweep) -> Fixed | Adaptive:
    """The sampling that a config asks for."""
    if config.precision is None:
        return Fixed(config.trials, config.repeats)
    return Adaptive.of(config.precision, config.repeats)


@dataclass(frozen=True)
class Fixed(Sampling):
    """So many trials and repeats of the selected cells; None is as many as the cube has planned."""

    trials: int | None
    repeats: int | None
    selection: Selection = Selection()

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:  # noqa: ARG002
        """The same in every round, so that there is one."""
        chosen = self.selection.mask(plan)
        wanted = SampleTargets.uniform(plan, self.trials or _MOST, self.repeats or 1, chosen)
        return SampleTargets(
            wanted.trials if self.trials else np.where(chosen, planned.trials, 0),
            wanted.repeats if self.repeats else np.where(chosen, np.maximum(planned.repeats, 1), 0),
        ).rectangular(planned)


@dataclass(frozen=True)
class Adaptive(Sampling):
    """As many trials as each selected cell needs for a precision."""

    precision: PrecisionTarget
    repeats: int = 1
    selection: Selection = Selection()

    @classmethod
    def of(cls, wanted: PrecisionConfig, repeats: int, selection: Selection = Selection()) -> Adaptive:
        """The sampling for the section of a config."""
        from evalcube.stages.analyze.formulas.allocation import PrecisionTarget  # slow to load

        return cls(PrecisionTarget(wanted.base, wanted.target, wanted.max), repeats, selection)

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:
        """`base` more trials for each cell that misses the target."""
        from evalcube.stages.analyze.formulas.allocation import next_trials

        chosen = self.selection.mask(plan)
        # No repeats: somebody was killed between planning trials and repeats.
        repeats = np.maximum(planned.repeats, 1)
        trials: Any = next_trials(counters, planned.trials, self.precision, repeats=repeats)
        most = SampleTargets.uniform(plan, self.precision.maximum, self.repeats, chosen)
        return SampleTargets(
            np.minimum(np.where(chosen, trials, 0), np.maximum(most.trials, planned.trials)).astype(np.int32),
            np.maximum(most.repeats, np.where(chosen, planned.repeats, 0)),
        )


_SHOWN = 60
_TRIALS = re.compile(r"(?:(\d{1,1000}):)?(\d{1,1000})")


@dataclass(frozen=True)
class Only:
    """A part of a plan."""

    selection: Selection = field(default_factory=Selection)
    first: int = 0
    """Number of the first trial that is asked."""
    trials: int | None = None
    """Trials of each cell that are planned, of which the last is the last that is asked; None as configured."""

    @classmethod
    def of(cls, conditions: Sequence[str] = (), trials: str | None = None) -> Only | None:
        """The part that is meant; None if that is all."""
        if not conditions and trials is None:
            return None
        no_bare_text(only=conditions)
        for text in conditions:
            split_condition(text, "only")
        first, last = (0, None) if trials is None else _trials(need_name("trials", trials))
        return cls(Selection(tuple(conditions), "only"), first, last)

    def sampling(self, config: Sweep) -> Sampling:
        """How far the cells of the part are measured."""
        if self.trials is None:
            return replace(as_configured(config), selection=self.selection)
        if config.precision is not None:
            raise SweepError(
                "`trials` excludes `precision`, which decides about trials itself", "Leave one of them out"
            )
        return Fixed(self.trials, config.repeats, self.selection)

    def targets(self, plan: Plan) -> SampleTargets:
        """What is asked of a plan."""
        chosen = self.selection.mask(plan)
        return replace(SampleTargets.uniform(plan, plan.trials, plan.repeats, chosen), first=self.first)

    def whole(self, config: Sweep, plan: Plan) -> SampleTargets:
        """The plan that it is a part of."""
        return SampleTargets.uniform(plan, self.trials or config.trials, config.repeats)


def _trials(text: str) -> tuple[int, int]:
    match = _TRIALS.fullmatch(text.strip())
    first, last = (int(match[1] or 0), int(match[2])) if match else (0, 0)
    shown, remedy = text[:_SHOWN], "Write it like 16 for the first 16 trials, or 16:32 for the 16 after them"
    if match is None:
        raise SweepError(f"`trials`: '{shown}' is no range of trials", remedy)
    if last > MOST_TRIALS:
        raise SweepError(
            f"`trials`: '{shown}' is too large: a cell has at most {MOST_TRIALS:,} trials", remedy
        )
    if last <= first:
        raise SweepError(f"`trials`: '{shown}' is empty: the first trial must be below the end", remedy)
    return first, last
