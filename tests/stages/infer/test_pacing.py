"""Turns of several workers at one pace."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.sharing import Pace, Turns, next_pace


def starts(turns, until, now=0.0):
    """Moments at which one worker starts requests, which always wait."""
    found = []
    while now < until:
        wait = turns.wait(now)
        if wait > 0.0:
            now += wait
            continue
        turns.take(now)
        found.append(now)
    return found


def worker(workers, rank, pace):
    turns = Turns()
    turns.follow(pace, 0.0, workers, rank)
    return turns


@given(st.floats(0.5, 40.0), st.integers(1, 6), st.floats(0.0, 50.0))
def test_turns__of_all_workers_are_even(rate, workers, turn):
    pace = Pace(rate, 0.0, turn)
    begun = [starts(worker(workers, rank, pace), 20 / rate) for rank in range(workers)]
    moments = sorted(moment for each in begun for moment in each)

    assert len(moments) >= 18
    # All but the first of each worker, which has nothing to wait for where a turn has just passed.
    gaps = [after - before for before, after in pairwise(moments[workers:])]
    assert all(gap == pytest.approx(1 / rate, rel=0.2) for gap in gaps)


def test_turns__a_pace_that_follows_leaves_no_gap_and_no_rush():
    first = Pace(10.0, 0.0, 0.0)
    turns = [worker(2, rank, first) for rank in range(2)]
    later = next_pace(first, 20.0, 1.53, 2)
    for rank, each in enumerate(turns):
        each.follow(later, 1.03, 2, rank)
    moments = sorted(moment for each in turns for moment in starts(each, 3.0, 1.03))

    assert min(after - before for before, after in pairwise(moments)) >= 0.049
    assert max(after - before for before, after in pairwise(moments)) <= 0.101


def test_turns__one_that_passed_is_not_made_up_for_at_a_low_rate():
    turns = worker(2, 0, Pace(20.0, 0.0, 0.0))
    assert starts(turns, 0.95)

    assert turns.wait(1.55) == pytest.approx(0.05)
    assert turns.wait(1.61) == 0.0


def test_turns__of_one_worker_alone_are_as_late_as_one_that_was_late():
    turns = worker(1, 0, Pace(10.0, 0.0, 0.0))
    assert starts(turns, 0.95)

    assert turns.wait(1.55) == 0.0
    turns.take(1.55)
    assert turns.wait(1.55) == pytest.approx(0.1)


def test_turns__that_passed_are_made_up_for_at_a_high_rate():
    turns = worker(1, 0, Pace(1000.0, 0.0, 0.0))
    turns.take(0.0)

    now, count = 5.0, 0
    while turns.wait(now) == 0.0:
        turns.take(now)
        count += 1
    assert 19 <= count <= 21


def test_turns__without_a_pace_are_always():
    turns = Turns()

    assert turns.pace is None
    assert turns.wait(0.0) == 0.0
