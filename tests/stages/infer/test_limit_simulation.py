"""Limits that nobody declared are found within a minute, then kept and used, by servers on a clock of their own."""

import random

import pytest

from tests.stages.infer.limit_simulation import simulate, simulate_sweep
from tests.stages.infer.limits import (
    Bucket,
    Changing,
    Concurrency,
    FixedWindow,
    Flaky,
    SlidingWindow,
)

pytestmark = pytest.mark.long

REFUSED, USED = 0.05, 0.9


def scattered(mean):
    """Latencies as those of texts of very different length."""
    return lambda rng: mean * rng.lognormvariate(-0.32, 0.8)


SERVERS = {
    "nginx, 20/s, no burst": (lambda: Bucket(20), {"used": 0.85}),
    "nginx, 20/s, no burst, late answers": (lambda: Bucket(20), {"latency": scattered(1.0), "workers": (1,)}),
    "nginx, 20/s, no burst, Retry-After: 1": (lambda: Bucket(20, retry_after=1.0), {"used": 0.78}),
    "nginx, 20/s, burst 5": (lambda: Bucket(20, 5), {}),
    "bucket, 20/s, burst 100": (lambda: Bucket(20, 100), {}),
    "bucket, 20/s, burst 40, Retry-After: 1": (lambda: Bucket(20, 40, 1.0), {}),
    "nginx, 200/s": (lambda: Bucket(200, 2), {"workers": (4,)}),
    "nginx, 2/s": (lambda: Bucket(2), {"workers": (1,), "used": 0.75}),
    "any second has 20": (lambda: SlidingWindow(20, 1.0), {}),
    "a clock's minute has 1200": (lambda: FixedWindow(1200), {"workers": (1,)}),
    "a clock's minute has 500, answers of 20 s": (
        lambda: FixedWindow(500),
        {"latency": scattered(20.0), "workers": (1,), "seconds": 1500.0, "warm_up": 300.0, "used": 0.85}
        | {"connections": 256, "start": 16},
    ),
    "a clock's minute has 1200, Retry-After": (lambda: FixedWindow(1200, says=True), {}),
    "8 in flight, equal answers": (lambda: Concurrency(8, 0.5), {"latency": 0.5, "used": 0.85}),
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
    used = settings.pop("used", USED)
    for workers in settings.pop("workers", (1, 4)):
        server = make()

        _, after = simulate(server, workers=workers, **settings)

        assert after.refused_share <= REFUSED, workers
        assert after.use(server.rate) >= used - 0.005, workers


def test_limit__may_rise_again():
    server = Changing(Bucket(20, 5), Bucket(60, 5), 60.0)

    _, after = simulate(server, workers=2, seconds=300.0, warm_up=240.0)

    assert after.refused_share <= REFUSED
    assert after.use(server.rate) >= USED


@pytest.mark.parametrize("workers", [1, 4])
def test_limit__where_there_is_none_nothing_is_lost(workers):
    whole, _ = simulate(Flaky(0.0), workers=workers, seconds=10.0, warm_up=10.0)

    # 64 connections, each of them 52 ms under way: from the first second on.
    assert whole.accepted >= 0.98 * 64 * 10.0 / 0.052
    assert whole.found is None


def full_speed(share, connections=64):
    """Requests per second that are let through where all connections are always in use: answers take 52 ms."""
    return connections * (1.0 - share) / ((1.0 - share) * 0.052 + share * 0.003)


def test_limit__refusals_by_chance_cost_no_more_than_themselves():
    _, after = simulate(Flaky(0.3), workers=4, seconds=20.0, warm_up=5.0, status=503)

    assert after.use(full_speed(0.3)) >= USED
    assert after.failed <= 2e-3 * after.accepted


@pytest.mark.parametrize("workers", [1, 4])
def test_limit__refusals_by_chance_that_look_like_one_are_seen_through(workers):
    """With few connections several in a row are no rarity."""
    _, after = simulate(Flaky(0.3), workers=workers, connections=8, seconds=120.0, warm_up=60.0, status=503)

    assert after.use(full_speed(0.3, 8)) >= USED


def test_limit__is_found_where_refusals_came_by_chance_before():
    server = Changing(Flaky(0.2), Bucket(20, 5), 10.0)

    _, after = simulate(server, workers=4, seconds=130.0, warm_up=70.0, status=503)

    assert after.refused_share <= REFUSED
    assert after.use(20.0) >= USED


@pytest.mark.parametrize("workers", [1, 4])
def test_limit__of_a_status_that_may_be_an_outage_costs_no_request(workers):
    sweep = simulate_sweep(Bucket(20), 400, workers=workers, status=503)

    assert (sweep.accepted, sweep.failed) == (400, 0)


def test_sweep__ends_soon_after_its_last_new_request():
    tails = [simulate_sweep(Flaky(0.2), 2000, workers=4, seed=seed).tail for seed in range(3)]

    assert max(tails) <= 5.0


@pytest.mark.parametrize("workers", [1, 2])
def test_found__is_what_to_configure(workers):
    _, after = simulate(Bucket(20), workers=workers)

    assert 18.0 <= after.found <= 20.0


def test_found__is_a_bound_on_requests_in_flight_where_those_are_refused():
    _, after = simulate(Concurrency(8, 0.5), latency=scattered(0.5))

    assert after.found is None
    assert 6 <= after.in_flight <= 8


@pytest.mark.parametrize("seed", range(2))
def test_limit__clocks_that_differ_cost_no_more_than_turns(seed):
    server = Bucket(20, 2)

    _, after = simulate(server, workers=3, skew=random.Random(seed).uniform(0.1, 5.0), seed=seed)

    assert after.refused_share <= REFUSED
    assert after.use(server.rate) >= 0.8
