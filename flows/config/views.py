"""What a config says about results: views, which are filters over coordinates, and drops that a policy allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.given import Given, Many, optional
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.section import Flag, Name, Number, Section, Whole
from evalcube.flows.errors import SweepError

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
    """A part of the results under a name of its own.

    Parameters
    ----------
    where
        Coordinate (task, tier, model_name, template, sampler, a facet, param_<name>) -> a value, a list of
        values, or {min: 4, max: 8}.
    trials
        Use the first so many trials of each cell; default: all.
    unique_only
        Use a trial only if its question is new in its cell.
    """

    where: dict[Name, Annotated[Any, PlainValidator(values.criterion)]] = Field(default={})
    trials: Whole | None = Field(default=None, ge=1, le=10**7)
    unique_only: Flag = False

    def view(self, name: str) -> View:
        """Make the record of this view."""
        return View(name, dict(self.where), self.trials, self.unique_only)


def find_view(views: Mapping[str, ViewConfig], name: str) -> View:
    """The view of that name.

    Raises
    ------
    SweepError
        If there is none.
    """
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
"""How much a rule matters, most first."""


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


class PolicyRule(Section):
    """The largest drops that are allowed of some tasks in some tiers.

    Parameters
    ----------
    tasks
        Labels of tasks, each taken by itself; each: every one; default: all taken together.
    tiers
        Names of tiers, each taken by itself; each: every one; default: all points together.
    drop
        Largest drop of the share right, such as 0.02 for 2 points of 100.
    relative_drop
        Largest drop as a share of the control's share right, such as 0.05.
    certain
        Whether the 95 % interval of the drop must lie within the limits, too, not only its estimate.
    """

    tasks: Given[Sequence[str] | None, Names | None] = optional()
    tiers: Given[Sequence[str] | None, Names | None] = optional()
    drop: Number | None = Field(default=None, ge=0, le=1)
    relative_drop: Number | None = Field(default=None, ge=0, le=1)
    certain: Flag = False

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.drop is None and self.relative_drop is None:
            raise values.refusal(
                "must bound drop or relative_drop", "Write {drop: 0.02} or {relative_drop: 0.05}"
            )
        return self


class Policy(Section):
    """When a treatment may replace the control, as far as right answers go.

    Parameters
    ----------
    missing
        Largest share of a rule's questions to the control that are not answered by both; more is no-go.
    critical
        A drop beyond these is no-go.
    supporting
        A drop beyond these is for a person to decide.
    advisory
        A drop beyond these is reported, no more.
    """

    missing: Number = Field(default=0.0, ge=0, lt=1)
    critical: Many[PolicyRule] = optional(())
    supporting: Many[PolicyRule] = optional(())
    advisory: Many[PolicyRule] = optional(())

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.critical or self.supporting or self.advisory):
            raise values.refusal(
                "has no rule", "Write critical:, supporting: or advisory:, each a list such as [{drop: 0.02}]"
            )
        return self
