import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from evalcube.stages.analyze.verdict.paired import paired_intervals, simultaneous_intervals
from evalcube.stages.analyze.verdict.sensitivity import hotelling

steps = st.lists(st.integers(-40, 40).map(lambda x: x / 10), min_size=1, max_size=9)


def one(values, **options):
    return paired_intervals(np.array(values, dtype=float)[:, np.newaxis], **options)[0]


def flipped_share(values, shift):
    """Share of sign patterns of (values − shift) with a sum at least as far from 0, by brute force."""
    moved = np.array(values) - shift
    sums = [abs(np.dot(signs, moved)) for signs in product((1, -1), repeat=len(moved))]
    return np.mean([total >= abs(moved.sum()) - 1e-9 for total in sums])


@given(steps)
def test_paired_intervals__the_p_value_counts_all_sign_patterns(values):
    assert one(values).p_value == pytest.approx(flipped_share(values, 0.0))


@given(steps.filter(lambda values: len(values) >= 6), st.floats(-4, 4), st.sampled_from([0.05, 0.2, 0.4]))
def test_paired_intervals__holds_exactly_the_shifts_that_are_not_rejected(values, shift, alpha):
    found = one(values, alpha=alpha)
    assume(min(abs(found.low - shift), abs(found.high - shift)) > 1e-6)

    assert (found.low < shift < found.high) == (flipped_share(values, shift) > alpha)


@given(steps, st.sampled_from([0.05, 0.3]))
def test_paired_intervals__significant_exactly_if_the_p_value_is_at_most_alpha(values, alpha):
    found = one(values, alpha=alpha)

    assert found.significant == (found.p_value <= alpha + 1e-12)


def test_paired_intervals__close_to_students_t_for_many_normal_units():
    values = np.random.default_rng(0).normal(0.1, 1.0, 150)

    found = one(values)

    known = stats.ttest_1samp(values, 0.0)
    interval = known.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.01)
    assert found.p_value == pytest.approx(known.pvalue, abs=0.02)


@pytest.mark.parametrize("units", [1, 2, 5])
def test_paired_intervals__too_few_units_have_no_interval(units):
    found = one([1.0] * units)

    assert (found.low, found.high, found.significant) == (-math.inf, math.inf, False)
    assert found.p_value == 2.0 ** (1 - units)


def test_paired_intervals__equal_differences_are_significant_from_six_units_on():
    found = one([0.6] * 6)

    assert found.significant
    assert (found.low, found.high) == pytest.approx((0.6, 0.6))


def test_paired_intervals__no_difference_at_all_is_not_significant():
    found = one([0.0] * 30)

    assert (found.estimate, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_paired_intervals__missing_pairs_do_not_count():
    values = np.random.default_rng(1).normal(0.3, 1.0, 10)

    assert one([*values, math.nan, math.nan]).estimate == pytest.approx(values.mean())
    assert one([*values, math.nan]).pairs == 10


def test_paired_intervals__missing_pairs_leave_the_exact_test_exact():
    values = np.random.default_rng(1).normal(0.3, 1.0, 8)

    whole, short = one(values), one([values[0], math.nan, *values[1:]])

    assert (short.p_value, short.low, short.high) == pytest.approx((whole.p_value, whole.low, whole.high))


def test_paired_intervals__nothing_to_compare():
    for found in (one([]), one([math.nan, math.nan]), simultaneous_intervals(np.full((3, 1), np.nan))[0]):
        assert (found.pairs, found.p_value, found.significant) == (0, 1.0, False)
        assert math.isnan(found.estimate)


@given(values=steps)
def test_paired_intervals__swapping_the_arms_mirrors_the_result(values):
    found, mirror = one(values, draws=600), one([-x for x in values], draws=600)

    assert (mirror.low, mirror.high) == pytest.approx((-found.high, -found.low), abs=1e-9)
    assert mirror.p_value == found.p_value


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 5}, "alpha"),
        ({"draws": 10}, "draws"),
        ({"method": "t"}, "method"),
    ],
)
def test_paired_intervals__says_what_does_not_fit(change, part):
    with pytest.raises(ValueError, match=f"`{part}`"):
        paired_intervals(np.zeros((4, 1)), **change)


