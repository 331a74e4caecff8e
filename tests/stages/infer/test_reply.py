"""What replies mean: status by body, with the habits of real servers."""

import json
import math
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.reply import EndHabit, Reply, RetryClass, classify, one_line
from tests.cases import with_cases

NOW = 1_700_000_000.0
FINAL, RETRY, FAILED, FATAL = RetryClass.FINAL, RetryClass.RETRY, RetryClass.FAILED, RetryClass.FATAL


def reply_to(status, document, **headers):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return classify(status, {name.replace("_", "-"): value for name, value in headers.items()}, body, NOW)


def completion(message=None, usage=None, **choice):
    message = {"role": "assistant", "content": "4"} if message is None else message
    usage = {"prompt_tokens": 7, "completion_tokens": 9} if usage is None else usage
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}], "usage": usage}


OK = {
    "plain": completion(),
    "null content": completion({"content": None}),
    "parts": completion({"content": [{"type": "text", "text": "4"}]}),
    "tool calls": completion({"content": None, "tool_calls": [{}]}),
    "cut": completion(finish_reason="length"),
    "filtered": completion(finish_reason="content_filter"),
    "odd finish reason": completion(finish_reason=[["x"]]),
    "two choices": {"choices": completion()["choices"] * 2, "usage": completion()["usage"]},
    "null error": completion(error=None),
}


@with_cases("case", OK)
def test_classify__replies_that_count(case):
    assert reply_to(200, OK[case]) == Reply(FINAL, prompt_tokens=7, completion_tokens=9)


@with_cases("reason", [None, "", "null", "None", "FINISH_REASON_UNSPECIFIED", False, 0])
def test_judge__a_reply_without_a_reason_is_cut_where_others_had_one(reason):
    habit, without, with_one = (
        EndHabit(),
        reply_to(200, completion(finish_reason=reason)),
        reply_to(200, completion()),
    )

    assert not without.has_reason
    assert habit.judge(without) is without
    assert habit.judge(with_one) is with_one
    assert (habit.judge(without).retryable, habit.judge(without).cause) == (True, "cut reply")


@with_cases(
    "usage",
    [
        None,
        [],
        "7",
        {},
        {"prompt_tokens": None, "completion_tokens": "9"},
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": -1, "completion_tokens": 10**4000},
        {"prompt_tokens": True, "completion_tokens": [1]},
    ],
)
def test_classify__usage_that_is_none_counts_as_nothing(usage):
    document = {**completion(), "usage": usage}

    assert reply_to(200, document) == Reply(FINAL, text_bytes=1)


def test_classify__text_that_is_no_utf8_counts():
    body = json.dumps(completion()).encode().replace(b'"4"', b'"4\xff"')

    assert reply_to(200, body).retry_class is FINAL


PAGE = "a web page instead of JSON: is the endpoint an OpenAI-compatible base URL, ending in /v1?"
NOT_COUNTING = {
    "html": (b"<html>hotel</html>", "invalid json", PAGE),
    "another page": (b" <!DOCTYPE html><p>hotel", "invalid json", PAGE),
    "empty": (b"", "invalid json", "the reply is empty"),
    "cut off": (b'{"choices": [{"mess', "invalid json", '{"choices": [{"mess'),
    "nested lists": (b"[" * 100_000, "invalid json", "[" * 299 + "…"),
    "nested objects": (b'{"a":' * 100_000, "invalid json", None),
    "huge number": (b'{"created": ' + b"9" * 9999 + b"}", "invalid json", None),
    "list": (b"[]", "wrong shape", None),
    "null": (b"null", "invalid json", "null"),
    "number": (b"1", "wrong shape", None),
    "no choices": (b"{}", "no choices", "{}"),
    "empty choices": (b'{"choices": []}', "no choices", '{"choices": []}'),
    "choices of another type": (b'{"choices": {"0": 1}}', "no choices", None),
    "error with status 200": (
        b'{"error": {"message": "over\\nloaded", "code": 502}}',
        "http 502",
        "over loaded",
    ),
    "text completion": (b'{"choices": [{"text": "4"}]}', "wrong shape", None),
    "choice is null": (b'{"choices": [null]}', "wrong shape", None),
    "message is null": (b'{"choices": [{"message": null}]}', "wrong shape", None),
    "broken off": (json.dumps(completion(finish_reason="error")).encode(), "broken off", "error"),
    "aborted": (json.dumps(completion(finish_reason="abort")).encode(), "broken off", "abort"),
    "paused": (json.dumps(completion(finish_reason="pause_turn")).encode(), "broken off", "pause_turn"),
    "out of machines": (
        json.dumps(completion(finish_reason="insufficient_system_resource")).encode(),
        "broken off",
        "insufficient_system_resource",
    ),
    "error beside an answer": (json.dumps(completion() | {"error": "oh no"}).encode(), "http 500", "oh no"),
    "error in the choice": (json.dumps(completion(error={"message": "lost"})).encode(), "broken off", "lost"),
}


