"""Expand the entries of a manifold, grids and explicit points, to validated points with their tiers."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from evalcube.stages.generate.base import Task, TaskParams
from evalcube.stages.generate.errors import PARAMS_ELSEWHERE, TaskError
from evalcube.stages.generate.stream import canonical_json

Density = Literal["normal", "lowdef", "corner"]
"""All values of an axis; first, middle and last; first and last."""


@dataclass(frozen=True)
class RangeWindow:
    """A stretch of a range that slides up with the degree."""

    body: int
    """Values in the window, at least 1."""
    skip: int = 0
    """Values before it at degree 0."""
    step: int = 1
    """Further values before it per degree."""

    def first(self, degree: int) -> int:
        """Index of the window's first value."""
        return self.skip + self.step * degree

    def largest_degree(self, length: int) -> int | None:
        """The largest degree at which the window fits into `length` values; None if it never does or always.

        Examples
        --------
        >>> RangeWindow(body=4).largest_degree(6)
        2
        """
        room = length - self.body - self.skip
        return room // self.step if room >= 0 and self.step else None


@dataclass(frozen=True)
class Axis:
    """Values of a param in rising difficulty, of which a window may be used."""

    values: Sequence[object]
    window: RangeWindow | None = None

    def chosen(self, degree: int, density: Density) -> list[int]:
        """Indices of the values that are measured, ascending.

        Examples
        --------
        >>> Axis([8, 16, 24, 32, 40, 48], RangeWindow(body=4)).chosen(1, "lowdef")
        [1, 2, 4]
        """
        if self.window is None:
            return thin(range(len(self.values)), density)
        first = self.window.first(degree)
        end = first + self.window.body
        if end > len(self.values):
            raise IndexError(self._past_the_end(self.window, degree))
        return thin(range(first, end), density)

    def _past_the_end(self, window: RangeWindow, degree: int) -> str:
        length = len(self.values)
        largest = window.largest_degree(length)
        text = (
            f"a window of {window.body} after the first {window.first(degree)} values (degree {degree}) "
            f"reaches past the end of a range of {length}"
        )
        remedy = "make body or skip smaller" if largest is None else f"the largest degree is {largest}"
        return f"{text}; {remedy}, or give the range more values"


