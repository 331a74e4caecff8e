"""Requests in batches: real files, orders and answers over HTTP, and every way in which they go wrong."""

import json
import math
import threading

import pytest

from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.stages.infer.engine import Engine, InferenceError
from evalcube.stages.reply.forms import Record
from tests.stages.infer.batch.batching import Book, batching, created, go
from tests.stages.infer.conftest import Memory, kinds, make_jobs, wait_until


@pytest.fixture(autouse=True)
def _quick(remote):
    go(remote)


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_run__one_batch_gives_the_records_of_single_requests_but_for_their_latency(
    remote, store, engine_for, api
):
    jobs, book = make_jobs(30, api=api), Book(store)
    with batching(remote, store, book, api=api) as engine:
        results = engine.run("m", jobs)
        wait_until(lambda: not book.notes)

    assert kinds(results) == ["stored"] * 30
    assert created(remote) == 1
    assert engine.stats.sent == remote.stats()["requests"] == 30
    single = Memory()
    singles = engine_for(single, api=api).run("m", jobs)
    assert [r.completion_tokens for r in results] == [r.completion_tokens for r in singles]
    for digest, data in single.records.items():
        expected, found = Record.decode(data), Record.decode(store.records[digest])
        assert math.isnan(found.latency)
        assert (found.status, found.api) == (expected.status, expected.api)
        assert json.loads(found.body) == json.loads(expected.body)


@pytest.mark.parametrize("terms", [{"requests": 7}, {"megabytes": 0.0015}])
def test_run__a_batch_has_no_more_than_it_may(remote, store, terms):
    jobs = make_jobs(20)
    with batching(remote, store, terms=terms) as engine:
        results = engine.run("m", jobs)

    assert kinds(results) == ["stored"] * 20
    assert created(remote) >= 3
    assert remote.stats()["most_attempts"] == 1


def test_run__lines_that_fail_for_the_moment_go_along_with_the_next_batch(remote, store):
    remote.faults({"kind": "status", "status": 429, "share": 0.5, "first": 1})
    with batching(remote, store) as engine:
        results = engine.run("m", make_jobs(40))

    assert kinds(results) == ["stored"] * 40
    assert {result.attempts for result in results} == {1, 2}
    assert engine.stats.retries["http 429"] == sum(result.attempts == 2 for result in results)
    assert created(remote) == 2


def test_run__lines_that_fail_for_good_end_with_their_cause(remote, store):
    remote.faults({"kind": "status", "status": 500, "share": 0.3}, {"kind": "status", "status": 400})
    with batching(remote, store) as engine:
        results = engine.run("m", make_jobs(40))

    assert {(result.kind, result.cause, result.attempts) for result in results} == {
        ("failed", "http 500", 3),
        ("failed", "http 400", 1),
    }
    assert created(remote) == 3
    assert not store.records


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        ("failed", "batch failed"),
        ("expired", "batch expired"),
        ("cancelled", "batch cancelled"),
        ("completed", "no answer in batch"),
    ],
)
def test_run__what_a_batch_does_not_answer_has_a_named_cause(remote, store, outcome, cause):
    go(remote, outcome=outcome, share=0.5)
    book = Book(store)
    with batching(remote, store, book) as engine:
        results = engine.run("m", make_jobs(10))
        wait_until(lambda: not book.notes)

    failed = [result for result in results if result.kind == "failed"]
    assert {result.cause for result in failed} == {cause}
    assert len(failed) == (10 if outcome == "failed" else 5)
    assert len(store.records) == 10 - len(failed)
    assert created(remote) == 1


@pytest.mark.parametrize("step", ["upload", "create", "poll", "download"])
@pytest.mark.parametrize("statuses", [[500, 429], [0, 0]])
def test_run__steps_that_fail_are_tried_again_and_nothing_is_sent_twice(remote, store, step, statuses):
    go(remote, faults={step: statuses})
    with batching(remote, store) as engine:
        results = engine.run("m", make_jobs(10))

    assert kinds(results) == ["stored"] * 10
    assert remote.stats()["requests"] == 10
    assert engine.stats.retries


@pytest.mark.parametrize(("statuses", "listings"), [([500, 429], 2), ([429, 429], 0)])
def test_run__after_an_attempt_that_may_have_made_a_batch_it_is_searched_for_each_time(
    remote, store, statuses, listings
):
    go(remote, faults={"create": statuses})
    with batching(remote, store) as engine:
        engine.run("m", make_jobs(3))

    assert remote.stats()["batches"]["list"] == listings


def test_run__a_refusal_after_an_attempt_that_may_have_made_a_batch_leaves_its_note(remote, store):
    go(remote, faults={"create": [0], "list": [403]})
    book = Book(store)
    with batching(remote, store, book) as engine:
        results = engine.run("m", make_jobs(3))

    assert {result.cause for result in results} == {"http 403"}
    assert (created(remote), len(book.notes)) == (1, 1)


def test_run__a_refused_key_gives_the_model_up_with_one_message(remote, store, monkeypatch):
    go(remote, faults={"upload": [401] * 3})
    monkeypatch.setenv("KEY_OF_BATCHES", "sk-secret-secret")
    with batching(remote, store, key_env="KEY_OF_BATCHES", terms={"requests": 10}) as engine:
        results = engine.run("m", make_jobs(30))

    assert {(result.kind, result.cause) for result in results} == {("failed", "http 401")}
    assert remote.stats()["batches"]["files"] == 0


def abandoned(engine, jobs):
    with pytest.raises(KeyError):
        engine.run("m", jobs, caller=1)


def test_run__an_abandoned_block_is_not_sent(remote, store):
    with batching(remote, store, terms={"patience": 0.4}) as engine:
        thread = threading.Thread(target=abandoned, args=(engine, make_jobs(5)))
        thread.start()
        wait_until(lambda: engine._in_flight)
        engine.abandon(1, KeyError())
        thread.join()
        assert kinds(engine.run("m", make_jobs(3, "other"))) == ["stored"] * 3

    assert remote.stats()["requests"] == 3


def test_run__needs_a_place_for_notes(remote, store):
    engine = Engine({"m": Endpoint("m", remote.base_url, batch=Batching())}, store)
    try:
        with pytest.raises(InferenceError, match="notes"):
            engine.run("m", make_jobs(1))
    finally:
        engine.close()


def test_account__each_model_with_batches_has_limits_of_its_own():
    names = {
        Endpoint("a", "http://h/v1").account,
        Endpoint("a", "http://h/v1", batch=Batching()).account,
        Endpoint("b", "http://h/v1", batch=Batching()).account,
    }
    assert len(names) == 3
