"""The part of a plan that one run asks, such as one model or some trials; the rest of the plan stays pending."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError, need_name, no_bare_text
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.sampling import Fixed, Sampling, Selection, as_configured
from evalcube.flows.plan.targets import MOST_TRIALS, SampleTargets

_NAMES = {"model": "models", "task": "tasks", "tier": "tiers"}
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
        """The part that is meant; None if that is all.

        Parameters
        ----------
        conditions
            Texts ``NAME=VALUE``, as `--where` of readers takes them, each name once; all have to hold.
        trials
            ``A:B`` for the trials from A to B - 1, counted from 0, or ``B`` for the first B.

        Raises
        ------
        SweepError
            If a text is none of these.
        """
        if not conditions and trials is None:
            return None
        no_bare_text(only=conditions)
        chosen: dict[str, tuple[str, ...]] = {}
        others = []
        for text in conditions:
            name, values = _condition(text)
            if name not in _NAMES:
                others.append(text)
                continue
            if _NAMES[name] in chosen:
                raise SweepError(f"`only`: '{name}' is given twice", f"Give all at once: {name}=one,two")
            chosen[_NAMES[name]] = values
        first, last = (0, None) if trials is None else _trials(need_name("trials", trials))
        return cls(Selection(**chosen, where=tuple(others), parameter="only"), first, last)

    def sampling(self, config: Sweep) -> Sampling:
        """How far the cells of the part are measured.

        Raises
        ------
        SweepError
            If trials are given and the config asks for a precision.
        """
        if self.trials is None:
            return replace(as_configured(config), selection=self.selection)
        if config.precision is not None:
            raise SweepError(
                "`trials` excludes `precision`, which decides about trials itself",
                "Leave one of them out",
            )
        return Fixed(self.trials, config.repeats, self.selection)

    def targets(self, plan: Plan) -> SampleTargets:
        """What is asked of a plan."""
        chosen = self.selection.mask(plan)
        return replace(SampleTargets.uniform(plan, plan.trials, plan.repeats, chosen), first=self.first)

    def whole(self, config: Sweep, plan: Plan) -> SampleTargets:
        """The plan that it is a part of."""
        return SampleTargets.uniform(plan, self.trials or config.trials, config.repeats)


def _condition(text: str) -> tuple[str, tuple[str, ...]]:
    name, sign, value = (part.strip() for part in str(text).partition("="))
    values = tuple(part.strip() for part in value.split(",") if part.strip())
    if not sign or not values:
        raise SweepError(f"`only`: '{text}' is no NAME=VALUE", "Write it like model=gpt or task=sort,letters")
    return name, values


def _trials(text: str) -> tuple[int, int]:
    match = _TRIALS.fullmatch(text.strip())
    first, last = (int(match[1] or 0), int(match[2])) if match else (0, 0)
    shown, remedy = text[:_SHOWN], "Write it like 16:32 for the trials 16 to 31, counted from 0"
    if match is None:
        raise SweepError(f"`trials`: '{shown}' is no range of trials", remedy)
    if last > MOST_TRIALS:
        raise SweepError(
            f"`trials`: '{shown}' is too large: a cell has at most {MOST_TRIALS:,} trials", remedy
        )
    if last <= first:
        raise SweepError(f"`trials`: '{shown}' is empty: the first trial must be below the end", remedy)
    return first, last