@with_cases("case", NOT_COUNTING)
def test_classify__replies_that_are_asked_for_again(case):
    body, cause, detail = NOT_COUNTING[case]

    reply = reply_to(200, body)

    assert (reply.retry_class, reply.cause) == (RETRY, cause)
    if detail is not None:
        assert reply.detail == detail


ERRORS = [
    (401, {"detail": "Invalid API key"}, FATAL, "http 401", "Invalid API key"),
    (
        401,
        {"error": {"code": 401, "message": "wrong key", "type": "authentication_error"}},
        FATAL,
        "http 401",
        "wrong key",
    ),
    (402, b"", FATAL, "http 402", ""),
    (403, b"<html>no</html>", FATAL, "http 403", "<html>no</html>"),
    (
        404,
        {"object": "error", "message": "The model `x` does not exist."},
        FATAL,
        "http 404",
        "The model `x` does not exist.",
    ),
    (405, b"", FATAL, "http 405", ""),
    (301, b"", FATAL, "redirect", "HTTP 301: give the final base URL in the config"),
    (307, b"", FATAL, "redirect", "HTTP 307: give the final base URL in the config"),
    (400, {"error": {"message": "bad sampling value"}}, FAILED, "http 400", "bad sampling value"),
    (400, b"\xff\xfe", FAILED, "http 400", "\N{REPLACEMENT CHARACTER}" * 2),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        FINAL,
        "context",
        "",
    ),
    (
        400,
        {
            "message": "This model's maximum context length is 8 tokens. However, your request has 9 input tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        FINAL,
        "context",
        "",
    ),
    (400, {"error": {"code": "context_length_exceeded", "message": "m"}}, FINAL, "context", ""),
    (413, {"error": {"code": "context_length_exceeded"}}, FINAL, "context", ""),
    (422, {"error": {"message": "prompt is too long"}}, FINAL, "context", ""),
    (
        413,
        b"<html>Request Entity Too Large</html>",
        FAILED,
        "http 413",
        "<html>Request Entity Too Large</html>",
    ),
    (400, {"error": {"code": "content_filter", "message": "m", "innererror": {}}}, FINAL, "filter", ""),
    (418, {"error": {"code": "content_filter"}}, FAILED, "http 418", '{"error": {"code": "content_filter"}}'),
    (500, {"error": {"code": "context_length_exceeded", "message": "m"}}, RETRY, "http 500", "m"),
    (500, b"Internal Server Error", RETRY, "http 500", "Internal Server Error"),
    (429, {"error": {"message": "slow down"}}, RETRY, "http 429", "slow down"),
    (
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        RETRY,
        "http 503",
        "Loading model",
    ),
    (408, b"", RETRY, "http 408", ""),
    (529, b"", RETRY, "http 529", ""),
    (424, b"", RETRY, "http 424", ""),
    (498, b"", RETRY, "http 498", ""),
    (499, b"", RETRY, "http 499", ""),
    (527, b"", RETRY, "http 527", ""),
    (599, b"", RETRY, "http 599", ""),
    (501, b"", RETRY, "http 501", ""),
    (
        403,
        {"error": {"message": "Your input was flagged", "metadata": {}}},
        FAILED,
        "http 403",
        "Your input was flagged",
    ),
    (410, b"", FATAL, "http 410", ""),
    (100, b"", FAILED, "http 100", ""),
]


