"""Read what a reply says: answer, reasoning, tool calls, finish reason and sizes; no reply makes it raise."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from evalcube.stages.reply.body import name_code, parse_body, read_error, short_text
from evalcube.stages.reply.forms import REPLY_FORMS, Record, ending_of, read_usage
from evalcube.stages.reply.status import OUTCOMES, Status

CALLS_LIMIT = 1_000
"""Calls of one reply that are read."""
CALL_TEXT_LIMIT = 100_000
"""Characters of a tool's name and of its arguments that are read."""

Call = tuple[str, str]
"""Name of a tool and its arguments, as the model wrote them."""


def read_tool_calls(value: object) -> tuple[Call, ...]:
    """The calls in the field ``tool_calls`` of a chat message, in the order in which they came.

    A streamed reply holds a call in pieces, which share an ``index``: the first one has its name, the others what is
    to be added to its arguments. A piece with an ``id`` of its own begins another call, whatever its index.

    Examples
    --------
    >>> read_tool_calls([{"id": "a", "function": {"name": "add", "arguments": "{}"}}])
    (('add', '{}'),)
    >>> pieces = [("a", "add", "{"), (None, None, '"x": 1}')]
    >>> read_tool_calls([{"index": 0, "id": i, "function": {"name": n, "arguments": a}} for i, n, a in pieces])
    (('add', '{"x": 1}'),)
    """
    if not isinstance(value, list):
        return ()
    calls: list[tuple[object, list[str], list[str]]] = []
    open_calls: dict[int, int] = {}
    for piece in value:
        if not isinstance(piece, dict):
            continue
        function = piece.get("function")
        fields = function if isinstance(function, dict) else {}
        index, own = piece.get("index"), piece.get("id")
        position = open_calls.get(index) if isinstance(index, int) else None
        if position is None or (own and own != calls[position][0]):
            if len(calls) == CALLS_LIMIT:
                break
            position = len(calls)
            calls.append((own, [], []))
            if isinstance(index, int):
                open_calls[index] = position
        calls[position][1].append(_text(fields.get("name")))
        calls[position][2].append(_text(fields.get("arguments")))
    return tuple(("".join(name)[:CALL_TEXT_LIMIT], "".join(raw)[:CALL_TEXT_LIMIT]) for _, name, raw in calls)


def _text(value: object) -> str:
    """Text as it is; some servers send the arguments as an object."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (dict, list)):
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


TEXT_LIMIT = 4_000_000
"""Characters of answer and of reasoning that are read; an endpoint that sends more is cut."""

# They begin with a letter that has no case: such a pattern is searched for at the speed of a memory scan.
_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.I | re.A)
_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.I | re.A)
_TOO_LARGE = 413
_SHOWN_BYTES = 1000
_FINISHES = frozenset({"length", "refused"})
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


@dataclass(frozen=True, slots=True)
class ImportedGrade:
    """The grade of a reply by the tool that it was imported from."""

    status: Status
    score: float | None
    """From 0 to 1; None where the tool gave no number."""
    answer: str | None
    """The answer as the tool read it; None where it does not say."""
    prompt: str | None = None
    """What was sent, where that is not what the question's row has, such as with another model's chat template."""
    has_text: bool = True
    """Whether there is a text; some logs hold grades alone."""


class Reading(NamedTuple):
    """What a reply says."""

    answer: str
    """The text after the reasoning trace."""
    reasoning: str
    """The reasoning trace; empty if the model shows none."""
    finish: str
    """``stop``, ``length``, ``context`` (the prompt did not fit) or ``refused``."""
    prompt_tokens: int
    """-1 where the endpoint does not say."""
    completion_tokens: int
    """-1 where the endpoint does not say."""
    latency: float
    """Seconds."""
    tool_calls: tuple[Call, ...] = ()
    """Tools that the model asks for, with their arguments; text completions have none."""
    imported: ImportedGrade | None = None
    """What another tool said of the reply; None of one that evalcube got itself."""
    fingerprint: str = ""
    """What the endpoint says of the system that answered: provider and fingerprint, as far as it names them."""
    reasoning_tokens: int = -1
    """Of the completion's; -1 where the endpoint does not say, as below."""
    cached_tokens: int = -1
    """Of the prompt's."""
    first_token: float = math.nan
    """Seconds until a streamed reply began."""
    ending: str = ""
    """The endpoint's word for why it ended, where nobody knows what it means; see `forms.Ending.unusual_word`."""
    error: str = ""
    """What the endpoint said in the place of an answer."""

    @property
    def provider(self) -> int:
        """A number above 0 for the system that answered, the same for the same name; 0 without a name."""
        return name_code(self.fingerprint)


