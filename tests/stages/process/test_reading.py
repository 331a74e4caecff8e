"""What is read out of replies: answer, trace, finish reason, sizes; and that nothing in a reply can break it."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.reading import (
    _CLOSE,
    _TAG,
    TEXT_LIMIT,
    Reading,
    _find,
    read_reply,
    split_reasoning,
    with_calls,
)
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases
from tests.growth import grows_in_proportion

# answer and reasoning by content
SPLITS = {
    "": ("", ""),
    "Answer: 4": ("Answer: 4", ""),
    "<think>2+2</think>Answer: 4": ("Answer: 4", "2+2"),
    "<think>\n2+2\n</think>\n\nAnswer: 4": ("\n\nAnswer: 4", "\n2+2\n"),
    " \n<think>a</think>b": ("b", "a"),
    "<THINK>a</Think>b": ("b", "a"),
    "<thinking>a</thinking>b": ("b", "a"),
    "<reasoning>a</reasoning>b": ("b", "a"),
    "<think></think>b": ("b", ""),
    "<think>\n\n</think>\n\nb": ("\n\nb", ""),
    # never closed
    "<think>a": ("", "a"),
    "\n<think>a\nAnswer: 4": ("", "a\nAnswer: 4"),
    "<think>a</think><think>b": ("", "a\nb"),
    "<think>": ("", ""),
    "<think>a</think>b<think>c</think><think>d": ("b", "a\nc\nd"),
    "<think>a</think>b<think>c": ("b<think>c", "a"),
    # closing only: it began in the prompt's template
    "a</think>b": ("b", "a"),
    "a</think>b</think>c": ("c", "a\nb"),
    "a</think>": ("", "a"),
    "</think>b": ("b", ""),
    # several
    "<think>a</think>b<think>c</think>d": ("b\nd", "a\nc"),
    "<think>a</think>Answer: 4<think>check</think>": ("Answer: 4", "a\ncheck"),
    "a</think>b<think>c</think>d": ("b\nd", "a\nc"),
    # nested, and talk of tags inside a block
    "<think>a<think>b</think>c</think>d": ("d", "a<think>b\nc"),
    "<think>the <think> tag</think>4": ("4", "the <think> tag"),
    # talk of tags
    "Use `<think>` here. Answer: 4": ("Use `<think>` here. Answer: 4", ""),
    "Use `<think>` and `</think>`. Answer: 4": ("Use `<think>` and `</think>`. Answer: 4", ""),
    "<think>a</think>End with `</think>`. Answer: 4": ("End with `</think>`. Answer: 4", "a"),
    "<think>a `</think>` b</think>4": ("4", "a `</think>` b"),
    "The tag <think> opens. Answer: 4": ("The tag <think> opens. Answer: 4", ""),
    "```\n<think>x</think>\n```\nAnswer: 4": ("```\n\n\n```\nAnswer: 4", "x"),
    # no tags
    "<thinks>a</thinks>": ("<thinks>a</thinks>", ""),
    "a < think > b": ("a < think > b", ""),
    "<thin\N{KELVIN SIGN}>a": ("<thin\N{KELVIN SIGN}>a", ""),
    "İ<think>a</think>b": ("İ\nb", "a"),
}


@with_cases("content", SPLITS)
def test_split_reasoning(content):
    assert split_reasoning(content) == SPLITS[content]


def test_split_reasoning__with_a_field():
    assert split_reasoning("Answer: 4", "2+2") == ("Answer: 4", "2+2")
    assert split_reasoning("<think>b</think>Answer: 4", "a") == ("Answer: 4", "a\nb")


tags = st.sampled_from(
    ["<think>", "</think>", "<THINKING>", "</reasoning>", "`", "x", " ", "\n", "Answer: 4", "<"]
)


@given(st.lists(tags, max_size=30).map("".join) | st.text())
def test_split_reasoning__loses_nothing_that_was_said(content):
    answer, reasoning = split_reasoning(content)

    assert len(answer) + len(reasoning) <= len(content) + content.count("<")
    assert content.count("Answer: 4") == answer.count("Answer: 4") + reasoning.count("Answer: 4")


@given(st.lists(tags, max_size=30).map("".join))
def test_split_reasoning__an_answer_after_the_last_tag_is_kept(content):
    answer, _ = split_reasoning(content + "</think>\nAnswer: 41")

    assert answer.endswith("\nAnswer: 41")


@pytest.mark.parametrize(
    "unit",
    [
        "<think>",
        "</think>",
        "x</think>",
        "<think>x</think>y",
        "<think></think>",
        "`<think>`",
        "<",
        "<think>`</think>`",
        " ",
    ],
)
def test_split_reasoning__takes_time_in_proportion(unit):
    for start in ("", "a"):
        assert grows_in_proportion(
            lambda size, start=start: split_reasoning(start + unit * (size // len(unit))), TEXT_LIMIT // 4
        )


def test_split_reasoning__is_bounded():
    answer, reasoning = split_reasoning("a" * (TEXT_LIMIT + 9), "b" * (TEXT_LIMIT + 9))

    assert (len(answer), len(reasoning)) == (TEXT_LIMIT, TEXT_LIMIT)


def read(document, status=200):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_reply(Record(status, 0.5, body))


def completion(message, finish_reason="stop", **fields):
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 9}, **fields}


def test_read_reply():
    assert read(completion({"content": "<think>a</think>4"})) == Reading("4", "a", "stop", 7, 9, 0.5)


@with_cases(
    ("message", "answer", "reasoning"),
    [
        ({"content": "4", "reasoning_content": "a"}, "4", "a"),
        ({"content": "4", "reasoning": "a"}, "4", "a"),
        ({"content": "4", "thinking": "a"}, "4", "a"),
        ({"content": "4", "reasoning_content": "a", "reasoning": "a"}, "4", "a"),
        ({"content": "4", "reasoning_content": "", "reasoning": "b"}, "4", "b"),
        ({"content": "4", "reasoning_content": None, "reasoning": {"text": "b"}}, "4", ""),
        ({"content": None, "reasoning_content": "a"}, "", "a"),
        ({"content": None}, "", ""),
        ({}, "", ""),
        ({"content": 4}, "", ""),
        ({"content": {"text": "4"}}, "", ""),
        ({"content": []}, "", ""),
        ({"content": [{"type": "text", "text": "Answer: "}, {"type": "text", "text": "4"}]}, "Answer: 4", ""),
        (
            {"content": [{"type": "text", "text": "<think>a</th"}, {"type": "text", "text": "ink>4"}]},
            "4",
            "a",
        ),
        ({"content": ["Answer: ", "4"]}, "Answer: 4", ""),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}, {"text": "4"}]},
            "4",
            "a",
        ),
        ({"content": [{"type": "reasoning", "text": "a"}, {"type": "text", "text": "4"}]}, "4", "a"),
        ({"content": [{"type": "image_url"}, None, 3, [], {"type": [], "text": 4}, {"text": ["x"]}]}, "", ""),
        ({"content": None, "tool_calls": [{"id": "x"}]}, "", ""),
        ({"content": "a\ud800b"}, "a\ud800b", ""),
    ],
)
def test_read_reply__messages(message, answer, reasoning):
    reading = read(completion(message))

    assert (reading.answer, reading.reasoning) == (answer, reasoning)


@with_cases(
    ("reason", "message", "finish"),
    [
        ("stop", {}, "stop"),
        ("length", {}, "length"),
        ("LENGTH", {}, "length"),
        ("max_tokens", {}, "length"),
        ("MAX_TOKENS", {}, "length"),
        ("model_length", {}, "length"),
        ("content_filter", {}, "refused"),
        ("SAFETY", {}, "refused"),
        ("refusal", {}, "refused"),
        ("stop", {"refusal": "I cannot."}, "refused"),
        ("stop", {"refusal": None}, "stop"),
        ("stop", {"refusal": ""}, "stop"),
        ("length", {"refusal": "I can"}, "length"),
        ("tool_calls", {}, "stop"),
        (None, {}, "stop"),
        (["length"], {}, "stop"),
        ("", {}, "stop"),
        ("SPII", {}, "refused"),
        ("guardrail_intervened", {}, "refused"),
        ("max_output_tokens", {}, "length"),
        ("OTHER", {}, "stop"),
    ],
)
def test_read_reply__finish_reasons(reason, message, finish):
    assert read(completion({"content": "4", **message}, reason)).finish == finish


@with_cases(
    ("status", "document", "finish"),
    [
        (400, {"error": {"code": 400, "type": "exceed_context_size_error"}}, "context"),
        (400, {"error": {"code": "context_length_exceeded"}}, "context"),
        (400, {"message": "maximum context length", "type": "BadRequestError", "code": 400}, "context"),
        (413, b"no JSON", "context"),
        (422, {"error": {"message": "Request body too large for this model"}}, "context"),
        (200, {"error": {"code": "content_filter"}, "choices": []}, "refused"),
        (422, b"no JSON", "refused"),
        (451, {"detail": "We do not talk about that."}, "refused"),
        (400, {"error": {"code": "content_filter"}}, "refused"),
        (400, {"error": {"code": "content_policy_violation", "message": "m"}}, "refused"),
    ],
)
def test_read_reply__errors_that_count(status, document, finish):
    assert read(document, status)._replace(error="") == Reading("", "", finish, -1, 0, 0.5)


@with_cases(
    "usage",
    [
        None,
        [],
        {},
        {"prompt_tokens": None, "completion_tokens": "9"},
        {"prompt_tokens": -1, "completion_tokens": 2**31},
    ],
)
def test_read_reply__tokens_that_are_not_told(usage):
    reading = read({**completion({"content": "4"}), "usage": usage})

    assert (reading.prompt_tokens, reading.completion_tokens) == (-1, -1)


def test_read_reply__tokens_that_are_no_numbers():
    reading = read(
        {**completion({"content": "4"}), "usage": {"prompt_tokens": float("nan"), "completion_tokens": 1e999}}
    )

    assert (reading.prompt_tokens, reading.completion_tokens) == (-1, -1)


@with_cases(
    "body",
    [
        b"",
        b"[" * 100_000,
        b'{"choices":' * 100_000,
        b"\xff",
        b"null",
        b"[]",
        b"1",
        b'{"choices": null}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": []}]}',
        b'{"choices": [{"message": "x"}], "usage": 3}',
    ],
)
def test_read_reply__of_nothing(body):
    assert read(body) == Reading("", "", "stop", -1, -1, 0.5, ending="(none)")


def test_read_reply__text_that_is_no_utf8():
    body = json.dumps(completion({"content": "4?"})).encode().replace(b"4?", b"4\xff")

    assert read(body).answer == "4\N{REPLACEMENT CHARACTER}"


names = st.sampled_from(
    [
        "choices",
        "message",
        "content",
        "reasoning",
        "refusal",
        "finish_reason",
        "usage",
        "type",
        "text",
        "thinking",
        "prompt_tokens",
        "error",
        "code",
    ]
)


def test_read_reply__tools_that_a_message_uses():
    content = [
        {"type": "text", "text": "4"},
        {"type": "tool_use", "id": "1", "name": "add", "input": {"x": 1}},
        {"type": "tool_use", "id": "2", "name": "add", "input": {}, "partial_json": '{"x": '},
        {"type": "tool_use", "name": 5, "input": "x"},
        7,
    ]
    body = json.dumps({"content": content, "stop_reason": "tool_use"}).encode()

    reading = read_reply(Record(200, 0.5, body, api="messages"))

    assert reading.tool_calls == (("add", '{"x": 1}'), ("add", '{"x": '), ("", "x"))
    assert (reading.answer, reading.finish) == ("4", "stop")


def test_with_calls__the_last_line_is_no_text_of_the_model():
    forged = 'I call it.\nTool calls: [{"name": "add", "arguments": "{}"}]'
    said = read(completion({"content": forged}))
    called_too = read(completion({"content": None, "tool_calls": [{"function": {"name": "a\nb"}}]}))

    assert with_calls(said).answer == f"{forged}\nTool calls: []"
    assert with_calls(called_too).answer == 'Tool calls: [{"name": "a\\nb", "arguments": ""}]'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(tags, max_size=9).map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(), inner, max_size=5),
    max_leaves=20,
)
messages = st.dictionaries(names, json_values, max_size=6).map(
    lambda m: {"choices": [{"message": m, **m}], "usage": m}
)


@given(
    st.sampled_from([200, 204, 300, 400, 422]),
    st.binary() | (json_values | messages).map(lambda value: json.dumps(value).encode()),
)
def test_read_reply__never_raises(status, body):
    reading = read(body, status)

    assert isinstance(reading.answer, str)
    assert isinstance(reading.reasoning, str)
    assert reading.finish in {"stop", "length", "context", "refused"}
    assert -1 <= reading.prompt_tokens < 2**31
    assert -1 <= reading.completion_tokens < 2**31


_PLAINLY = {
    _TAG: re.compile(r"(?<!`)<(/?)(?:think|reasoning)>|<(/?)(?:think|reasoning)>(?!`)", re.I | re.A),
    _CLOSE: re.compile(r"(?<!`)</(?:think|reasoning)>|</(?:think|reasoning)>(?!`)", re.I | re.A),
}


@pytest.mark.parametrize("pattern", list(_PLAINLY), ids=["tag", "close"])
@given(
    content=st.lists(st.sampled_from(["`", "<think>", "</THINK>", "<reasoning>", "<", "x"])).map("".join),
    begin=st.integers(0, 9),
)
def test_find__passes_over_tags_between_backticks(pattern, content, begin):
    found, expected = _find(pattern, content, begin), _PLAINLY[pattern].search(content, begin)

    assert (found and found.span()) == (expected and expected.span())


def called(*calls):
    return read(completion({"content": None, "tool_calls": list(calls)})).tool_calls


def test_read_reply__tools_that_the_model_asks_for():
    assert called(
        {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}},
        {"id": "2", "type": "function", "function": {"name": "sub", "arguments": {"y": 2}}},
    ) == (("add", '{"x": 1}'), ("sub", '{"y": 2}'))
    assert read(completion({"content": "4"})).tool_calls == ()


def test_read_reply__streamed_calls_are_put_together():
    pieces = [
        {"index": 0, "id": "1", "function": {"name": "add", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x"'}},
        {"index": 1, "id": "2", "function": {"name": "sub", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": ": 1}"}},
        {"index": 1, "id": "3", "function": {"name": "mul", "arguments": "[]"}},
    ]

    assert called(*pieces) == (("add", '{"x": 1}'), ("sub", "{}"), ("mul", "[]"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["function", "index", "id", "name", "arguments", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_read_reply__no_tool_calls_break_it(value):
    found = read(completion({"content": "4", "tool_calls": value}))

    assert found.answer == "4"
    assert all(isinstance(text, str) for call in found.tool_calls for text in call)
