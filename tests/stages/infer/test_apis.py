"""Messages and samplers as each API has them, and headers that say who asks."""

import json
import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.apis import APIS, ApiError, build_control, build_request
from evalcube.stages.infer.jobs import Job
from evalcube.stages.reply.forms import REPLY_FORMS, Record
from tests.cases import with_cases
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


@pytest.mark.parametrize("api", [name for name, rule in APIS.items() if name != "completions"])
def test_build_control__asks_what_nobody_refuses_and_leaves_settings(api):
    sampler = {"max_tokens": 9}
    asked, control = (
        json.loads(build(build_request("m", messages, sampler, 0, api=api).body))
        for build, messages in (
            (lambda body: build_control(body, api), [SYSTEM, USER]),
            (lambda body: body, [{"role": "user", "content": "1+1="}]),
        )
    )

    assert asked == control


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


@with_cases(
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
    assert set(APIS) == set(REPLY_FORMS)


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
