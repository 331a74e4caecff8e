"""Batches that outlive their engine: killed, drained, collected by the next one, never sent twice."""

import asyncio
import json
import threading
import time

import pytest

from evalcube.stages.infer.batch.wire import BatchSender
from evalcube.stages.reply.forms import Record
from tests.stages.infer.batch.batching import Book, batching, created, go, in_batch, run_behind
from tests.stages.infer.conftest import Memory, kinds, make_jobs, wait_until
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def _quick(remote):
    go(remote)


@pytest.mark.parametrize("step", ["poll", "download"])
def test_run__a_batch_that_cannot_be_collected_now_is_collected_by_the_next_run(remote, store, step):
    go(remote, faults={step: [500] * 21 if step == "poll" else [500] * 3})
    jobs, book = make_jobs(10), Book(store)
    with batching(remote, store, book) as engine:
        assert {result.cause for result in engine.run("m", jobs)} == {"http 500"}
    assert len(book.notes) == 1
    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 10
        wait_until(lambda: not book.notes)

    assert engine.stats.sent == 0
    assert remote.stats()["requests"] == 10


@pytest.mark.parametrize("lost", ["nothing", "id", "id and token", "id, on a later page"])
def test_run__another_engine_collects_the_batch_of_one_that_died(remote, store, lost):
    jobs, book = make_jobs(12), Book(store)
    in_batch(remote, store, book, jobs)
    (token,) = book.notes
    if lost != "nothing":
        book.notes[token] = json.dumps({**json.loads(book.notes[token]), "batch": ""}).encode()
    if lost == "id and token":
        book.notes = {"0" * 32: book.notes[token]}
    if lost == "id, on a later page":
        in_batch(remote, store, Book(store), make_jobs(1, "other"))
        go(remote, page=1)

    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", [*jobs[:5], *make_jobs(3, "new")])) == ["stored"] * 8
        wait_until(lambda: not book.notes)

    assert engine.stats.sent == 3
    assert {job.digest for job in jobs} <= store.committed
    assert remote.stats()["most_attempts"] == 1


def test_run__a_batch_that_the_endpoint_does_not_know_is_sent_anew(remote, store):
    jobs, book = make_jobs(6), Book(store)
    in_batch(remote, store, book, jobs)
    remote.reset()

    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6
        wait_until(lambda: not book.notes)

    assert remote.stats()["requests"] == 6


def test_run__a_batch_that_only_has_the_same_name_is_let_alone(remote, store):
    jobs, book = make_jobs(6), Book(store)
    in_batch(remote, store, book, jobs)
    other = Book(store)
    in_batch(remote, store, other, make_jobs(3, "other"))
    before = remote.stats()["batches"]["download"]
    ((token, data),) = book.notes.items()
    book.notes[token] = json.dumps({**json.loads(data), "batch": other.contents()[0]["batch"]}).encode()

    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6

    assert engine.stats.sent == 6
    assert remote.stats()["batches"]["download"] == before + 1


def test_run__of_two_batches_with_a_request_both_are_collected(remote, store):
    jobs, book = make_jobs(6), Book(store)
    for _ in range(2):
        aside = dict(book.notes)
        book.notes.clear()
        in_batch(remote, store, book, jobs)
        book.notes.update(aside)

    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6
        wait_until(lambda: not book.notes)

    assert engine.stats.sent == 0


def test_run__a_wrong_address_does_not_cost_the_note(remote, store):
    jobs, book = make_jobs(6), Book(store)
    in_batch(remote, store, book, jobs)

    with batching(remote, store, book, base_url=remote.base_url + "/wrong") as engine:
        assert {result.cause for result in engine.run("m", jobs)} == {"http 404"}
    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6

    assert remote.stats()["requests"] == 6


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_run__what_an_earlier_runs_batch_does_not_answer_is_sent_anew(remote, store, outcome):
    jobs, book = make_jobs(6), Book(store)
    in_batch(remote, store, book, jobs, outcome=outcome, share=0.5)

    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6

    assert remote.stats()["most_attempts"] == 1
    assert engine.stats.sent == (6 if outcome == "failed" else 3)


