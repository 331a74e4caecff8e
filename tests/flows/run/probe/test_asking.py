"""What a probe asks: each question once, those that failed on the way once more, and no more than it may."""

import json
from types import SimpleNamespace

import pytest

from evalcube.flows.run.probe.asking import Heard, Host, Memory, UnheardError, user
from evalcube.stages.infer.jobs import Result
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases

STORED = Result("stored", attempts=1)


def failed(cause, detail="", attempts=1):
    return Result("failed", cause, detail, attempts)


def body(text="hi", **fields):
    choice = {"message": {"content": text}, "finish_reason": fields.pop("finish", "stop")}
    return json.dumps({"choices": [choice], "model": "served-as", **fields}).encode()


class Engine:
    """A client whose results a test says, one after another; what counts is stored."""

    def __init__(self, store, results=(), content=None):
        self.store, self.results, self.content, self.asked = store, list(results), content or body(), []

    def run(self, label, jobs):
        made = []
        for job in jobs:
            self.asked.append((label, json.loads(job.body)))
            made.append(self.results.pop(0) if self.results else STORED)
            if made[-1].kind == "stored":
                self.store.put_all([(job.digest, Record(200, 0.5, self.content).encode())])
        return made

    def engines(self):
        return {"m": ["vllm 1"], "n": ["b 2", "vllm 1"]}


def host(*results, most=40, api="chat", content=None):
    store = Memory()
    engine = Engine(store, results, content)
    model = SimpleNamespace(request_model="org/m", api=api)
    return Host(model, engine, store, most=most), engine


def test_user__is_a_text_with_parameters_and_perhaps_a_system_prompt():
    assert user("a", max_tokens=1).messages == [{"role": "user", "content": "a"}]
    both = user("a", system="b", stream=True)
    assert [message["role"] for message in both.messages] == ["system", "user"]
    assert (both.stream, both.params) == (True, {})


def test_ask__keeps_the_order_of_what_is_streamed_and_what_is_not():
    made, engine = host()
    heard = made.ask(user("a", max_tokens=1), user("b", max_tokens=2, stream=True), user("c", max_tokens=3))

    assert [label for label, _ in engine.asked] == ["plain", "plain", "streamed"]
    assert [reply.limit for reply in heard] == [1, 2, 3]
    assert (made.sent, made.heard, made.engines) == (3, heard, ["b 2", "vllm 1"])
    assert heard[0].text == "hi"
    assert (heard[0].served, heard[0].by_itself, heard[0].in_text) == ("served-as", True, False)
    assert engine.store.records == {}  # forgotten with the reply


def test_ask__asks_equal_questions_each_by_itself():
    made, engine = host()
    digests = []
    run = engine.run
    engine.run = lambda label, jobs: digests.extend(job.digest for job in jobs) or run(label, jobs)

    made.ask(*[user("a", max_tokens=1)] * 3)

    assert len(set(digests)) == 3


@with_cases(
    ("cause", "asked"),
    [
        ("timeout", 2),
        ("http 429: slow", 2),
        ("http 500", 2),
        ("http 400: no", 1),
        ("http 404", 1),
        ("redirect", 1),
    ],
)
def test_ask__asks_once_more_what_failed_on_the_way(cause, asked):
    made, engine = host(failed(cause))
    (heard,) = made.ask(user("a", max_tokens=1))

    assert (len(engine.asked), made.sent) == (asked, asked)
    assert (heard.data is None) == (asked == 1)


def test_ask__sends_no_more_than_it_may():
    made, engine = host(most=2)
    heard = made.ask(*[user("a", max_tokens=1)] * 4)

    assert (made.sent, len(engine.asked)) == (2, 2)
    assert [reply.cause for reply in heard] == ["", "", "not asked", "not asked"]
    tight, engine = host(failed("timeout"), most=1)
    assert tight.ask(user("a", max_tokens=1))[0].cause == "timeout"
    assert tight.sent == 1


@with_cases(
    ("cause", "refused"),
    [
        ("http 400: temperature", ("temperature", "")),
        ("http 422: max_tokens, max_completion_tokens wanted", ("max_tokens", "max_completion_tokens")),
        ("http 400: max_completion_tokens wanted", ("", "max_completion_tokens")),
        ("http 400: ", ("", "")),
        ("http 403: temperature", ("", "")),
        ("http 400: some words that are no name", ("", "")),
    ],
)
def test_ask__takes_from_a_refusal_which_parameter_is_not_taken(cause, refused):
    (heard,) = host(failed(cause, "no"))[0].ask(user("a", max_tokens=1))

    assert heard.refused == refused
    assert heard.cause == f"{cause}: no"


def test_ask__of_what_an_api_has_not_is_refused_without_a_request():
    made, engine = host(api="messages")
    (heard,) = made.ask(user("a", max_tokens=1, seed=7))

    assert (heard.data, heard.refused[0], engine.asked) == (None, "seed", [])


def test_ask__sends_parameters_as_the_host_takes_them():
    made, engine = host()
    made.left_out.add("temperature")
    made.limit_name = "max_completion_tokens"

    made.ask(user("a", max_tokens=9, temperature=0))

    ((_, sent),) = engine.asked
    assert (sent["max_completion_tokens"], sent["model"]) == (9, "org/m")
    assert not {"temperature", "max_tokens"} & sent.keys()


def test_hear__raises_the_reply_that_is_none():
    made, _ = host(STORED, failed("http 400: stop"))

    with pytest.raises(UnheardError) as caught:
        made.hear(user("a", max_tokens=1), user("b", max_tokens=1))

    assert caught.value.args[0].refused == ("stop", "")
    assert len(made.hear(user("c", max_tokens=1))) == 1
    assert (made.room, setattr(made, "thinks", True), made.room) == (256, None, 2048)


@with_cases(
    ("content", "by_itself", "in_text"),
    [
        (body("<think>so</think> hi"), True, True),
        (body(finish="length"), False, False),
        (b'{"stop_reason" : "end_turn"}', True, False),
        (b'{"status":"completed"}', True, False),
        (b'{"finish_reason": "stopped"}', False, False),
        (b"[]", False, False),
    ],
)
def test_ask__notes_what_a_reply_says_of_its_end(content, by_itself, in_text):
    (heard,) = host(content=content)[0].ask(user("a", max_tokens=1))

    assert (heard.by_itself, heard.in_text) == (by_itself, in_text)


def test_heard__has_the_size_of_all_that_was_written():
    reading = Reading("é", "so", "stop", 1, 1, 0.1, tool_calls=(("f", "{}"),))

    assert Heard(1, reading=reading).text == "soé"
    assert Heard(1, reading=reading).size == 2 + 2 + 3
