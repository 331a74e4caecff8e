"""What a config says about results: views, which are filters over coordinates, and what a policy asks to be shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from evalcube.flows.config import raw_config, values
from evalcube.flows.config.field_types import Given, Many, optional
from evalcube.flows.config.findings import Finding, problem_of, reported, sorted_error, unknown_name
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.section import Flag, Name, Section, Whole
from evalcube.flows.errors import SweepError, need_path

Scalar = str | int | float | bool
Bounds = tuple[float, float]


@dataclass(frozen=True)
class View:
    """A part of a sweep's results, to be compared or ranked by itself."""

    name: str
    criteria: Mapping[str, Any]
    """Coordinate -> what the config says about it."""
    trials: int | None
    """Use the first so many trials of each cell; None: all."""
    unique_only: bool
    """Use a trial only if its question is new in its cell."""

    def where(self) -> dict[str, Scalar | list[Scalar] | Bounds]:
        """The filters: coordinate -> one value, a list of values, or (lowest, highest), both included.

        Examples
        --------
        >>> View("long", {"task": ["arithmetic"], "param_length": {"min": 16}}, None, False).where()
        {'task': ['arithmetic'], 'param_length': (16, inf)}
        """
        return {name: _filter(value) for name, value in self.criteria.items()}


class ViewConfig(Section):
    """A named part of the results.

    Parameters
    ----------
    where
        Coordinate (task, tier, model_name, template, sampler, a facet, param_<name>) -> a value, a list of
        values, or a range: {min: 4}, {max: 8} or both.
    trials
        Number of trials of each cell, from the first; default: all.
    unique_only
        Leave out trials whose question occurred earlier in the cell.
    """

    where: dict[Name, Annotated[Any, PlainValidator(values.criterion)]] = Field(default={})
    trials: Whole | None = Field(default=None, ge=1, le=10**7)
    unique_only: Flag = False

    def view(self, name: str) -> View:
        """Make the record of this view."""
        return View(name, dict(self.where), self.trials, self.unique_only)


def find_view(views: Mapping[str, ViewConfig], name: str) -> View:
    """The view of that name."""
    if name not in views:
        raise SweepError(f"there is no view {show(name)}", did_you_mean(name, list(views), "Views"))
    return views[name].view(name)


def _filter(value: Any) -> Scalar | list[Scalar] | Bounds:  # noqa: ANN401 - as the config has it
    bounds = values.bounds(value)
    if bounds is not None:
        low, high = bounds
        return (-math.inf if low is None else low, math.inf if high is None else high)
    filtered: Scalar | list[Scalar] = list(value) if isinstance(value, (list, tuple)) else value
    return filtered


EACH = "each"
"""In the place of names: every one that there is, by itself."""
LEVELS = ("critical", "supporting", "advisory")
"""How much a line matters, most first."""


def _names(value: object) -> object:
    """A list of names, or `EACH`; a single name is a list of one, and no name at all would be a rule of nothing."""
    if isinstance(value, str) and value != EACH:
        return (value,)
    if isinstance(value, list | tuple) and not value:
        raise values.refusal(
            "names nothing", "Name one, write each for every one, or leave it out for all together", told=True
        )
    return value


Names = Annotated[tuple[Name, ...] | Literal["each"], BeforeValidator(_names)]


_RELATIVE = re.compile(r"(\d+(?:\.\d+)?) ?%")


def _margin(value: object) -> object:
    """Points of 100 as a number, or a share of the control's share right as a text such as 5%."""
    share = _RELATIVE.fullmatch(value) if isinstance(value, str) else None
    number = float(share[1]) if share else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 100:
        raise values.refusal(
            "must be points from 0 to 100, or a share of the control's",
            "Write 1 for one point of 100, or 5% for a twentieth of what the control gets right",
        )
    return f"{number:g}%" if share else float(number)


Margin = Annotated[float | str, BeforeValidator(_margin)]
CLAIMS = ("noninferior", "equivalent", "superior")
"""What a line of a policy can ask to be shown of the treatment."""


