"""Decide by a policy whether right answers of a treatment fell too far behind those of the control."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.views import EACH, LEVELS, Policy, PolicyRule
from evalcube.flows.read.selection import Part
from evalcube.flows.read.sides import SideBySide, side_by_side
from evalcube.stages.analyze.labelled.axes import names

Outcome = Literal["within", "beyond", "unsure", "missing"]
Decision = Literal["GO", "REVIEW", "NO-GO"]

_ROUNDING = 1e-9
"""A drop that exceeds a limit by less is the limit: 0.3 - 0.1 is not 0.2 in floating point."""


@dataclass(frozen=True)
class Check:
    """One rule on one task and tier, or on several together."""

    level: str
    """critical, supporting or advisory."""
    task: str
    """Empty for all together."""
    tier: str
    """Empty for all points."""
    limit: float
    """Largest drop that the rule allows here, both of its limits being kept; NaN where nothing was compared."""
    rule: PolicyRule
    questions: int
    """That both answered."""
    lacking: int
    """Questions to the control that are not answered by both."""
    control: float
    """Share right of the control, of these questions."""
    treatment: float
    drop: float
    """The control's share less the treatment's."""
    lower: float
    """Of its 95 % interval, which is that of this check alone."""
    upper: float
    p: float
    """That there is no difference; not adjusted for the other checks."""
    outcome: Outcome
    """unsure: the drop is within the limit, its interval is not, and the rule asks for certainty."""

    @property
    def passed(self) -> bool:
        """Whether the rule is kept."""
        return self.outcome == "within"


@dataclass(frozen=True)
class PolicyVerdict:
    """What a policy says of a treatment."""

    decision: Decision
    control: str
    treatment: str
    cubes: tuple[str, ...]
    selection: str
    checks: tuple[Check, ...]
    """Critical ones first."""
    missing: float
    """Largest share of questions that may be missing."""
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for GO, else 1."""
        return int(self.decision != "GO")

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        own = {
            "schema": "evalcube.policy_verdict",
            "schema_version": 1,
            "decision": self.decision,
            "control": self.control,
            "treatment": self.treatment,
            "cubes": list(self.cubes),
            "selection": self.selection,
            "missing_allowed": self.missing,
            "confidence": 0.95,
        }
        checks = [
            asdict(check) | {"rule": check.rule.model_dump(exclude={"tasks", "tiers"})}
            for check in self.checks
        ]
        return {**own, "checks": checks, "warnings": list(self.warnings)}


def policy_verdict(
    policy: Policy, cubes: Sequence[str | Path], models: Sequence[str] = (), part: Part | None = None
) -> PolicyVerdict:
    """Compare a treatment with the control on the questions that both answered, rule by rule.

    NO-GO if a critical rule is broken, or if too many questions of a critical or supporting one are missing; REVIEW if
    a supporting rule is broken; else GO. Advisory rules are reported only. Truncated answers count as wrong.

    Parameters
    ----------
    policy
        The rules.
    cubes
        Addresses of one cube, or of the control's and the treatment's.
    models
        The control and the treatment, as for `evalcube.flows.read.sides.side_by_side`.
    part
        Which part of the cubes; default: all.

    Returns
    -------
    PolicyVerdict
        The decision, and each check that it rests on.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    SweepError
        As `side_by_side`.
    """
    sides = side_by_side(cubes, models, part)
    checks = [check for level in LEVELS for check in _checks(sides, policy, level)]
    addresses = dict.fromkeys(str(cube) for cube in cubes)
    return PolicyVerdict(
        decide(checks),
        sides.first.label,
        sides.second.label,
        tuple(addresses),
        sides.selection,
        tuple(checks),
        policy.missing,
        (*sides.warnings, *_unknown(sides, policy)),
    )


def decide(checks: Sequence[Check]) -> Decision:
    """What follows from the checks.

    Parameters
    ----------
    checks
        Of all levels; where there is none, nothing speaks for the treatment.

    Returns
    -------
    str
        GO, REVIEW or NO-GO.
    """
    if not checks:
        return "NO-GO"
    broken = [check for check in checks if not check.passed]
    if any(
        check.level == "critical" or (check.level == "supporting" and check.outcome == "missing")
        for check in broken
    ):
        return "NO-GO"
    return "REVIEW" if any(check.level == "supporting" for check in broken) else "GO"


