"""What a config says about a task: where in its parameter space to measure, and who reads replies a second time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import regex
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    model_validator,
)

from evalcube.flows.config import values
from evalcube.flows.config.field_types import Given, Many, One, Some, optional
from evalcube.flows.config.judges import Assertions, Rubric
from evalcube.flows.config.section import Degree, Density, Flag, Json, Name, Params, Section, Whole
from evalcube.stages.generate import Axis, Entry, RangeWindow


def _compiles(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise values.refusal(f"is no regular expression: {error}", "Correct it") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_compiles)]


class ReaderConfig(Section):
    """A second reader of each reply, beside evalcube's own.

    Parameters
    ----------
    pattern
        Python regular expression whose match is the answer, compared as text with the reference.
    group
        Number or name of the group that is the answer; default: the first that is not empty, or else the
        whole match.
    take
        Which match counts.
    ignore
        Regular expressions whose matches are removed from answer and reference.
    case
        Whether upper and lower case differ.
    grader
        Instead of pattern: a function (reply, context), as an entry point of the group evalcube.graders or
        module:function.
    name
        Name of the reader in results; default: the word `theirs`, or the grader's name.
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
        groups = {*range(compiled.groups + 1), *compiled.groupindex}
        if self.group not in groups:
            rule = f"the pattern has no group {self.group}"
            remedy = f"Give one of: {', '.join(map(str, sorted(groups, key=str)))}"
            raise values.refusal(rule, remedy, where=("group",), told=True)
        return self

    def described(self) -> dict[str, Any]:
        """What a cube has of it: what is not the default, and the name."""
        return {**self.model_dump(mode="json", exclude_defaults=True), "name": self.name}


def by_name(given: object) -> object:
    """A grader's name as the section that it stands for."""
    return {"grader": given} if isinstance(given, str) else given


DEFAULT_TIERS = ("default",)
LIST, MAPPING = ("\0list", "\0mapping")
"""Names of the two forms of an axis and of tiers; no key of a config can be one."""


class AxisWindow(Section):
    """The part of a range that is measured.

    Parameters
    ----------
    body
        Values in the window.
    skip
        How many values come before the window: a number, `degree` (as many as the degree) or {degree: 2} (twice).
    """

    body: Whole = Field(ge=1, le=100_000)
    skip: Annotated[int | Literal["degree"] | dict[str, int], PlainValidator(values.skip)] = Field(
        default="degree"
    )

    def window(self) -> RangeWindow:
        """Make the task layer's record of this window."""
        if isinstance(self.skip, int):
            return RangeWindow(self.body, skip=self.skip, step=0)
        return RangeWindow(self.body, step=1 if isinstance(self.skip, str) else self.skip["degree"])


class AxisRange(Section):
    """An axis of a grid with a window.

    Parameters
    ----------
    range
        Values of the param, the easiest first.
    window
        The part of the range in use; default: all of it.
    """

    range: Many[Json] = Field(min_length=1)
    window: One[AxisWindow | None] = optional()

    def axis(self) -> Axis:
        """Make the task layer's record of this axis."""
        return Axis(self.range, None if self.window is None else self.window.window())


def _form(value: object) -> str:
    return MAPPING if isinstance(value, (Mapping, Section)) else LIST


GridAxis = Annotated[
    Annotated[list[Any], BeforeValidator(values.axis), Tag(LIST)] | Annotated[AxisRange, Tag(MAPPING)],
    Discriminator(_form),
]
Tiers = Annotated[
    Annotated[tuple[Name, ...], Field(min_length=1), Tag(LIST)]
    | Annotated[dict[Name, Degree], Field(min_length=1), Tag(MAPPING)],
    Discriminator(_form),
]


