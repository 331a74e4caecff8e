"""Prompt templates: messages with Jinja contents, which make chat messages of a prompt.

Texts that have fields such as ``{{ prompt }}`` and ``{{ params.length }}`` and nothing else of Jinja are filled in
here, whoever wrote them. More than that is code: it is compiled and run, in Jinja's sandbox, only if a config of this
user's has it, never because a cube does. An unknown variable is an error, never an empty text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import TemplateError

if TYPE_CHECKING:
    from evalcube.flows.config.jinja import CompiledText

LARGEST_OUTPUT = 4_000_000
"""Bytes of UTF-8 in all contents together."""
ROLES = ("system", "user", "assistant", "developer", "tool")
VARIABLES = ("prompt", "task", "params")
_SHORTEN = f"Keep the messages under {LARGEST_OUTPUT:,} bytes"
_FIELD = re.compile(r"\{\{\s*(prompt|task|params\.([^\W\d]\w*))\s*(\|\s*tojson\s*)?\}\}|\{[{%#]")
"""A field, or the beginning of anything else of Jinja."""
_IN_JSON = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&'"}
"""How Jinja's filter `tojson` writes what HTML would take for its own."""

Message = dict[str, str]
Source = Sequence[Mapping[str, str]]


def code_of(source: object) -> str:
    """A template as one text if it has more than fields, by which a user's own are known; empty if it has not.

    Examples
    --------
    >>> code_of([{"content": "{{ prompt }} {{ params.length }}"}]), code_of([{"content": "{{ task | upper }}"}])
    ('', 'template: [{"content": "{{ task | upper }}"}]')
    """
    messages = source if isinstance(source, Sequence) and not isinstance(source, str) else ()
    texts = [message.get("content") for message in messages if isinstance(message, Mapping)]
    plain = all(_fields(text) is not None for text in texts if isinstance(text, str))
    return "" if plain else f"template: {json.dumps(source, sort_keys=True)}"


def _fields(text: str) -> list[re.Match[str]] | None:
    """The fields of a text; None if it has more of Jinja than these."""
    matches = list(_FIELD.finditer(text))
    # What a mapping has by itself, such as `items`, is that to Jinja, and no param.
    return matches if all(field[1] and not hasattr(dict, field[2] or "") for field in matches) else None


class _Text:
    """One text of a template, filled in here or by Jinja."""

    def __init__(self, source: str, where: tuple[str | int, ...]) -> None:
        self._source, self._where = source, where
        self._code: CompiledText | None = None
        try:
            source.encode()
            self._fields = _fields(source)
            if self._fields is None:
                from evalcube.flows.config.jinja import CompiledText  # slow to load

                self._code = CompiledText(source)
        except UnicodeEncodeError as error:
            raise TemplateError(f"wrong Jinja: {error.reason}", where=where) from None
        except TemplateError as error:
            raise self._with_position(error) from None
        if self._fields:
            self._source = re.sub("\r\n?", "\n", source)  # as Jinja does
            self._fields = _fields(self._source)
        names = [field[1].partition(".")[0] for field in self._fields or ()]
        self.uses = frozenset(names) if self._code is None else self._code.uses
        """Names of the variables that it reads."""

    def render(self, variables: Mapping[str, object]) -> str:
        try:
            if self._code is not None:
                return self._code.render(variables, _hint(self.uses), _join_bounded)
            return _join_bounded(self._parts(variables))
        except TemplateError as error:
            raise self._with_position(error) from None

    def _parts(self, variables: Mapping[str, object]) -> Iterable[str]:
        end = 0
        for field in self._fields or ():
            yield self._source[end : field.start()]
            end = field.end()
            value = variables[field[1].partition(".")[0]]
            if field[2]:
                if not isinstance(value, Mapping) or field[2] not in value:
                    raise TemplateError(
                        f"wrong variable: 'dict object' has no attribute {field[2]!r}",
                        _hint(self.uses),
                        line=self._source.count("\n", 0, field.start()) + 1,
                    )
                value = value[field[2]]
            yield json.dumps(value, sort_keys=True).translate(_IN_JSON) if field[3] else str(value)
        yield self._source[end:]

    def _with_position(self, error: TemplateError) -> TemplateError:
        several = error.line is not None and "\n" in self._source
        message = f"{error.message} (line {error.line} of the text)" if several else error.message
        return TemplateError(message, error.remedy, where=self._where, line=error.line)