def thin(indices: Sequence[int], density: Density) -> list[int]:
    """Resample an axis; one that has no more values than the density keeps stays whole.

    The middle of an even number of values is the lower one, which is the cheaper one.

    Examples
    --------
    >>> thin(range(6), "normal"), thin(range(6), "lowdef"), thin(range(6), "corner")
    ([0, 1, 2, 3, 4, 5], [0, 2, 5], [0, 5])
    """
    if density == "lowdef" and len(indices) > 3:
        return [indices[0], indices[(len(indices) - 1) // 2], indices[-1]]
    return [indices[0], indices[-1]] if density == "corner" and len(indices) > 2 else list(indices)


MAX_POINTS = 100_000
"""Points that one entry may expand to; a larger grid is taken for a mistake."""


@dataclass(frozen=True)
class Entry:
    """One entry of a task's manifold: a grid or a list of points, in the tiers it names."""

    grid: Mapping[str, object] | None = None
    """Values of each param, a list, an `Axis` or one scalar; the entry is their Cartesian product."""
    points: Sequence[Mapping[str, object]] | None = None
    """Params of each point."""
    tiers: tuple[str, ...] = ()
    """Tiers that the entry's points belong to."""
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Params of every point, unless the grid or the point has a value of its own."""
    degree: int = 0
    """How far the windows of the grid's axes have slid up."""
    density: Density = "normal"
    """How many values of each axis of the grid are used."""

    def size(self) -> int:
        """Number of points, equal ones counted each; a grid whose window does not fit has none."""
        if self.grid is None:
            return len(self.points or ())
        return 0 if _window_flaws(self) else math.prod(len(axis) for axis in _axes(self))


@dataclass(frozen=True)
class Point:
    """One point of a task's parameter space."""

    params: TaskParams
    """Validated params, defaults filled in."""
    tiers: tuple[str, ...]
    """Tiers in the order of their first mention."""


Where = tuple[str | int, ...]
Placed = tuple[str, object, Where]
"""A param, its value, and where in the entry that stands."""


def expand(task: Task, entries: Sequence[Entry]) -> list[Point]:
    """The points of a manifold, each once, in the order of first mention.

    A grid varies its last field fastest. Points of equal identity are one point with the tiers of all their
    entries.
    """
    points, problems = _expand(task, entries)
    if problems:
        raise problems[0]
    return points


def find_problems(task: Task, entries: Sequence[Entry]) -> list[TaskError]:
    """All that is wrong with a manifold, in order: unknown params, values out of range, empty grids."""
    return _expand(task, entries)[1]


def _expand(task: Task, entries: Sequence[Entry]) -> tuple[list[Point], list[TaskError]]:
    params: dict[str, TaskParams] = {}
    tiers: dict[str, dict[str, None]] = {}
    problems: dict[tuple[int, Where], TaskError] = {}
    if not entries:
        return [], [TaskError(f"task '{task.name}' has no manifold entry; give at least one grid or point")]
    for index, entry in enumerate(entries):
        flaws = _shape_flaws(task, entry)
        if not flaws:
            for values, sources in _candidates(entry):
                point = _validate(task, values, sources, flaws)
                if point is not None:
                    key = canonical_json(point.identity())
                    params.setdefault(key, point)
                    tiers.setdefault(key, {}).update(dict.fromkeys(entry.tiers))
        for flaw in flaws:
            flaw.entry = index
            problems.setdefault((index, flaw.where), flaw)
    return [Point(params[key], tuple(tiers[key])) for key in params], list(problems.values())


def _shape_flaws(task: Task, entry: Entry) -> list[TaskError]:
    """What is wrong with an entry before any value is validated."""
    if (entry.grid is None) == (entry.points is None):
        return [TaskError("an entry has either a grid or points; give exactly one of them")]
    if entry.points is not None and not entry.points:
        return [TaskError("empty list of points; give at least one", where=("points",))]
    return _name_flaws(task, entry) + _axis_flaws(entry)


def _name_flaws(task: Task, entry: Entry) -> list[TaskError]:
    named = [*_locate(entry.fixed, "params"), *_locate(entry.grid or {}, "grid")]
    named += [placed for i, point in enumerate(entry.points or ()) for placed in _locate(point, "points", i)]
    return [_unknown(task, *placed) for placed in named if placed[0] not in task.Params.model_fields]


def _locate(values: Mapping[str, object], *where: str | int) -> list[Placed]:
    return [(name, value, (*where, name)) for name, value in values.items()]


def _axis_flaws(entry: Entry) -> list[TaskError]:
    flaws = [
        TaskError(f"{name} has no values; give at least one", field=name, value=value, where=("grid", name))
        for name, value in (entry.grid or {}).items()
        if not _axis(value).values
    ] or _window_flaws(entry)
    size = 0 if flaws else entry.size()
    if entry.grid is not None and size > MAX_POINTS:
        flaws.append(
            TaskError(f"the grid has {size} points; at most {MAX_POINTS} are allowed", where=("grid",))
        )
    return flaws


def _window_flaws(entry: Entry) -> list[TaskError]:
    flaws = []
    for name, value in (entry.grid or {}).items():
        try:
            _axis(value).chosen(entry.degree, entry.density)
        except IndexError as error:
            message, where = f"{name}: {error}", ("grid", name, "window")
            flaws.append(TaskError(message, field=name, value=entry.degree, where=where))
    return flaws


def _axis(value: object) -> Axis:
    if isinstance(value, Axis):
        return value
    return Axis(value) if isinstance(value, (list, tuple)) else Axis((value,))


def _axes(entry: Entry) -> list[list[Placed]]:
    """The values of each axis of the entry's grid that are measured."""
    axes: list[list[Placed]] = []
    for name, value in (entry.grid or {}).items():
        axis = _axis(value)
        scalar = not isinstance(value, (Axis, list, tuple))
        axes.append(
            [
                (name, axis.values[i], ("grid", name) if scalar else ("grid", name, i))
                for i in axis.chosen(entry.degree, entry.density)
            ]
        )
    return axes


def _candidates(entry: Entry) -> Iterator[tuple[dict[str, object], dict[str, Where]]]:
    """Each point's raw values, and where in the entry each of them stands."""
    points = (_locate(point, "points", i) for i, point in enumerate(entry.points or ()))
    for own in points if entry.grid is None else itertools.product(*_axes(entry)):
        placed = {name: (value, where) for name, value, where in own}
        # after the point's own values: a rule between params is reported where the point is
        fixed = _locate(entry.fixed, "params")
        placed |= {name: (value, where) for name, value, where in fixed if name not in placed}
        yield (
            {name: value for name, (value, _) in placed.items()},
            {name: where for name, (_, where) in placed.items()},
        )


def _validate(
    task: Task, values: dict[str, object], sources: dict[str, Where], flaws: list[TaskError]
) -> TaskParams | None:
    """The point's params; None, with its problems added to `flaws`, when they are not valid."""
    try:
        return task.resolve(task.Params.model_validate(values))
    except TaskError as error:
        problems = [error]
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            field = str(detail["loc"][0]) if detail["loc"] else ""
            value = values.get(field, detail["input"])
            message = _message(task, field, value, detail["msg"].removeprefix("Value error, "))
            problems.append(TaskError(message, field=field or None, value=value))
    # Where the point is, if its problem is no given value: a default, or several values together.
    anywhere = next(iter(sources.values()), ())[:1]
    for problem in problems:
        where = sources.get(problem.field or "") or anywhere
        flaws.append(TaskError(problem.message, field=problem.field, value=problem.value, where=where))
    return None


def _message(task: Task, field: str, value: object, rule: str) -> str:
    info = task.Params.model_fields.get(field)
    if info is None:
        return f"{rule}, got {value!r}"
    if rule == "Field required":
        return f"{field} is missing; {info.description or 'give it a value'}"
    if rule.startswith("must "):  # a rule between params, in the params model's own words
        return f"{field} {rule}, got {value!r}"
    return f"{field} must be {_describe_range(info)}, got {value!r}"


def _describe_range(info: FieldInfo) -> str:
    """A field's type and range in words."""
    if get_origin(info.annotation) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(info.annotation))
    kinds = [part for part in get_args(info.annotation) if part is not NoneType]
    annotation = kinds[0] if len(kinds) == 1 else info.annotation
    kind = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    words = kind.get(annotation, "valid") if isinstance(annotation, type) else "valid"
    bounds = {
        name: getattr(rule, name) for rule in info.metadata for name in ("ge", "le") if hasattr(rule, name)
    }
    if len(bounds) == 2:
        return f"{words} from {bounds['ge']} to {bounds['le']}"
    if "ge" in bounds:
        return f"{words} of at least {bounds['ge']}"
    return f"{words} of at most {bounds['le']}" if bounds else words


def _unknown(task: Task, field: str, value: object, where: Where) -> TaskError:
    names = list(task.Params.model_fields)
    near = [PARAMS_ELSEWHERE.get(str(field), "")]
    near = near if near[0] in names else difflib.get_close_matches(str(field), names, n=1)
    remedy = f"Did you mean '{near[0]}'?" if near else f"Params of {task.name}: {', '.join(names)}."
    return TaskError(f"unknown field '{field}'. {remedy}", field=str(field), value=value, where=where)
