"""Validate a model's document against a user's JSON schema within a bounded time.

`jsonschema` has no time limit of its own, and three ways to take for ever: schemas that refer to themselves, patterns
that backtrack, and ``uniqueItems`` of mixed lists. So every keyword checks one deadline, every pattern is searched
for with the time that is left, and a few keywords are written anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import regex
from jsonschema import FormatChecker, exceptions, validators
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from evalcube.stages.process.assertions import patterns
from evalcube.stages.process.assertions.model import UnmeasuredError

SECONDS = 2.0
"""CPU time of this thread that one validation may take, so that neither other threads nor a loaded machine count."""

_Rule = Callable[[Validator, Any, Any, Any], Iterable[exceptions.ValidationError] | None]
_Errors = Iterator[exceptions.ValidationError]
_DIALECTS: dict[str, type[Validator]] = {
    dialect.ID_OF(dialect.META_SCHEMA).rstrip("#"): dialect
    for dialect in (
        validators.Draft4Validator,
        validators.Draft6Validator,
        validators.Draft7Validator,
        validators.Draft201909Validator,
        validators.Draft202012Validator,
    )
}
_NEWEST: type[Validator] = validators.Draft202012Validator
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_VALUES = ("const", "enum", "default", "examples")
# A context variable and not an argument: keywords are called by `jsonschema`, which hands nothing through.
_DEADLINE: ContextVar[float] = ContextVar("deadline of the validation under way, in thread CPU seconds")


class SchemaError(ValueError):
    """The schema cannot be used; the text says why and what to do."""


def check_schema(schema: Mapping[str, object]) -> None:
    """Refuse a schema that is none, or that cannot be applied to hostile documents."""
    uri, broken = schema.get("$schema"), ""
    if uri is not None and str(uri).rstrip("#") not in _DIALECTS:
        raise SchemaError(f"unknown dialect {uri!r}; leave $schema out or use one of {', '.join(_DIALECTS)}")
    try:
        _dialect(schema).check_schema(schema, format_checker=FormatChecker(formats=()))
    except exceptions.SchemaError as error:
        broken = f"not a JSON schema: {error.message[:300]} at {error.json_path}; repair it"
    if broken:
        # Raised out here, as Dask sends an error with its causes and its context, `from None` or not, and the
        # library's own holds functions that cannot be pickled.
        raise SchemaError(broken)
    keywords: set[str] = set()
    for node in _nodes(schema):
        keywords.update(node)
        _check_node(node)
    if {"unevaluatedProperties", "patternProperties"} <= keywords:
        raise SchemaError(
            "unevaluatedProperties and patternProperties in one schema cannot be bounded in time; "
            "use additionalProperties"
        )


def conforms(document: object, schema: Mapping[str, object]) -> bool:
    """Whether `document` follows `schema`, one that `check_schema` accepts."""
    # An empty registry: the default one fetches what a `$ref` names from the network.
    validator = _BOUNDED[_dialect(schema)](schema, registry=Registry())
    token = _DEADLINE.set(time.thread_time() + SECONDS)
    try:
        return bool(validator.is_valid(document))
    except RecursionError:
        raise UnmeasuredError("the schema recurses too deep on this output") from None
    except Unresolvable:
        raise UnmeasuredError("the schema refers to a part that it does not have") from None
    except ArithmeticError:
        raise UnmeasuredError("a number of this output cannot be computed with") from None
    finally:
        _DEADLINE.reset(token)


def _dialect(schema: Mapping[str, object]) -> type[Validator]:
    return _DIALECTS.get(str(schema.get("$schema")).rstrip("#"), _NEWEST)


def _nodes(node: object) -> Iterator[Mapping[str, Any]]:
    """Every object of a schema, but those that are plain values."""
    if isinstance(node, Mapping):
        yield node
        for name, child in node.items():
            if name not in _VALUES:
                yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


def _check_node(node: Mapping[str, Any]) -> None:
    for name in _REFERENCES:
        target = node.get(name)
        # A schema that is elsewhere may be another tomorrow, and a worker has no business to fetch it.
        if isinstance(target, str) and not target.startswith("#"):
            raise SchemaError(f"{name} {target!r} leads out of the schema; copy that part into $defs")
    expressions = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
    if isinstance(node.get("patternProperties"), Mapping):
        expressions += node["patternProperties"]
    for expression in expressions:
        try:
            patterns.compile_ecmascript(expression)
        except regex.error as error:
            raise SchemaError(f"pattern {expression!r} is none ({error}); repair it") from error


def _with_deadline(rule: _Rule) -> _Rule:
    """A keyword's rule that first looks at the deadline; in each, as any may be the one that recursion runs through."""

    def check(validator: Validator, value: object, instance: object, schema: object) -> _Errors:
        _remaining()
        yield from rule(validator, value, instance, schema) or ()

    return check


def _remaining() -> float:
    """Seconds of CPU time that the validation under way has left; raises `UnmeasuredError` if there are none."""
    left = _DEADLINE.get() - time.thread_time()
    if left <= 0:
        raise UnmeasuredError(f"the schema took more than {SECONDS:.2g} s on this output")
    return left


def _occurs(expression: str, text: str) -> bool:
    return patterns.search_ecmascript(expression, text, seconds=_remaining())


def _pattern(_validator: Validator, expression: str, instance: object, _schema: object) -> _Errors:
    if isinstance(instance, str) and not _occurs(expression, instance):
        yield exceptions.ValidationError("does not match the pattern")


def _pattern_properties(
    validator: Validator, parts: Mapping[str, object], instance: object, _schema: object
) -> _Errors:
    if not isinstance(instance, dict):
        return
    for expression, part in parts.items():
        for name, value in instance.items():
            if _occurs(expression, name):
                yield from validator.descend(value, part, path=name, schema_path=expression)


def _additional_properties(
    validator: Validator, rule: object, instance: object, schema: Mapping[str, Any]
) -> _Errors:
    if not isinstance(instance, dict):
        return
    named, expressions = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in named or any(_occurs(expression, name) for expression in expressions):
            continue
        if rule is False:
            yield exceptions.ValidationError("has additional properties")
        else:
            yield from validator.descend(value, rule, path=name)


def _unique_items(_validator: Validator, rule: object, instance: object, _schema: object) -> _Errors:
    """Linear time, where the library compares every two items of a mixed list."""
    if rule and isinstance(instance, list):
        identities = [_identity(item) for item in instance]
        if len(set(identities)) < len(identities):
            yield exceptions.ValidationError("has items that are equal")


def _identity(value: object) -> object:
    """A hashable value, the same for equal JSON values: 1 is 1.0 but not true."""
    if isinstance(value, dict):
        return ("object", frozenset((name, _identity(child)) for name, child in value.items()))
    if isinstance(value, list):
        return ("array", tuple(_identity(child) for child in value))
    return ("truth", value) if isinstance(value, bool) else value


_OVERRIDES: dict[str, _Rule] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_BOUNDED: dict[type[Validator], type[Validator]] = {
    dialect: validators.extend(
        dialect, {name: _with_deadline(rule) for name, rule in {**dialect.VALIDATORS, **_OVERRIDES}.items()}
    )
    for dialect in _DIALECTS.values()
}
"""Each dialect with every keyword under the deadline."""
