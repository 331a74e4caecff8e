"""What a person orders of requests that go on holds at once, for those that wait and for those to come."""

from concurrent.futures import ThreadPoolExecutor

from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.rates import Quota
from evalcube.stages.infer.steering import UNSTEERED, Steering
from tests.stages.infer.conftest import kinds
from tests.waiting import PATIENCE

PAUSED = Steering(paused=True)


def test_steer__a_pause_sends_nothing_and_its_end_goes_on(engine_for, remote, jobs, wait_until):
    engine = engine_for()
    engine.steer(PAUSED)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, "m", jobs(20))
        engine.share_out(2, 0)  # a worker that joined meanwhile ends no pause
        wait_until(lambda: len(engine._queues) == 1)
        assert engine.stats.sent == 0
        engine.steer(UNSTEERED)
        assert kinds(running.result(PATIENCE)) == ["stored"] * 20

    assert remote.stats()["requests"] == 20


def test_steer__a_pause_lets_what_is_in_flight_end(engine_for, jobs, wait_until):
    engine = engine_for(connections=2)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, "m", jobs(12, latency=0.3))
        wait_until(lambda: engine.stats.in_flight == 2)
        engine.steer(PAUSED)
        wait_until(lambda: engine.stats.in_flight == 0)
        sent = engine.stats.sent
        assert sent < 12
        engine.drain()
        assert kinds(running.result(PATIENCE)).count("stored") == sent


def test_steer__a_dropped_model_is_skipped_and_others_go_on(remote, store, jobs):
    endpoints = {name: Endpoint(name, remote.base_url, connections=2) for name in ("m", "other")}
    engine = Engine(endpoints, store, workers=0)
    try:
        with ThreadPoolExecutor(2) as pool:
            dropped, kept = (pool.submit(engine.run, name, jobs(6, label=name)) for name in endpoints)
            engine.steer(Steering(dropped=frozenset({"m"})))
            engine.share_out(1, 0)

            assert kinds(dropped.result(PATIENCE)) == ["skipped"] * 6
            assert kinds(kept.result(PATIENCE)) == ["stored"] * 6
            assert kinds(engine.run("m", jobs(2, label="late"))) == ["skipped"] * 2
    finally:
        engine.close()


def test_steer__other_limits_hold_for_an_endpoint_that_is_in_use(engine_for, remote, jobs, wait_until):
    engine = engine_for(connections=1)
    engine.run("m", jobs(1))

    engine.steer(Steering(quotas={"m": Quota(6)}))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, "m", jobs(12, label="more", latency=0.3))
        wait_until(lambda: engine.stats.in_flight == 6)
        engine.steer(Steering(quotas={"m": Quota(1)}))
        assert kinds(running.result(PATIENCE)) == ["stored"] * 12

    assert remote.stats()["most_in_flight"] <= 6


def test_steer__what_was_given_up_is_asked_again(engine_for, remote, jobs):
    engine = engine_for()
    remote.faults({"kind": "status", "status": 401})
    assert set(kinds(engine.run("m", jobs(6)))) == {"failed"}
    remote.faults()
    assert set(kinds(engine.run("m", jobs(2, label="early")))) == {"failed"}

    engine.steer(Steering(retries=1))

    assert kinds(engine.run("m", jobs(6))) == ["stored"] * 6
