"""A streamed reply says what the whole one says, and nothing that an endpoint streams does harm."""

import json
import math
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.reply import RetryClass, classify
from evalcube.stages.infer.sse import TooLargeError
from evalcube.stages.infer.streams import ASSEMBLIES, BadEventError, CutError, ReplyStream, error_status
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from tests.simulator.forms import PATHS, deliver
from tests.simulator.wire import json_response

FORMS = {form.name: form for form in PATHS.values()}
DONE = b"data: [DONE]\n\n"


def streamed(api, pieces, limit=10**6):
    stream = ReplyStream(api, limit)
    for number, piece in enumerate(pieces):
        stream.feed(piece, float(number))
    return stream


def sse(*events):
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def chunk(finish=None, **delta):
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def read(api, body, status=200):
    return read_reply(Record(status, 0.5, body, api=api))


replies = st.builds(
    lambda content, thought, calls, finish, usage: (
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content}
                    | ({"reasoning_content": thought} if thought else {})
                    | ({"tool_calls": calls} if calls else {}),
                    "finish_reason": finish,
                }
            ],
        }
        | ({"usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}} if usage else {})
    ),
    st.text(max_size=300),
    st.text(max_size=100),
    st.lists(
        st.builds(
            lambda number, name, told: {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(told, ensure_ascii=False)},
            },
            st.integers(0, 10**9),
            st.text(max_size=9),
            st.dictionaries(st.text(max_size=9), st.integers() | st.text(max_size=30), max_size=3),
        ),
        max_size=3,
        unique_by=lambda call: call["id"],
    ),
    st.sampled_from(["stop", "length", "content_filter"]),
    st.none() | st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
)


@given(st.sampled_from(sorted(FORMS)), replies, st.lists(st.integers(0, 3000), max_size=8))
def test_result__reads_as_the_whole_reply_does(api, reply, places):
    whole = deliver(json_response(reply), FORMS[api], stream=False).body
    events = b"".join(deliver(json_response(reply), FORMS[api], stream=True).events)
    bounds = [0, *sorted(min(place, len(events)) for place in places), len(events)]
    pieces = [events[a:b] for a, b in pairwise(bounds)]

    status, body = streamed(api, pieces).result()

    assert status == 200
    assert read(api, body) == read(api, whole)
    assert classify(200, {}, body, 0.0, api) == classify(200, {}, whole, 0.0, api)


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.binary(max_size=50) | st.just(b"\n\n") | st.just(b"data: "), max_size=12),
)
def test_feed__of_garbage_raises_nothing_else(api, pieces):
    with suppress(BadEventError, CutError):
        streamed(api, pieces).result()


names = st.sampled_from(
    "choices delta content text index finish_reason usage type message content_block error thinking".split()
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)
kinds = st.sampled_from(
    "message_start message_delta content_block_start content_block_delta content_block_stop ping".split()
)


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(
        st.dictionaries(names, json_values, max_size=5)
        | st.builds(lambda k, v: {**v, "type": k}, kinds, st.dictionaries(names, json_values)),
        max_size=8,
    ),
)
def test_result__of_any_events_can_be_classified_and_read(api, events):
    status, body = streamed(api, [sse(*events), DONE]).result()

    reply = classify(status, {}, body, 0.0, api)
    if reply.retry_class is RetryClass.FINAL:
        read(api, body, status)


def test_feed__tells_when_the_first_text_came_and_when_the_reply_is_over():
    stream = ReplyStream("chat", 10**6)

    assert not stream.feed(sse(chunk(role="assistant", content="")), 1.0)
    assert math.isnan(stream.first_token)
    assert not stream.feed(sse(chunk(reasoning="hm")), 2.0)
    assert not stream.feed(sse(chunk(content="4", finish="stop")), 3.0)
    assert stream.feed(DONE, 4.0)
    assert (stream.first_token, stream.latency) == (2.0, 4.0)


def test_result__keeps_the_last_usage_and_joins_texts_by_field():
    usages = [
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": n}} for n in (1, 2)
    ]
    events = (chunk(content="a", reasoning="x"), usages[0], chunk(content="b", reasoning="y"), usages[1])

    _, body = streamed("chat", [sse(*events), DONE]).result()

    document = json.loads(body)
    assert document["choices"][0]["message"] == {"role": "assistant", "content": "ab", "reasoning": "xy"}
    assert document["usage"] == usages[1]["usage"]


def test_result__joins_parts_of_text_and_thought():
    events = (
        chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
        chunk(content=[{"type": "text", "text": "4"}], finish="stop"),
    )

    _, body = streamed("chat", [sse(*events), DONE]).result()

    assert (read("chat", body).answer, read("chat", body).reasoning) == ("4", "hm")


def test_result__heals_a_character_that_was_cut_in_half():
    _, body = streamed("chat", [sse(chunk(content="\ud83d"), chunk(content="\ude00")), DONE]).result()

    assert read("chat", body).answer == "😀"


