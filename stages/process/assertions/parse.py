"""Read assertions as YAML or JSON declares them; the first mistake is an error that says what to repair."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import regex

from evalcube.stages.process.assertions import patterns
from evalcube.stages.process.assertions.hooks import CHECKS, SCORERS, Hooks
from evalcube.stages.process.assertions.model import (
    BEHAVIOR_TYPES,
    FACT_TYPES,
    SCORED,
    SET,
    Assertion,
    DeclarationError,
    layer_of,
)

DEPTH_LIMIT = 20
"""Sets inside one another."""
DISTANCE_LIMIT = 20_000
"""Longest reference and largest distance of `levenshtein_max`, whose time is their product."""

_TYPES = (*FACT_TYPES, *BEHAVIOR_TYPES, SET)
_COMMON = ("type", "weight", "not")
_NUMBER_ENDS = ("_min", "_max", "min_length", "max_length")
_TEXTS = ("contains_all", "contains_any", "tools_called", "tools_not_called")
_MAY_BE_EMPTY = ("equals", "not_equals")
_WHOLE = ("length", "count", "turns")
_HUGE = 10**300


def parse_assertions(declarations: object, *, hooks: Hooks | None = None) -> tuple[Assertion, ...]:
    """The assertions that a list declares."""
    return _assertions(declarations, "assertions", hooks or Hooks(), 0)


def _assertions(rows: object, where: str, hooks: Hooks, depth: int) -> tuple[Assertion, ...]:
    if isinstance(rows, (str, Mapping)) or not isinstance(rows, Sequence):
        rule = f"must be a list of assertions, not {_show(rows)}"
        raise DeclarationError(where, "", rows, rule, "write each behind a dash")
    return tuple(_assertion(row, f"{where}[{index}]", hooks, depth) for index, row in enumerate(rows))


def _assertion(row: object, where: str, hooks: Hooks, depth: int) -> Assertion:
    if not isinstance(row, Mapping):
        rule = f"must be a mapping, not {_show(row)}"
        raise DeclarationError(where, "", row, rule, "write e.g. {type: contains, value: Paris}")
    kind = row.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise DeclarationError(where, "type", kind, f"unknown type {_show(kind)}", _nearest(kind, _TYPES))
    fields, read = _FAMILIES[_family(kind)]
    for name in row:
        if name not in _COMMON + fields:
            rule = f"{kind} has no field {_show(name)}"
            raise DeclarationError(where, str(name), row[name], rule, _nearest(name, (*fields, *_COMMON)))
    declared = _Row(where, kind, row, hooks, depth)
    weight, negated = declared.number("weight", 1.0, above=0.0), declared.truth("not")
    own = {"type": kind, "layer": layer_of(kind), **read(declared)}
    return Assertion(**own, weight=weight, negated=negated)


@dataclass(frozen=True)
class _Row:
    """One declaration, read field by field."""

    where: str
    kind: str
    row: Mapping[Any, Any]
    hooks: Hooks
    depth: int

    def error(self, field: str, rule: str, remedy: str) -> DeclarationError:
        return DeclarationError(self.where, field, self.row.get(field), rule, remedy)

    def text(self, field: str, default: str | None = None, *, empty: bool = True) -> str:
        """A text; a whole number stands for its digits."""
        value = self.row.get(field, default)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _HUGE:
            value = str(value)
        if not isinstance(value, str):
            rule = f"{self.kind} needs a text, not {_show(value)}"
            raise self.error(field, rule, f'write it in quotes, e.g. {field}: "yes"')
        if not value and not empty:
            raise self.error(field, "an empty text is in every output", "say what to look for")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.row.get(field)
        if not isinstance(value, list) or not value:
            rule = f"{self.kind} needs a list of texts, not {_show(value)}"
            raise self.error(field, rule, f"write e.g. {field}: [yes, no], with quotes where YAML needs them")
        items = {f"{field}[{index}]": item for index, item in enumerate(value)}
        return tuple(replace(self, row=items).text(name, empty=False) for name in items)

    def number(
        self,
        field: str,
        default: float | None = None,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        above: float | None = None,
        whole: bool = False,
    ) -> float:
        value = self.row.get(field, default)
        valid = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _HUGE
        if valid and low <= value <= high and (above is None or value > above) and not (whole and value % 1):
            return float(value)
        bounds = f" above {above:g}" if above is not None else ""
        bounds += f" of at least {low:g}" if math.isfinite(low) else ""
        bounds += f" and at most {high:.0f}" if math.isfinite(high) else ""
        rule = f"{self.kind} needs a {'whole ' if whole else ''}number{bounds}, not {_show(value)}"
        raise self.error(field, rule, f"write e.g. {field}: 1")

    def truth(self, field: str) -> bool:
        value = self.row.get(field, False)
        if not isinstance(value, bool):
            raise self.error(field, f"must be true or false, not {_show(value)}", f"write {field}: true")
        return value

    def choice(self, field: str, options: tuple[str, ...]) -> str:
        value = self.row.get(field, options[0])
        if value not in options:
            rule = f"must be {' or '.join(options)}, not {_show(value)}"
            raise self.error(field, rule, f"write {field}: {options[0]}")
        return str(value)


def _family(kind: str) -> str:
    if kind in _FAMILIES:
        return kind
    if kind in SCORED:
        return "scored"
    if kind in _TEXTS:
        return "texts"
    return "number" if kind.endswith(_NUMBER_ENDS) else "text"


def _text_value(declared: _Row) -> dict[str, Any]:
    text = declared.text("value", empty=declared.kind in _MAY_BE_EMPTY)
    if declared.kind.startswith("tool_") and text.find(":") <= 0:
        rule = f"{declared.kind} needs a tool and a text, not {_show(text)}"
        raise declared.error("value", rule, 'write e.g. value: "bash:--force"')
    return {"text": text}


def _number_value(declared: _Row) -> dict[str, Any]:
    whole = any(word in declared.kind for word in _WHOLE)
    return {"limit": declared.number("value", low=0.0, whole=whole)}


def _pattern_value(declared: _Row) -> dict[str, Any]:
    pattern, flags = declared.text("pattern", empty=False), declared.text("flags", "i")
    wrong = [letter for letter in flags if letter not in patterns.FLAGS]
    if wrong:
        raise declared.error("flags", f"unknown flag {_show(wrong[0])}", f"use letters of {patterns.FLAGS}")
    try:
        patterns.compile_pattern(pattern, flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise declared.error("pattern", f"{_show(pattern)} is no pattern ({error})", "repair it") from error
    return {"pattern": pattern, "flags": flags}


def _schema_value(declared: _Row) -> dict[str, Any]:
    from evalcube.stages.process.assertions import schemas  # `jsonschema` takes a while

    schema = declared.row.get("schema")
    if not isinstance(schema, Mapping):
        raise declared.error(
            "schema", f"must be a JSON schema, not {_show(schema)}", "write e.g. schema: {type: object}"
        )
    try:
        schemas.check_schema(schema)
    except schemas.SchemaError as error:
        rule, _, remedy = str(error).rpartition("; ")
        raise declared.error("schema", rule, remedy) from error
    return {"schema": schema}


def _similarity_value(declared: _Row) -> dict[str, Any]:
    """Of ROUGE and BLEU; the reference may stand in ``value``."""
    field = "reference" if "reference" in declared.row else "value"
    longest = 1 if declared.kind == "rouge_n_min" else 4
    return {
        "reference": declared.text(field if field in declared.row else "reference"),
        "n": int(declared.number("n", longest, low=1, high=10, whole=True)),
        "threshold": declared.number("threshold", 0.5, low=0.0, high=1.0),
    }


def _mock_value(declared: _Row) -> dict[str, Any]:
    threshold = declared.number("threshold", 1.0, low=0.0, whole=True)
    return {"text": declared.text("value", empty=False), "threshold": threshold}


def _levenshtein_value(declared: _Row) -> dict[str, Any]:
    reference = declared.text("reference")
    if len(reference) > DISTANCE_LIMIT:
        rule = f"the reference has {len(reference)} characters, more than {DISTANCE_LIMIT}"
        raise declared.error("reference", rule, "use rouge_n_min, which takes linear time")
    limit = declared.number("value", low=0.0, high=DISTANCE_LIMIT, whole=True)
    return {"reference": reference, "limit": limit}


def _scored_value(declared: _Row) -> dict[str, Any]:
    _hook(declared, "type", declared.kind, declared.hooks.scorers, SCORERS)
    reference = declared.text("reference", "" if declared.kind == "answer_relevancy" else None)
    return {"reference": reference, "threshold": declared.number("threshold")}


def _custom_value(declared: _Row) -> dict[str, Any]:
    return {"fn": _hook(declared, "fn", declared.text("fn"), declared.hooks.checks, CHECKS)}


def _hook(declared: _Row, field: str, name: str, hooks: Mapping[str, Any], group: str) -> str:
    if name in hooks:
        hooks[name]  # loaded here, where what is wrong with it can still be said
        return name
    kind = "check" if group == CHECKS else "scorer"
    raise declared.error(
        field,
        f"no {kind} named '{name}' ({', '.join(sorted(hooks)) or 'none'} known)",
        f"pass it in hooks={kind}s or install a package with an entry point '{name}' in group {group}",
    )


def _set_value(declared: _Row) -> dict[str, Any]:
    mode = declared.choice("mode", ("all", "any"))
    if declared.depth >= DEPTH_LIMIT:
        raise declared.error("children", f"sets are nested deeper than {DEPTH_LIMIT}", "flatten them")
    where = f"{declared.where}.children"
    children = _assertions(declared.row.get("children"), where, declared.hooks, declared.depth + 1)
    if not children:
        raise declared.error("children", "a set needs at least one assertion", "add one or drop the set")
    layers = {child.layer for child in children}
    return {"mode": mode, "children": children, "layer": layers.pop() if len(layers) == 1 else None}


_FAMILIES: dict[str, tuple[tuple[str, ...], Callable[[_Row], dict[str, Any]]]] = {
    "text": (("value",), _text_value),
    "number": (("value",), _number_value),
    "texts": (("values",), lambda declared: {"values": declared.texts("values")}),
    "regex": (("pattern", "flags"), _pattern_value),
    "json_valid": ((), lambda _: {}),
    "json_schema": (("schema",), _schema_value),
    "mock_hit": (("value", "threshold"), _mock_value),
    "rouge_n_min": (("reference", "value", "n", "threshold"), _similarity_value),
    "bleu_min": (("reference", "value", "n", "threshold"), _similarity_value),
    "levenshtein_max": (("reference", "value"), _levenshtein_value),
    "scored": (("reference", "threshold"), _scored_value),
    "custom": (("fn",), _custom_value),
    SET: (("mode", "children"), _set_value),
}
"""Own fields of types and of families of them, and what makes an assertion's fields of these."""


def _nearest(name: object, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(name), names, 1)
    return f"did you mean '{close[0]}'?" if close else f"use one of {', '.join(names) or 'none'}"


def _show(value: object) -> str:
    """A value as an error shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, (Mapping, list, tuple, set)):
        return f"a {type(value).__name__}"
    if isinstance(value, int) and abs(value) >= _HUGE:
        return "a huge number"
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