def _hint(uses: Iterable[str]) -> str:
    for name in sorted(set(uses) - set(VARIABLES)):
        close = difflib.get_close_matches(name, VARIABLES, n=1)
        if close:
            return f"Did you mean {close[0]!r}?"
    return f"There are {', '.join(VARIABLES[:-1])} and {VARIABLES[-1]} (params.length, ...)"


def _join_bounded(parts: Iterable[str]) -> str:
    """The parts as one text, refused as soon as it is too long."""
    texts: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", _SHORTEN)
        texts.append(part)
    return "".join(texts)


class Template:
    """A prompt template, compiled once.

    Parameters
    ----------
    source
        A list of messages ``{"role": ..., "content": <Jinja text>}``. Variables: `prompt`, `task` (its name),
        `params` (the point's params).

    Raises
    ------
    TemplateError
        If the source is none, or a text is no valid Jinja.

    Examples
    --------
    >>> Template([{"role": "user", "content": "{{ prompt }} Be brief."}]).render(prompt="1 + 1?")
    [{'role': 'user', 'content': '1 + 1? Be brief.'}]
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        _check_messages(source)
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
        return frozenset().union(*(text.uses for _, text in self._messages))

    def render(
        self, *, prompt: str, task: str = "", params: Mapping[str, object] | None = None
    ) -> list[Message]:
        """Make the messages of one request."""
        variables = {"prompt": prompt, "task": task, "params": {} if params is None else params}
        messages, size = [], 0
        for role, text in self._messages:
            messages.append({"role": role, "content": text.render(variables)})
            size = _add_up(messages[-1:], size)
        return messages


def with_turns(messages: Sequence[Message], turns: Sequence[Mapping[str, str]]) -> list[Message]:
    """The messages of a template with what was said before its question: before the last message of the user's.

    Examples
    --------
    >>> said = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}]
    >>> [one["content"] for one in with_turns([{"role": "user", "content": "2 + 2?"}], said)]
    ['1 + 1?', '2', '2 + 2?']
    """
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    at = users[-1] if users else len(messages)
    conversation = [*messages[:at], *map(dict, turns), *messages[at:]]
    _add_up(conversation)
    return conversation


def _add_up(messages: Sequence[Message], size: int = 0) -> int:
    """The bytes of messages and of those before them, which are refused as soon as they are too many."""
    for message in messages:
        content = message["content"]
        size += len(content) if content.isascii() else len(content.encode(errors="surrogatepass"))
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", _SHORTEN)
    return size


_EXAMPLE = 'Write a list such as [{role: user, content: "{{ prompt }}"}]'


def _check_messages(value: object) -> None:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        kind = "a text" if isinstance(value, str) else show(value)
        raise TemplateError(f"is {kind}, not a list of messages", _EXAMPLE)
    if not value:
        raise TemplateError("is an empty list of messages", _EXAMPLE)
    for index, message in enumerate(value):
        problem, remedy, *where = _mistake(message)
        if problem:
            raise TemplateError(f"message {index + 1} {problem}", remedy, where=(index, *where))


def _mistake(message: object) -> tuple[str, ...]:
    """What is wrong with a message, and what to do; then where, below it. Nothing is two empty texts."""
    if not isinstance(message, Mapping):
        return f"is {show(message)}, not a mapping", _EXAMPLE
    for name in message:
        if name not in ("role", "content"):
            return f"has an unknown field {show(name)}", "Messages have role and content", str(name)
    for name in ("role", "content"):
        if name not in message:
            return f"has no {name}", _EXAMPLE
    role, content = message["role"], message["content"]
    if role not in ROLES:
        return f"has an unknown role {show(role)}", did_you_mean(str(role), list(ROLES), "Roles"), "role"
    if not isinstance(content, str):
        return f"has {show(content)} for its content, not a text", "Put quotes round it", "content"
    return "", ""