class Manifold(Section):
    """Points of a task: all combinations of a grid, or a list.

    Parameters
    ----------
    grid
        Param -> its values: a list, one value, or {range: [...], window: {...}}.
    points
        Explicit points.
    tiers
        Tiers of the points, such as [easy, hard]; or a degree for each tier, such as {easy: 0, hard: 2}.
    degree
        How far the windows are moved up; default: the sweep's degree.
    density
        Values of each grid axis; default: the sweep's density.
    """

    grid: Given[
        Mapping[str, AxisRange | Mapping[str, Any] | Sequence[object] | float] | None,
        dict[Name, GridAxis] | None,
    ] = optional(min_length=1)
    points: Some[Params] = optional(min_length=1)
    tiers: Given[Sequence[str] | Mapping[str, int], Tiers] = optional(DEFAULT_TIERS)
    degree: Degree | None = None
    density: Density | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.grid is None) == (self.points is None):
            raise values.refusal("must have either grid or points", "Give one of the two", told=True)
        if isinstance(self.tiers, dict) and self.degree is not None:
            rule = "tiers have degrees of their own, so that degree has no use"
            remedy = "Remove degree, or write tiers as a list"
            raise values.refusal(rule, remedy, where=("degree",), told=True)
        return self

    def entries(
        self, params: Mapping[str, object], *, degree: int = 0, density: Density = "normal"
    ) -> list[Entry]:
        """Make the task layer's records of this entry: one, or one for each tier with a degree of its own.

        Parameters
        ----------
        params
            Fixed params of the task.
        degree, density
            Used where the entry has none of its own.
        """
        grid = None
        if self.grid is not None:
            grid = {
                name: axis.axis() if isinstance(axis, AxisRange) else axis for name, axis in self.grid.items()
            }
        points = None if self.points is None else [dict(point) for point in self.points]
        degree = degree if self.degree is None else self.degree
        slices = (
            [((tier,), own) for tier, own in self.tiers.items()]
            if isinstance(self.tiers, dict)
            else [(tuple(self.tiers), degree)]
        )
        return [
            Entry(grid, points, tiers, dict(params), own, self.density or density) for tiers, own in slices
        ]


class Recipe(Section):
    """Origin of a published task.

    Parameters
    ----------
    verified
        Whether its results were compared with published ones.
    rows
        Number of questions.
    licence
        Licence of the rows; if empty, the one that `evalcube data list` shows.
    revision
        Release of another tool, such as inspect_evals 0.26.0, whose pinned commit of the data set is used. If empty:
        the commit that is newest at the first fetch.
    sources
        What the recipe follows or departs from.
    """

    verified: Flag = False
    rows: Whole = Field(default=0, ge=0)
    licence: str = ""
    revision: str = ""
    sources: Many[str] = optional(())


class TaskConfig(Section):
    """Which points of a task to measure.

    Parameters
    ----------
    suite
        Suite whose task this is, such as gsm8k; other keys here override it.
    task
        Name of the task, if the key is a free label; default: the key.
    params
        Params of all points; a grid's or point's own value takes precedence. Without `manifold`: the task's only point.
    manifold
        Entries, each a grid or points.
    assertions
        Checks of each answer, such as [{type: contains, value: Paris}].
    rubric
        What a good answer is, for the judges.
    reader
        A second reader of each reply: {name: strict-match, pattern: "#### ([0-9]+)"}, or the name of a
        function, as for `grader` of a data set.
    recipe
        Origin of a suite's task.
    """

    suite: Name | None = None
    task: Name | None = None
    params: Params | None = None
    manifold: Some[Manifold] = optional(min_length=1)
    assertions: Given[Sequence[Mapping[str, Any]] | None, Assertions | None] = optional(min_length=1)
    rubric: Rubric | None = None
    reader: Given[ReaderConfig | str | None, Annotated[ReaderConfig, BeforeValidator(by_name)] | None] = (
        optional()
    )
    recipe: Recipe | None = None

    @model_validator(mode="after")
    def _some_point(self) -> Self:
        if self.manifold is None and self.params is None and self.suite is None:
            remedy = "Add it: entries, each a grid or points; or give params, for a single point"
            raise values.refusal("is missing", remedy, where=("manifold",), told=True)
        return self

    def entries(self, *, degree: int = 0, density: Density = "normal") -> list[Entry]:
        """Make the task layer's records, to be given to `evalcube.stages.generate.expand`.

        Parameters
        ----------
        degree, density
            Those of the sweep, used where entries have none of their own.
        """
        return [entry for _, entries in self.parts(degree=degree, density=density) for entry in entries]

    def parts(self, *, degree: int, density: Density) -> Iterator[tuple[int | None, list[Entry]]]:
        """The records of each entry, with its index; None where the params alone are a point.

        Parameters
        ----------
        degree, density
            As for `entries`.
        """
        params = self.params or {}
        if self.manifold is None:
            yield None, [Entry(points=[{}], tiers=DEFAULT_TIERS, fixed=dict(params))]
            return
        for index, entry in enumerate(self.manifold):
            yield index, entry.entries(params, degree=degree, density=density)
