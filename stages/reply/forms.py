"""Where the parts of a reply stand, by API, as plain data that `infer` and `process` share.

All replies are JSON objects that name the same few things differently. A streamed reply is put together in the same
form, so that nothing but `evalcube.stages.infer.streams` has to know of streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from evalcube.stages.reply.body import token_count

ApiName = Literal["chat", "completions", "messages"]
CHAT: ApiName = "chat"
COMPLETIONS: ApiName = "completions"
MESSAGES: ApiName = "messages"
"""Names of the APIs: chat completions, text completions, and Anthropic's messages."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Names of the fields in the replies of one API."""

    listed: bool
    """Whether the answer is the first of ``choices``, or the document itself."""
    message: str | None
    """Field of the answer that holds the message; None if the answer is the message."""
    content: str
    """Field of the message that holds its text or its parts."""
    finish: str
    """Field of the answer that says why it ended."""
    prompt_tokens: str
    """Field of ``usage``."""
    completion_tokens: str
    """Field of ``usage``."""
    cached_tokens: tuple[str, ...] = ()
    """Fields of ``usage`` with tokens of the prompt that are not among `prompt_tokens`."""


FORMS: Mapping[str, ReplyForm] = MappingProxyType(
    {
        CHAT: ReplyForm(True, "message", "content", "finish_reason", "prompt_tokens", "completion_tokens"),
        COMPLETIONS: ReplyForm(True, None, "text", "finish_reason", "prompt_tokens", "completion_tokens"),
        MESSAGES: ReplyForm(
            False,
            None,
            "content",
            "stop_reason",
            "input_tokens",
            "output_tokens",
            ("cache_creation_input_tokens", "cache_read_input_tokens"),
        ),
    }
)
"""The form of replies, by name of the API."""


def counted(usage: object, form: ReplyForm) -> tuple[int, int]:
    """Tokens of prompt and completion as the endpoint counted them; -1 where it does not say.

    Parameters
    ----------
    usage
        The field ``usage`` of a reply, whatever it holds.
    form
        Names of the API's fields. Tokens of the prompt that it counts apart, as cached ones, are added.

    Examples
    --------
    >>> counted({"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 2}, FORMS["messages"])
    (107, 2)
    >>> counted(None, FORMS["chat"])
    (-1, -1)
    """
    if not isinstance(usage, dict):
        return -1, -1
    completion = token_count(usage.get(form.completion_tokens))
    prompt = token_count(usage.get(form.prompt_tokens))
    for name in form.cached_tokens:
        part = token_count(usage.get(name))
        if part is not None:
            prompt = part + (prompt or 0)
    return -1 if prompt is None else prompt, -1 if completion is None else completion