class PolicyRule(Section):
    """What must be shown, in the given tasks and tiers. It has one of the keys noninferior, equivalent and superior.

    Parameters
    ----------
    tasks
        Tasks to test separately: their labels, or `each` for all; default: all tasks together.
    tiers
        Tiers to test separately: their names, or `each` for all; default: all points together.
    noninferior
        Worse by less than this: percentage points, such as 1, or a share of the control's accuracy, such as
        5%.
    equivalent
        Neither worse nor better by this much.
    superior
        Better by more than this; 0: better at all.
    """

    tasks: Given[Sequence[str] | None, Names | None] = optional()
    tiers: Given[Sequence[str] | None, Names | None] = optional()
    noninferior: Given[float | str | None, Margin | None] = optional()
    equivalent: Given[float | str | None, Margin | None] = optional()
    superior: Given[float | str | None, Margin | None] = optional()

    @model_validator(mode="after")
    def _one_claim(self) -> Self:
        claims = [name for name in CLAIMS if getattr(self, name) is not None]
        if len(claims) != 1:
            problem = f"says both {' and '.join(claims)}" if claims else f"says none of {', '.join(CLAIMS)}"
            raise values.refusal(
                problem, "Write one, such as {noninferior: 1}; two claims are two lines", told=True
            )
        if claims == ["equivalent"] and self.margin(1.0) == 0:
            raise values.refusal(
                "no two are shown to be equal to the last answer",
                "Give a margin above 0, such as {equivalent: 1}",
                where=("equivalent",),
            )
        return self

    @property
    def claim(self) -> str:
        """noninferior, equivalent or superior."""
        return next(name for name in CLAIMS if getattr(self, name) is not None)

    def margin(self, control: float) -> float:
        """The margin as a share of all questions, from 0 to 1, where the control gets that share right."""
        bound = getattr(self, self.claim)
        return float(bound[:-1]) / 100 * control if isinstance(bound, str) else float(bound) / 100


class Policy(Section):
    """Conditions on accuracy under which a treatment may replace the control.

    Parameters
    ----------
    critical
        Claims that must all be shown for the decision GO, such as {noninferior: 1}; if the data refute one: NO-GO.
    supporting
        If one of these is refuted: INCONCLUSIVE.
    advisory
        Only reported.
    """

    critical: Many[PolicyRule] = Field(min_length=1)
    supporting: Many[PolicyRule] = optional(())
    advisory: Many[PolicyRule] = optional(())


def unknown_names(policy: Policy, tasks: Sequence[str], tiers: Sequence[str]) -> Iterator[Finding]:
    """What is wrong with each task and tier of a policy that is none of those known."""
    for role, axis in product(LEVELS, ("tasks", "tiers")):
        labels = list(tasks if axis == "tasks" else tiers)
        for index, rule in enumerate(getattr(policy, role)):
            path, names = (role, index, axis), getattr(rule, axis)
            wrong = [name for name in names if name not in labels] if isinstance(names, tuple) else ()
            yield from (unknown_name(path, axis[:-1], name, labels, axis.capitalize()) for name in wrong)


def refuse_unknown(policy: Policy, tasks: Sequence[str], tiers: Sequence[str]) -> None:
    """Raise ConfigError if a policy names a task or tier that is none of those known."""
    if problems := [problem_of(finding, "policy", None) for finding in unknown_names(policy, tasks, tiers)]:
        raise sorted_error(problems)


_DOUBTED = 0.1
"""Points of 100, below which a share was meant, perhaps."""


def doubts(policy: Policy | None) -> tuple[str, ...]:
    """A sentence for each margin that is so small that it was meant as a share of 1, perhaps."""
    rules = [rule for level in LEVELS for rule in getattr(policy, level, ())]
    margins = dict.fromkeys(
        (rule.claim, margin) for rule in rules if isinstance(margin := getattr(rule, rule.claim), float)
    )
    return tuple(
        f"policy: {claim}: {margin:g} is {margin:g} percentage points, which takes very many questions; "
        f"for {100 * margin:g} points write {claim}: {100 * margin:g}"
        for claim, margin in margins
        if 0 < margin < _DOUBTED
    )


class _PolicyFile(Section):
    """A file with a policy, which may be a whole config."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    policy: Policy


def load_policy(path: str | Path) -> Policy:
    """Read the section ``policy`` of a YAML file, which may be a whole config; the rest of it is not looked at."""
    text, source = raw_config.text_of(path)
    read, mapping = raw_config.parsed(
        text, source, "Write a section such as policy: {critical: [{noninferior: 1}]}"
    )
    with reported(source, _PolicyFile, read):
        return _PolicyFile.model_validate(mapping).policy


def as_policy(policy: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """A policy from whatever form it is given in; see `load_policy`."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, Mapping):
        return load_policy(need_path("policy", policy))
    with reported("policy", Policy):
        return Policy.model_validate(dict(policy))


class _NotedViews(Section):
    """Of a config that a cube notes, what is looked at."""

    views: dict[Name, ViewConfig]


def noted_views(config: Mapping[str, object]) -> dict[str, ViewConfig]:
    """The views of the config that a cube notes, which may be a stranger's: nothing else of it is looked at."""
    with reported("the config in the cube's notes", _NotedViews):
        return _NotedViews.model_validate({"views": config.get("views") or {}}).views


def noted_policy(notes: Mapping[str, object]) -> Policy | None:
    """The policy of the config that a cube notes; None where it has none."""
    config = notes.get("config")
    policy = config.get("policy") if isinstance(config, Mapping) else None
    if policy is None:
        return None
    with reported("the config in the cube's notes", _PolicyFile):
        return _PolicyFile.model_validate({"policy": policy}).policy
