"""Replies of each API, their errors and counts of tokens, and efforts as each spells them."""

import json
import math

import pytest

from evalcube.stages.infer.apis import APIS, build_request
from evalcube.stages.infer.reply import RetryClass, classify
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.body import name_code
from evalcube.stages.reply.forms import REPLY_FORMS, Record, read_usage
from tests.cases import with_cases
from tests.stages.infer.test_apis import fields

USER = {"role": "user", "content": "1 + 1 = ?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SAMPLER = {"temperature": 0, "max_tokens": 9}


def message(**changes):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "2"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 3},
        **changes,
    }


@with_cases(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        (None, "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
    ],
)
def test_read_reply__of_messages(reason, finish):
    body = json.dumps(message(stop_reason=reason)).encode()

    reading = read_reply(Record(200, 1.0, body, api="messages"))
    reply = classify(200, {}, body, 0.0, "messages")

    assert (reading.answer, reading.reasoning, reading.finish) == ("2", "hm", finish)
    assert (reading.prompt_tokens, reading.completion_tokens) == (105, 3)
    assert (reply.is_final, reply.prompt_tokens, reply.completion_tokens) == (True, 105, 3)


def test_read_reply__of_a_refused_message_without_a_text():
    body = json.dumps(message(content=[], stop_reason="refusal")).encode()

    assert classify(200, {}, body, 0.0, "messages").is_final
    assert read_reply(Record(200, 1.0, body, api="messages")).finish == "refused"


def test_read_reply__of_completions():
    body = json.dumps(
        {
            "choices": [{"text": "<think>hm</think>2", "finish_reason": "length"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 3},
        }
    ).encode()

    reading = read_reply(Record(200, 1.0, body, api="completions"))

    assert (reading.answer, reading.reasoning, reading.finish) == ("2", "hm", "length")
    assert (reading.prompt_tokens, reading.completion_tokens) == (5, 3)
    assert classify(200, {}, body, 0.0, "completions").completion_tokens == 3


def response(**changes):
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "2"}]},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
    ]
    usage = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 3}
    usage["output_tokens_details"] = {"reasoning_tokens": 2}
    return {
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": usage,
        "error": None,
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "finish"),
    [
        ({}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
    ],
)
def test_read_reply__of_responses(changes, finish):
    body = json.dumps(response(**changes)).encode()

    reading = read_reply(Record(200, 1.0, body, api="responses"))
    reply = classify(200, {}, body, 0.0, "responses")

    assert (reading.answer, reading.reasoning, reading.finish) == ("2", "hm", finish)
    assert (reading.prompt_tokens, reading.completion_tokens) == (7, 3)
    assert (reading.cached_tokens, reading.reasoning_tokens) == (5, 2)
    assert reading.tool_calls == (("add", "{}"),)
    assert (reply.is_final, reply.prompt_tokens, reply.completion_tokens) == (True, 7, 3)


def test_read_reply__of_a_response_that_refuses():
    said = [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]
    body = json.dumps(response(output=said)).encode()

    assert read_reply(Record(200, 1.0, body, api="responses")).finish == "refused"


def test_build_request__of_responses_is_not_stored_and_has_its_own_names():
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    sampler = {"max_tokens": 9, "effort": "low", "tools": [tool]}

    body = json.loads(build_request("m", [USER], sampler, api="responses").body)

    assert body == {
        "input": [USER],
        "max_output_tokens": 9,
        "model": "m",
        "reasoning": {"effort": "low"},
        "store": False,
        "tools": [{"type": "function", "name": "add", "parameters": {}}],
    }
    kept = build_request("m", [USER], {"store": True}, api="responses").body
    assert json.loads(kept)["store"] is True


@with_cases(
    ("api", "body", "cause"),
    [
        ("responses", {"choices": [{"message": {"content": "2"}}]}, "no choices"),
        ("responses", response(status="in_progress"), "no choices"),
        ("responses", response(status="failed", error={"message": "oh no"}), "http 500"),
        ("responses", response(status="cancelled"), "broken off"),
        ("messages", {"choices": [{"message": {"content": "2"}}]}, "wrong shape"),
        ("messages", {"type": "error", "error": {"type": "api_error", "message": "oh no"}}, "http 500"),
        ("completions", {"choices": [{"message": {"content": "2"}}]}, "wrong shape"),
        ("completions", message(), "no choices"),
        ("chat", message(), "no choices"),
        ("chat", {"choices": [{"text": "2"}]}, "wrong shape"),
    ],
)
def test_classify__of_another_apis_reply(api, body, cause):
    reply = classify(200, {}, json.dumps(body).encode(), 0.0, api)

    assert (reply.retry_class, reply.cause) == (RetryClass.RETRY, cause)
    read_reply(Record(200, 1.0, json.dumps(body).encode(), api=api))