def test_paired_intervals__wants_a_table():
    with pytest.raises(ValueError, match=r"\(unit, column\)"):
        paired_intervals(np.zeros(4))


def test_simultaneous_intervals__one_column_is_the_sign_flip_test():
    values = np.random.default_rng(2).normal(0.4, 1.0, (9, 1))

    together, alone = simultaneous_intervals(values)[0], paired_intervals(values)[0]

    assert together.p_value == alone.p_value


@given(st.integers(0, 500))
def test_simultaneous_intervals__exclude_0_exactly_if_the_adjusted_p_value_is_small(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 4, (9, 3)) / 2

    for found in simultaneous_intervals(values):
        assert found.significant == (found.p_value <= 0.05)


def test_simultaneous_intervals__are_wider_than_single_ones_and_p_values_larger():
    values = np.random.default_rng(3).normal(0.5, 1.0, (30, 3))

    for together, alone in zip(simultaneous_intervals(values), paired_intervals(values), strict=True):
        assert together.high - together.low > alone.high - alone.low
        assert together.p_value >= alone.p_value


def test_simultaneous_intervals__any_false_alarm_at_most_as_often_as_alpha():
    rng = np.random.default_rng(4)
    alarms = [
        any(found.significant for found in simultaneous_intervals(rng.integers(-2, 3, (10, 3)).astype(float)))
        for _ in range(600)
    ]

    assert np.mean(alarms) <= 0.07


def test_paired_intervals__true_null_rejected_in_at_most_7_percent():
    """Two arms of ordinal scores, drawn alike, 10 units; the percentile bootstrap rejects about 11%."""
    rng = np.random.default_rng(11)
    steps = rng.integers(1, 6, (10, 800)) - rng.integers(1, 6, (10, 800)).astype(float)

    found = paired_intervals(steps, draws=2000)

    rate = np.mean([interval.significant for interval in found])
    assert 0.005 <= rate <= 0.07


def test_hotelling__close_to_f_for_many_normal_units():
    values = np.random.default_rng(5).normal(0.0, 1.0, (80, 3)) @ np.diag([1, 2, 3]) + [0.3, 0.0, 0.2]

    found = hotelling(values)

    mean, spread = values.mean(axis=0), np.cov(values.T)
    statistic = 80 * mean @ np.linalg.solve(spread, mean)
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(stats.f.sf(statistic * 77 / (79 * 3), 3, 77), abs=0.02)
    assert (found.pairs, found.rank) == (80, 3)


def test_hotelling__sees_a_trade_that_leaves_the_composite_flat():
    noise = np.random.default_rng(6).normal(0.0, 0.3, (20, 2))
    values = np.column_stack([0.5 + noise[:, 0], -0.5 + noise[:, 1]])

    assert hotelling(values).p_value < 0.01
    assert not one(values.mean(axis=1)).significant


def test_hotelling__one_layer_is_the_sign_flip_test():
    values = np.random.default_rng(7).normal(0.5, 1.0, (8, 1))

    assert hotelling(values).p_value == one(values[:, 0]).p_value


def test_hotelling__layers_that_do_not_differ_or_repeat_drop_out():
    values = np.random.default_rng(8).normal(0.2, 1.0, (15, 2))
    wider = np.column_stack([values, np.zeros(15), values.sum(axis=1), np.full(15, np.nan)])

    found, known = hotelling(wider), hotelling(values)

    assert (found.rank, found.p_value) == (2, known.p_value)
    assert found.statistic == pytest.approx(known.statistic)


@pytest.mark.parametrize(
    "values", [np.zeros((0, 3)), np.ones((2, 3)) * [[1, 2, 3], [2, 1, 5]], np.zeros((30, 3))]
)
def test_hotelling__says_nothing_without_enough_units(values):
    found = hotelling(values)

    assert found.p_value == 1.0
    assert math.isnan(found.statistic)
