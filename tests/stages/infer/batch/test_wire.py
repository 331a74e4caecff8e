"""Exchanges about files and batches: where they go, and what is known of what they made."""

import json

import pytest

from tests.stages.infer.batch.batching import (
    DOORS,
    Book,
    batching,
    created,
    go,
    in_batch,
    jobs_for,
)
from tests.stages.infer.conftest import kinds, make_jobs, wait_until
from tests.stages.infer.echo import Echo, http


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


def lost(book):
    """Have the notes say what they said before their batches were created."""
    for token, data in book.notes.items():
        book.notes[token] = json.dumps({**json.loads(data), "batch": ""}).encode()


@pytest.mark.parametrize("origin", ["own", "https://elsewhere.example"])
def test_run__answers_are_fetched_from_the_endpoint_itself(remote, store, messages, origin):
    go(remote, origin=remote.server.address if origin == "own" else origin)
    with batching(remote, store, **messages) as engine:
        assert kinds(engine.run("m", jobs_for(messages, 2))) == ["stored"] * 2


@pytest.mark.parametrize("step", ["create", "poll", "list", "download"])
@pytest.mark.parametrize("statuses", [[500, 429], [0, 0]])
def test_run__steps_that_fail_are_tried_again_and_nothing_is_sent_twice(remote, store, door, step, statuses):
    go(remote, faults={step: statuses})
    with batching(remote, store, **door) as engine:
        results = engine.run("m", jobs_for(door, 5))

    assert kinds(results) == ["stored"] * 5
    assert remote.stats()["requests"] == 5


@pytest.mark.parametrize("page", [100, 1])
def test_run__a_batch_whose_id_was_lost_is_found_again(remote, store, door, page):
    jobs, book = jobs_for(door, 4), Book(store)
    in_batch(remote, store, book, jobs, **door)
    lost(book)
    for count in (4, 3):  # as many requests, and others
        in_batch(remote, store, Book(store), jobs_for(door, count, f"other {count}"), **door)
    go(remote, page=page, seconds=0)

    with batching(remote, store, book, **door) as engine:
        assert kinds(engine.run("m", jobs)) == ["stored"] * 4
        wait_until(lambda: not book.notes)

    assert (engine.stats.sent, remote.stats()["most_attempts"]) == (0, 1)


def test_run__a_batch_from_before_its_note_is_not_its_own(remote, store, messages):
    remote.faults({"kind": "status", "status": 429, "first": 1})
    go(remote, faults={"create": [None, 500]})
    with batching(remote, store, **messages) as engine:
        assert kinds(engine.run("m", jobs_for(messages, 5))) == ["stored"] * 5

    assert engine.stats.retries == {"http 429": 5, "http 500": 1}
    assert created(remote) == 2


@pytest.mark.parametrize("name", DOORS)
def test_run__the_key_is_where_each_door_wants_it(remote, store, monkeypatch, name):
    api, path = DOORS[name]
    monkeypatch.setenv("KEY_OF_BATCHES", "sk-secret-secret")
    remote._send("POST", "/control/key", b"sk-secret-secret")
    settings = {"api": api, "base_url": remote.server.address + path, "key_env": "KEY_OF_BATCHES"}
    try:
        with batching(remote, store, **settings) as engine:
            assert kinds(engine.run("m", make_jobs(2, api=api))) == ["stored"] * 2
    finally:
        remote._send("POST", "/control/key", b"")


def test_run__garbage_strangers_and_twins_among_the_lines_are_passed_over(remote, store):
    go(remote, garbage=True)
    jobs = make_jobs(10)
    with batching(remote, store) as engine:
        results = engine.run("m", jobs)

    assert kinds(results) == ["stored"] * 10
    assert store.records.keys() == {job.digest for job in jobs}


def test_run__a_line_that_is_too_long_is_not_read(remote, store):
    remote.faults({"kind": "huge", "megabytes": 1, "share": 0.3})
    with batching(remote, store, response_bytes=100_000) as engine:
        results = engine.run("m", make_jobs(20))

    assert {(result.kind, result.cause) for result in results} == {("stored", ""), ("failed", "too large")}


def test_run__a_key_that_the_endpoint_repeats_is_not_shown(store, monkeypatch):
    monkeypatch.setenv("KEY_OF_BATCHES", "sk-secret-secret")
    refusal = http(b'{"error": {"message": "bad key sk-secret-secret"}}', 400)
    with (
        Echo(lambda _: refusal) as echo,
        batching(echo, store, key_env="KEY_OF_BATCHES") as engine,
    ):
        (result,) = engine.run("m", make_jobs(1))

    assert (result.cause, result.detail) == ("http 400", "bad key [key]")
    assert b"authorization: bearer sk-secret-secret" in echo.requests[0].lower()


@pytest.mark.parametrize("step", ["upload", "create"])
def test_run__an_endpoint_without_batches_gives_the_model_up(remote, store, step):
    go(remote, faults={step: [404]})
    book = Book(store)
    with batching(remote, store, book) as engine:
        results = engine.run("m", make_jobs(5)) + engine.run("m", make_jobs(5, "more"))

    assert {(result.kind, result.cause) for result in results} == {("failed", "http 404")}
    assert (created(remote), book.notes) == (0, {})
