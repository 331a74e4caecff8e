"""A streamed reply says what the whole one says, and nothing that an endpoint streams does harm."""

import json
import math
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.fields import BadEventError
from evalcube.stages.infer.reply import RetryClass, classify, error_status
from evalcube.stages.infer.sse import TooLargeError
from evalcube.stages.infer.streams import CutError, ReplyStream
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases
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
    # a stream of messages begins with one token of the completion, and the largest count wins
    st.none() | st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)),
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
    assert classify(200, {}, body, 0.0, api)._replace(text_bytes=0) == classify(
        200, {}, whole, 0.0, api
    )._replace(text_bytes=0)


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
    try:
        status, body = streamed(api, [sse(*events), DONE]).result()
    except (CutError, BadEventError):
        return

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


def test_result__of_no_choice_is_none_and_of_nothing_is_cut():
    blocked = {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}

    reply = classify(200, {}, streamed("chat", [sse(blocked), DONE]).result()[1], 0.0)

    assert (reply.cause, reply.is_refusal) == ("no choices", True)
    with pytest.raises(CutError):
        streamed("chat", [DONE]).result()


@with_cases("api", FORMS)
@with_cases(
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


def last(reason="stop"):
    return chunk(content="4", finish=reason)


FOREIGN = [
    {"code": "overloaded", "message": "oh no"},
    {"type": "error", "message": "oh no"},
    {"detail": "oh no"},
    {"status": 503, "message": "oh no"},
    {"success": False, "errors": [{"message": "oh no"}]},
    {"base_resp": {"status_code": 1002, "status_msg": "oh no"}},
    [{"message": "oh no"}],
    "oh no",
]


@with_cases("event", FOREIGN)
def test_result__an_event_that_is_no_piece_is_nothing_before_an_end_and_an_error_without(event):
    whole = streamed("chat", [sse(chunk(content="so "), event, last()), DONE]).result()
    piece = sse(chunk(content="so "), event)

    assert read("chat", whole[1]).answer == "so 4"
    for end in (b"", DONE, sse(chunk(finish="")) + DONE):
        try:
            status, body = streamed("chat", [piece, end]).result()
        except CutError:
            continue
        assert classify(status, {}, body, 0.0).detail == "oh no"
        assert status >= 400


@pytest.mark.parametrize("data", [b'{"message": "oh no"}', b"oh no", b"", b"null"])
def test_result__an_event_called_error_is_always_one(data):
    failure = b"event: error\n" + (b"data: " + data + b"\n" if data else b"") + b"\n"

    status, body = streamed("chat", [sse(last()), failure, DONE]).result()

    assert (status, classify(status, {}, body, 0.0).cause) == (500, "http 500")


@with_cases("data", [b"ping", b"", b" ", b"null", b"[]", b"{}", b'""', b": comment", b"0"])
def test_result__passes_over_data_that_is_no_object(data):
    noise = b"data: " + data + b"\n\n"

    _, body = streamed("chat", [noise, sse(chunk(content="so ")), noise, sse(last()), noise, DONE]).result()

    assert read("chat", body).answer == "so 4"


@with_cases("reason", ["", "null", "none", False, None])
def test_result__of_a_reason_that_is_none_is_cut(reason):
    with pytest.raises(CutError):
        streamed("chat", [sse(chunk(content="4", finish=reason))]).result()


@pytest.mark.parametrize(
    "reasons", [("network_error", "stop"), ("length", "stop"), ("length", ""), ("length", None)]
)
def test_result__what_broke_or_cut_a_reply_is_not_taken_back(reasons):
    _, body = streamed(
        "chat", [sse(*(chunk(content="4", finish=reason) for reason in reasons)), DONE]
    ).result()

    assert json.loads(body)["choices"][0]["finish_reason"] == reasons[0]


def message_chunk(text, finish=None):
    return {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}]
    }


def test_result__reads_a_whole_message_in_a_chunk():
    for events in (
        [message_chunk("so 4", "stop")],
        [message_chunk("so "), message_chunk("so 4", "stop")],
        [chunk(content="so "), chunk(content="4"), message_chunk("so 4", "stop")],
        [{"choices": [{"index": 0, "text": "so 4", "finish_reason": "stop"}]}],
    ):
        assert read("chat", streamed("chat", [sse(*events), DONE]).result()[1]).answer == "so 4"
    assert read("completions", streamed("completions", [sse(last())]).result()[1]).answer == "4"
    whole = {"type": "message", "content": [{"type": "text", "text": "4"}], "stop_reason": "end_turn"}
    assert read("messages", streamed("messages", [sse(whole)]).result()[1]).answer == "4"
    with pytest.raises(BadEventError):
        streamed("chat", [sse(chunk(content="so "), message_chunk("4", "stop"))])


def test_result__reads_details_of_reasoning():
    details = [chunk(reasoning_details=[{"type": "reasoning.text", "text": text}]) for text in ("h", "m")]

    stream = streamed("chat", [sse(*details), sse(last())])

    assert read("chat", stream.result()[1]).reasoning == "hm"
    assert stream.first_token == 0.0


def test_result__of_a_document_is_the_document():
    body = json.dumps({"choices": [{"message": {"content": "4"}}]}).encode()

    assert streamed("chat", [b"\r\n", body[:1], body[1:]]).result() == (200, body)
    assert streamed("chat", [b"oops"]).result() == (200, b"oops")


@pytest.mark.parametrize(
    "later", [{"prompt_tokens": 0, "completion_tokens": 0}, {}, None, {"completion_tokens": 5}]
)
def test_result__the_largest_usage_counts(later):
    usage = {"prompt_tokens": 7, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 3}}
    events = [{**last(), "usage": usage}, {"choices": [], "usage": later}]

    _, body = streamed("chat", [sse(*events), DONE]).result()

    reading = read("chat", body)
    assert (reading.prompt_tokens, reading.completion_tokens, reading.reasoning_tokens) == (7, 9, 3)