def test_run__notes_of_other_models_and_damaged_ones_are_let_alone(remote, store):
    jobs, book = make_jobs(6), Book(store)
    digests = [job.digest for job in jobs]
    other = {"format": 1, "model": "other", "file": "f", "batch": "b", "digests": digests}
    book.notes = {
        "a" * 8: json.dumps(other).encode(),
        "b" * 8: b"damaged",
        "c" * 8: json.dumps({**other, "format": 2, "model": "m"}).encode(),
        "d" * 8: json.dumps({**other, "digests": 7, "model": "m"}).encode(),
    }
    with batching(remote, store, book) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 6
        wait_until(lambda: len(book.notes) == 4)

    assert created(remote) == 1


def test_run__what_another_worker_stored_meanwhile_is_not_sent(remote, store):
    jobs = make_jobs(6)
    record = Record(200, 1.0, b'{"choices":[{"message":{"content":"4"}}],"usage":{"completion_tokens":3}}')
    store.records = {job.digest: record.encode() for job in jobs[:5]}
    with batching(remote, store) as engine:
        results = engine.run("m", jobs)

    assert [result.completion_tokens for result in results[:5]] == [3] * 5
    assert kinds(results) == ["stored"] * 6
    assert remote.stats()["requests"] == 1


def test_drain__sends_nothing_more_and_does_not_wait_for_what_is_in_batches(remote, store):
    go(remote, seconds=600)
    book = Book(store)
    with batching(remote, store, book, terms={"requests": 5, "patience": 30.0}) as engine:
        thread, found = run_behind(engine, make_jobs(8))
        wait_until(lambda: created(remote) == 1 and book.contents()[0]["batch"])
        start = time.monotonic()
        engine.drain()
        thread.join()
        assert kinds(engine.run("m", make_jobs(3, "later"))) == ["skipped"] * 3
        assert time.monotonic() - start < PATIENCE

    assert kinds(found) == ["skipped"] * 8
    assert remote.stats()["requests"] == 5
    assert [len(note["digests"]) for note in book.contents()] == [5]


def test_drain__lets_a_batch_that_the_endpoint_has_reach_its_note(remote, store, monkeypatch):
    drained, create = threading.Event(), BatchSender.create

    async def late(*arguments):
        answer = await create(*arguments)
        await asyncio.to_thread(drained.wait, PATIENCE)
        return answer

    monkeypatch.setattr(BatchSender, "create", late)
    book = Book(store)
    with batching(remote, store, book) as engine:
        thread, found = run_behind(engine, make_jobs(3))
        wait_until(lambda: created(remote))
        engine.drain()
        drained.set()
        thread.join()
        wait_until(lambda: book.contents()[0]["batch"])

    assert kinds(found) == ["skipped"] * 3


def test_drain__answers_that_are_coming_in_still_count(remote, store):
    book = Book(store)
    store.gate.clear()
    with batching(remote, store, book) as engine:
        thread, found = run_behind(engine, make_jobs(8))
        wait_until(lambda: len(store.records) == 8)
        engine.drain()
        store.gate.set()
        thread.join()
        wait_until(lambda: not book.notes)

    assert kinds(found) == ["stored"] * 8


def test_run__without_a_note_there_is_no_batch(remote, store):
    book = Book(store)
    book.problem = OSError("the disk is full")
    with batching(remote, store, book) as engine, pytest.raises(OSError, match="the disk is full"):
        engine.run("m", make_jobs(5))

    assert created(remote) == 0


def test_run__a_note_stays_until_the_answers_are_durable(remote, store):
    jobs, book = make_jobs(5), Book(store)
    store.commit_problem = OSError("the disk is full")
    with batching(remote, store, book) as engine, pytest.raises(OSError, match="the disk is full"):
        engine.run("m", jobs)
    assert len(book.notes) == 1
    again = Memory()
    with batching(remote, again, Book(again)) as engine:
        engine._batches.notes = book.notes
        assert kinds(engine.run("m", jobs)) == ["stored"] * 5

    assert remote.stats()["requests"] == 5
