"""Manifold entries (grids over params, explicit points) in, validated points with their tiers out."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from stages.generate.base import Task, TaskParams
from stages.generate.errors import TaskError
from stages.generate.stream import canonical_json

MAX_POINTS = 100_000
"""Points that one entry may expand to; a larger grid is taken for a mistake."""


@dataclass(frozen=True)
class Entry:
    """One entry of a task's manifold: a grid or a list of points, in the tiers it names."""

    grid: Mapping[str, object] | None = None
    """Values of each param, a list or one scalar; the entry is their Cartesian product."""
    points: Sequence[Mapping[str, object]] | None = None
    """Params of each point."""
    tiers: tuple[str, ...] = ()
    """Tiers that the entry's points belong to."""


@dataclass(frozen=True)
class Point:
    """One point of a task's parameter space."""

    params: TaskParams
    """Validated params, defaults filled in."""
    tiers: tuple[str, ...]
    """Tiers in the order of their first mention."""


Where = tuple[str | int, ...]


def expand(task: Task, entries: Sequence[Entry]) -> list[Point]:
    """The points of a manifold, each once, in the order of first mention.

    A grid varies its last field fastest. Points with equal canonical params are one point with the tiers of
    all their entries.

    Raises
    ------
    TaskError
        The first problem that `find_problems` reports.
    """
    points, problems = _expand(task, entries)
    if problems:
        raise problems[0]
    return points


def find_problems(task: Task, entries: Sequence[Entry]) -> list[TaskError]:
    """All that is wrong with a manifold: unknown params, values out of range, empty grids; in order."""
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
                point = _validated(task, values, sources, flaws)
                if point is not None:
                    key = canonical_json(point.canonical())
                    params.setdefault(key, point)
                    tiers.setdefault(key, {}).update(dict.fromkeys(entry.tiers))
        for flaw in flaws:
            flaw.entry = index
            problems.setdefault((index, flaw.where), flaw)
    return [Point(params[key], tuple(tiers[key])) for key in params], list(problems.values())


def _shape_flaws(task: Task, entry: Entry) -> list[TaskError]:
    """What is wrong with an entry before any value is looked at."""
    if (entry.grid is None) == (entry.points is None):
        return [TaskError("an entry has either a grid or points; give exactly one of them")]
    if entry.grid is not None:
        return _grid_flaws(task, entry.grid)
    if not entry.points:
        return [TaskError("empty list of points; give at least one", where=("points",))]
    return [
        _unknown(task, field, value, ("points", i, field))
        for i, point in enumerate(entry.points)
        for field, value in point.items()
        if field not in task.Params.model_fields
    ]


def _grid_flaws(task: Task, grid: Mapping[str, object]) -> list[TaskError]:
    flaws = [
        _unknown(task, field, value, ("grid", field))
        for field, value in grid.items()
        if field not in task.Params.model_fields
    ]
    flaws += [
        TaskError(
            f"{field} has no values; give at least one", field=field, value=value, where=("grid", field)
        )
        for field, value in grid.items()
        if isinstance(value, (list, tuple)) and not value
    ]
    size = math.prod(len(_values(value)) for value in grid.values())
    if size > MAX_POINTS:
        flaws.append(
            TaskError(f"the grid has {size} points; at most {MAX_POINTS} are allowed", where=("grid",))
        )
    return flaws


def _values(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _candidates(entry: Entry) -> Iterator[tuple[dict[str, object], dict[str, Where]]]:
    """Each point's raw values, and where in the entry each of them stands."""
    for i, point in enumerate(entry.points or ()):
        yield dict(point), {field: ("points", i, field) for field in point}
    if entry.grid is None:
        return
    axes: list[list[tuple[str, object, Where]]] = [
        [(field, item, ("grid", field, i)) for i, item in enumerate(value)]
        if isinstance(value, (list, tuple))
        else [(field, value, ("grid", field))]
        for field, value in entry.grid.items()
    ]
    for combination in itertools.product(*axes):
        yield (
            {field: item for field, item, _ in combination},
            {field: where for field, _, where in combination},
        )


def _validated(
    task: Task, values: dict[str, object], sources: dict[str, Where], flaws: list[TaskError]
) -> TaskParams | None:
    """The point's params; None, with its problems added to `flaws`, when they are not valid."""
    try:
        return task.Params.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            field = str(detail["loc"][0]) if detail["loc"] else None
            value = values.get(field, detail["input"]) if field else detail["input"]
            where = sources.get(field, ()) if field else ()
            if not where and sources:
                where = next(iter(sources.values()))[:1]
            rule = detail["msg"].removeprefix("Value error, ")
            flaws.append(TaskError(_message(task, field, value, rule), field=field, value=value, where=where))
        return None


def _message(task: Task, field: str | None, value: object, rule: str) -> str:
    info = task.Params.model_fields.get(field) if field else None
    if info is None or field is None:
        return f"{rule}, got {value!r}"
    if rule.startswith("must "):  # a rule between params, in the params model's own words
        return f"{field} {rule}, got {value!r}"
    return f"{field} must be {_allowed(info)}, got {value!r}"


def _allowed(info: FieldInfo) -> str:
    """A field's type and range in words."""
    if get_origin(info.annotation) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(info.annotation))
    kind = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    words = kind.get(info.annotation, "valid") if isinstance(info.annotation, type) else "valid"
    bounds = {
        name: getattr(rule, name) for rule in info.metadata for name in ("ge", "le") if hasattr(rule, name)
    }
    if len(bounds) == 2:
        return f"{words} from {bounds['ge']} to {bounds['le']}"
    if "ge" in bounds:
        return f"{words} of at least {bounds['ge']}"
    return f"{words} of at most {bounds['le']}" if bounds else words


def _unknown(task: Task, field: str, value: object, where: Where) -> TaskError:
    known = list(task.Params.model_fields)
    near = difflib.get_close_matches(str(field), known, n=1)
    remedy = f"Did you mean '{near[0]}'?" if near else f"Params of {task.name}: {', '.join(known)}."
    return TaskError(f"unknown field '{field}'. {remedy}", field=str(field), value=value, where=where)
