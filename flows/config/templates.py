"""Templates: messages with Jinja contents, or a Jinja text of JSON, that make chat messages of a prompt.

Templates run in Jinja's sandbox: no attribute that begins with an underscore, no change of the variables.
An unknown variable is an error, never an empty text.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from flows.config.secrecy import show
from flows.errors import TemplateError

ROLES = ("system", "user", "assistant", "developer", "tool")
VARIABLES = ("prompt", "task", "params")
LARGEST_OUTPUT = 4_000_000
"""Bytes of UTF-8 in all contents together."""
MOST_STEPS = 200_000
"""Turns of loops and calls in one text: a few seconds at most."""
_STEPS = " steps"
"""Name of the counter among a text's variables; none that a template can write."""

Message = dict[str, str]
Where = tuple[str | int, ...]


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, with repetition bounded: "a" * 10**10 would fill the memory before any check."""

    intercepted_binops = frozenset({"*", "**"})

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        # every call counts as a step: macros can call themselves
        __context.resolve(_STEPS).spend()
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        if operator == "**" and not (abs(left) <= 10**6 and abs(right) <= 64):
            raise TemplateError(
                "a power in the template is too large", "Use a base up to 10^6, exponents to 64"
            )
        for text, times in ((left, right), (right, left)):
            if isinstance(text, Sequence) and isinstance(times, int) and len(text) * times > LARGEST_OUTPUT:
                raise TemplateError("a repetition in the template is too long", _SHORTEN)
        return super().call_binop(context, operator, left, right)


class _Steps:
    """How much work is left to one rendering."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TemplateError(
                f"loops and calls in the template take more than {MOST_STEPS:,} steps",
                "Make the loops shorter",
            )


@jinja2.pass_context
def _counted(context: Any, items: Iterable[object]) -> Iterator[object]:  # noqa: ANN401
    """What a loop goes through, each item one step."""
    steps = context.resolve(_STEPS)
    for item in items:
        steps.spend()
        yield item