@with_cases(
    ("status", "kind", "text", "cause", "retry_class"),
    [
        (529, "overloaded_error", "Overloaded", "http 529", RetryClass.RETRY),
        (429, "rate_limit_error", "slow down", "http 429", RetryClass.RETRY),
        (500, "api_error", "oh no", "http 500", RetryClass.RETRY),
        (401, "authentication_error", "invalid x-api-key", "http 401", RetryClass.FATAL),
        (404, "not_found_error", "model: x", "http 404", RetryClass.FATAL),
        (413, "request_too_large", "too many bytes", "http 413", RetryClass.FAILED),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            "context",
            RetryClass.FINAL,
        ),
        (
            400,
            "invalid_request_error",
            "max_tokens: 9 > 8, which is the maximum allowed",
            "http 400",
            RetryClass.FAILED,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to go on.",
            "http 400",
            RetryClass.FAILED,
        ),
    ],
)
def test_classify__of_errors_as_messages_has_them(status, kind, text, cause, retry_class):
    body = json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()

    reply = classify(status, {}, body, 0.0, "messages")

    assert (reply.cause, reply.retry_class) == (cause, retry_class)


@pytest.mark.parametrize(
    ("api", "sampler", "sent"),
    [
        ("chat", {"effort": "low", "seed": None}, {"reasoning_effort": "low", "seed": None}),
        ("chat", {"effort": None}, {}),
        ("messages", {"effort": "low"}, {"output_config": {"effort": "low"}}),
        (
            "messages",
            {"effort": "max", "output_config": {"format": {}}},
            {"output_config": {"format": {}, "effort": "max"}},
        ),
    ],
)
def test_build_request__spells_effort_as_the_api_does(api, sampler, sent):
    made = fields(api, [USER], {"max_tokens": 9, **sampler})

    assert made == {"max_tokens": 9, "messages": [USER], "model": "m", **sent}


@with_cases(
    ("api", "sampler", "rule"),
    [
        ("completions", {"effort": "low"}, "'effort' is no parameter of api: completions"),
        ("chat", {"effort": "hihg"}, "effort must be one of none, minimal, low"),
        ("chat", {"effort": ["low", "high"]}, "got ['low', 'high']"),
        ("chat", {"effort": "low", "reasoning_effort": "high"}, "are one parameter of api: chat"),
        (
            "messages",
            {"effort": "low", "output_config": {"effort": "low"}, "max_tokens": 9},
            "are one parameter",
        ),
    ],
)
def test_problems__of_an_effort(api, sampler, rule):
    found = list(APIS[api].problems(sampler))

    assert [(rule in one.rule, one.param) for one in found] == [(True, "effort")]


@with_cases(
    ("api", "usage", "reasoning", "cached"),
    [
        ("chat", {"completion_tokens_details": {"reasoning_tokens": 5}}, 5, -1),
        ("chat", {"completion_tokens_details": None, "reasoning_tokens": 6}, 6, -1),
        ("chat", {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}, -1, 8),
        ("chat", {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10**9}}, -1, 9),
        ("chat", {"prompt_tokens_details": {"cached_tokens": 1e400}}, -1, -1),
        ("chat", {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3}, -1, 3),
        (
            "messages",
            {"input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 7},
            -1,
            4,
        ),
        ("messages", {"output_tokens_details": {"thinking_tokens": 2}}, 2, -1),
        ("completions", {"prompt_tokens_details": []}, -1, -1),
    ],
)
def test_counted__of_reasoning_and_cached_tokens(api, usage, reasoning, cached):
    found = read_usage(usage, REPLY_FORMS[api])

    assert (found.reasoning, found.cached) == (reasoning, cached)


def test_read_reply__names_who_answered():
    body = {
        "choices": [{"message": {"content": "2"}}],
        "provider": "Nebula\n<b>",
        "system_fingerprint": "fp_1",
    }

    found = read_reply(Record(200, 1.0, json.dumps(body).encode(), first_token=0.5))
    other = read_reply(Record(200, 1.0, json.dumps({**body, "provider": ["x"]}).encode(), first_token=-1.0))

    assert (found.fingerprint, found.first_token) == ("Nebula?<b> fp_1", 0.5)
    assert found.provider == name_code("Nebula?<b> fp_1") != other.provider == name_code("fp_1") > 0
    assert math.isnan(other.first_token)
