"""How the engine ends: drained, closed, with a store that fails; and that it leaves nothing behind."""

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.storage.cache.cache import DirectoryCache
from tests.stages.infer.conftest import kinds
from tests.waiting import PATIENCE


def test_drain__ends_what_is_in_flight_and_skips_the_rest(engine_for, remote, store, jobs):
    engine = engine_for(connections=3)
    engine.run("m", jobs(1, label="first"))  # which goes alone
    remote.reset()

    with ThreadPoolExecutor(2) as pool:
        block = pool.submit(engine.run, "m", jobs(50, latency=2.0))
        remote.wait_for(in_flight=3)
        engine.drain()
        results = block.result(PATIENCE)

    assert kinds(results) == ["stored"] * 3 + ["skipped"] * 47
    assert len(store.records) - 1 == remote.stats()["requests"] == 3
    assert kinds(engine.run("m", jobs(2, label="late"))) == ["skipped"] * 2
    assert remote.stats()["requests"] == 3


def test_drain__skips_what_is_queued_without_waiting_for_what_is_in_flight(
    engine_for, remote, jobs, wait_until
):
    engine = engine_for(connections=1, timeout=600.0)
    remote.faults({"kind": "hang", "times": 1})

    with ThreadPoolExecutor(2) as pool:
        stuck = pool.submit(engine.run, "m", jobs(1))
        remote.wait_for(in_flight=1)
        queued = pool.submit(engine.run, "m", jobs(5, label="queued"))
        wait_until(lambda: len(engine._in_flight) == 6)
        engine.drain()
        assert kinds(queued.result(PATIENCE)) == ["skipped"] * 5
        assert not stuck.done()
        engine.close()
        assert kinds(stuck.result(PATIENCE)) == ["skipped"]


def test_drain__does_not_wait_for_a_pause(engine_for, remote, jobs, wait_until):
    engine = engine_for(connections=2)
    remote.faults({"kind": "status", "status": 429, "retry_after": "500"})

    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", jobs(4))
        remote.wait_for(requests=1)
        wait_until(lambda: engine.stats.in_flight == 0)
        engine.drain()
        assert kinds(block.result(PATIENCE)) == ["skipped"] * 4

    assert remote.stats()["requests"] == 1


def test_drain__a_refusal_that_came_before_stays_a_failure(engine_for, remote, jobs):
    remote.faults({"kind": "status", "status": 400})
    engine = engine_for()

    assert kinds(engine.run("m", jobs(2))) == ["failed"] * 2
    engine.drain()
    engine.drain()

    assert kinds(engine.run("m", jobs(2))) == ["skipped"] * 2


def test_close__gives_up_what_is_in_flight_and_keeps_what_was_received(
    engine_for, remote, store, jobs, wait_until
):
    engine = engine_for(connections=10, timeout=600.0)
    remote.faults({"kind": "hang", "share": 0.5})
    batch = jobs(10)

    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", batch)
        remote.wait_for(requests=10)
        wait_until(lambda: engine.stats.replies + remote.stats()["in_flight"] == 10)
        received = engine.stats.replies
        start = time.monotonic()
        engine.close()
        results = block.result(PATIENCE)

    assert time.monotonic() - start < PATIENCE  # of the 600 s of a request
    assert 0 < received < 10
    assert len(store.records) == received == kinds(results).count("stored")
    assert kinds(results).count("skipped") == 10 - received
    assert engine.stats.in_flight == 0


def test_close__commits_what_was_put_and_ends_its_block(engine_for, store, jobs, wait_until):
    engine = engine_for()
    store.gate.clear()

    with ThreadPoolExecutor(2) as pool:
        block = pool.submit(engine.run, "m", jobs(20))
        # what was not put at once waits for the first commit
        wait_until(lambda: engine.stats.replies == 20 and store.records)
        assert not store.committed
        assert not block.done()
        closing = pool.submit(engine.close)
        wait_until(lambda: engine._closed)
        store.gate.set()
        closing.result(PATIENCE)
        assert kinds(block.result(PATIENCE)) == ["stored"] * 20

    assert len(store.committed) == 20


def test_close__twice_and_what_comes_after(engine_for, jobs):
    engine = engine_for()
    engine.run("m", jobs(1))

    engine.close()
    engine.close()
    engine.drain()

    assert kinds(engine.run("m", jobs(3))) == ["skipped"] * 3


def test_close__of_an_engine_that_never_ran():
    Engine({}, store=None).close()  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["problem", "commit_problem"])
@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), ValueError("no")])
def test_run__raises_what_the_store_raises_and_can_go_on(engine_for, remote, store, jobs, problem, where):
    engine = engine_for(connections=2)
    setattr(store, where, problem)

    with pytest.raises(type(problem)) as caught:
        engine.run("m", jobs(500, latency=0.01))

    assert caught.value is problem
    assert remote.stats()["requests"] < 50, "requests whose replies cannot be stored are paid for in vain"

    setattr(store, where, None)
    assert kinds(engine.run("m", jobs(20, label="after"))) == ["stored"] * 20
    assert remote.stats()["requests"] < 70


def test_run__reports_an_unexpected_error_by_its_name_only(engine_for, jobs):
    engine = engine_for(headers={"x-team": "a\r\nb: c"})

    (result,) = engine.run("m", jobs(1))

    assert (result.kind, result.cause, result.detail) == ("failed", "client", "unexpected ValueError")


def test_run__raises_what_a_real_store_raises(engine_for, tmp_path, jobs):
    from evalcube.storage.errors import StorageError

    cache = DirectoryCache(tmp_path / "cache")
    engine = engine_for(cache)
    batch = jobs(4)
    # Only one: a second failure, later, would end the next call.
    bad = type(batch[0])("zz" + batch[0].digest[2:], batch[0].body)

    with pytest.raises(StorageError):
        engine.run("m", [bad])

    assert kinds(engine.run("m", batch)) == ["stored"] * 4


def test_run__leaves_no_thread_no_file_and_no_task(remote, jobs, wait_until):
    def once():
        engine = Engine({"m": Endpoint("m", remote.base_url, connections=32)}, Discard())
        assert kinds(engine.run("m", jobs(1000))) == ["stored"] * 1000
        assert sys.getswitchinterval() < switches
        assert gc.get_threshold()[0] > garbage
        engine.close()
        return engine

    switches, garbage = sys.getswitchinterval(), gc.get_threshold()[0]
    once()
    gc.collect()
    threads, files = threading.active_count(), open_files()

    engine = once()

    gc.collect()
    wait_until(lambda: (threading.active_count(), open_files()) == (threads, files))
    assert not engine._in_flight
    assert engine._loop.is_closed()
    assert (sys.getswitchinterval(), gc.get_threshold()[0]) == (switches, garbage)


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Discard:
    def put_all(self, records):  # the interface of stores
        pass

    def commit(self):
        pass


def test_close__ends_what_waits_for_another_attempt_at_once(engine_for, jobs, wait_until):
    engine = engine_for(base_url="http://127.0.0.1:9/v1", retries=9, backoff_base=3600.0)
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(engine.run, "m", jobs(2))
        wait_until(lambda: engine.stats.sent == 2)
        wait_until(lambda: engine.stats.in_flight == 0)
        begun = time.monotonic()

        engine.close()

        assert time.monotonic() - begun < PATIENCE  # of an hour
        assert kinds(results.result()) == ["skipped"] * 2
