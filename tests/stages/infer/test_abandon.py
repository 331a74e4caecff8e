"""Calls that nobody waits for any more, and stores that keep nothing: requests that are paid for and lost."""

import threading

import pytest

from tests.waiting import PATIENCE


def test_abandon__sends_nothing_more_and_keeps_what_is_in_flight(engine_for, remote, store, jobs, wait_until):
    engine, caught = engine_for(), []

    def call():
        with pytest.raises(InterruptedError) as error:
            engine.run("m", jobs(60, latency=0.3), caller="task")
        caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    remote.wait_for(requests=6)

    engine.abandon("task", InterruptedError())
    thread.join(PATIENCE)

    assert caught
    wait_until(lambda: remote.stats()["in_flight"] == 0)
    sent = remote.stats()["requests"]
    assert sent <= 40  # those in flight, and those that took their place before it was known
    wait_until(lambda: len(store.records) == sent)


def test_abandon__leaves_other_calls_alone(engine_for, jobs):
    engine = engine_for()

    engine.abandon("unknown", InterruptedError())

    assert [result.kind for result in engine.run("m", jobs(5), caller="mine")] == ["stored"] * 5
    engine.abandon("mine", InterruptedError())


def test_run__of_what_was_abandoned_before_it_had_a_name_sends_nothing(engine_for, remote, jobs):
    engine = engine_for()

    with pytest.raises(InterruptedError):
        engine.run("m", jobs(5), caller="task", unwanted=InterruptedError)

    assert [result.kind for result in engine.run("m", jobs(2, label="next"), caller="task")] == ["stored"] * 2
    assert remote.stats()["requests"] == 2


def test_run__ends_all_calls_once_the_store_keeps_nothing(engine_for, remote, store, jobs):
    engine, ended = engine_for(), []

    def call(number):
        with pytest.raises(OSError, match="disk full"):
            engine.run("m", jobs(40, label=str(number), latency=0.8))
        ended.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    remote.wait_for(requests=1)
    store.problem = OSError("disk full")
    for thread in threads:
        thread.join(PATIENCE)

    assert len(ended) == 6
    # Those in flight when it was full, and those that took their place before it was known.
    assert remote.stats()["requests"] <= 3 * 4
