"""Errors of configs, templates and sweeps; `evalcube.EvalcubeError` shows the whole tree."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

from evalcube import EvalcubeError

_SHOWN = 50
_MOST_TOLD = 60
"""Characters of a value in a message."""


class TemplateError(EvalcubeError, ValueError):
    """A prompt template that does not compile or renders no message list."""

    def __init__(
        self, message: str, remedy: str = "", *, where: tuple[str | int, ...] = (), line: int | None = None
    ) -> None:
        super().__init__(message, remedy)
        self.where = where
        """Path inside the template, such as (1, "content") for the second message's content."""
        self.line = line
        """Line inside that text, from 1; None if unknown."""

    def __reduce__(self) -> tuple[object, ...]:
        return _template_error, (self.message, self.remedy, self.where, self.line)


def _template_error(
    message: str, remedy: str, where: tuple[str | int, ...], line: int | None
) -> TemplateError:
    return TemplateError(message, remedy, where=where, line=line)


class SweepError(EvalcubeError, ValueError):
    """A sweep that cannot run as asked, or a cube that cannot be read as asked."""


class WrongTypeError(SweepError, TypeError):
    """An argument of another type than what is asked for."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a config."""

    source: str
    """The file's path, or "config" for a mapping."""
    line: int | None
    """Line in the file, from 1; None where there is no text."""
    field: str
    """Path of the field, such as ``models[0].limits.connections``; empty for the whole file."""
    value: str
    """The offending value, shortened; empty where the rule already says it and for anything secret."""
    rule: str
    """What must hold."""
    remedy: str
    """What to do; empty where the rule says it all."""

    def __str__(self) -> str:
        position = self.source if self.line is None else f"{self.source}:{self.line}"
        subject = f"{position}: {self.field}" if self.field else position
        got = f", got {self.value}" if self.value else ""
        remedy = f". {self.remedy}" if self.remedy else ""
        return f"{subject}: {self.rule}{got}{remedy}"


class ConfigError(EvalcubeError, ValueError):
    """A config with problems, all of them in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = list(map(str, problems[:_SHOWN]))
        if len(problems) > _SHOWN:
            lines.append(f"and {len(problems) - _SHOWN:,} more problems")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return ConfigError, (self.problems,)


@contextmanager
def refused() -> Iterator[None]:
    """A context in which what a formula refuses is raised as a user's mistake, a `SweepError`."""
    try:
        yield
    except SweepError:
        raise
    except ValueError as error:
        kind = WrongTypeError if isinstance(error, TypeError) else SweepError
        raise kind(str(error).rstrip(".")) from error


def no_bare_text(**lists: object) -> None:
    """Refuse a text where several belong, as it would be read as one for each of its letters, and what is no list."""
    for name, value in lists.items():
        if isinstance(value, str):
            raise WrongTypeError(
                f"`{name}`: '{value}' is a text, not a list",
                f"Write {name}=[{json.dumps(value, ensure_ascii=False)}]",
            )
        if value is not None and (isinstance(value, bytes) or not isinstance(value, Iterable)):
            raise WrongTypeError(f"`{name}`: {told(value)} is no list", "Give a list of texts")
        for text in value if isinstance(value, Collection) else ():
            if not isinstance(text, str | SupportsFloat | Path):
                raise WrongTypeError(f"`{name}`: {told(text)} in the list is no text", "Give a list of texts")


def as_list(name: str, value: Any) -> Any:  # noqa: ANN401 - what conditions may be
    """Conditions as they were given, a single text as a list of one; refused as by `no_bare_text`."""
    if isinstance(value, str):
        return (value,)
    no_bare_text(**{name: value})
    return value


def need_text(name: str, value: object) -> str:
    """The value, refused if it is no text."""
    if not isinstance(value, str):
        raise WrongTypeError(f"`{name}`: {told(value)} is no text", "Give a text")
    return value


def need_path(name: str, value: object) -> str:
    """The value as a text, refused if it is neither a text nor a path."""
    if not isinstance(value, str | PathLike):
        raise WrongTypeError(f"`{name}`: {told(value)} is no address", "Give a text or a path")
    return str(value)


def need_name(name: str, value: object) -> str:
    """The value as a text, where a number says the same; refused if it is neither."""
    number = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    return need_text(name, str(value) if number else value)


def need_number(name: str, value: object, *, whole: bool = False) -> None:
    """Refuse what is no number, as NaN is none: nothing is ever later, or more, than that."""
    kind = SupportsIndex if whole else SupportsFloat
    nan = isinstance(value, Real) and value != value  # noqa: PLR0124 - whole numbers may be too large for `isnan`
    if nan or isinstance(value, bool | str | bytes) or not isinstance(value, kind):
        raise WrongTypeError(f"`{name}`: {told(value)} is no {'whole ' * whole}number", "Give one")


def told(value: object) -> str:
    """A value for a message: short ones as they are written, others by their type.

    Examples
    --------
    >>> told(7), told([0] * 99), told(object())
    ('7', 'a list', 'an object')
    """
    if value is None or isinstance(value, int | float | str | bytes | list | tuple | dict):
        text = repr(value)
        if len(text) <= _MOST_TOLD:
            return text
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
