"""Records of replies: there and back, and never anything but ValueError for what is none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.forms import REPLY_FORMS, Record, ending_of, read_usage
from tests.cases import with_cases


@given(st.integers(100, 599), st.floats(0, 1e6), st.binary())
def test_decode__gives_back_what_was_encoded(status, latency, body):
    record = Record.decode(Record(status, latency, body).encode())

    assert (record.status, record.body) == (status, body)
    assert record.latency == pytest.approx(latency, abs=1e-6)


@given(st.floats(0, 1e6), st.sampled_from(sorted(REPLY_FORMS)), st.binary())
def test_decode__gives_back_the_api_and_the_time_to_the_first_token(first_token, api, body):
    record = Record.decode(Record(200, 1.0, body, first_token, api).encode())

    assert (record.api, record.body) == (api, body)
    assert record.first_token == pytest.approx(first_token, abs=1e-6)


def test_encode__of_a_whole_chat_reply_is_as_it_always_was():
    data = b'{"format":1,"status":200,"latency":0.250000}\n{}'

    assert Record(200, 0.25, b"{}").encode() == data
    assert Record.decode(data).api == "chat"
    assert math.isnan(Record.decode(data).first_token)


@with_cases(
    "data",
    [
        b"",
        b'{"format":1,"status":200,"latency":1,"api":"morse"}\n',
        b'{"format":1,"status":200,"latency":1,"api":[]}\n',
        b'{"format":1,"status":200,"latency":1,"first_token":"soon"}\n',
        b"\n",
        b"{}\n",
        b"[]\n",
        b"1\n{}",
        b"null\n",
        b'{"format":2,"status":200,"latency":1}\n',
        b'{"format":1}\n',
        b'{"format":1,"status":"x","latency":1}\n',
        b'{"format":1,"status":[1],"latency":1}\n',
        b'{"format":1,"status":1e999,"latency":1}\n',
        b'{"format":1,"status":200,"latency":1}',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
    ],
)
def test_decode__refuses_what_is_no_record(data):
    with pytest.raises(ValueError, match="not a record"):
        Record.decode(data)


@given(st.binary())
def test_decode__raises_nothing_but_value_error(data):
    with pytest.raises(ValueError, match="not a record"):
        Record.decode(data)


@with_cases(
    ("reason", "kind"),
    [
        *(
            (word, "stop")
            for word in (
                "stop",
                "STOP_SEQUENCE",
                "end_turn",
                "eos",
                "tool_calls",
                "tool_call",
                "done",
                "completed",
            )
        ),
        *(
            (word, "length")
            for word in ("length", "max_tokens", "MAX_OUTPUT", "context_window", "incomplete")
        ),
        *((word, "refused") for word in ("content_filter", "SAFETY", "policy", "stop_for_safety")),
        *(
            (word, "fault")
            for word in ("error", "network_error", "limit_error", "server shut down: shutdown")
        ),
        *((word, "") for word in ("", "null", "None", "FINISH_REASON_UNSPECIFIED", None, 0, [])),
        *((word, "unknown") for word in ("OTHER", "done2", 5, {"a": 1})),
    ],
)
def test_ending_of__goes_by_what_words_mean(reason, kind):
    assert ending_of(reason).kind == kind


def test_ending_of__keeps_the_word_short():
    assert ending_of("odd_word").word == "odd_word"
    assert len(ending_of("x" * 500).word) <= 64
    assert ending_of([1]).word == "list"


@with_cases(
    ("api", "usage", "counts"),
    [
        ("chat", {"prompt_tokens": 5, "completion_tokens": 7}, (5, 7, -1, -1)),
        (
            "chat",
            {"completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 6}},
            (-1, 7, 6, -1),
        ),
        ("chat", {"completion_tokens": 7, "reasoning_tokens": 6}, (-1, 7, 6, -1)),
        (
            "chat",
            {"completion_tokens_details": {"reasoning_tokens": 1}, "reasoning_tokens": 6},
            (-1, -1, 1, -1),
        ),
        ("chat", {"completion_tokens_details": {}, "reasoning_tokens": 6}, (-1, -1, 6, -1)),
        ("chat", {"completion_tokens_details": None}, (-1, -1, -1, -1)),
        ("chat", {"prompt_tokens": 5, "prompt_cache_hit_tokens": 9}, (5, -1, -1, 5)),
        ("chat", {"cached_tokens": 9}, (-1, -1, -1, 9)),
        ("chat", {"prompt_tokens": -1, "completion_tokens": "7"}, (-1, -1, -1, -1)),
        (
            "messages",
            {"input_tokens": 5, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2},
            (10, -1, -1, 2),
        ),
        ("messages", {"cache_read_input_tokens": 2}, (2, -1, -1, 2)),
        ("messages", {"input_tokens": 2**31 - 1, "cache_read_input_tokens": 5}, (2**31 - 1, -1, -1, 5)),
        ("responses", {"output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}}, (-1, 7, 0, -1)),
        ("chat", None, (-1, -1, -1, -1)),
        ("chat", [5], (-1, -1, -1, -1)),
    ],
)
def test_read_usage__has_what_the_endpoint_says(api, usage, counts):
    assert read_usage(usage, REPLY_FORMS[api]) == counts


def said(*texts, **more):
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts], **more}


THOUGHT = {"type": "reasoning", "content": [{"text": "so"}], "summary": [{"text": "in short"}]}


@with_cases(
    ("document", "message", "finish"),
    [
        ({"output": [said("a", "b"), said("c")], "status": "completed"}, {"content": "abc"}, "completed"),
        ({"output": [THOUGHT]}, {"reasoning": "so"}, None),
        ({"output": [{**THOUGHT, "content": None}]}, {"reasoning": "in short"}, None),
        (
            {"output": [{"type": "message", "content": [{"refusal": "no"}]}]},
            {"refusal": "no", "content": ""},
            None,
        ),
        (
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            {"content": ""},
            "max_output_tokens",
        ),
        (
            {"output": [5, said(7, "x"), {"type": "message", "content": "x"}], "incomplete_details": 5},
            {"content": "x"},
            None,
        ),
        ({"output": [said("a")], "status": "failed"}, {}, "error"),
        ({"output": [said("a")], "status": "cancelled"}, {}, "error"),
        ({"output": [said("a")], "error": {"code": 1}}, {}, "error"),
    ],
)
def test_responses__are_read_as_a_choice(document, message, finish):
    (choice,) = REPLY_FORMS["responses"].read(document)["choices"]

    assert choice["finish_reason"] == finish
    assert {name: choice["message"].get(name) for name in message} == message


def test_responses__number_the_calls_of_tools_and_are_nothing_before_they_end():
    calls = [{"type": "function_call", "name": "f", "arguments": "{}"}]
    read = REPLY_FORMS["responses"].read
    (choice,) = read({"output": [said("a"), *calls, *calls]})["choices"]

    assert [call["id"] for call in choice["message"]["tool_calls"]] == [2, 3]
    for document in (
        {"output": [], "status": "queued"},
        {"output": [], "status": "in_progress"},
        {"output": None},
    ):
        assert read(document)["choices"] is None
    assert REPLY_FORMS["chat"].read({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("imported", [True, False])
def test_decode__gives_back_what_was_imported_and_a_latency_that_is_none(imported):
    record = Record.decode(Record(200, math.nan, b"{}", imported=imported).encode())

    assert record.imported is imported
    assert math.isnan(record.latency)
