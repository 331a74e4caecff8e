"""The bound on requests in flight from sequences of answers and overloads."""

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.aimd import Window

events = st.lists(st.sampled_from(["answer", "overload", "late overload", 0, 1, 5, 64]), max_size=200)


def happen(window, event):
    if event == "answer":
        window.succeeded()
    elif event == "overload":
        window.congested(window.epoch)
    elif event == "late overload":
        window.congested(window.epoch - 1)
    else:
        window.resize(event)


@given(st.integers(0, 100), events)
def test_window__is_at_least_one_and_at_most_the_ceiling(ceiling, history):
    window = Window(ceiling)
    for event in history:
        happen(window, event)
        assert min(1, window.ceiling) <= window.limit <= window.ceiling


@given(st.integers(2, 1000))
def test_window__halves_once_for_all_that_were_in_flight_together(ceiling):
    window = Window(ceiling)
    started = window.epoch
    for _ in range(ceiling):
        window.congested(started)

    assert window.limit == ceiling // 2
    window.congested(window.epoch)
    assert window.limit == max(1, ceiling // 4)


@given(st.integers(2, 64))
def test_window__grows_by_one_with_each_round_of_answers(ceiling):
    window = Window(ceiling)
    for _ in range(10):
        window.congested(window.epoch)
    assert window.limit == 1

    for expected in range(2, ceiling + 1):
        answers = 0
        while window.limit < expected:
            window.succeeded()
            answers += 1
        assert answers <= expected
    window.succeeded()
    assert window.limit == ceiling


def test_window__follows_a_ceiling_that_it_had_reached_and_no_other():
    window = Window(8)
    window.resize(16)
    assert window.limit == 16

    window.congested(window.epoch)
    window.resize(32)
    assert window.limit == 8
    window.resize(4)
    assert window.limit == 4
    window.resize(32)
    assert window.limit == 32


def test_window__starts_again_after_a_time_without_a_share():
    window = Window(0)
    assert window.limit == 0
    window.resize(5)

    assert window.limit == 5
