"""Shares, buckets and throttles on a clock of the test's own."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.rates import Quota, Share, Throttle, TokenBucket, strictest


@given(st.integers(1, 500), st.integers(1, 40))
def test_share__adds_up_to_the_connections(connections, workers):
    shares = [Quota(connections).share(workers, rank).connections for rank in range(workers)]

    assert sum(shares) == max(connections, workers)
    assert max(shares) - min(shares) <= 1


@given(st.integers(1, 500), st.integers(1, 40), st.floats(1, 1e6), st.floats(1, 1e9))
def test_share__rates_of_all_who_may_work_add_up_to_one_percent_less(connections, workers, requests, tokens):
    shares = [Quota(connections, requests, tokens).share(workers, rank) for rank in range(workers)]
    at_work = shares[: min(connections, workers)]

    assert 60 * sum(share.requests for share in at_work) == pytest.approx(0.99 * requests)
    assert 60 * sum(share.tokens for share in at_work) == pytest.approx(0.99 * tokens)
    assert len({share.phase for share in shares}) == workers


def test_share__of_nobody_is_nothing():
    assert Quota(7, 60.0).share(0, 0) == Share(0)


def test_share__of_an_unknown_rank_is_never_too_much():
    assert Quota(7).share(2, -1).connections == 3


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


def test_bucket__of_several_workers_take_turns_at_the_start():
    shares = [Quota(8, 60.0).share(4, rank) for rank in range(4)]
    first = sorted(drive(TokenBucket(share.requests, 1.0, 0.0, share.phase), [1.0])[0] for share in shares)

    assert first[0] == 0.0
    assert all(after - before == pytest.approx(60 / 60 / 0.99) for before, after in pairwise(first))


def test_bucket__a_clock_that_goes_back_gives_nothing():
    bucket = TokenBucket(1.0, 1.0, 100.0)
    bucket.take(1.0, 100.0)

    assert bucket.wait(1.0, 50.0) == 1.0


def throttle(**share):
    made = Throttle()
    made.retune(Share(**{"connections": 2, **share}), 0.0)
    return made


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
    limits.retune(Share(0), 0.0)
    limits.retune(Share(2, requests=1.0), 0.0)

    assert limits.wait(0.0, 0.0) == pytest.approx(1.0)
