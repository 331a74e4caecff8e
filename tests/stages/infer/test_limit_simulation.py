"""Limits that nobody declared are found within a minute, then kept and used, by servers on a clock of their own."""

import random

import pytest

from tests.stages.infer.limit_simulation import (
    Bucket,
    Changing,
    Concurrency,
    FixedWindow,
    Flaky,
    SlidingWindow,
    simulate,
)

REFUSED, USED = 0.05, 0.9


def scattered(mean):
    """Latencies as those of texts of very different length."""
    return lambda rng: mean * rng.lognormvariate(-0.32, 0.8)


SERVERS = {
    "nginx, 20/s, no burst": (lambda: Bucket(20), {}),
    "nginx, 20/s, no burst, late answers": (lambda: Bucket(20), {"latency": scattered(1.0)}),
    "nginx, 20/s, no burst, Retry-After: 1": (lambda: Bucket(20, retry_after=1.0), {}),
    "nginx, 20/s, burst 5": (lambda: Bucket(20, 5), {}),
    "bucket, 20/s, burst 100": (lambda: Bucket(20, 100), {}),
    "bucket, 20/s, burst 40, Retry-After: 1": (lambda: Bucket(20, 40, 1.0), {}),
    "nginx, 200/s": (lambda: Bucket(200, 2), {}),
    "nginx, 2/s": (lambda: Bucket(2), {"workers": (1, 2)}),
    "any second has 20": (lambda: SlidingWindow(20, 1.0), {}),
    "a clock's minute has 1200": (lambda: FixedWindow(1200), {"workers": (1,)}),
    "a clock's minute has 1200, Retry-After": (lambda: FixedWindow(1200, says=True), {}),
    "8 in flight, equal answers": (lambda: Concurrency(8, 0.5), {"latency": 0.5}),
    "8 in flight, answers of any length": (
        lambda: Concurrency(8, 0.5),
        {"latency": scattered(0.5), "workers": (1,), "seconds": 240.0, "warm_up": 120.0},
    ),
    "60/s, later 20/s": (
        lambda: Changing(Bucket(60, 5), Bucket(20, 5), 60.0),
        {"seconds": 240.0, "warm_up": 120.0},
    ),
}


@pytest.mark.parametrize("case", SERVERS)
def test_limit__is_found_within_a_minute_then_kept_and_used(case):
    make, settings = SERVERS[case]
    settings = dict(settings)
    for workers in settings.pop("workers", (1, 2, 4)):
        server = make()

        _, after = simulate(server, workers=workers, **settings)

        assert after.refused_share <= REFUSED, workers
        assert after.use(server.rate) >= USED - 0.005, workers


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_limit__may_rise_again(workers):
    server = Changing(Bucket(20, 5), Bucket(60, 5), 60.0)

    _, after = simulate(server, workers=workers, seconds=300.0, warm_up=240.0)

    assert after.refused_share <= REFUSED
    assert after.use(server.rate) >= USED


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_limit__where_there_is_none_nothing_is_lost(workers):
    whole, _ = simulate(Flaky(0.0), workers=workers, seconds=10.0, warm_up=10.0)

    # 64 connections, each of them 52 ms under way: from the first second on.
    assert whole.accepted >= 0.98 * 64 * 10.0 / 0.052
    assert whole.found is whole.connections is None


def test_limit__requests_that_fail_at_any_rate_do_not_end_a_run():
    server = Flaky(0.1)

    _, after = simulate(server, seconds=60.0, warm_up=30.0)

    # A request that fails waits half a second, at one of the connections: that is what it costs.
    assert after.accepted / after.seconds >= 0.8 * 64 / (0.052 + 0.1 * 0.75)


@pytest.mark.parametrize("workers", [1, 2])
def test_found__is_what_to_configure(workers):
    _, after = simulate(Bucket(20), workers=workers)

    assert 18.0 <= after.found <= 20.0


def test_found__is_a_bound_on_requests_in_flight_where_those_are_refused():
    _, after = simulate(Concurrency(8, 0.5), latency=scattered(0.5))

    assert after.found is None
    assert 7 <= after.connections <= 9


@pytest.mark.parametrize("seed", range(3))
def test_limit__clocks_that_differ_cost_no_more_than_turns(seed):
    server = Bucket(20, 2)

    _, after = simulate(server, workers=3, skew=random.Random(seed).uniform(0.1, 5.0), seed=seed)

    assert after.refused_share <= REFUSED
    assert after.use(server.rate) >= 0.8
