"""Messages and samplers as each API has them, headers that say who asks, and replies of each API."""

import json
import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.apis import APIS, ApiError, build_request
from evalcube.stages.infer.jobs import Job
from evalcube.stages.infer.reply import RetryClass, classify
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.body import name_code
from evalcube.stages.reply.forms import FORMS, counted
from evalcube.stages.reply.record import Record
from tests.stages.infer.echo import Echo, http
from tests.waiting import PATIENCE

USER = {"role": "user", "content": "1 + 1 = ?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SAMPLER = {"temperature": 0, "max_tokens": 9}


def fields(api, messages, sampler, repeat=0):
    return json.loads(build_request("m", messages, sampler, repeat, api).body)


def test_build_request__golden_of_the_other_apis():
    """A change here makes every cache worthless: never adjust the digests to the code."""
    made = [build_request("m", [USER], SAMPLER, 1, api) for api in ("completions", "messages")]

    assert [one.body for one in made] == [
        b'{"max_tokens":9,"model":"m","prompt":"1 + 1 = ?","temperature":0}',
        b'{"max_tokens":9,"messages":[{"content":"1 + 1 = ?","role":"user"}],"model":"m","temperature":0}',
    ]
    assert [one.digest for one in made] == [
        "f36e5df8efeb1ae352c2d064dadf56ad2bc6448b86a9ffce0819ca0ed69f1ca0",
        "c1d1d84b2f1bc79e7752be348455ac84a9bdc1fd1eb9e844188d4def88bb6542",
    ]


def test_build_request__messages_have_functions_as_tools_of_their_own():
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    offered = [
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": schema}},
        {"type": "function", "function": {"name": "now"}},
        {"name": "theirs", "input_schema": schema},
    ]

    chat, messages = (fields(api, [USER], {**SAMPLER, "tools": offered}) for api in ("chat", "messages"))

    assert chat["tools"] == offered
    assert messages["tools"] == [
        {"name": "add", "description": "Adds.", "input_schema": schema},
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
        {"name": "theirs", "input_schema": schema},
    ]


def test_build_request__equal_bodies_of_two_apis_have_two_digests():
    chat, messages = (build_request("m", [USER], SAMPLER, 0, api) for api in ("chat", "messages"))

    assert chat.body == messages.body
    assert chat.digest != messages.digest


def test_build_request__messages_have_their_system_texts_apart():
    talk = [
        SYSTEM,
        USER,
        {"role": "assistant", "content": "2"},
        {"role": "developer", "content": "Now."},
        USER,
    ]

    made = fields("messages", talk, SAMPLER)

    assert made["system"] == "Be brief.\n\nNow."
    assert made["messages"] == [USER, {"role": "assistant", "content": "2"}, USER]
    assert "system" not in fields("messages", [USER], SAMPLER)


def test_build_request__renames_and_drops_parameters():
    sampler = {"max_completion_tokens": 7, "stop": "END", "top_p": None, "temperature": 1}

    assert fields("messages", [USER], sampler) == {
        "max_tokens": 7,
        "messages": [USER],
        "model": "m",
        "stop_sequences": ["END"],
        "temperature": 1,
    }
    assert fields("completions", [USER], sampler) == {
        "max_tokens": 7,
        "model": "m",
        "prompt": "1 + 1 = ?",
        "stop": "END",
        "temperature": 1,
    }
    assert fields("messages", [USER], {**sampler, "stop": ["a", "b"]})["stop_sequences"] == ["a", "b"]


def test_build_request__completions_have_seeds_for_repeats():
    seeds = {fields("completions", [USER], {"seed": 4}, repeat)["seed"] for repeat in range(20)}

    assert len(seeds) == 20
    assert 4 in seeds


@pytest.mark.parametrize(
    ("api", "messages", "sampler", "param", "rule"),
    [
        ("messages", [USER], {**SAMPLER, "seed": 1}, "seed", "'seed' is no parameter of api: messages"),
        ("messages", [USER], {"temperature": 0}, None, "'max_tokens' is required"),
        ("messages", [USER], {"max_tokens": None}, None, "'max_tokens' is required"),
        (
            "messages",
            [USER],
            {**SAMPLER, "stop": "a", "stop_sequences": []},
            "stop_sequences",
            "are one parameter",
        ),
        ("messages", [SYSTEM], SAMPLER, None, "needs a user message"),
        ("messages", [USER, {"role": "tool", "content": ""}], SAMPLER, None, "knows no role tool"),
        ("completions", [SYSTEM, USER], {}, None, "the template has system + user"),
        ("completions", [USER, USER], {}, None, "the template has user + user"),
        ("completions", [], {}, None, "no message"),
        ("completions", [USER], {"tools": []}, "tools", "'tools' is no parameter of api: completions"),
    ],
)
def test_build_request__tells_what_an_api_cannot_carry(api, messages, sampler, param, rule):
    with pytest.raises(ApiError, match=re.escape(rule)) as caught:
        build_request("m", messages, sampler, 0, api)

    assert caught.value.param == param
    assert caught.value.remedy


@given(
    st.sampled_from(sorted(set(APIS) - {"chat"})),
    st.dictionaries(
        st.sampled_from(
            [
                "temperature",
                "max_tokens",
                "max_completion_tokens",
                "stop",
                "stop_sequences",
                "seed",
                "top_k",
                "tools",
                "min_p",
            ]
        ),
        st.none() | st.integers() | st.text(max_size=3),
    ),
)
def test_params__is_what_problems_lets_through(api, sampler):
    kind = APIS[api]
    problems = list(kind.problems(sampler))

    if problems:
        with pytest.raises(ApiError):
            kind.params(sampler)
    else:
        made = kind.params(sampler)
        assert len(made) == sum(value is not None for value in sampler.values())
        assert kind.known is None or set(made) <= kind.known
        assert not set(made) & set(kind.renamed)


def test_apis__have_replies_of_the_same_names():
    assert set(APIS) == set(FORMS)


@pytest.mark.parametrize(
    ("api", "path", "sent", "unsent"),
    [
        ("chat", b"/v1/chat/completions ", b"authorization: bearer sk-secret-1", b"x-api-key"),
        ("completions", b"/v1/completions ", b"authorization: bearer sk-secret-1", b"x-api-key"),
        ("messages", b"/v1/messages ", b"x-api-key: sk-secret-1", b"authorization"),
        ("responses", b"/v1/responses ", b"authorization: bearer sk-secret-1", b"x-api-key"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_send__path_headers_and_the_wish_for_a_stream(
    engine_for, monkeypatch, api, path, sent, unsent, stream
):
    monkeypatch.setenv("THE_KEY", "sk-secret-1")
    made = build_request("m", [USER], SAMPLER, api=api)
    with Echo() as echo:
        engine = engine_for(base_url=echo.base_url, key_env="THE_KEY", api=api, stream=stream, retries=0)
        engine.run("m", [Job(made.digest, made.body)])
        (request,) = echo.requests
    head, _, body = request.partition(b"\r\n\r\n")

    assert head.startswith(b"POST " + path)
    assert sent in head.lower()
    assert unsent not in head.lower()
    assert (b"anthropic-version: 2023-06-01" in head.lower()) == (api == "messages")
    wish = {"stream": True} | (
        {} if api in ("messages", "responses") else {"stream_options": {"include_usage": True}}
    )
    assert json.loads(body) == json.loads(made.body) | (wish if stream else {})


def test_send__a_version_in_the_config_comes_first(engine_for):
    with Echo() as echo:
        engine = engine_for(
            base_url=echo.base_url, api="messages", headers={"Anthropic-Version": "2030-01-01"}, retries=0
        )
        engine.run("m", [Job("0" * 64, b"{}")])

        assert b"2023-06-01" not in echo.requests[0]
        assert b"2030-01-01" in echo.requests[0]


def test_send__a_server_that_does_not_stream_is_read_as_it_is(engine_for, store):
    reply = {"choices": [{"message": {"content": "2"}, "finish_reason": "stop"}]}
    with Echo(lambda _: http(json.dumps(reply).encode(), 200, "content-type: application/json")) as echo:
        (result,) = engine_for(base_url=echo.base_url, stream=True).run("m", [Job("0" * 64, b"{}")])

    (record,) = map(Record.decode, store.records.values())
    assert result.kind == "stored"
    assert json.loads(record.body) == reply
    assert math.isnan(record.first_token)


def test_send__a_stream_that_goes_on_after_its_end_costs_its_connection_only(engine_for, store):
    body = b'data: {"choices":[{"delta":{"content":"2"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    answer = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n" + body
    with Echo(lambda _: answer) as echo:
        begin = time.monotonic()
        (result,) = engine_for(base_url=echo.base_url, stream=True, timeout=3600.0).run(
            "m", [Job("0" * 64, b"{}")]
        )
        assert time.monotonic() - begin < PATIENCE  # of the hour that a request may take

    (record,) = map(Record.decode, store.records.values())
    assert (result.kind, result.attempts) == ("stored", 1)
    assert record.latency < 30.0


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("api", "body", "cause"),
    [
        ("responses", {"choices": [{"message": {"content": "2"}}]}, "no choices"),
        ("responses", response(status="in_progress"), "no choices"),
        ("responses", response(status="failed", error={"message": "oh no"}), "broken off"),
        ("messages", {"choices": [{"message": {"content": "2"}}]}, "wrong shape"),
        ("messages", {"type": "error", "error": {"type": "api_error", "message": "oh no"}}, "wrong shape"),
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


@pytest.mark.parametrize(
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
            RetryClass.FATAL,
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    found = counted(usage, FORMS[api])

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
