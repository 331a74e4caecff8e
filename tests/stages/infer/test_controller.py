"""What a controller decides: each branch, and what no counts may bring about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.controller import MOST, START, Controller
from evalcube.stages.infer.counts import Counts

TIMEOUT = 600.0


def controller(start=START, most=MOST, workers=1):
    return Controller(start, most, TIMEOUT, 0.0, workers)


def answered(epoch, answers, waited):
    """Counts of equal answers while the window was full."""
    return Counts(
        epoch,
        sent=answers,
        passed=answers,
        answers=answers,
        waited=answers * waited,
        tokens=10.0 * answers,
        all_sent=answers,
        all_passed=answers,
    )


def refused(epoch, sent, turned_away, pause=0.0, passed=0, before=(0, 0)):
    """Counts of requests in an epoch, and of those before it and how many of them were refused."""
    return Counts(
        epoch,
        sent=sent,
        refused=turned_away,
        passed=passed,
        pause=pause,
        all_sent=before[0] + sent,
        all_refused=before[1] + turned_away,
        all_passed=passed,
    )


def test_look__grows_after_a_round_that_was_worth_it():
    one = controller()

    assert one.look(0.5, answered(1, 16, 0.5))
    assert (one.window, one.epoch) == (32.0, 2)
    assert one.look(1.0, answered(2, 32, 0.5))
    assert one.window == 64.0


def test_look__needs_few_answers_at_first_where_there_is_room():
    one, slow = controller(), controller()

    assert not one.look(0.5, answered(1, 3, 0.5))
    assert one.look(0.5, answered(1, 4, 0.5))
    assert one.window == 32.0
    assert not slow.look(150.0, answered(1, 4, 150.0))
    assert slow.look(300.0, answered(1, 8, 150.0))
    assert slow.window == 21.0


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


@pytest.mark.parametrize("counts", [answered(1, 16, 250.0), Counts(1, sent=4, overloads=1)])
def test_look__has_fewer_in_flight_where_answers_are_slow_or_do_not_come(counts):
    one = controller()

    one.look(1000.0, counts)

    assert one.window < START


def test_look__a_few_refusals_change_nothing():
    one = controller()

    assert not one.look(1.0, refused(1, 60, 2))


def test_look__a_declared_window_that_was_halved_grows_again():
    one = controller(64, 64)
    one.look(1.0, Counts(1, sent=64, overloads=1))
    assert one.window == 32.0

    one.look(60.0, answered(one.epoch, 300, 0.5))
    one.look(120.0, answered(one.epoch, 300, 0.5))

    assert one.window > 32.0


def test_look__what_is_in_flight_is_bounded_where_nothing_else_is_refused():
    one = controller(64, 64)

    one.look(2.0, Counts(1, 40, 20, 20, most_passed=8, least_refused=9, all_sent=40, all_refused=20))

    assert (one.window, one.pace) == (8.0, None)


def test_look__what_is_refused_with_fewer_in_flight_too_is_no_matter_of_how_many():
    one = controller(64, 64)
    one.look(2.0, Counts(1, 40, 20, 20, most_passed=20, least_refused=21, all_sent=40, all_refused=20))
    assert one.window == 20.0

    one.look(4.0, Counts(one.epoch, 40, 20, 10, most_passed=20, least_refused=9, all_sent=80, all_refused=30))

    assert one.window == 64.0
    assert one.pace is not None
    one.look(
        9.0, Counts(one.epoch, 40, 20, 9, most_passed=20, least_refused=21, all_sent=120, all_refused=39)
    )
    assert one.window == 64.0


def test_look__many_refusals_bring_about_a_slower_pace():
    one = controller()

    one.look(2.0, refused(1, 100, 50))

    assert one.top_rate == pytest.approx(50 / 2.0)
    assert one.pace == pytest.approx(one.top_rate / 2.0)


def test_look__where_all_are_refused_few_are_asked():
    one = controller()
    one.look(4.0, refused(1, 100, 40))
    before = one.pace

    one.look(5.0, refused(one.epoch, 20, 20, before=(100, 40)))

    assert one.pace == pytest.approx(before / 4.0)
    assert one.top_rate is None
    one.look(6.0, refused(one.epoch, 20, 20, before=(120, 60)))
    assert one.pace == 0.5
    one.look(8.0, refused(one.epoch, 3, 1, before=(140, 80)))
    assert one.top_rate == pytest.approx((143 - 81) / 8.0)


def test_look__one_refusal_that_says_when_to_come_again_is_enough():
    one = controller()

    one.look(2.0, refused(1, 100, 1, pause=1.0))

    assert one.pace is not None


def test_look__what_is_refused_at_half_of_the_pace_too_is_by_chance():
    one = controller(64, 64)
    one.look(2.0, refused(1, 60, 18, passed=42))
    assert one.pace == pytest.approx(42 / 2.0 / 2.0)

    one.look(12.0, refused(one.epoch, 60, 18, passed=42, before=(60, 18)))

    assert one.pace is None
    assert one.window == 64.0
    assert not one.look(20.0, refused(one.epoch, 60, 18, passed=42, before=(120, 36)))


@pytest.fixture
def climbing():
    """A controller whose test of half of 30 requests per second had no refusals."""
    one = controller()
    one.look(2.0, refused(1, 100, 40))
    one.look(8.0, refused(one.epoch, 60, 0, passed=60, before=(100, 40)))
    return one


def test_look__where_none_is_refused_at_half_of_the_pace_there_is_a_limit(climbing):
    assert climbing.top_rate == pytest.approx(60 / 2.0)
    assert climbing.pace == pytest.approx(0.9 * climbing.top_rate)


def test_look__a_test_waits_as_long_as_refusals_take():
    one = controller()
    counts = refused(1, 100, 40)
    counts.delay = 3.0
    one.look(2.0, counts)
    tested = one.pace

    one.look(7.0, refused(one.epoch, 60, 0, passed=60, before=(100, 40)))
    assert one.pace == tested
    one.look(8.0, refused(one.epoch, 60, 0, passed=60, before=(100, 40)))
    assert one.pace > tested


def test_look__a_pace_at_which_none_is_refused_is_climbed_from(climbing):
    first = climbing.pace

    climbing.look(9.0, refused(climbing.epoch, 30, 0, passed=30, before=(160, 40)))

    assert first < climbing.pace <= climbing.top_rate


def test_look__a_climb_that_went_well_is_begun_again_below_where_it_ended(climbing):
    climbing.look(9.0, refused(climbing.epoch, 50, 0, passed=50, before=(160, 40)))
    clean = climbing.pace

    climbing.look(9.5, refused(climbing.epoch, 60, 0, passed=60, before=(160, 40)))
    climbing.look(10.0, refused(climbing.epoch, 75, 12, passed=63, before=(160, 40)))

    assert climbing.top_rate >= clean
    assert climbing.pace == pytest.approx(0.9 * climbing.top_rate)


def test_look__a_climb_that_begins_too_high_is_tested_again_lower_down(climbing):
    before = climbing.top_rate

    climbing.look(9.0, refused(climbing.epoch, 30, 15, passed=15, before=(160, 40)))

    assert climbing.top_rate < 0.9 * before
    assert climbing.pace == pytest.approx(climbing.top_rate / 2.0)


def test_look__a_limit_that_is_gone_is_found_no_more(climbing):
    counts = refused(climbing.epoch, 0, 0, before=(160, 40))

    for now in range(9, 60):
        for name in ("sent", "all_sent", "passed", "all_passed", "answers"):
            setattr(counts, name, getattr(counts, name) + 30)
        counts.waited, counts.tokens = 30.0 * counts.answers, 10.0 * counts.answers
        climbing.look(float(now), counts)
        counts = counts if counts.epoch == climbing.epoch else counts.at(climbing.epoch)

    assert climbing.pace is None
    assert climbing.top_rate is None


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
            counts.answers += 1
            counts.waited += seconds
            counts.tokens += 10.0
        one.look(now, counts)

        assert min(workers, most) <= one.window <= max(most, workers)
        assert one.pace is None or one.pace >= 0.2
