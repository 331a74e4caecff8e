"""What scripted servers say, and what becomes of it: outcomes, requests at the server, and what the cache keeps."""

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.endpoint_queue import ModelQueue, Refusal
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from tests.stages.infer.conftest import make_jobs
from tests.stages.infer.echo import GOOD, Echo, http

CONTROL = "1+1="
ANSWER = http(GOOD)
STREAM = "content-type: text/event-stream"


def refusal(status, message="no"):
    return http(json.dumps({"error": {"message": message}}).encode(), status)


def body(reason="stop", **more):
    document = json.loads(GOOD)
    document["choices"][0]["finish_reason"] = reason
    return http(json.dumps({**document, **more}).encode())


def piece(text, reason=None):
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]})


def events(*data, kind=STREAM):
    return http(b"".join(b"data: " + one.encode() + b"\n\n" for one in data), 200, kind)


def ask(answer, store, count=20, **settings):
    """The results of some requests, and the requests at the server; `answer` gets a number and a prompt."""
    numbers = iter(range(1, 10**6))

    def reply(request):
        return answer(next(numbers), json.loads(request.partition(b"\r\n\r\n")[2])["messages"][0]["content"])

    settings = {
        "connections": 4,
        "retries": 1,
        "backoff_base": 0.01,
        "timeout": 60.0,
        "patience": 0.0,
        **settings,
    }
    with Echo(reply) as server:
        engine = Engine({"m": Endpoint("m", server.base_url, **settings)}, store)
        try:
            results = engine.run("m", make_jobs(count))
        finally:
            engine.close()
        return results, len(server.requests), engine


def at(prompt, answer):
    """Answers one prompt in a way of its own."""
    return lambda _, text: answer if text == f" {prompt}" else ANSWER


def after(number, answer):
    """Answers all from a request on in another way."""
    return lambda count, _: answer if count > number else ANSWER


# What came: the server's answers, most requests there, and the ends of 20 trials: those in the cache, and the others
BEHAVIOURS = {
    "one is refused": (at(7, refusal(400)), 23, {"stop": 19, "refused": 1}, {}),
    "the last one is refused": (at(19, refusal(451)), 24, {"stop": 19, "refused": 1}, {}),
    "one is refused, as too long in other words": (
        at(7, http(b'{"errors": [{"msg": "We take 9 words, that was too many."}]}', 422)),
        23,
        {"stop": 19, "context": 1},
        {},
    ),
    "one is blocked": (
        at(7, http(b'{"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}')),
        25,
        {"stop": 19, "refused": 1},
        {},
    ),
    "one has no choices at all": (at(7, http(b'{"detail": "oops"}')), 21, {"stop": 19}, {"no choices": 1}),
    "the first one is forbidden": (at(0, refusal(403)), 20, {"stop": 19}, {"http 403": 1}),
    "the first one is moderated": (at(0, refusal(403, "flagged")), 23, {"stop": 19, "refused": 1}, {}),
    "one is not found": (at(7, refusal(404)), 20, {"stop": 19}, {"http 404": 1}),
    "a text where no API has it": (
        at(7, http(b'{"choices": [{"message": {"text": "4"}, "finish_reason": "stop"}]}')),
        21,
        {"stop": 19},
        {"wrong shape": 1},
    ),
    "a key is revoked": (after(12, refusal(401)), 20, {"stop": 12}, {"http 401": 8}),
    "a key is revoked, with another status": (after(12, refusal(400)), 24, {"stop": 12}, {"http 400": 8}),
    "a quota is spent": (after(12, refusal(402)), 20, {"stop": 12}, {"http 402": 8}),
    "a gateway is down": (after(12, refusal(503)), 40, {"stop": 12}, {"http 503": 8}),
    "a gateway is down, and says nothing": (
        after(12, http(b'{"choices": []}')),
        40,
        {"stop": 12},
        {"no choices": 8},
    ),
    "all are refused": (lambda *_: refusal(400), 3, {}, {"http 400": 20}),
    "an outage that looks like refusals": (
        lambda count, _: refusal(400) if 5 < count < 8 else ANSWER,
        23,
        {"stop": 20},
        {},
    ),
    "no capacity for a moment": (
        lambda count, _: refusal(498) if count == 5 else ANSWER,
        21,
        {"stop": 20},
        {},
    ),
    "a filter's reason": (at(7, body("RECITATION")), 20, {"stop": 19, "refused": 1}, {}),
    "a limit's reason": (at(7, body("max_output_tokens")), 20, {"stop": 19, "length": 1}, {}),
    "a fault's reason": (at(7, body("network_error")), 21, {"stop": 19}, {"broken off": 1}),
    "an unknown reason": (at(7, body("eureka")), 20, {"stop": 19, "unknown end: eureka": 1}, {}),
    "no reason where others have one": (at(7, body("")), 21, {"stop": 19}, {"cut reply": 1}),
    "never a reason": (lambda *_: body(None), 20, {"unknown end: (none)": 20}, {}),
    "an error beside an answer": (at(7, body(error={"code": 500})), 21, {"stop": 19}, {"http 500": 1}),
}
STREAMED = {
    "done without a reason, of one that never gives one": (
        lambda *_: events(piece("4"), "[DONE]"),
        20,
        {"unknown end: (none)": 20},
        {},
    ),
    "done without a reason, where others have one": (
        lambda _, text: events(piece("4", None if text == " 7" else "stop"), "[DONE]"),
        21,
        {"stop": 19},
        {"cut reply": 1},
    ),
    "an error that is not called so": (
        lambda _, text: events(piece("4", None if text == " 7" else "stop"), '{"detail": "oh no"}', "[DONE]"),
        21,
        {"stop": 19},
        {"http 500": 1},
    ),
    "nothing but its end": (
        lambda _, text: events("[DONE]") if text == " 7" else events(piece("4", "stop"), "[DONE]"),
        21,
        {"stop": 19},
        {"cut reply": 1},
    ),
    "events under another content type": (
        lambda *_: events(piece("4", "stop"), "[DONE]", kind="content-type: text/plain"),
        20,
        {"stop": 20},
        {},
    ),
    "a document under the type of events": (lambda *_: http(GOOD, 200, STREAM), 20, {"stop": 20}, {}),
}


