"""Templates: messages with Jinja contents, or a Jinja text of JSON, that make chat messages of a prompt.

Templates run in Jinja's sandbox: no attribute that begins with an underscore, no change of the variables.
An unknown variable is an error, never an empty text. Time and memory are bounded by `evalcube.flows.config.jinja`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence

from evalcube.flows.config.jinja.budget import LARGEST_OUTPUT, SHORTEN, Budget
from evalcube.flows.config.jinja.text import Text
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import TemplateError

ROLES = ("system", "user", "assistant", "developer", "tool")
MOST_PLAIN = 32
"""Messages of a template whose texts may go without a budget."""

Message = dict[str, str]


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
        self._json: Text | None = None
        self._messages: list[tuple[str, Text]] = []
        if isinstance(source, str):
            self._json = Text(source, ())
            return
        _check_messages(source, "is")
        tokens = 0
        for index, message in enumerate(source):
            text = Text(
                message["content"], (index, "content"), plain=len(source) <= MOST_PLAIN, before=tokens
            )
            tokens = text.tokens
            self._messages.append((message["role"], text))

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
        budget = Budget()
        if self._json is not None:
            messages = _read_json(self._json.render(variables, budget))
            _add_up(messages)
            return messages
        messages, size = [], 0
        for role, text in self._messages:
            messages.append({"role": role, "content": text.render(variables, budget)})
            size = _add_up(messages[-1:], size)
        return messages


def _add_up(messages: Sequence[Message], size: int = 0) -> int:
    """The bytes of messages and of those before them, which are refused as soon as they are too many."""
    for message in messages:
        content = message["content"]
        size += len(content) if content.isascii() else len(content.encode(errors="surrogatepass"))
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"renders more than {LARGEST_OUTPUT:,} bytes", SHORTEN)
    return size


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
