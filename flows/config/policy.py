"""What a policy says: how far a treatment may fall behind the control, by task and tier, and how much that matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.given import Given, Many, optional
from evalcube.flows.config.section import Flag, Name, Number, Section

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