def check(store, behaviour, **settings):
    answer, most_requests, cached, failed = behaviour

    results, requests, engine = ask(answer, store, **settings)

    readings = [read_reply(Record.decode(record)) for record in store.records.values()]
    ends = Counter(f"unknown end: {one.ending}" if one.ending else one.finish for one in readings)
    assert (ends, Counter(one.cause for one in results if one.kind == "failed")) == (cached, failed)
    assert 20 - sum(failed.values()) == len(store.records) == sum(one.kind == "stored" for one in results)
    # Requests that were in flight when it showed that they are no use differ by chance.
    assert engine.stats.sent == requests <= most_requests


IN_ORDER = re.compile("reason|outage|all are refused")
"""Cases that depend on which of several answers comes first."""


@pytest.mark.parametrize("case", BEHAVIOURS)
def test_run__of_a_scripted_server(store, case):
    check(store, BEHAVIOURS[case], connections=1 if IN_ORDER.search(case) else 4)


@pytest.mark.parametrize("case", STREAMED)
def test_run__of_a_scripted_server_that_streams(store, case):
    check(store, STREAMED[case], stream=True, connections=1)


def test_run__no_more_are_refused_than_may_be(store):
    def answer(_, text):
        return refusal(400) if text != CONTROL and int(text) % 2 else ANSWER

    results, _, engine = ask(answer, store, refusals=4)

    causes = Counter(result.cause for result in results)
    assert causes == {"": 10, "refused": 4, "more than a fifth refused": 6}
    assert len(store.records) == 14
    assert engine.stats.replies == 4 + engine.stats.prompt_tokens / 3  # of those refused, none are counted


@given(bound=st.integers(0, 40), workers=st.integers(1, 9))
def test_decide__no_more_are_refused_by_all_workers_together_than_may_be(bound, workers):
    outcomes = 0
    for rank in range(workers):
        model = ModelQueue(Endpoint("m", "http://127.0.0.1/v1", refusals=bound), None, 2)
        reply = Reply(RetryClass.FAILED, "http 400")
        model.refusals = [Refusal(None, reply, b"", 1, 0.0, is_again=True)] * (bound + 1)
        outcomes += sum(is_outcome for _, is_outcome in model.decide(1.0, workers, rank))

    assert outcomes == bound


def test_run__a_refusal_that_nobody_is_left_to_be_held_against_takes_a_harmless_request(store):
    prompts = []

    def answer(_, text):
        prompts.append(text)
        return ANSWER if text == CONTROL else refusal(400)

    (result,), _, _ = ask(answer, store, count=1)

    assert prompts == [" 0", CONTROL, " 0", CONTROL]
    assert (result.kind, result.cause, result.attempts) == ("stored", "refused", 2)
    assert len(store.records) == 1


def test_run__tokens_are_estimated_from_the_texts_where_nobody_counts_them(store):
    document = json.loads(GOOD)
    del document["usage"]
    document["choices"][0]["message"]["content"] = "four" * 100

    _, _, engine = ask(lambda *_: http(json.dumps(document).encode()), store)

    prompts, completions, _ = engine.stats.usage["m"]
    assert completions == pytest.approx(20 * 100, rel=0.1)
    assert 20 * 10 < prompts < 20 * 60
    assert engine.stats.completion_tokens == 0


def test_revive__asks_again_what_was_given_up(store):
    answers = [refusal(401, "a wrong key")]
    with Echo(lambda _: answers[-1]) as server:
        engine = Engine({"m": Endpoint("m", server.base_url, connections=2, timeout=60.0)}, store)
        try:
            assert {result.kind for result in engine.run("m", make_jobs(8))} == {"failed"}
            assert engine.given_up("m")
            asked = len(server.requests)
            assert {result.attempts for result in engine.run("m", make_jobs(8))} == {0}
            assert len(server.requests) == asked

            answers.append(ANSWER)
            engine.revive("m")
            assert {result.kind for result in engine.run("m", make_jobs(8))} == {"stored"}
            assert not engine.given_up("m")
        finally:
            engine.close()
