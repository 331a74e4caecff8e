"""Limits of an endpoint that a real simulator enforces: never exceeded, and used."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalcube.stages.infer import queue
from evalcube.stages.infer.admission import Admission
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Slowdown
from evalcube.stages.infer.rates import Quota
from evalcube.stages.infer.sharing import Shared
from tests.stages.infer.conftest import kinds
from tests.waiting import PATIENCE


def run_all(engines, batches):
    """Run one batch in each engine at once; all results, and how many of them came a second."""
    start = time.monotonic()
    with ThreadPoolExecutor(len(engines)) as pool:
        blocks = list(pool.map(lambda pair: pair[0].run("m", pair[1]), zip(engines, batches, strict=True)))
    results = [result for block in blocks for result in block]
    return results, len(results) / (time.monotonic() - start)


# A machine that is late sends fewer, and never more: `test_rates.py` shows on a clock of its own that a limit is used.


def test_admission__passes_over_those_who_went_away():
    async def enter_and_leave():
        admission = Admission()
        admission.retune(Quota(1), 60.0, 1)
        assert admission.try_enter(0.0)
        waiting = [asyncio.create_task(admission.enter(lambda: 0.0, None)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        admission.leave()
        await asyncio.sleep(0)
        return await asyncio.wait_for(waiting[2], PATIENCE)

    assert asyncio.run(enter_and_leave()) == 0.0


def test_requests_per_minute__are_kept(engine_for, jobs):
    per_second = 80
    engine = engine_for(connections=32, requests_per_minute=60 * per_second)

    results, came = run_all([engine], [jobs(2 * per_second, latency=0.01)])

    assert kinds(results) == ["stored"] * 2 * per_second
    assert came <= 1.05 * per_second


def test_tokens_per_minute__are_kept(engine_for, jobs):
    per_second = 8_000
    engine = engine_for(connections=32, tokens_per_minute=60 * per_second)

    results, came = run_all([engine], [jobs(350, latency=0.01, tokens=48, limit=4000)])

    tokens = sum(result.prompt_tokens + result.completion_tokens for result in results)
    assert kinds(results) == ["stored"] * 350
    assert came * tokens / 350 <= 1.05 * per_second


def test_requests_per_minute__are_shared_by_workers_that_come_late(store, remote, jobs, wait_until):
    per_second = 80
    endpoint = Endpoint("m", remote.base_url, connections=32, requests_per_minute=60 * per_second)
    first, second = Engine({"m": endpoint}, store), Engine({"m": endpoint}, store, workers=0)
    names = {"a": first, "b": second}
    shared = Shared({"m": (endpoint.quota, endpoint.timeout)}, ["m"])

    def lend():
        for setting in shared.decide(names, names, time.monotonic(), at_once=True).values():
            for name, engine in names.items():
                engine.slow_down(Slowdown("m", setting=setting, worker=name))
        for name, engine in names.items():
            for each in engine.slowdowns():
                shared.hear(name, "m", each.report)
        return running.done()

    with ThreadPoolExecutor(1) as pool:
        batches = [jobs(124, "a", latency=0.01), jobs(76, "b", latency=0.01)]
        running = pool.submit(run_all, [first, second], batches)
        wait_until(lambda: first.stats.replies >= 1.2 * per_second)
        shared.decide(["a"], ["a"], 0.0)
        first.share_out(2)
        second.share_out(2)
        wait_until(lend)
        results, came = running.result()
    first.close()
    second.close()

    assert kinds(results) == ["stored"] * 200
    assert came <= 1.05 * per_second


def test_watch_stops__nothing_is_sent_after_a_stop_before_the_driver_has_answered(
    store, remote, jobs, wait_until
):
    names, endpoint, now = ("a", "b"), Endpoint("m", remote.base_url, connections=4), [0.0]
    shared = Shared({"m": (endpoint.quota, 60.0)}, ["m"])
    lent = {"m": Slowdown("m", setting=shared.decide(names, names, 0.0)["m"], worker="a")}
    engine = Engine({"m": endpoint}, store, workers=2, lent=lent, clock=lambda: now[0])
    try:
        engine.run("m", jobs(1, label="first"))
        now[0] = 3600.0
        (report,) = wait_until(lambda: [each.report for each in engine.slowdowns() if each.report.held.stops])
        with ThreadPoolExecutor(1) as pool:
            block = pool.submit(engine.run, "m", jobs(9, label="later"))
            wait_until(lambda: any(each.report.wanted == 4 for each in engine.slowdowns() if each.report))
            assert remote.stats()["requests"] == 1
            shared.hear("a", "m", report)
            setting = shared.decide(names, names, 0.0, at_once=True)["m"]
            engine.slow_down(Slowdown("m", setting=setting, worker="a"))
            assert kinds(block.result(PATIENCE)) == ["stored"] * 9
    finally:
        engine.close()


def test_connections__that_an_endpoint_refuses_are_given_up_and_tried_again(engine_for, remote, jobs):
    remote.limits(connections=4)

    engine = engine_for(connections=32, retries=8, backoff_base=0.05)
    results = engine.run("m", jobs(200, latency=0.01))

    assert kinds(results) == ["stored"] * 200
    assert remote.stats()["limits"]["over"]["connections"] <= 600  # 1400 were all 32 kept
    assert engine.stats.failures == {}


@pytest.mark.parametrize("style", ["openai", "anthropic", "none"])
def test_headers__of_a_limit_that_was_not_declared_are_heeded(engine_for, remote, jobs, style):
    remote.limits(rpm=6000, window=0.5, style=style)

    engine = engine_for(connections=8, retries=8, backoff_base=0.05)
    results = engine.run("m", jobs(150, latency=0.005))

    stats = remote.stats()
    assert kinds(results) == ["stored"] * 150
    assert stats["limits"]["over"]["rpm"] <= 100


def test_limit__that_is_neither_declared_nor_announced_costs_no_trial(engine_for, remote, jobs):
    """How soon it is found, and how much of it is used, `test_limit_simulation.py` shows on a clock of its own."""
    remote.limits(rpm=6000, window=0.05, style="none", says_when=False)

    engine = engine_for(connections=32, retries=0, backoff_base=0.05, patience=PATIENCE)
    results = engine.run("m", jobs(100, latency=0.01))

    assert kinds(results) == ["stored"] * 100
    assert engine.stats.failures == {}


def test_refusals__that_last_longer_than_retry_after_says_cost_waits_and_no_trial(engine_for, remote, jobs):
    remote.faults({"kind": "status", "status": 429, "retry_after": "0.01", "first": 6})
    engine = engine_for(retries=1, patience=60.0)

    (result,) = engine.run("m", jobs(1))

    assert (result.kind, result.attempts) == ("stored", 7)


def test_refusals__end_an_endpoint_that_lets_nothing_through_for_long(engine_for, remote, jobs):
    remote.faults({"kind": "status", "status": 429})
    engine = engine_for(connections=2, retries=1, patience=0.3)

    results = engine.run("m", jobs(500))

    assert {(result.kind, result.cause) for result in results} == {("failed", "http 429")}
    assert remote.stats()["requests"] < 50


def test_refusals__wait_no_longer_the_more_there_were(engine_for, remote, jobs, monkeypatch):
    waits, wait = [], queue.wait_unless_over

    async def noted(seconds, over):
        waits.append(seconds)
        return await wait(seconds, over)

    monkeypatch.setattr(queue, "wait_unless_over", noted)
    remote.faults({"kind": "status", "status": 429, "first": 4})
    engine = engine_for(connections=4, retries=1, backoff_base=0.02, patience=60.0)

    results = engine.run("m", jobs(1))

    assert {(result.kind, result.attempts) for result in results} == {("stored", 5)}
    assert max(waits) <= 0.03


@pytest.mark.parametrize("status", [429, 503])
def test_refusals__that_wait_leave_their_connection_to_others(
    engine_for, remote, jobs, store, wait_until, status
):
    engine = engine_for(connections=1, backoff_base=60.0, patience=600.0)
    engine.run("m", jobs(1, label="warm"))
    remote.faults({"kind": "status", "status": status, "times": 1})

    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(engine.run, "m", jobs(1, label="refused"))
        wait_until(lambda: sum(remote.stats()["faults"].values()) == 1)
        others = pool.submit(engine.run, "m", jobs(20, label="others"))
        wait_until(lambda: len(store.records) == 21)
        engine.close()

    assert kinds(others.result()) == ["stored"] * 20
    assert kinds(refused.result()) == ["skipped"]


@pytest.mark.parametrize(("status", "why"), [(429, "refused"), (500, "http 500")])
def test_waiting__is_said_of_waits_that_nobody_asked_for(engine_for, remote, jobs, wait_until, status, why):
    remote.faults({"kind": "status", "status": status, "times": 1})
    engine = engine_for(connections=2, backoff_base=600.0, patience=6000.0)

    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(engine.run, "m", jobs(1))
        ((model, waiting),) = wait_until(engine.waiting).items()
        engine.close()

    assert (model, waiting["reason"]) == ("m", f"{why}: tried again")
    assert kinds(refused.result()) == ["skipped"]
    assert engine.waiting() == {}


def test_retry_after__holds_back_all_requests(engine_for, remote, jobs, wait_until):
    remote.faults({"kind": "status", "status": 429, "retry_after": "0.6", "times": 1})
    engine = engine_for(connections=4)
    start = time.monotonic()

    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(engine.run, "m", jobs(1, label="refused"))
        remote.wait_for(requests=1)
        wait_until(lambda: engine.stats.in_flight == 0)
        others = engine.run("m", jobs(4, label="others"))

    assert time.monotonic() - start >= 0.6
    assert kinds(others) == ["stored"] * 4
    assert refused.result()[0].attempts == 2


def test_waiting__says_for_what_and_how_long_while_requests_wait(engine_for, remote, jobs, wait_until):
    remote.faults({"kind": "status", "status": 429, "retry_after": "600", "times": 1})
    first, second = engine_for(connections=2), engine_for(connections=2)

    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(first.run, "m", jobs(1, label="refused"))
        ((model, waiting),) = wait_until(first.waiting).items()
        (slowdown,) = first.slowdowns()
        second.run("m", [])
        second.slow_down(slowdown)
        idle = second.waiting()
        other = pool.submit(second.run, "m", jobs(1, label="other"))
        ((label, passed_on),) = wait_until(second.waiting).items()
        first.close()
        second.close()

    assert (model, waiting["reason"], slowdown.reason) == ("m", "429: Retry-After", "429: Retry-After")
    assert 0.0 < waiting["seconds"] <= 600.0
    assert (label, passed_on["reason"]) == ("m", "429: Retry-After")
    assert idle == first.waiting() == second.waiting() == {}
    assert kinds([*refused.result(), *other.result()]) == ["skipped"] * 2


def test_slow_down__holds_back_what_another_engine_learned(engine_for, remote, jobs, wait_until):
    first, second = engine_for(connections=8), engine_for(connections=8)
    second.run("m", jobs(1, label="warm"))
    remote.faults({"kind": "status", "status": 503, "retry_after": "600", "times": 1})

    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(first.run, "m", jobs(1, label="told"))
        wait_until(first.waiting).items()
        (slowdown,) = first.slowdowns()
        second.slow_down(slowdown)
        others = pool.submit(second.run, "m", jobs(8, label="others"))
        wait_until(second.waiting).items()
        first.close()
        second.close()

    assert (slowdown.model, slowdown.overload, first.slowdowns()) == ("m", False, [])
    assert 0.0 < slowdown.pause <= 600.0
    assert kinds([*others.result(), *refused.result()]) == ["skipped"] * 9
    assert remote.stats()["requests"] == 2


@pytest.mark.parametrize("settings", [{"requests_per_minute": 1.0}, {"tokens_per_minute": 10.0}])
def test_drain__does_not_wait_for_a_limit(engine_for, jobs, remote, wait_until, settings):
    engine = engine_for(connections=4, **settings)

    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", jobs(10))
        wait_until(lambda: engine.stats.replies == 1)
        engine.drain()
        results = block.result(PATIENCE)

    assert sorted(kinds(results)) == ["skipped"] * 9 + ["stored"]
    assert remote.stats()["requests"] == 1


def test_close__does_not_wait_for_a_limit(engine_for, jobs, wait_until):
    engine = engine_for(connections=4, requests_per_minute=1.0)

    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", jobs(10))
        wait_until(lambda: engine.stats.replies == 1)
        engine.close()
        assert sorted(kinds(block.result(PATIENCE))) == ["skipped"] * 9 + ["stored"]


def test_run__a_model_that_is_given_up_leaves_no_one_waiting_for_a_limit(remote, store, jobs):
    endpoints = {
        name: Endpoint(name, remote.base_url, connections=1, requests_per_minute=60.0)
        for name in ("gone", "m")
    }
    engine = Engine(endpoints, store)
    remote.faults({"kind": "status", "status": 404, "model": "gone"})
    try:
        results = engine.run("gone", jobs(600, name="gone"))
    finally:
        engine.close()

    assert {result.cause for result in results} == {"http 404"}
    assert remote.stats()["requests"] == 2  # of 600, which would take ten minutes


def test_models__at_one_address_share_their_connections(remote, store, jobs):
    endpoints = {
        "a": Endpoint("a", remote.base_url, connections=3),
        "b": Endpoint("b", remote.base_url + "/", connections=8),
    }
    engine = Engine(endpoints, store)
    with ThreadPoolExecutor(2) as pool:
        blocks = [
            pool.submit(engine.run, name, jobs(30, name=name, label=name, latency=0.02)) for name in endpoints
        ]
        assert [kinds(block.result()) for block in blocks] == [["stored"] * 30] * 2
    engine.close()

    assert remote.stats()["most_in_flight"] <= 3


def test_models__one_that_takes_long_leaves_room_for_another(remote, store, jobs):
    endpoints = {name: Endpoint(name, remote.base_url, connections=4) for name in ("slow", "quick")}
    engine = Engine(endpoints, store)
    with ThreadPoolExecutor(2) as pool:
        engine.run("slow", jobs(1, name="slow", label="first"))  # which goes alone
        slow = pool.submit(engine.run, "slow", jobs(60, name="slow", label="s", latency=1.0))
        remote.wait_for(in_flight=4)
        quick = engine.run("quick", jobs(100, name="quick", label="q"))
        assert not slow.done()
        engine.close()

    assert kinds(quick) == ["stored"] * 100


def test_limit__is_not_found_where_nothing_was_let_through(store, remote, jobs):
    """Whoever set the rate at which an endpoint refused everything would wait for nothing."""
    remote.faults({"kind": "status", "status": 429})
    endpoint = Endpoint("m", remote.base_url, connections=2, retries=1, backoff_base=0.01, patience=0.3)
    engine = Engine({"m": endpoint}, store)
    try:
        results = engine.run("m", jobs(8))
        found = engine.found_limits()
    finally:
        engine.close()

    assert {result.cause for result in results} == {"http 429"}
    assert found == {}
