"""Jinja texts with more than fields, of a user's own config: Jinja's immutable sandbox with a bound on time and output.

The CPU time is looked at in loops and calls. A single filter, operator or method takes what its arguments ask of it:
whoever writes ``{{ 'a' * 10**10 }}`` waits for that himself, as no text comes here that only somebody else's cube has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from time import thread_time
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.visitor import NodeTransformer

from evalcube.flows.errors import TemplateError

SECONDS = 1.0
"""Of CPU time, which one rendering of one text may take."""
_TURNS = " turns"
"""Name of a filter that no template can write."""
_END: ContextVar[float] = ContextVar("CPU time of this thread at which a rendering is given up")


def _tick() -> None:
    if thread_time() > _END.get():
        raise TemplateError(f"takes more than {SECONDS:g} s of CPU time to render", "Make its loops shorter")


def _turns(items: Iterable[Any]) -> Iterator[Any]:
    """What a loop goes through, with a look at the time at each turn."""
    for item in items:
        _tick()
        yield item


class _Loops(NodeTransformer):
    """Puts `_turns` round what the loops of a template go through."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - as Jinja names it
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _TURNS, [], [], None, None, lineno=node.lineno)
        return node


class _Sandbox(ImmutableSandboxedEnvironment):
    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _Loops().visit(super()._parse(source, name, filename))  # type: ignore[no-any-return]

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        _tick()  # macros can call themselves
        return super().call(__context, __obj, *args, **kwargs)


_SANDBOX = _Sandbox(
    undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True, optimized=False
)
_SANDBOX.globals.clear()
_SANDBOX.globals["range"] = safe_range
_SANDBOX.filters[_TURNS] = _turns


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
        """Fill in the variables; `join` makes one text of the parts, or refuses them.

        Raises
        ------
        TemplateError
            If anything in the text fails, takes too long or grows too long; with `hint` if a variable is none.
        """
        before = _END.set(thread_time() + SECONDS)
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
        finally:
            _END.reset(before)


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
