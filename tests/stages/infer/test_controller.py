"""What a controller decides: each branch, and what no counts may bring about."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.controller import MOST, START, Controller
from evalcube.stages.infer.counts import Counts

TIMEOUT = 600.0


def controller(start=START, most=MOST, workers=1):
    return Controller(start, most, TIMEOUT, 0.0, workers)


def answered(epoch, answers, waited, slow=0):
    """Counts of equal answers while the window was full."""
    counts = Counts(epoch, sent=answers, passed=answers, all_sent=answers, all_passed=answers)
    for index in range(answers):
        counts.answer(waited, 10.0, slow=index < slow)
    return counts


def refused(epoch, sent, turned_away, pause=0.0, passed=0):
    return Counts(
        epoch,
        sent=sent,
        refused=turned_away,
        passed=passed,
        pause=pause,
        all_sent=sent,
        all_refused=turned_away,
        all_passed=passed,
    )


def test_look__grows_after_a_round_that_was_worth_it():
    one = controller()

    assert one.look(0.5, answered(1, 16, 0.5))
    assert (one.window, one.epoch) == (32.0, 2)
    assert one.look(1.0, answered(2, 32, 0.5))
    assert one.window == 64.0


def test_look__grows_fourfold_where_several_rounds_were_answered_meanwhile():
    one = controller()

    one.look(0.5, answered(1, 64, 0.05))

    assert one.window == 64.0


def test_look__goes_back_where_a_larger_window_only_waits_longer():
    one = controller()
    one.look(0.5, answered(1, 16, 0.5))

    one.look(1.5, answered(2, 32, 1.0))

    assert one.window == 16.0


def test_look__a_declared_window_neither_grows_nor_shrinks_by_itself():
    one = controller(64, 64)

    assert not one.look(1.0, answered(1, 500, 0.5))
    assert not one.look(2.0, answered(1, 1000, 0.5))
    assert (one.window, one.pace) == (64.0, None)


@pytest.mark.parametrize("counts", [replace(answered(1, 8, 250.0, slow=8)), Counts(1, sent=4, overloads=1)])
def test_look__has_fewer_in_flight_where_answers_are_slow_or_do_not_come(counts):
    one = controller()

    one.look(1000.0, counts)

    assert one.window < START


def test_look__a_few_refusals_change_nothing():
    one = controller()

    assert not one.look(1.0, refused(1, 60, 2))


def test_look__many_refusals_bring_about_a_slower_pace():
    one = controller()

    one.look(2.0, refused(1, 100, 50))

    assert one.pace == pytest.approx(0.7 * 50 / 2.0)


def test_look__one_refusal_that_says_when_to_come_again_is_enough():
    one = controller()

    one.look(2.0, refused(1, 100, 1, pause=1.0))

    assert one.pace is not None


def test_look__refusals_that_a_slower_pace_changes_nothing_of_are_by_chance():
    one = controller(64, 64)
    for now in (2.0, 12.0, 22.0):
        one.look(now, refused(one.epoch, 60, 18, passed=42))

    assert one.pace is None
    assert one.window == 64.0


def test_look__a_slower_pace_that_none_is_refused_at_is_climbed_from():
    one = controller()
    one.look(2.0, refused(1, 100, 50))
    first = one.pace

    one.look(4.0, refused(one.epoch, 20, 0, passed=20))

    assert one.pace == pytest.approx(50 / 2.0)
    assert first < one.pace
    assert one.found == pytest.approx(50 / 2.0)


events = st.tuples(
    st.floats(0.05, 30.0), st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), st.integers(0, 3)
)


@given(
    st.sampled_from([(16, 256), (1, 1), (64, 64), (3, 4)]), st.integers(1, 4), st.lists(events, max_size=60)
)
def test_look__the_window_never_leaves_its_bounds_whatever_is_counted(bounds, workers, steps):
    start, most = bounds
    one, now, counts = controller(start, most, workers), 0.0, Counts()

    for seconds, sent, most_refused, answers, overloads in steps:
        now += seconds
        if counts.epoch != one.epoch:
            counts = counts.at(one.epoch)
        turned_away = min(most_refused, sent)
        counts.sent += sent
        counts.all_sent += sent
        counts.refused += turned_away
        counts.all_refused += turned_away
        counts.overloads = overloads
        for _ in range(min(answers, sent - turned_away)):
            counts.passed += 1
            counts.all_passed += 1
            counts.spent += seconds
            counts.answer(seconds, 10.0, slow=seconds > 20.0)
        one.look(now, counts)

        assert min(workers, most) <= one.window <= max(most, workers)
        assert one.pace is None or one.pace >= 0.2