def test_result__takes_an_orderly_end_without_the_last_event():
    assert streamed("chat", [sse(chunk(content="4", finish="stop"))]).result()[0] == 200
    assert streamed("chat", [sse(chunk(content="4")), b"data: [DONE]"]).result()[0] == 200


@pytest.mark.parametrize("end", [b"", b'data: {"choi', b'data: {"choices"\n\n'])
def test_result__of_a_stream_without_end_is_cut(end):
    with pytest.raises((CutError, BadEventError)):
        streamed("chat", [sse(chunk(content="4")), end]).result()


@pytest.mark.parametrize("end", [DONE, sse({"error": {"message": "no"}})])
def test_result__leaves_out_what_comes_after_the_end(end):
    first, late = (sse(chunk(content=text, finish="stop")) for text in ("4", "x" * 9_000))

    status, body = streamed("chat", [first, end + late], limit=8_000 + len(late)).result()

    assert (status == 200) == (end == DONE)
    assert b"xxx" not in body


def test_result__of_no_choice_at_all_is_none():
    _, body = streamed("chat", [DONE]).result()

    assert classify(200, {}, body, 0.0).cause == "no choices"


@pytest.mark.parametrize("api", FORMS)
@pytest.mark.parametrize(
    ("error", "cause", "retry_class"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "http 529", RetryClass.RETRY),
        ({"type": "rate_limit_error", "message": "slow"}, "http 429", RetryClass.RETRY),
        ({"type": "api_error", "message": "oh"}, "http 500", RetryClass.RETRY),
        ({"message": "busy", "code": 503}, "http 503", RetryClass.RETRY),
        ({"message": "pay", "code": "insufficient_quota"}, "http 429", RetryClass.FATAL),
        ({"type": "authentication_error", "message": "key"}, "http 401", RetryClass.FATAL),
        (
            {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
            "context",
            RetryClass.FINAL,
        ),
        ({"message": "no", "code": "content_filter"}, "filter", RetryClass.FINAL),
        ("text", "http 500", RetryClass.RETRY),
    ],
)
def test_result__of_an_error_in_the_midst(api, error, cause, retry_class):
    stream = ReplyStream(api, 10**6)

    assert stream.feed(sse({"type": "error", "error": error}, chunk(content="4", finish="stop")) + DONE, 1.0)
    status, body = stream.result()

    reply = classify(status, {}, body, 0.0, api)
    assert (reply.cause, reply.retry_class) == (cause, retry_class)


@pytest.mark.parametrize("api", FORMS)
@pytest.mark.parametrize(
    "event",
    [
        lambda _: chunk(content="x" * 50),
        lambda n: chunk(**{f"field{n}": "x"}),
        lambda n: chunk(tool_calls=[{"n": n}]),
        lambda _: {"choices": [{"text": "x" * 50}]},
        lambda n: {"type": "content_block_delta", "index": n, "delta": {"text": "x"}},
        lambda n: {"type": "message_delta", "delta": {f"field{n}": "x"}},
        lambda n: {"type": "message_delta", "usage": {f"field{n}": 1}},
        lambda n: {"type": "content_block_delta", "index": n, "delta": {}},
        lambda _: {"type": "ping"},
    ],
)
def test_feed__keeps_no_more_than_allowed(api, event):
    stream = ReplyStream(api, 4_000)

    def feed_all():
        for number in range(20_000):
            stream.feed(sse(event(number)), 1.0)

    with pytest.raises(TooLargeError):
        feed_all()
    assert len(stream._assembly.body()) < 30_000


@pytest.mark.parametrize("api", sorted({*FORMS} - {"responses"}))  # whose last event has the whole once more
def test_feed__an_answer_may_come_in_many_more_bytes_than_it_has(api):
    text = {
        "chat": chunk(content="four"),
        "completions": {"choices": [{"text": "four"}]},
        "messages": {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "four"},
        },
    }[api]
    usage = {"choices": [], "usage": {"completion_tokens": 9}, "type": "message_delta"}

    _, body = streamed(api, [sse(text, usage)] * 800 + [DONE], limit=6_000).result()

    assert len(read(api, body).answer) == 3_200


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, 429),
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}}, 500),
    ],
)
def test_result__of_a_response_that_fails_on_its_way(event, status):
    begun = {"type": "response.output_text.delta", "delta": "4"}

    found, body = streamed("responses", [sse(begun, event)]).result()

    assert found == status
    assert b"error" in body


def test_error_status__of_odd_codes():
    assert error_status({"error": {"code": "99999"}}) == 500
    assert error_status({"error": {"code": "٤٠٠"}}) == 500
    assert error_status({"error": {"code": 200}}) == 500


def test_assemblies__there_is_one_for_each_api():
    assert set(ASSEMBLIES) == set(FORMS)
