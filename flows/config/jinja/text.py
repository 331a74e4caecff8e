"""One Jinja text, compiled once and rendered within a budget where it is more than plain."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import TracebackType

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalcube.flows.config.jinja.budget import BUDGET, LARGEST_OUTPUT, SHORTEN, Budget
from evalcube.flows.config.jinja.guard import guard, is_plain
from evalcube.flows.config.jinja.sandbox import bounded_environment
from evalcube.flows.errors import TemplateError

VARIABLES = ("prompt", "task", "params")
MOST_TOKENS = 50_000
"""Parts of Jinja's language in all texts of a template together."""
LONGEST_TOKEN = 100_000
"""Characters of a text or a number in code."""
_LONG_NUMBER = re.compile(rf"(?<![0-9a-fA-F_])[0-9a-fA-F_]{{{LONGEST_TOKEN}}}")
MOST_BACKSLASHES = 200_000
"""In a text with code."""

Where = tuple[str | int, ...]

_PLAIN = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
)
_PLAIN.globals.clear()
_BOUNDED = bounded_environment()


class Text:
    """One compiled Jinja text.

    Parameters
    ----------
    source
        The text.
    where
        Its path in the template, for errors.
    plain
        Whether it may be rendered without a budget if it does no more than print variables.
    before
        Tokens in the template's texts before this one.

    Raises
    ------
    TemplateError
        If it is no valid Jinja, or too large.
    """

    def __init__(self, source: str, where: Where, *, plain: bool = True, before: int = 0) -> None:
        self.where = where
        self.uses: frozenset[str] = frozenset()
        """Variables that the text reads."""
        self.tokens = before
        """Parts of Jinja's language in it and in the texts before it."""
        self._constant: str | None = None
        self._prompt_only = source == "{{ prompt }}"
        self._plain = True
        try:
            source.encode()
            if not any(mark in source for mark in ("{{", "{%", "{#")):
                self._constant = source
                return
            self.tokens = _count_tokens(source, before)
            self._compile(_BOUNDED.parse(source), plain)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"wrong Jinja: {_one_line(error.message or 'syntax error')}",
                "Write a literal {{ as {{ '{{' }}",
                where=where,
                line=error.lineno,
            ) from None
        except TemplateError as error:
            raise TemplateError(error.message, error.remedy, where=where, line=error.line) from None
        except Exception as error:  # noqa: BLE001 - a text may break the compiler itself: too deep, too large
            raise TemplateError(f"wrong Jinja: {_one_line(str(error))}", where=where) from None

    def _compile(self, tree: nodes.Template, plain: bool) -> None:
        self.uses = frozenset(meta.find_undeclared_variables(tree))
        self._plain = plain and is_plain(tree)
        environment = _PLAIN if self._plain else _BOUNDED
        code = environment.compile(tree if self._plain else guard(tree))
        self._compiled = jinja2.Template.from_code(environment, code, environment.make_globals(None))

    def render(self, variables: Mapping[str, object], budget: Budget) -> str:
        """Fill in the variables.

        Raises
        ------
        TemplateError
            If anything in the text fails, it grows too long, or it takes more than is left of the budget.
        """
        if self._prompt_only:
            return str(variables["prompt"])
        if self._constant is not None:
            return self._constant
        outer = None if self._plain else BUDGET.set(budget)
        try:
            return _bounded(self._compiled.generate(variables))
        except TemplateError as error:
            raise TemplateError(
                error.message, error.remedy, where=self.where, line=_line(error.__traceback__)
            ) from None
        except jinja2.UndefinedError as error:
            raise TemplateError(
                f"wrong variable: {_one_line(error.message or '')}",
                self._hint(),
                where=self.where,
                line=_line(error.__traceback__),
            ) from None
        except Exception as error:  # noqa: BLE001 - the template's own code may raise anything
            raise TemplateError(
                f"fails: {type(error).__name__}: {_one_line(str(error))}",
                where=self.where,
                line=_line(error.__traceback__),
            ) from None
        finally:
            if outer is not None:
                BUDGET.reset(outer)

    def _hint(self) -> str:
        for name in sorted(self.uses - set(VARIABLES)):
            close = difflib.get_close_matches(name, VARIABLES, n=1)
            if close:
                return f"Did you mean {close[0]!r}?"
        return f"There are {', '.join(VARIABLES[:-1])} and {VARIABLES[-1]} (params.length, ...)"


def _count_tokens(source: str, before: int) -> int:
    tokens = before
    if len(source) > LARGEST_OUTPUT:
        raise TemplateError(f"has more than {LARGEST_OUTPUT:,} characters", SHORTEN)
    # Jinja's lexer takes hundreds of bytes for each digit of a number and each backslash of a text
    if _LONG_NUMBER.search(source):
        raise TemplateError(f"has more than {LONGEST_TOKEN:,} digits in a row", "Break the line")
    if source.count("\\") > MOST_BACKSLASHES:
        raise TemplateError(f"has more than {MOST_BACKSLASHES:,} backslashes", "Take a shorter text")
    for line, kind, token in _BOUNDED.lex(source):
        tokens += 1
        if len(token) > LONGEST_TOKEN and kind not in ("data", "comment"):
            raise TemplateError(
                f"has a text or number of more than {LONGEST_TOKEN:,} characters in its code",
                "Write it as plain text",
                line=line,
            )
        if tokens > MOST_TOKENS:
            raise TemplateError(
                f"has more than {MOST_TOKENS:,} parts of Jinja's language", "Shorten its code", line=line
            )
    return tokens


def _line(traceback: TracebackType | None) -> int | None:
    """The line of the text where an error arose; Jinja gives its own frames the lines of the text."""
    found = None
    while traceback is not None:
        if "__jinja_exception__" in traceback.tb_frame.f_globals:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _bounded(parts: Iterable[str]) -> str:
    kept: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", SHORTEN)
        kept.append(part)
    return "".join(kept)


def _one_line(text: str) -> str:
    return " ".join(text[:4000].split())[:160]
