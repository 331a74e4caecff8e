"""What is wrong with a config, one finding per mistake: its path, the rule, a value that is safe to show, a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from evalcube.flows.config.field_types import section_at
from evalcube.flows.config.near_names import close_name, did_you_mean, suggestion
from evalcube.flows.config.secrecy import looks_secret, mask, show
from evalcube.flows.config.text import YamlText
from evalcube.flows.errors import ConfigError, Problem

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """One broken rule at one place of a mapping."""

    path: Path
    """Keys and indices that lead to the offending part."""
    rule: str
    value: str = ""
    """Safe text of the value; empty to leave it out."""
    remedy: str = ""
    at_key: bool = False
    """The key is wrong, not its value."""
    hide_key: bool = False
    """The last key may be a secret: it only serves to find the line."""
    meant: Path | None = None
    """The field that an unknown one was meant to be."""


_NEVER_SHOWN = ("key_env", "key_file", "key_command", "headers")
_MISSING = "is missing"
_RULES: dict[str, tuple[str, str]] = {
    "missing": (_MISSING, ""),
    "string_type": ("must be a text", "Put quotes round it"),
    "int_type": ("must be a whole number", ""),
    "float_type": ("must be a number", ""),
    "bool_type": ("must be true or false", ""),
    "finite_number": ("must be a finite number", ""),
    "string_unicode": ("must not contain half a surrogate pair", "Write the character itself"),
    "tuple_type": ("must be a list", "Start each item with - or write [a, b]"),
    "list_type": ("must be a list", "Start each item with - or write [a, b]"),
    "dict_type": ("must be a mapping", "Write key: value lines or {key: value}"),
    "model_type": ("must be a mapping", "Write key: value lines or {key: value}"),
    "too_short": ("must not be empty", "Give at least one"),
    "literal_error": ("must be one of {expected}", ""),
    "greater_than": ("must be more than {gt}", ""),
    "greater_than_equal": ("must be at least {ge}", ""),
    "less_than": ("must be less than {lt}", ""),
    "less_than_equal": ("must be at most {le}", ""),
}

_GUESSED = 1000
"""Problems for which the field that was meant is looked for: it takes a while, and a file with more is no config."""


def findings(error: ValidationError, root: type[BaseModel]) -> list[Finding]:
    """Turn pydantic's errors on a section into findings.

    A misspelt required field is one finding, not an unknown field and a missing one.
    """
    details: list[dict[str, Any]] = [
        {**detail, "loc": _without_tags(detail["loc"])} for detail in error.errors(include_url=False)
    ]
    mistakes = [
        _finding(detail, root, guess=index < _GUESSED)
        for index, detail in enumerate(details)
        if not _is_echo(detail)
    ]
    meant = {finding.meant for finding in mistakes}
    return [finding for finding in mistakes if finding.path not in meant or finding.rule != _MISSING]


def _without_tags(loc: Path) -> Path:
    """Leave out the tags of unions, which stand in no config."""
    return tuple(step for step in loc if not str(step).startswith("\0"))


def _is_echo(detail: Mapping[str, Any]) -> bool:
    """Tell whether an error only follows from others: a default not made, a list left by its wrong items."""
    emptied = detail["type"] == "too_short" and len(detail["input"]) > 0
    return emptied or detail["type"] == "default_factory_not_called"


def _finding(detail: Mapping[str, Any], root: type[BaseModel], *, guess: bool) -> Finding:
    loc: Path = detail["loc"]
    kind: str = detail["type"]
    context = detail.get("ctx", {})
    at_key = bool(loc) and loc[-1] == "[key]"
    path = loc[:-1] if at_key else loc
    if kind == "extra_forbidden":
        return _unknown(path, root, guess=guess)
    if kind == "rule":
        return _broken_rule(path, context, detail["input"], at_key=at_key)
    rule, remedy = _RULES.get(kind, (mask(detail["msg"]), ""))
    if kind == "missing":
        return Finding(path, rule, remedy=_meaning(path, root))
    limits = {name: _number(value) for name, value in context.items()}
    complete = kind == "too_short" or _sensitive(path)
    value = "" if complete else show(detail["input"])
    hide_key = at_key and looks_secret(str(path[-1]))
    return Finding(path, rule.format(**limits), value, remedy, at_key=at_key, hide_key=hide_key)


def _broken_rule(path: Path, context: Mapping[str, Any], value: object, *, at_key: bool) -> Finding:
    where = tuple(context["where"])
    if where[:1] == ("\0key",):
        where, at_key = where[1:], True
    secret = context["secret"] or _sensitive(path)
    shown = "" if secret or context["told"] else show(_inside(value, where))
    hide_key = at_key and (secret or looks_secret(str((path + where)[-1])))
    return Finding(path + where, context["rule"], shown, context["remedy"], at_key=at_key, hide_key=hide_key)


def _inside(value: object, where: Path) -> object:
    """What stands at `where` in a value."""
    for step in where:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int):
            value = value[step]
    return value


def _sensitive(path: Path) -> bool:
    """Tell whether a value at this path is never shown, whatever it looks like."""
    inside_model = path[2:] if path[:1] == ("models",) else path  # a model may stand by itself
    return bool(inside_model) and inside_model[0] in _NEVER_SHOWN


def _number(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def unknown_name(
    path: Path, kind: str, name: object, known: list[str], title: str, *, at_key: bool = False
) -> Finding:
    """Report a name that is none of those known."""
    remedy = did_you_mean(str(name), known, title)
    return Finding(path, f"unknown {kind} {show(name)}", remedy=remedy, at_key=at_key)


def _unknown(path: Path, root: type[BaseModel], *, guess: bool) -> Finding:
    name = str(path[-1])
    section = section_at(root, path[:-1])
    fields = [] if section is None else list(section.model_fields)
    close = close_name(name, fields) if guess else None
    rule, remedy = f"unknown field {show(name)}", suggestion(close, fields, "Fields")
    meant = None if close is None else (*path[:-1], close)
    return Finding(path, rule, remedy=remedy, at_key=True, hide_key=looks_secret(name), meant=meant)


def _meaning(path: Path, root: type[BaseModel]) -> str:
    section = section_at(root, path[:-1])
    field = section.model_fields.get(str(path[-1])) if section else None
    return f"Add it: {field.description}".rstrip(".") if field and field.description else "Add it"


@contextmanager
def reported(source: str, root: type[BaseModel], text: YamlText | None = None) -> Iterator[None]:
    """A context in which what pydantic refuses of a section is the mistake of whoever gave it, a `ConfigError`."""
    try:
        yield
    except ValidationError as error:
        raise sorted_error(problem_of(finding, source, text) for finding in findings(error, root)) from None


def failure(source: str, rule: str, remedy: str, *, line: int | None = None, value: str = "") -> ConfigError:
    """What is wrong with a whole source, as an error."""
    return ConfigError([Problem(source, line, "", value, rule, remedy)])


def sorted_error(problems: Iterable[Problem]) -> ConfigError:
    """Problems as one error, in the order of their lines."""
    return ConfigError(sorted(problems, key=lambda problem: (problem.line or 0, problem.field)))


def problem_of(finding: Finding, source: str, text: YamlText | None) -> Problem:
    """A finding as a problem of a source, with its line in the source's text."""
    path = finding.path
    line = None if text is None else text.line(path, key=finding.at_key)
    shown = path[:-1] if finding.hide_key else path
    return Problem(source, line, dotted(shown), finding.value, finding.rule, finding.remedy)


def dotted(path: Path) -> str:
    """Write a path as in ``models[0].limits.connections``; odd keys are quoted, secrets masked.

    Examples
    --------
    >>> dotted(("models", 0, "facets", "a.b"))
    "models[0].facets['a.b']"
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[\w-]+", step) and not looks_secret(step):
            text += f".{step}" if text else step
        else:
            text += f"[{show(step)}]"
    return text
