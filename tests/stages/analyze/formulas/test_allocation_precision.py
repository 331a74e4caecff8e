"""When a cell has been measured well enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.allocation import PrecisionTarget, half_width, next_trials
from evalcube.stages.analyze.formulas.intervals import exact_bounds
from evalcube.stages.reply.status import COUNTERS

LOW = PrecisionTarget(32, 0.09, 192)


def counters(trials, correct, *, truncated=0, guess=0.0, transport=0):
    values = dict.fromkeys(COUNTERS, 0.0) | {
        "trials": trials,
        "completed": trials - truncated,
        "correct": correct,
        "truncated": truncated,
        "guess_sum": guess,
        "transport": transport,
    }
    return [float(values[name]) for name in COUNTERS]


def test_half_width__is_that_of_the_raw_rate_stretched_by_guessing():
    cells = [counters(128, 100), counters(128, 84, guess=32.0)]

    raw = [exact_bounds(100, 128), exact_bounds(84, 128)]

    expected = [(upper - lower) / 2 / room for (_, lower, upper), room in zip(raw, (1.0, 0.75), strict=True)]
    np.testing.assert_allclose(half_width(cells), expected)


def test_half_width__of_a_model_that_guesses_is_not_cut_off_at_zero():
    assert half_width(counters(200, 100, guess=100.0)) == pytest.approx(0.138, abs=0.005)


def test_half_width__is_that_of_the_pessimistic_rate_where_nothing_can_be_guessed():
    _, lower, upper = exact_bounds(84, 128)

    assert half_width(counters(128, 84, truncated=16)) == pytest.approx((upper - lower) / 2)


def test_next_trials__repeats_are_no_trials_for_the_precision():
    cells = [counters(128, 64)]

    assert next_trials(cells, [128], LOW).tolist() == [128]
    assert next_trials(cells, [32], LOW, repeats=4).tolist() == [64]


def test_half_width__without_a_trial_it_is_infinite():
    assert half_width(counters(0, 0)) == np.inf
    assert half_width(counters(8, 8, guess=8.0)) == np.inf


def test_half_width__a_cell_that_is_truncated_throughout_gets_narrow_too():
    widths = half_width([counters(n, 0, truncated=n) for n in (8, 32, 128)])

    assert np.isfinite(widths).all()
    assert (np.diff(widths) < 0).all()


def test_next_trials__adds_base_where_the_target_is_missed_until_the_maximum():
    cells = [counters(32, 32), counters(32, 16), counters(176, 132, guess=88), counters(192, 144, guess=96)]

    assert next_trials(cells, [32, 32, 176, 192], LOW).tolist() == [32, 64, 192, 192]


def test_next_trials__waits_for_trials_that_are_not_finished_or_not_counted():
    cells = [counters(31, 15, transport=1), counters(32, 16), counters(0, 0)]

    assert next_trials(cells, [32, 64, 0], LOW).tolist() == [32, 64, 32]


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=192, max_size=192), st.integers(1, 192))
def test_next_trials__ends_at_the_same_number_whenever_it_is_asked(outcomes, pause):
    def counted(n):
        part = outcomes[:n]
        return counters(n, part.count(1), truncated=part.count(2))

    def go_on(planned):
        while (more := int(next_trials(counted(planned), planned, LOW))) != planned:
            planned = more
        return planned

    interrupted = 0
    while (
        interrupted < pause
        and (more := int(next_trials(counted(interrupted), interrupted, LOW))) != interrupted
    ):
        interrupted = more

    assert go_on(interrupted) == go_on(0)