def _compile(tree: nodes.Template) -> jinja2.Template:
    """Compile, with every loop's items counted: a few nested loops would otherwise run for ever."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
    code = _ENVIRONMENT.compile(tree)
    return jinja2.Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.make_globals(None))


_SHORTEN = f"Keep the messages under {LARGEST_OUTPUT:,} bytes"
_ENVIRONMENT = _Sandbox(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
_ENVIRONMENT.globals.clear()
_ENVIRONMENT.globals["range"] = jinja2.sandbox.safe_range
_ENVIRONMENT.filters["counted"] = _counted


class _Text:
    """One compiled Jinja text."""

    def __init__(self, source: str, where: Where) -> None:
        self.where = where
        self.uses: frozenset[str] = frozenset()
        """Variables that the text reads."""
        self._constant: str | None = None
        self._prompt_only = source == "{{ prompt }}"
        try:
            source.encode()
            tree = _ENVIRONMENT.parse(source)
            self.uses = frozenset(meta.find_undeclared_variables(tree))
            self._compiled = _compile(tree)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"wrong Jinja: {_one_line(error.message or 'syntax error')}",
                "Write a literal {{ as {{ '{{' }}",
                where=where,
                line=error.lineno,
            ) from None
        except TemplateError as error:
            raise TemplateError(error.message, error.remedy, where=where) from None
        except Exception as error:  # noqa: BLE001 - a text may break the compiler itself: too deep, too large
            raise TemplateError(f"wrong Jinja: {_one_line(str(error))}", where=where) from None
        if not any(mark in source for mark in ("{{", "{%", "{#")):
            self._constant = source

    def render(self, variables: Mapping[str, object]) -> str:
        """Fill in the variables.

        Raises
        ------
        TemplateError
            If anything in the text fails, or it grows too long.
        """
        if self._prompt_only:
            return str(variables["prompt"])
        if self._constant is not None:
            return self._constant
        try:
            return _bounded(self._compiled.generate({**variables, _STEPS: _Steps()}), self.where)
        except TemplateError as error:
            raise TemplateError(error.message, error.remedy, where=self.where) from None
        except jinja2.UndefinedError as error:
            raise TemplateError(
                f"wrong variable: {_one_line(error.message or '')}", self._hint(), where=self.where
            ) from None
        except Exception as error:  # noqa: BLE001 - the template's own code may raise anything
            raise TemplateError(
                f"fails: {type(error).__name__}: {_one_line(str(error))}", where=self.where
            ) from None

    def _hint(self) -> str:
        for name in sorted(self.uses - set(VARIABLES)):
            close = difflib.get_close_matches(name, VARIABLES, n=1)
            if close:
                return f"Did you mean {close[0]!r}?"
        return f"There are {', '.join(VARIABLES[:-1])} and {VARIABLES[-1]} (params.length, ...)"


def _bounded(parts: Any, where: Where) -> str:  # noqa: ANN401 - jinja2's generator
    kept: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", _SHORTEN, where=where)
        kept.append(part)
    return "".join(kept)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:160]


class Template:
    """A prompt template, compiled once.

    Parameters
    ----------
    source
        A list of messages ``{"role": ..., "content": <Jinja text>}``, or one Jinja text that renders to the
        JSON of such a list. Variables: `prompt`, `task` (its name), `params` (the point's params).

    Raises
    ------
    TemplateError
        If the source is neither, or a text is no valid Jinja.

    Examples
    --------
    >>> Template([{"role": "user", "content": "{{ prompt }} Be brief."}]).render(prompt="1 + 1?")
    [{'role': 'user', 'content': '1 + 1? Be brief.'}]
    """

    def __init__(self, source: str | Sequence[Mapping[str, str]]) -> None:
        self._source = source
        self._json: _Text | None = None
        self._messages: list[tuple[str, _Text]] = []
        if isinstance(source, str):
            self._json = _Text(source, ())
        else:
            _check_messages(source, "is")
            self._messages = [
                (message["role"], _Text(message["content"], (index, "content")))
                for index, message in enumerate(source)
            ]

    def __reduce__(self) -> tuple[object, ...]:
        # compiled code does not pickle; a worker compiles its own
        return Template, (self._source,)

    @property
    def uses(self) -> frozenset[str]:
        """Names of the variables that the template reads."""
        texts = [text for _, text in self._messages] + ([self._json] if self._json else [])
        return frozenset().union(*(text.uses for text in texts))

    def render(
        self, *, prompt: str, task: str = "", params: Mapping[str, object] | None = None
    ) -> list[Message]:
        """Make the messages of one request.

        Raises
        ------
        TemplateError
            If the template fails with these variables, renders no message list, or more than 4 MB.
        """
        variables = {"prompt": prompt, "task": task, "params": {} if params is None else params}
        if self._json is not None:
            messages = _read_json(self._json.render(variables))
        else:
            messages = [{"role": role, "content": text.render(variables)} for role, text in self._messages]
        size = 0
        for message in messages:
            content = message["content"]
            size += len(content) if content.isascii() else len(content.encode(errors="surrogatepass"))
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", _SHORTEN)
        return messages


def _read_json(text: str) -> list[Message]:
    hint = "Write contents as {{ prompt | tojson }}, without quotes"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"
        raise TemplateError(f"renders no message list: no JSON ({place})", hint) from None
    except (ValueError, RecursionError):
        raise TemplateError("renders no message list: no JSON", hint) from None
    try:
        _check_messages(value, "renders")
    except TemplateError as error:
        raise TemplateError(f"renders no message list: {error.message}", error.remedy) from None
    return [{"role": message["role"], "content": message["content"]} for message in value]


_EXAMPLE = 'Write a list such as [{role: user, content: "{{ prompt }}"}]'


def _check_messages(value: object, verb: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        what = "a text" if isinstance(value, str) else show(value)
        raise TemplateError(f"{verb} {what}, not a list of messages", _EXAMPLE)
    if not value:
        raise TemplateError(f"{verb} an empty list of messages", _EXAMPLE)
    for index, message in enumerate(value):
        _check_message(message, index)


def _check_message(message: object, index: int) -> None:
    if not isinstance(message, Mapping):
        raise TemplateError(
            f"message {index + 1} is {show(message)}, not a mapping", _EXAMPLE, where=(index,)
        )
    for name in message:
        if name not in ("role", "content"):
            raise TemplateError(
                f"message {index + 1} has an unknown field {show(name)}",
                "Messages have role and content",
                where=(index, str(name)),
            )
    for name in ("role", "content"):
        if name not in message:
            raise TemplateError(f"message {index + 1} has no {name}", _EXAMPLE, where=(index,))
    role, content = message["role"], message["content"]
    if role not in ROLES:
        close = difflib.get_close_matches(str(role), ROLES, n=1)
        remedy = f"Did you mean {close[0]!r}?" if close else f"Roles: {', '.join(ROLES)}"
        raise TemplateError(
            f"message {index + 1} has an unknown role {show(role)}", remedy, where=(index, "role")
        )
    if not isinstance(content, str):
        raise TemplateError(
            f"the content of message {index + 1} is {show(content)}, not a text",
            "Put quotes round it",
            where=(index, "content"),
        )