def _checks(sides: SideBySide, policy: Policy, level: str) -> Iterator[Check]:
    tasks, tiers = sides.tasks, names(sides.dataset, "tier")
    for rule in getattr(policy, level):
        places = list(product(_chosen(rule.tasks, tasks), _chosen(rule.tiers, tiers)))
        if EACH in (rule.tasks, rule.tiers):
            # `each` means the pairs that there are: not every task has every tier.
            there = [place for place in places if _cells(sides, *place).any()]
            places = there + _unmet(rule, there)
        for task, tier in places:
            yield _check(sides, rule, (level, task, tier), _cells(sides, task, tier), policy.missing)


def _chosen(wanted: tuple[str, ...] | str | None, known: Sequence[str]) -> Sequence[str]:
    """Names, each to be taken by itself; an empty one is all together."""
    if wanted is None:
        return ("",)
    if isinstance(wanted, str):
        return known
    return wanted


def _unmet(rule: PolicyRule, there: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Places of what a rule names and no pair has: without them it would be passed over in silence."""
    tasks, tiers = ({place[side] for place in there} for side in (0, 1))
    found = [(task, "") for task in _named(rule.tasks) if task not in tasks]
    found += [("", tier) for tier in _named(rule.tiers) if tier not in tiers]
    return found if found or there else [("", "")]


def _named(wanted: tuple[str, ...] | str | None) -> tuple[str, ...]:
    return wanted if isinstance(wanted, tuple) else ()


def _unknown(sides: SideBySide, policy: Policy) -> Iterator[str]:
    """What the rules name and neither side has, with the name that is near."""
    known = {"task": sides.tasks, "tier": names(sides.dataset, "tier")}
    rules = [rule for level in LEVELS for rule in getattr(policy, level)]
    for what, there in known.items():
        wanted = dict.fromkeys(name for rule in rules for name in _named(getattr(rule, f"{what}s")))
        for name in wanted:
            if name not in there:
                remedy = did_you_mean(name, there, "Here are")
                yield f"The policy names the {what} '{name}', which neither side has. {remedy}"


def _cells(sides: SideBySide, task: str, tier: str) -> npt.NDArray[np.bool_]:
    """Points of a task in a tier, shape (task, params)."""
    dataset = sides.dataset
    counts = np.array([len(points) for points in sides.points])
    cells = np.arange(dataset.sizes["params"]) < counts[:, np.newaxis]
    if task:
        cells &= (np.array(sides.tasks) == task)[:, np.newaxis]
    if tier:
        inside = [name == tier for name in names(dataset, "tier")]
        cells &= dataset["in_tier"].values[inside].any(axis=0)
    return cells


def _check(
    sides: SideBySide,
    rule: PolicyRule,
    place: tuple[str, str, str],
    cells: npt.NDArray[np.bool_],
    missing: float,
) -> Check:
    """A rule on some points, none if neither side has what it names."""
    asked = sides.planned[0].any(axis=-1) & cells[..., np.newaxis]
    answered = sides.both().any(axis=-1) & cells[..., np.newaxis]
    lacking = int((asked & ~answered).sum())
    pair = sides.compared(cells=cells) if cells.any() else None
    if pair is None:
        nothing = (math.nan,) * 6
        return Check(*place, math.nan, rule, 0, lacking, *nothing, "missing")
    total, gap = pair.overall, pair.overall.difference
    limit = allowed(rule, total.first_rate)
    outcome: Outcome = "within"
    if not asked.any() or lacking > missing * int(asked.sum()) + _ROUNDING:
        outcome = "missing"
    elif gap.value > limit + _ROUNDING:
        outcome = "beyond"
    elif rule.certain and gap.upper > limit + _ROUNDING:
        outcome = "unsure"
    rates = (total.first_rate, total.second_rate, gap.value, gap.lower, gap.upper, total.p)
    return Check(*place, limit, rule, total.questions, lacking, *rates, outcome)


def allowed(rule: PolicyRule, control: float) -> float:
    """Largest drop of the share right that keeps both limits of a rule.

    Returns
    -------
    float
        From 0 to 1.
    """
    absolute = math.inf if rule.drop is None else rule.drop
    relative = math.inf if rule.relative_drop is None else rule.relative_drop * control
    return min(absolute, relative)