def read_reply(record: Record) -> Reading:
    """Read a reply that counts."""
    document = _mapping(parse_body(record.body))
    if record.status >= 300 or document.get("error"):
        error = read_error(document)
        finish = "context" if record.status == _TOO_LARGE or error.is_long else "refused"
        shown = error.message or f"HTTP {record.status}"
        return Reading("", "", finish, -1, 0, record.latency, error=shown)
    form = REPLY_FORMS[record.api]
    document = form.read(document)
    choice = document
    if form.listed:
        choices = document.get("choices")
        if choices == []:
            shown = record.body[:_SHOWN_BYTES].decode("utf-8", "replace")
            return Reading("", "", "refused", -1, 0, record.latency, error=shown)
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = choice if form.message is None else _mapping(choice.get(form.message))
    content, thoughts = _content(message.get(form.content))
    answer, reasoning = split_reasoning(content, _reasoning_field(message) or thoughts)
    used = read_usage(document.get("usage"), form)
    end = ending_of(choice.get(form.finish))
    named = (short_text(document.get(name)) for name in ("provider", "system_fingerprint"))
    return Reading(
        answer,
        reasoning,
        end.kind if end.kind in _FINISHES else "refused" if message.get("refusal") else "stop",
        used.prompt,
        used.completion,
        record.latency,
        read_tool_calls(message["tool_calls"] if "tool_calls" in message else _uses(message.get("content"))),
        _read_grade(document.get("imported")) if record.imported else None,
        short_text(" ".join(filter(None, named))),
        used.reasoning,
        used.cached,
        record.first_token if 0 <= record.first_token < math.inf else math.nan,
        end.unusual_word,
    )


def with_calls(reading: Reading) -> Reading:
    r"""The reading of a reply to a trial that offers tools: the last line of its answer has all calls, or none.

    What the line says, no text of the model's can: it stands below.

    Examples
    --------
    >>> print(with_calls(Reading("On it.", "", "stop", 1, 1, 0.5, (("add", '{"x": 1}'),))).answer)
    On it.
    Tool calls: [{"name": "add", "arguments": "{\"x\": 1}"}]
    """
    calls = [{"name": name, "arguments": arguments} for name, arguments in reading.tool_calls]
    line = f"Tool calls: {json.dumps(calls, ensure_ascii=False)}"
    return reading._replace(answer=f"{reading.answer}\n{line}" if reading.answer else line)


def _uses(content: object) -> list[dict[str, object]]:
    """The blocks of Anthropic's messages that call tools, in the form of chat; a stream has arguments as a text."""
    blocks = [_mapping(part) for part in content] if isinstance(content, list) else []
    return [
        {
            "id": number,
            "function": {
                "name": block.get("name"),
                "arguments": block.get("partial_json") or block.get("input"),
            },
        }
        for number, block in enumerate(blocks, 1)
        if block.get("type") == "tool_use"
    ]


