"""Reads calls of tools in a text, in JSON, and tells whether their arguments keep a schema; nothing makes it raise."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from evalcube.stages.generate.answers.numbers import with_whole_numbers
from evalcube.stages.generate.answers.passages import Rank, passages

MOST_TEXT = 50_000
"""Characters of a text that are read, the last ones."""
_STARTS = 200
"""Places where calls may begin that are tried, the last ones."""
_DEEPEST = 50
"""Levels of arrays and objects in arguments."""

_START = re.compile(r'[\[{](?=\s*[\[{"])')
_BETWEEN = re.compile(r"(?:[\s,;]|</?tool_calls?>|```(?:json)?)*")
"""What may stand between the calls of one answer."""
_DRESS = re.compile(r"[\s*_`]*(?:```)?(?:json)?\s*")
"""What may stand between the mark of an answer and its calls."""


def canonical_calls(calls: Iterable[Mapping[str, Any]]) -> str:
    """Calls as one JSON array that is equal for equal calls in any order; numbers are equal by their value.

    Examples
    --------
    >>> canonical_calls([{"name": "b", "arguments": {"x": 1.0, "on": True}}, {"name": "a", "arguments": {}}])
    '[{"arguments": {"on": true, "x": 1}, "name": "b"}, {"arguments": {}, "name": "a"}]'
    """
    return f"[{', '.join(sorted(json.dumps(with_whole_numbers(call), sort_keys=True) for call in calls))}]"


def read_calls(text: str) -> str | None:
    r"""The calls on a text's answer line, else the last ones, as `canonical_calls` has them; None if there are none.

    A call is an object with a ``name`` and ``arguments``, which may be JSON in a text; several stand in an array, or
    one after another. Arguments that cannot be read are kept as they are: they keep no schema.

    Examples
    --------
    >>> read_calls('I call {"name": "f", "arguments": "{}"}\n{"name": "g", "arguments": {"x": [2]}}')
    '[{"arguments": {"x": [2]}, "name": "g"}, {"arguments": {}, "name": "f"}]'
    >>> read_calls("f(x=[2])") is None
    True
    """
    text = text[-MOST_TEXT:]
    groups = list(_groups(text))
    if not groups:
        return None
    # calls that were made, and not only said, stand in a last line of their own
    begins = [] if "\nTool calls: [{" in text else [p.start for p in passages(text) if p.rank is Rank.ASKED]
    on_line = (g for g in groups if begins and g[0] >= begins[0] and _DRESS.fullmatch(text, begins[0], g[0]))
    return canonical_calls(next(on_line, groups[-1])[1])


def _groups(text: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Where calls begin that follow one another, and these."""
    begin, end = -1, -1
    group: list[dict[str, Any]] = []
    for start in [match.start() for match in _START.finditer(text)][-_STARTS:]:
        if start < end:
            continue
        try:
            value, after = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        calls = [_call(entry) for entry in (value if isinstance(value, list) else [value])]
        if not calls or None in calls:
            continue
        if end < 0 or _BETWEEN.fullmatch(text, end, start) is None:
            if group:
                yield begin, group
            begin, group = start, []
        group = [*group, *(call for call in calls if call is not None)]
        end = after
    if group:
        yield begin, group


_TYPES: Mapping[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}


def keeps_schema(value: object, schema: Mapping[str, Any]) -> bool:
    """Whether a JSON value is of a schema with types, enumerations, items, required and no further properties."""
    kind = schema["type"]
    if isinstance(value, bool) or kind == "boolean":
        return kind == "boolean" and isinstance(value, bool)
    if kind == "object":
        fields = schema["properties"]
        return (
            isinstance(value, dict)
            and set(schema["required"]) <= value.keys() <= fields.keys()
            and all(keeps_schema(each, fields[name]) for name, each in value.items())
        )
    if kind == "array":
        return isinstance(value, list) and all(keeps_schema(each, schema["items"]) for each in value)
    return isinstance(value, _TYPES[kind]) and value in schema.get("enum", [value])


def unequal_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose members have names of their own: which of two would count differs by reader."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {twice[:100]!r} stands twice in an object; rename one or take it out")
    return members


def _finite(number: str) -> float:
    """A number, which "NaN" and 1e999 are none of."""
    parsed = float(number)
    if not math.isfinite(parsed):
        raise ValueError(number)
    return parsed


_DECODER = json.JSONDecoder(object_pairs_hook=unequal_members, parse_constant=_finite, parse_float=_finite)


def _call(value: object) -> dict[str, Any] | None:
    """A call as name and arguments; None for what is none, such as the description of a tool."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "description" in value:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            read = _DECODER.decode(arguments)
            arguments = read if _is_shallow(read) else arguments
    return {"name": value["name"], "arguments": arguments} if _is_shallow(arguments) else None


def _is_shallow(value: object, levels: int = _DEEPEST) -> bool:
    """Whether a value is no deeper than any stack has room for, so that it is read alike wherever it is read."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)
