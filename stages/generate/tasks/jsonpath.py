"""Task `jsonpath`: the value that a path leads to in a nested JSON document."""

from __future__ import annotations

import json
import re
from typing import Literal, NamedTuple

from pydantic import ValidationInfo, field_validator

from evalcube.stages.generate.answers.documents import read_json
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import ITEMS, KEYS
from evalcube.stages.generate.stream import Stream

_Json = int | str | bool | None | list["_Json"] | dict[str, "_Json"]
_SCALARS: tuple[_Json, ...] = (*range(100), *ITEMS) * 5 + (True, False, None) * 25
"""One draw gives a scalar: more than half are numbers, a third are words."""
_FILLERS = len(_SCALARS) * 3 // 2
"""Range of a draw that gives a scalar two times out of three."""
_BRANCHES = {"wildcard": 3, "filter": 2}
"""Members of a container that go on below a step that takes several; it bounds the size of the document."""

_SAY = wordings("jsonpath")


class JsonpathParams(TaskParams):
    """Params of `Jsonpath`."""

    depth: int = param(3, 1, 8, "Steps of the path; deeper nesting.")
    width: int = param(3, 1, 8, "Members of each container; more to look through.")
    wildcards: int = param(0, 0, 3, "Steps that take all members; more values to follow.")
    filters: int = param(0, 0, 2, "Steps that take members that meet a condition; each must be checked.")

    @field_validator("filters")
    @classmethod
    def _fits_into_path(cls, filters: int, info: ValidationInfo) -> int:
        depth, wildcards = info.data.get("depth", 8), info.data.get("wildcards", 0)
        if wildcards + filters > depth:
            raise ValueError(
                f"wildcards + filters must not exceed depth ({depth}), got {wildcards + filters}"
            )
        return filters


class _Step(NamedTuple):  # made many times faster than a frozen dataclass
    kind: Literal["name", "index", "wildcard", "filter"]
    name: str
    place: int
    less: bool
    limit: int


class Jsonpath(Task[JsonpathParams]):
    """The value at a path in a nested document."""

    name = "jsonpath"
    version = 2
    summary = "the value at a path in a nested JSON document"
    guess_rule = "0"
    Params = JsonpathParams

    def generate(self, params: JsonpathParams, stream: Stream) -> Trial:
        """Draw a path, build a document around it, and follow the path."""
        keys = stream.sample(KEYS, 20)
        steps = _steps(params, keys, stream)
        document = _PathBuilder(params.width, keys, steps, stream).container(0, anchor=True)
        values = _follow(document, steps)
        several = params.wildcards + params.filters > 0
        answer = json.dumps(values if several else values[0])
        rules = [
            _SAY.basis,
            *[_SAY.wildcard] * (params.wildcards > 0),
            *[_SAY.filter] * (params.filters > 0),
            *[_SAY.several] * several,
        ]
        path = "$" + "".join([_write_step(step, last=step is steps[-1]) for step in steps])
        question = stream.choice(_SAY.questions).format(path=path)
        text = json.dumps(document)
        opening, closing = stream.choice(_SAY.openings), stream.choice(_SAY.closings)
        return Trial(f"{opening}\n\n{text}\n\n{' '.join(rules)}\n\n{question} {closing}", answer)

    def parse(self, text: str) -> str | None:
        """Read a JSON scalar or array of scalars, as compact JSON; quotes may be missing or single."""
        return read_json(_LOOSE.sub(_strict, text))

    def difficulty(self, params: JsonpathParams) -> float:
        """Steps, each with the members to look through, more for several values at the same time."""
        return params.depth * (1 + 0.25 * params.width) * (1 + 0.5 * params.wildcards + 0.75 * params.filters)


# ---- the document


def _steps(p: JsonpathParams, keys: list[str], stream: Stream) -> list[_Step]:
    several = stream.sample(range(p.depth), p.wildcards + p.filters)
    wildcards, filters = several[: p.wildcards], several[p.wildcards :]
    steps: list[_Step] = []
    for i in range(p.depth):
        kind: Literal["name", "index", "wildcard", "filter"] = "name" if stream.below(5) < 3 else "index"
        if i in wildcards:
            kind = "wildcard"
        elif i in filters:
            kind = "filter"
        elif i and steps[-1].kind == "filter":
            kind = "name"  # what a filter takes are objects
        less = stream.below(2) == 1
        steps.append(_Step(kind, keys[i], stream.below(p.width), less, stream.between(25, 75)))
    return steps


