"""Jinja texts with more than fields, of a user's own config: Jinja's immutable sandbox with a bound on what it writes.

Each takes the time that it asks for: no text comes here that only somebody else's cube has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

import jinja2
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range

from evalcube.flows.errors import TemplateError

_SANDBOX = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True, optimized=False
)
_SANDBOX.globals.clear()
_SANDBOX.globals["range"] = safe_range


class CompiledText:
    """One compiled text.

    Parameters
    ----------
    source
        The text.

    Raises
    ------
    TemplateError
        If it is no valid Jinja.
    """

    def __init__(self, source: str) -> None:
        try:
            self.uses = frozenset(meta.find_undeclared_variables(_SANDBOX.parse(source)))
            """Names of the variables that it reads."""
            self._compiled = _SANDBOX.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"wrong Jinja: {_one_line(error.message or 'syntax error')}",
                "Write a literal {{ as {{ '{{' }}",
                line=error.lineno,
            ) from None
        except Exception as error:  # noqa: BLE001 - a text may break the compiler itself: too deep, too large
            raise TemplateError(f"wrong Jinja: {_one_line(str(error))}") from None

    def render(self, variables: Mapping[str, object], hint: str, join: Callable[[Iterator[str]], str]) -> str:
        """Fill in the variables; `join` makes one text of the parts, or refuses them."""
        try:
            return join(self._compiled.generate(variables))
        except TemplateError as error:
            raise TemplateError(error.message, error.remedy, line=_line(error.__traceback__)) from None
        except jinja2.UndefinedError as error:
            message = f"wrong variable: {_one_line(error.message or '')}"
            raise TemplateError(message, hint, line=_line(error.__traceback__)) from None
        except Exception as error:  # noqa: BLE001 - the template's own code may raise anything
            message = f"fails: {type(error).__name__}: {_one_line(str(error))}"
            raise TemplateError(message, line=_line(error.__traceback__)) from None


def _line(traceback: TracebackType | None) -> int | None:
    """The line of the text where an error arose; Jinja gives its own frames the lines of the text."""
    line = None
    while traceback is not None:
        if "__jinja_exception__" in traceback.tb_frame.f_globals:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _one_line(text: str) -> str:
    return " ".join(text[:4000].split())[:160]
