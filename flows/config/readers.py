"""Second readers of replies, as a task's section names them: a pattern of a published recipe, or a function."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import regex
from pydantic import AfterValidator, Field, model_validator

from evalcube.flows.config import values
from evalcube.flows.config.given import Many, optional
from evalcube.flows.config.section import Flag, Name, Section


def _compiles(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise values.refusal(f"is no regular expression: {error}", "Correct it") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_compiles)]


class ReaderConfig(Section):
    """Another grader that reads each reply a second time, beside evalcube's own.

    Parameters
    ----------
    pattern
        Regular expression of Python whose match is the answer; it is compared with the reference as a text.
    group
        Number or name of the group that is the answer; default: the first that is not empty, or the whole match.
    take
        Which match counts: first or last.
    ignore
        Regular expressions of what is taken out of answer and reference before they are compared.
    case
        Whether upper and lower case differ.
    grader
        In place of a pattern: a function (reply, context), an entry point of group evalcube.graders or
        module:function.
    name
        What it is called where results are shown; default: theirs, or the grader's name.
    """

    pattern: Pattern | None = None
    group: int | Name | None = None
    take: Literal["first", "last"] = "first"
    ignore: Many[Pattern] = optional(())
    case: Flag = True
    grader: Name | None = None
    name: Name = Field(default_factory=lambda data: str(data.get("grader") or "theirs"))

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.pattern is None) == (self.grader is None):
            raise values.refusal("must have either pattern or grader", "Give one of the two", told=True)
        if self.pattern is None or self.group is None:
            return self
        compiled = regex.compile(self.pattern)
        known = {*range(compiled.groups + 1), *compiled.groupindex}
        if self.group not in known:
            listed = ", ".join(map(str, sorted(known, key=str)))
            raise values.refusal(
                f"the pattern has no group {self.group}",
                f"Give one of: {listed}",
                where=("group",),
                told=True,
            )
        return self

    def described(self) -> dict[str, Any]:
        """What a cube has of it: what is not the default, and the name."""
        return {**self.model_dump(mode="json", exclude_defaults=True), "name": self.name}


def by_name(given: object) -> object:
    """A grader's name as the section that it stands for."""
    return {"grader": given} if isinstance(given, str) else given