class _PathBuilder:
    """Makes the containers along a path, with other values around it."""

    def __init__(self, width: int, keys: list[str], steps: list[_Step], stream: Stream) -> None:
        self._width, self._steps, self._stream = width, steps, stream
        self._start, self._keys = len(keys), keys + keys[: width + 2]  # names are taken from a ring

    def container(self, i: int, *, anchor: bool) -> _Json:
        """The value that step `i` is applied to; below an anchor, the path finds something for sure."""
        step, stream, width = self._steps[i], self._stream, self._width
        if step.kind in ("name", "index"):
            places = [step.place]
        else:
            places = stream.sample(range(width), min(width, _BRANCHES[step.kind]))
        if i + 1 == len(self._steps):
            values = self._scalars(width)
            if step.kind == "filter":
                for position in places:
                    values[position] = self._number(step, passes=anchor and position == places[0])
        else:
            # Beside the path: scalars, and small arrays and objects.
            below, size = self._stream.below, len(_SCALARS)
            draws = [below(_FILLERS) for _ in range(width)]
            values = [_SCALARS[draw] if draw < size else self._small(draw % 2 == 1) for draw in draws]
            for position in places:
                values[position] = self.container(i + 1, anchor=anchor and position == places[0])
        before = self._steps[i - 1] if i and self._steps[i - 1].kind == "filter" else None
        if step.kind == "index" or (before is None and step.kind != "name" and stream.below(2)):
            return values
        return self._object(values, step if step.kind == "name" else None, before, anchor=anchor)

    def _object(
        self, values: list[_Json], step: _Step | None, before: _Step | None, *, anchor: bool
    ) -> _Json:
        """An object of the values, with the names that this step and the filter before it look for."""
        start = self._stream.below(self._start)
        names = self._keys[start : start + len(values) + 2]
        for taken in (step, before):
            if taken and taken.name in names:
                names.remove(taken.name)
        del names[len(values) :]
        if step:
            names[step.place] = step.name
        members: list[tuple[str, _Json]] = list(zip(names, values, strict=True))
        if before:
            member = (before.name, self._number(before, passes=anchor))
            members.insert(self._stream.below(len(members) + 1), member)
        return dict(members)

    def _number(self, step: _Step, *, passes: bool) -> int:
        if not passes:
            return self._stream.below(100)
        return self._stream.below(step.limit) if step.less else self._stream.between(step.limit + 1, 99)

    def _scalars(self, count: int) -> list[_Json]:
        below, size = self._stream.below, len(_SCALARS)
        return [_SCALARS[below(size)] for _ in range(count)]

    def _small(self, array: bool) -> _Json:
        values = self._scalars(min(self._width, 3))
        return values if array else self._object(values, None, None, anchor=False)


def _write_step(step: _Step, *, last: bool) -> str:
    member = "" if last else f".{step.name}"
    return {
        "name": f".{step.name}",
        "index": f"[{step.place}]",
        "wildcard": "[*]",
        "filter": f"[?@{member} {'<' if step.less else '>'} {step.limit}]",
    }[step.kind]


def _follow(document: _Json, steps: list[_Step]) -> list[_Json]:
    """The values at the path, in order."""
    values = [document]
    for step in steps:
        values = [value for container in values for value in _take(container, step, last=step is steps[-1])]
    return values


def _take(value: _Json, step: _Step, *, last: bool) -> list[_Json]:
    if step.kind == "name":
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if step.kind == "index":
        return [value[step.place]] if isinstance(value, list) and step.place < len(value) else []
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if step.kind == "wildcard":
        return members
    return [member for member in members if _meets(member, step, last=last)]


def _meets(member: _Json, step: _Step, *, last: bool) -> bool:
    number = member if last else member.get(step.name) if isinstance(member, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        return False
    return number < step.limit if step.less else number > step.limit


# ---- answers

_LITERALS = {"True": "true", "False": "false", "None": "null"}
_LOOSE = re.compile(
    rf"(?<!\w)(?P<quote>['\"])(?P<bare>-?[0-9]+|\[[^\]\[\n]*\])(?P=quote)|(?<!\w)'(?P<inner>\w*)'(?!\w)"
    rf"|(?<![\w\"'.-])(?:(?P<word>(?i:{'|'.join(ITEMS)}))|{'|'.join(_LITERALS)})(?![\w\"'-])"
)
"""What is no JSON, but can be nothing else: missing or single quotes, such around a number, and Python's literals."""


def _strict(match: re.Match[str]) -> str:
    word = match["word"] or match["inner"]
    if match["bare"] is not None:
        return _LOOSE.sub(_strict, match["bare"])
    return _LITERALS[match[0]] if word is None else json.dumps(word.lower() if match["word"] else word)