def _read_grade(grade: object) -> ImportedGrade:
    """The grade in an imported reply. A cache may be anybody's: what is no grade is an answer that cannot be read."""
    fields = _mapping(grade)
    score, answer, prompt = fields.get("score"), fields.get("answer"), fields.get("prompt")
    valid = isinstance(score, (int, float)) and not isinstance(score, bool) and 0 <= score <= 1
    return ImportedGrade(
        OUTCOMES.get(str(fields.get("status")), Status.INVALID),
        float(score) if valid else None,  # type: ignore[arg-type]  # as `valid` says
        answer if isinstance(answer, str) else None,
        prompt if isinstance(prompt, str) else None,
        fields.get("text") is not False,
    )


def split_reasoning(content: str, field: str = "") -> tuple[str, str]:
    """The final answer and the reasoning trace of a message.

    The trace is the API's own reasoning field where there is one, and whatever stands in think blocks. A block ends
    at the first closing tag; one that is never closed is all trace. A closing tag without an opening one ends a trace
    that began in the prompt's template, or goes on after an inner block. A tag in backticks, or an opening one in the
    midst of an answer that is never closed, is talk about tags.

    Examples
    --------
    >>> split_reasoning("<think>2+2</think>Answer: 4")
    ('Answer: 4', '2+2')
    >>> split_reasoning("so 4</think>Answer: 4")
    ('Answer: 4', 'so 4')
    >>> split_reasoning("<think>so")
    ('', 'so')
    """
    content, field = content[:TEXT_LIMIT], field[:TEXT_LIMIT]
    answers, thought = _spans(content)
    trace = "\n".join(content[start:end] for start, end in thought)
    answer = "\n".join(content[start:end] for start, end in answers)
    return answer, f"{field}\n{trace}" if field and trace else field or trace


def _spans(content: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where a text is answer and where it is trace, as (start, end), in linear time."""
    answers: list[tuple[int, int]] = []
    thought: list[tuple[int, int]] = []
    begin = 0
    while (tag := _find(_TAG, content, begin)) is not None:
        if tag[1]:
            # All that looked like an answer so far was trace; each span moves but once.
            thought += answers
            answers.clear()
            _add(thought, content, begin, tag.start())
            begin = tag.end()
            continue
        close = _find(_CLOSE, content, tag.end())
        if close is None:
            if content[begin : tag.start()].strip():
                break
            _add(thought, content, tag.end(), len(content))
            return answers, sorted(thought)
        _add(answers, content, begin, tag.start())
        _add(thought, content, tag.end(), close.start())
        begin = close.end()
    _add(answers, content, begin, len(content))
    return answers, sorted(thought)


def _find(pattern: re.Pattern[str], content: str, begin: int) -> re.Match[str] | None:
    """The first tag at or after `begin` that is not between backticks."""
    while (tag := pattern.search(content, begin)) is not None:
        start, begin = tag.span()
        if content[start - 1 : start] != "`" or content[begin : begin + 1] != "`":
            break
    return tag


def _add(spans: list[tuple[int, int]], content: str, start: int, end: int) -> None:
    """Append a span that holds more than white space."""
    if content[start:end].strip():
        spans.append((start, end))


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _content(content: object) -> tuple[str, str]:
    """Content as text, and the reasoning in it; some servers send a list of parts."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        return "", ""
    texts: dict[bool, list[str]] = {False: [], True: []}
    for part in content:
        kind = _mapping(part).get("type")
        texts[kind in ("thinking", "reasoning")].append(_part_text(part))
    return "".join(texts[False]), "".join(texts[True])


def _part_text(part: object) -> str:
    """Text of one part; a thinking part may hold a list of parts itself."""
    if isinstance(part, str):
        return part
    fields = _mapping(part)
    for name in ("text", "thinking", "reasoning", "summary"):
        value = fields.get(name)
        if isinstance(value, list):
            inner = (_mapping(item).get("text") for item in value)
            return "".join(text for text in inner if isinstance(text, str))
        if isinstance(value, str):
            return value
    return ""


def _reasoning_field(message: dict[str, object]) -> str:
    for name in _REASONING_FIELDS:
        value = message.get(name)
        if text := value if isinstance(value, str) else "".join(_content(value)):
            return text
    return ""
