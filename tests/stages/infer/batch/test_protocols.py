"""Batches as each provider has them, over HTTP: answers, faults, and that nothing is asked twice."""

import json
import math

import pytest

from evalcube.stages.infer.batch.protocols import ANTHROPIC, GEMINI, OPENAI, protocol_of, read_line
from evalcube.stages.infer.reply import RetryClass
from evalcube.stages.reply.forms import Record
from tests.stages.infer.batch.batching import (
    DOORS,
    Book,
    batching,
    created,
    go,
    in_batch,
    jobs_for,
    run_behind,
)
from tests.stages.infer.conftest import Memory, kinds, make_jobs, wait_until


@pytest.fixture(autouse=True)
def _quick(remote):
    go(remote)


@pytest.fixture(params=DOORS)
def door(request, remote):
    api, path = DOORS[request.param]
    return {"api": api, "base_url": remote.server.address + path}


@pytest.fixture
def messages(remote):
    return {"api": "messages", "base_url": remote.base_url}


def test_run__a_batch_gives_the_records_of_single_requests(remote, store, engine_for, door):
    jobs, book = jobs_for(door, 12), Book(store)
    with batching(remote, store, book, **door) as engine:
        results = engine.run("m", jobs)
        wait_until(lambda: not book.notes)

    assert kinds(results) == ["stored"] * 12
    assert (created(remote), remote.stats()["requests"]) == (1, 12)
    single = Memory()
    engine_for(single, api=door["api"]).run("m", jobs)
    for digest, data in single.records.items():
        expected, found = Record.decode(data), Record.decode(store.records[digest])
        assert math.isnan(found.latency)
        assert (found.api, json.loads(found.body)) == (expected.api, json.loads(expected.body))


def test_run__responses_go_in_batches_too(remote, store):
    with batching(remote, store, api="responses") as engine:
        assert kinds(engine.run("m", make_jobs(3, api="responses"))) == ["stored"] * 3

    assert created(remote) == 1


def test_run__errors_of_lines_are_as_those_of_single_requests(remote, store, messages):
    remote.faults(
        {"kind": "status", "status": 429, "first": 1}, {"kind": "status", "status": 400, "share": 0.4}
    )
    jobs = jobs_for(messages, 20)
    with batching(remote, store, **messages) as engine:
        results = engine.run("m", jobs)

    assert {(result.kind, result.cause) for result in results} == {("stored", ""), ("failed", "http 400")}
    assert engine.stats.retries["http 429"] == 20


@pytest.mark.parametrize(
    ("outcome", "cause"), [("expired", "batch expired"), ("cancelled", "batch cancelled")]
)
def test_run__what_is_not_reached_has_a_named_cause(remote, store, door, outcome, cause):
    go(remote, outcome=outcome, share=0.5)
    with batching(remote, store, **door) as engine:
        results = engine.run("m", jobs_for(door, 6))

    assert sorted(result.cause for result in results) == [""] * 3 + [cause] * 3


def test_run__waits_for_batches_that_may_be_its_own_and_sends_anew_if_none_is(remote, store, messages):
    jobs, book = jobs_for(messages, 4), Book(store)
    in_batch(remote, store, book, jobs_for(messages, 4, "of somebody else"), **messages)
    ((token, data),) = book.notes.items()
    digests = [job.digest for job in jobs]
    book.notes[token] = json.dumps({**json.loads(data), "batch": "", "digests": digests}).encode()
    go(remote, seconds=60)

    with batching(remote, store, book, **messages) as engine:
        thread, found = run_behind(engine, jobs)
        looks = remote.stats()["batches"]["list"]
        wait_until(lambda: remote.stats()["batches"]["list"] > looks + 2)
        assert created(remote) == 1
        go(remote)
        thread.join()

    assert kinds(found) == ["stored"] * 4
    assert (created(remote), engine.stats.sent) == (2, 4)


def test_run__batches_that_others_notes_know_are_not_waited_for(remote, store, messages):
    jobs, book = jobs_for(messages, 4), Book(store)
    in_batch(remote, store, book, jobs_for(messages, 4, "of another model"), **messages)
    known = dict(book.notes)
    ((_, data),) = known.items()
    note = {**json.loads(data), "batch": "", "file": "none", "digests": [job.digest for job in jobs]}
    book.notes["0" * 32] = json.dumps(note).encode()
    go(remote, seconds=3600)

    with batching(remote, store, book, **messages) as engine:
        thread, found = run_behind(engine, jobs)
        wait_until(lambda: created(remote) == 2)
        go(remote)
        thread.join()

    assert kinds(found) == ["stored"] * 4
    assert known.keys() <= book.notes.keys()


def test_drain__does_not_wait_for_a_batch_that_may_be_its_own(remote, store, messages):
    go(remote, seconds=600, faults={"create": [0]})
    book = Book(store)
    with batching(remote, store, book, **messages) as engine:
        thread, found = run_behind(engine, jobs_for(messages, 3))
        wait_until(lambda: remote.stats()["batches"]["list"] > 4)
        engine.drain()
        thread.join()
    assert kinds(found) == ["skipped"] * 3
    assert [note["batch"] for note in book.contents()] == [""]
    go(remote)
    with batching(remote, store, book, **messages) as engine:
        assert kinds(engine.run("m", jobs_for(messages, 3))) == ["stored"] * 3

    assert created(remote) == 1


@pytest.mark.parametrize(
    ("error", "cause", "retried"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "http 529", True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "http 400", False),
        ({"type": "error", "error": {"type": "something new"}}, "http 500", True),
        (7, "http 500", True),
    ],
)
def test_read_line__errors_of_messages_have_the_status_of_single_ones(error, cause, retried):
    row = {"custom_id": "a", "result": {"type": "errored", "error": error}}
    reply = read_line(json.dumps(row).encode(), 0.0, "messages", ANTHROPIC.answer).reply

    assert (reply.cause, reply.retry_class is RetryClass.RETRY) == (cause, retried)


@pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC, GEMINI])
@pytest.mark.parametrize(
    "document", [None, [], {}, {"id": 7, "name": {}, "metadata": 3, "request_counts": "x"}]
)
def test_protocols__what_is_no_batch_is_none(protocol, document):
    assert protocol.read(document) is protocol.entry(document) is None
    for page in (protocol.page({"data": document, "operations": document}), protocol.page({})):
        assert page[1] == ""


def test_protocol_of__goes_by_api_and_address():
    assert protocol_of("messages", "https://h/v1") is ANTHROPIC
    assert protocol_of("chat", "https://proxy/gemini/v1beta/openai") is GEMINI
    assert protocol_of("responses", "https://h/openai/v1") is OPENAI
