"""Quotas, buckets and throttles on a clock of the test's own."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.rates import Quota, Throttle, TokenBucket, strictest
from evalcube.stages.infer.sharing import Shared


@given(st.integers(1, 50), st.integers(1, 80), st.none() | st.floats(1, 1e6), st.none() | st.floats(1, 1e9))
def test_of_run__the_parts_of_all_runs_add_up(connections, runs, requests, tokens):
    parts = [Quota(connections, requests, tokens).of_run(runs, place) for place in range(runs)]

    assert sum(part.connections for part in parts) == connections
    if requests is not None:
        assert sum(part.requests_per_minute for part in parts) == pytest.approx(requests)
    if tokens is not None:
        assert sum(part.tokens_per_minute for part in parts) == pytest.approx(tokens)


def test_strictest__keeps_every_limit():
    assert strictest([Quota(9), Quota(3, 50.0), Quota(5, 70.0, 9.0)]) == Quota(3, 50.0, 9.0)


def drive(bucket, costs, *, start=0.0):
    """Moments at which requests start that all wait from the beginning."""
    now, moments = start, []
    for cost in costs:
        now += bucket.wait(cost, now)
        bucket.take(cost, now)
        moments.append(now)
    return moments


rates = st.floats(0.01, 1e4)


@given(rates, st.integers(2, 200), st.floats(0, 1, exclude_max=True))
def test_bucket__lets_no_more_through_than_its_rate_and_its_burst(rate, count, phase):
    moments = drive(TokenBucket(rate, 1.0, 0.0, phase), [1.0] * count)

    for first in range(0, count, 7):
        for last in range(first, count, 11):
            allowed = rate * (moments[last] - moments[first]) + max(1.0, 0.1 * rate) + 1
            assert last - first + 1 <= allowed * (1 + 1e-6)


@given(rates, st.integers(2, 200))
def test_bucket__uses_all_of_its_rate(rate, count):
    moments = drive(TokenBucket(rate, 1.0, 0.0), [1.0] * count)

    assert moments[-1] <= count / rate * (1 + 1e-6)


@given(rates, st.lists(st.floats(0.1, 1e5), min_size=2, max_size=50))
def test_bucket__pays_off_what_it_could_not_hold(rate, costs):
    moments = drive(TokenBucket(rate, 0.0, 0.0), costs)

    assert sum(costs[:-1]) <= rate * moments[-1] + 0.1 * rate + 1e-6 * sum(costs)
    assert moments[-1] <= sum(costs) / rate * (1 + 1e-6)


@given(rates, st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=5, max_size=60))
def test_bucket__wrong_guesses_are_corrected(rate, pairs):
    """What was guessed wrongly is paid by those that come after."""
    bucket, now = TokenBucket(rate, 0.0, 0.0), 0.0
    for guess, truth in pairs:
        now += bucket.wait(guess, now)
        bucket.take(guess, now)
        bucket.take(truth - guess, now)

    taken = sum(truth for _, truth in pairs[:-1])
    assert taken <= rate * now + 0.1 * rate + 100 + 1e-6 * taken


@given(rates, rates, st.integers(1, 50))
def test_bucket__follows_another_rate(old, new, count):
    bucket = TokenBucket(old, 1.0, 0.0)
    start = drive(bucket, [1.0] * count)[-1]
    bucket.retune(new, start)
    moments = drive(bucket, [1.0] * 50, start=start)

    saved = max(1.0, 0.1 * new)
    assert (moments[-1] - start) * new + saved * (1 + 1e-6) >= 50 - 1
    assert moments[-1] - start <= (50 + 1) / new * (1 + 1e-6)


def test_throttle__of_several_workers_take_turns_at_the_start():
    names = [str(rank) for rank in range(4)]
    quota = Quota(8, 60.0)
    setting = Shared({"m": (quota, 60.0)}, ["m"]).decide(names, names, 0.0)["m"]
    first = []
    for name in names:
        limits = Throttle()
        limits.retune(quota, 0.0, workers=4)
        limits.obey(setting, 0.0, name)
        first.append(limits.wait(0.0, 0.0))

    assert min(first) == 0.0
    assert all(after - before == pytest.approx(1 / 0.99) for before, after in pairwise(sorted(first)))


def test_bucket__a_clock_that_goes_back_gives_nothing():
    bucket = TokenBucket(1.0, 1.0, 100.0)
    bucket.take(1.0, 100.0)

    assert bucket.wait(1.0, 50.0) == 1.0


def throttle(connections=2, requests=None, tokens=None):
    """One of a worker that is alone; rates are per second."""
    limits = Throttle()
    per_minute = [None if rate is None else rate * 60 / 0.99 for rate in (requests, tokens)]
    limits.retune(Quota(connections, *per_minute), 0.0)
    return limits


def test_throttle__bounds_what_is_in_flight():
    limits = throttle()
    limits.start(0.0, 0.0)
    assert limits.wait(0.0, 0.0) == 0.0
    limits.start(0.0, 0.0)

    assert limits.wait(0.0, 0.0) == math.inf


def test_throttle__waits_for_the_slowest_of_its_limits():
    limits = throttle(requests=2.0, tokens=10.0)
    limits.start(29.0, 0.0)

    assert limits.wait(1.0, 0.0) == pytest.approx(3.0)
    limits.pause(7.0, 0.0)
    assert limits.wait(1.0, 0.0) == 7.0
    assert limits.wait(1.0, 6.0) == 1.0
    assert limits.wait(1.0, 7.0) == 0.0


def test_throttle__a_shorter_pause_takes_nothing_from_a_longer_one():
    limits = throttle()
    limits.pause(7.0, 0.0)
    limits.pause(1.0, 0.0)

    assert limits.wait(0.0, 0.0) == 7.0


def test_throttle__gives_back_what_a_reply_did_not_take():
    limits = throttle(tokens=10.0)
    limits.start(100.0, 0.0)
    limits.correct(-91.0, 0.0)

    assert limits.wait(1.0, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("share", [{"requests": 1.0}, {"tokens": 1.0}, {}])
def test_throttle__knows_whether_the_time_matters(share):
    limits = throttle(**share)

    assert limits.timed == (share != {})
    limits.pause(1.0, 0.0)
    assert limits.timed
    limits.wait(0.0, 2.0)
    assert limits.timed == (share != {})


def test_throttle__keeps_its_debts_while_it_has_no_share():
    limits = throttle(requests=1.0)
    limits.start(0.0, 0.0)
    limits.retune(Quota(2, 60 / 0.99), 0.0, workers=0)
    assert limits.wait(0.0, 9.0) == math.inf
    limits.retune(Quota(2, 60 / 0.99), 0.0)

    assert limits.wait(0.0, 0.0) == pytest.approx(1.0)
