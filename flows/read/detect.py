"""How many questions a sweep needs to tell two of its models apart by so many points, and what it can tell as it is."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError, need_number
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.estimate import SweepEstimate, estimate
from evalcube.flows.read.selection import Part, open_part
from evalcube.stages.analyze.formulas.detect import Spread, detect_power, enough_questions, told_difference
from evalcube.stages.analyze.formulas.margins import POWER
from evalcube.stages.analyze.labelled import pairing
from evalcube.stages.errors import ArgumentError
from evalcube.storage.cube.cube import Cube
from evalcube.storage.urls import redacted

_EXAMPLES = {"detect": "Give percentage points, such as 2", "power": "Give a share, such as 0.8"}
_MOST_MODELS = 12
"""Models of a cube whose pairs are looked at."""
_MOST_PRICED = 1_000_000
"""Questions up to which their prompts are looked at for the cost."""
_MOST_REPEATS = 64
"""Answers to a question beyond which asking again is no plan."""
ASSUMED = 0.2
"""Share of the questions on which two models are taken to disagree where nobody says it."""


@dataclass(frozen=True)
class Detection:
    """What it takes to tell a difference between two models of a sweep."""

    difference: float
    """Points of 100."""
    power: float
    basis: str
    """Where the spread is from, in words."""
    spread: Spread
    needed: int | None
    """Questions of equal weight that tell it; None if no number does."""
    questions: int | None
    """For each model, with which the sweep has as many; None where it has too few."""
    trials: int | None
    """Of each point: the config's `trials`."""
    repeats: int
    """Answers to each question, as planned."""
    planned: int
    """Questions for each model as the sweep is planned."""
    worth: float
    """Questions of equal weight that these are worth: in a comparison each task weighs the same."""
    limiting: str
    """The task whose few questions cost most of that; empty where none does."""
    told: float
    """Smallest difference that these tell with that power, in percentage points."""
    most: int | None
    """Different questions that there are, where they are worth less than is needed; None where there are enough."""
    again: int | None
    """Answers to each of these that tell the difference; None where `most` is, or no number does."""
    estimate: SweepEstimate | None
    """What so many questions would ask and cost."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        own = {name: value for name, value in vars(self).items() if name not in ("spread", "estimate")}
        cost = None if self.estimate is None else self.estimate.to_dict()
        return {**own, "spread": asdict(self.spread), "estimate": cost}


def detect(
    config: Sweep | Mapping[str, Any] | str | Path,
    difference: float,
    *,
    power: float = POWER,
    against: str | Path | float | None = None,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
) -> Detection:
    """Work out how many questions tell two models of a sweep apart, by a two-sided paired test at 5%."""
    for name, value, low, high in (("detect", difference, 0, 100), ("power", power, 0.5, 1)):
        need_number(name, value)
        if not low < value < high:
            raise SweepError(f"`{name}` must be between {low} and {high}, got {value:g}", _EXAMPLES[name])
    sweep = as_config(config, cube=cube, cache=cache)
    plan = build_plan(sweep)
    spread, basis = _spread(sweep, against, difference / 100)
    planned = _questions(plan, plan.trials)
    worth, limiting = plan.worth(planned)
    detectable = 100 * told_difference(worth, spread, plan.repeats, power=power)
    there = plan.worth(plan.sources)[0]
    needed = enough_questions(difference / 100, spread, plan.repeats, power=power)
    trials = again = None
    if needed <= there:
        numbers = range(int(plan.sources.max()) + 1)
        trials = bisect_left(numbers, True, key=lambda each: plan.worth(_questions(plan, each))[0] >= needed)
    else:
        powers = ((r, detect_power(difference / 100, there, spread, r)) for r in range(2, _MOST_REPEATS + 1))
        again = next((repeats for repeats, chance in powers if chance >= power), None)
    questions = None if trials is None else int(_questions(plan, trials).sum())
    asked = questions is not None and questions <= _MOST_PRICED
    return Detection(
        difference,
        power,
        basis,
        spread,
        None if math.isinf(needed) else int(needed),
        questions,
        trials,
        plan.repeats,
        int(planned.sum()),
        worth,
        limiting,
        detectable,
        int(plan.sources.sum()) if trials is None else None,
        again,
        estimate(sweep, trials=str(trials)) if asked else None,
    )


def _questions(plan: Plan, trials: int) -> npt.NDArray[np.int64]:
    """Different questions of each point with so many trials."""
    return np.minimum(plan.sources, trials)


def _spread(sweep: Sweep, against: str | Path | float | None, difference: float) -> tuple[Spread, str]:
    """What a difference varies by, and where that is from."""
    if against is None:
        own = Cube.exists(sweep.cube) and Cube.open(sweep.cube).sizes["model"] > 1
        if own and (measured := _spread_in(sweep.cube)) is not None:
            return measured
        assumed = max(ASSUMED, difference)
        assumption = f"two models being taken to disagree on {100 * assumed:g}% of the questions"
        return Spread.of_discordance(
            assumed, difference
        ), f"{assumption}: give a cube that tells, or another share"
    try:
        share = float(str(against))
    except ValueError:  # it is an address
        share = None
    if share is not None:
        if not difference < share <= 1:
            raise SweepError(
                f"`against`: models that differ by {100 * difference:g} points disagree on more than "
                f"{difference:g} of the questions, and on 1 at most; got {share:g}",
                "Give a share between, such as 0.2, or a cube",
            )
        assumption = f"two models disagreeing on {100 * share:g}% of the questions"
        return Spread.of_discordance(share, difference), assumption
    measured = _spread_in(str(against))
    if measured is None:
        raise SweepError(
            f"`against`: no two models of cube '{against}' have answered two questions of a point in common",
            "Give a cube with two models, or the share of questions on which two disagree, such as 0.2",
        )
    return measured


def _spread_in(cube: str) -> tuple[Spread, str] | None:
    """What a difference varies by between the two most unlike models of a cube; None if it has no two to compare."""
    dataset = open_part(cube, Part()).dataset
    spreads = []
    for first, second in combinations(range(min(dataset.sizes["model"], _MOST_MODELS)), 2):
        try:
            spreads.append(pairing.spread_of(dataset, first, second))
        except ArgumentError:
            continue
    if not spreads:
        return None
    most = ", the most unlike" if len(spreads) > 1 else ""
    return max(spreads, key=Spread.per_question), f"as two models differ in {redacted(cube)}{most}"
