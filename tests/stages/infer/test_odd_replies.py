"""Replies as servers and gateways beside the large ones send them, whole or streamed: what each counts as."""

import json

from evalcube.stages.infer.fields import BadEventError
from evalcube.stages.infer.reply import classify
from evalcube.stages.infer.streams import CutError, ReplyStream
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases


def choice(content="2", reason="stop", **more):
    return {"choices": [{"message": {"content": content}, "finish_reason": reason, **more}]}


def chunk(text=None, reason=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def message(stop):
    return {"type": "message", "content": [{"type": "text", "text": "2"}], "stop_reason": stop}


def response(**changes):
    output = [{"type": "message", "content": [{"type": "output_text", "text": "2"}]}]
    return {"object": "response", "output": output, "status": "completed", **changes}


PLAIN = json.dumps(choice()).encode()
DONE = "[DONE]"
WHOLE = {
    "blank lines before the reply": (b"\n\n \n" + PLAIN, "stop"),
    "something after the reply": (PLAIN + b"<!-- gateway -->", "invalid json"),
    "two replies": (PLAIN + b"\n" + PLAIN, "invalid json"),
    "status 204": (b"", "invalid json"),
    "a number as text": (choice(7), "wrong shape"),
    "the piece of a stream": (
        {"choices": [{"delta": {"content": "2"}, "finish_reason": "stop"}]},
        "wrong shape",
    ),
    "a reply below data": ({"code": 0, "data": choice()}, "no choices"),
    "an error beside a reply": (choice(error={"code": 502}), "broken off"),
    "spaces around the reason": (choice(reason=" stop "), "stop"),
    "a number as reason": (choice(reason=1), "unknown end: int"),
    "an object as reason": (choice(reason={"type": "stop"}), "unknown end: dict"),
    "a word of Gemini": (choice(reason="MALFORMED_FUNCTION_CALL"), "unknown end: MALFORMED_FUNCTION_CALL"),
}
OTHERS = {
    "completions, unknown": (
        "completions",
        {"choices": [{"text": "2", "finish_reason": "left"}]},
        "unknown end: left",
    ),
    "completions, a message": ("completions", choice(), "wrong shape"),
    "messages, unknown": ("messages", message("compaction"), "unknown end: compaction"),
    "messages, paused": ("messages", message("pause_turn"), "broken off"),
    "messages, none": ("messages", message(None), "unknown end: (none)"),
    "responses, unknown": ("responses", response(status="parked"), "unknown end: parked"),
    "responses, queued": ("responses", response(status="queued"), "no choices"),
    "responses, none": ("responses", response(status=None), "unknown end: (none)"),
}
STREAMS = {
    "text after the reason": ([chunk("1"), chunk(None, "stop"), chunk("2"), DONE], "stop"),
    "the reason of a limit, then another": ([chunk("2", "length"), chunk(None, "stop"), DONE], "length"),
    "an empty reason again and again": ([chunk("2", ""), chunk("", ""), DONE], "unknown end: (none)"),
    "nothing but its end": ([DONE], "cut reply"),
    "lines of JSON": (b'{"message": {"content": "2"}}\n{"done": true}\n', "invalid json"),
    "an error as a bare line": (b'data: {"choices": []}\n\n{"error": {"message": "x"}}\n', "cut reply"),
    "an event of two lines": (
        b'data: {"choices": [{"delta": {"content":\ndata: "2"}, "finish_reason": "stop"}]}\n\n',
        "stop",
    ),
}


def end_of(status, body, api="chat"):
    """The reply's cause, or how its answer ended."""
    reply = classify(status, {}, body, 0.0, api)
    if not reply.is_final:
        return reply.cause
    reading = read_reply(Record(status, 1.0, body, api=api))
    return f"unknown end: {reading.ending}" if reading.ending else reading.finish


def encoded(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@with_cases("case", WHOLE)
def test_classify__an_odd_reply(case):
    body, end = WHOLE[case]

    assert end_of(200, encoded(body)) == end


@with_cases("case", OTHERS)
def test_classify__an_odd_reply_of_another_api(case):
    api, body, end = OTHERS[case]

    assert end_of(200, encoded(body), api) == end


@with_cases("case", STREAMS)
@with_cases("size", [1, 7, 10_000])
def test_result__of_an_odd_stream(case, size):
    events, end = STREAMS[case]
    if isinstance(events, list):
        texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
        events = "".join(f"data: {text}\n\n" for text in texts).encode()
    stream = ReplyStream("chat", 10_000)
    try:
        for begin in range(0, len(events), size):
            if stream.feed(events[begin : begin + size], 0.0):
                break
        found = end_of(*stream.result())
    except CutError:
        found = "cut reply"
    except BadEventError:
        found = "invalid json"

    assert found == end