@with_cases(("status", "document", "retry_class", "cause", "detail"), ERRORS)
def test_classify__errors(status, document, retry_class, cause, detail):
    is_refusal = retry_class is FAILED and status >= 400
    assert reply_to(status, document) == Reply(retry_class, cause, detail, is_refusal=is_refusal)


@with_cases("status", [401, 404, 429, 500, 503])
def test_classify__an_error_is_no_answer_though_its_body_looks_like_one(status):
    assert reply_to(status, completion()).retry_class is not FINAL


@pytest.mark.parametrize("count", [299, 300, 301])
def test_one_line__is_cut_only_where_it_is_too_long(count):
    shown = one_line("\x00a\n" + "x" * (count - 2))

    assert len(shown) == min(count, 300)
    assert shown.endswith("…") == (count > 300)


def test_classify__detail_is_one_bounded_printable_line():
    reply = reply_to(500, {"error": {"message": "a\x1b[2J\n\tb" + "x" * 10_000}})

    assert reply.detail.startswith("a [2J bx")
    assert len(reply.detail) == 300
    assert reply.detail.endswith("…")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("Tue, 14 Nov 2023 22:13:30 -0000", 10.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Fri, 99 Zzz 9999", None),
        ("Mon, 32 Jan 2024 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253402300799.0 - NOW),
    ],
)
def test_classify__retry_after(value, seconds, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert reply_to(429, b"", retry_after=value).retry_after == seconds
    finally:
        monkeypatch.undo()
        time.tzset()


def test_classify__retry_after_counts_for_errors_worth_a_retry_only():
    assert reply_to(503, b"", retry_after="5").retry_after == 5.0
    assert reply_to(400, b"", retry_after="5").retry_after is None


times = st.text() | st.floats().map(str) | st.integers(-100, 10**6).map(str)


@given(st.integers(0, 999), st.binary(), times)
def test_classify__anything_has_a_cause_unless_it_counts(status, body, wait):
    reply = classify(status, {"retry-after": wait}, body, NOW)

    assert len(reply.detail) <= 300
    assert reply.detail.isprintable()
    assert reply.is_final or reply.cause
    if reply.retry_after is not None:
        assert 0.0 <= reply.retry_after < math.inf
        assert reply.retryable
        assert status >= 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "error", "code", "usage", "finish_reason", "detail"]
            ),
            inner,
        )
    ),
    max_leaves=15,
)


CLASSES = {
    200: set(RetryClass),
    400: {FINAL, FAILED},
    401: {FATAL},
    413: {FINAL, FAILED},
    422: {FINAL, FAILED},
    429: {RETRY},
    500: {RETRY},
}
"""By status, whatever the document says (but for an account without money)."""


@given(st.sampled_from(sorted(CLASSES)), json_values)
def test_classify__a_status_bounds_what_a_document_can_mean(status, document):
    reply = reply_to(status, document)

    assert reply.retry_class in CLASSES[status]
    assert reply.is_final is (reply.cause in {"", "filter", "context"})


@given(json_values, json_values)
def test_classify__token_counts_are_what_a_cube_can_hold(prompt, completed):
    reply = reply_to(200, completion(usage={"prompt_tokens": prompt, "completion_tokens": completed}))

    for given_count, count in ((prompt, reply.prompt_tokens), (completed, reply.completion_tokens)):
        assert type(count) is int
        assert 0 <= count < 2**31
        if type(given_count) is int and 0 <= given_count < 2**31:
            assert count == given_count
