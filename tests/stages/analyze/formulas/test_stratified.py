import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import binom

from evalcube.stages.analyze.formulas.estimators import MODES, estimate
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.analyze.formulas.stratified import (
    combine,
    effective_trials,
    exact_estimate,
    moments,
    parts_of,
    score_moments,
    stratified,
)
from tests.cases import with_cases

LABELS = ("trials", "completed", "correct", "truncated", "guess_sum")
OPTIONS = {"labels": LABELS}


def cell(n, truncated, correct, guesses=0.0):
    return [n, n - truncated, correct, truncated, guesses]


CELLS = st.tuples(
    st.integers(2, 200), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5])
).map(
    lambda x: cell(
        x[0], int(x[0] * x[1]), int((x[0] - int(x[0] * x[1])) * x[2]), (x[0] - int(x[0] * x[1])) * x[3]
    )
)


@example([5.0, 10.0, 16.0, 3.0, 16.0], True)  # their shares add up to a little more than 1
@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=12), st.booleans())
def test_effective_trials__of_what_is_all_right_or_all_wrong_have_a_rate_of_one_or_zero(weights, right):
    cells = np.array([cell(64, 0, 64 * right)] * len(weights), dtype=float)
    sums = moments(cells, weights=weights, labels=LABELS, mode="E_P")

    rate, trials, chance = effective_trials(sums)

    assert 0.0 <= rate <= 1.0
    assert rate == pytest.approx(float(right))
    assert 0 < trials <= 64 * len(weights) + 1e-6
    assert chance == 0.0


def test_stratified__does_not_follow_the_number_of_trials():
    # points at .95 and .5, the uncertain one with more trials
    cells = [cell(100, 0, 95), cell(460, 0, 230)]

    pooled, mean = estimate(np.sum(cells, axis=0), **OPTIONS)[0], stratified(cells, **OPTIONS)[0]

    assert pooled == pytest.approx(0.58, abs=0.001)
    assert mean == pytest.approx(0.725)


@pytest.mark.parametrize("mode", MODES)
@given(counters=CELLS)
def test_stratified__point_of_one_stratum_is_the_estimators(mode, counters):
    assume(counters[2] >= counters[4])  # below, the estimator clips and the stratum does not
    one, pooled = stratified([counters], mode=mode, **OPTIONS), estimate(counters, mode=mode, **OPTIONS)

    assert one[0] == pytest.approx(pooled[0], nan_ok=True, abs=1e-12)


@given(st.integers(2, 500), st.floats(0, 1), st.sampled_from([0.8, 0.99, None]))
def test_stratified__one_stratum_of_right_and_wrong_is_wilsons_interval(n, share, confidence):
    correct = int(n * share)

    found = stratified([cell(n, 0, correct)], mode="E_I", confidence=confidence, **OPTIONS)

    assert found == pytest.approx(wilson_bounds(correct, n, confidence=confidence), abs=1e-9)


@given(st.integers(1, 30), st.integers(4, 64))
def test_stratified__equal_perfect_strata_are_wilsons_interval_of_all(strata, n):
    found = stratified([cell(n, 0, n)] * strata, mode="E_I", **OPTIONS)

    assert found == pytest.approx(wilson_bounds(strata * n, strata * n), abs=1e-9)


def test_stratified__uses_the_variances_of_the_strata():
    even = stratified([cell(50, 0, 25)] * 2, mode="E_I", **OPTIONS)
    apart = stratified([cell(50, 0, 50), cell(50, 0, 0)], mode="E_I", **OPTIONS)

    assert even[0] == apart[0] == 0.5
    assert apart[2] - apart[1] < 0.5 * (even[2] - even[1])


def test_stratified__guessing_noise_widens_the_interval_beyond_the_references():
    counters = cell(256, 0, 192, 128)

    _, lower, upper = stratified([counters], mode="C_I", **OPTIONS)
    q_lower, q_upper = (2 * bound - 1 for bound in wilson_bounds(192, 256)[1:])

    assert (lower, upper) == pytest.approx((q_lower, q_upper))
    assert upper - lower > np.subtract(*estimate(counters, mode="C_I", **OPTIONS)[:0:-1])


def test_stratified__strata_worse_than_guessing_are_clipped_after_the_mean():
    cells = [cell(100, 0, 40, 50), cell(100, 0, 60, 50)]

    assert stratified(cells, mode="C_I", **OPTIONS)[0] == pytest.approx(0.0)
    assert stratified(cells, [1, 3], mode="C_I", **OPTIONS)[0] == pytest.approx(0.1)


@given(st.lists(CELLS, min_size=1, max_size=12), st.sampled_from(MODES), st.floats(0.01, 100))
def test_stratified__bounds_are_ordered_and_the_scale_of_weights_is_free(cells, mode, factor):
    point, lower, upper = stratified(cells, mode=mode, **OPTIONS)
    again = stratified(cells, factor, mode=mode, **OPTIONS)

    assert again == pytest.approx((point, lower, upper), nan_ok=True)
    if not math.isnan(point):
        assert 0 <= lower <= point + 1e-12
        assert point <= upper + 1e-12
        assert upper <= 1


@given(st.lists(CELLS, min_size=2, max_size=12), st.sampled_from(MODES), st.integers(1, 11))
def test_parted__keeps_sums_whatever_the_order_and_the_units(cells, mode, cut):
    every = moments(cells, mode=mode, **OPTIONS)
    units = np.arange(len(every)) % 3 + 1.0

    parts, turned = parts_of(every, units), parts_of(np.roll(every, cut, axis=0), np.roll(units, cut))

    assert parts.sum(axis=0) == pytest.approx(every.sum(axis=0))
    assert parts == pytest.approx(turned)
    assert combine(parts)[0] == pytest.approx(stratified(cells, mode=mode, **OPTIONS)[0], nan_ok=True)


def test_stratified__few_trials_without_spread_stay_visible():
    """30 questions all right beside 1 000 of which 72% are: together 86%, and the 30 say little."""
    point, lower, upper = stratified([cell(30, 0, 30), cell(1000, 0, 720)], mode="E_P", **OPTIONS)

    few, many = wilson_bounds(30, 30), wilson_bounds(720, 1000)
    assert point == pytest.approx(0.86)
    assert lower == pytest.approx(0.86 - 0.5 * math.hypot(1.0 - few[1], 0.72 - many[1]))
    assert upper == pytest.approx(0.86 + 0.5 * (many[2] - 0.72))


@pytest.mark.parametrize(("planned", "number"), [(2, 1), (3, 1), (4, 2), (8, 2)])
def test_parts_of__few_trials_that_agree_show_no_lack_of_spread(planned, number):
    sums = moments([cell(planned, 0, planned), cell(planned, 0, 0)], mode="E_P", **OPTIONS)

    assert (parts_of(sums, planned)[:, 1] > 0).sum() == number


def test_stratified__what_was_planned_makes_parts_and_not_what_has_come():
    """At 8 planned beside 10 strata are alike, at 8 beside 12 they are not; how many finished does not matter."""
    cells = [cell(8, 0, 4), cell(10, 0, 9)]
    sums = moments(cells, mode="E_P", **OPTIONS)

    together, apart = (combine(parts_of(sums, units)) for units in ([8, 10], [8, 12]))

    assert together == pytest.approx(combine(sums.sum(axis=0)[np.newaxis]))
    assert together[1] != pytest.approx(apart[1], abs=1e-4)


def test_stratified__strata_without_an_estimate_are_left_out_and_counted():
    cells = [cell(0, 0, 0), cell(40, 0, 30), cell(8, 8, 0)]

    assert stratified(cells, mode="E_I", **OPTIONS) == pytest.approx(wilson_bounds(30, 40), abs=1e-9)
    assert moments(cells, mode="E_I", **OPTIONS)[:, 0].tolist() == [0, 1, 0]
    assert moments(cells, mode="C_P", **OPTIONS)[:, 0].tolist() == [0, 1, 1]
    assert np.isnan(stratified(cells[:1], **OPTIONS)).all()
    assert np.isnan(stratified(cells, 0.0, **OPTIONS)).all()


def test_stratified__single_trials_borrow_their_variance_from_the_mean():
    found = stratified([cell(1, 0, 1)] * 30 + [cell(1, 0, 0)] * 10, mode="E_I", **OPTIONS)

    assert found == pytest.approx(wilson_bounds(30, 40), abs=0.005)


def test_stratified__large_counts_meet_the_normal_interval():
    n, rates = 10**6, np.array([0.2, 0.5, 0.9])
    weights = np.array([0.5, 0.3, 0.2])
    cells = [cell(n, 0, int(n * rate)) for rate in rates]

    point, lower, upper = stratified(cells, weights, mode="E_P", **OPTIONS)

    half = 1.96 * math.sqrt((weights**2 * rates * (1 - rates) / n).sum())
    assert point == pytest.approx((weights * rates).sum())
    assert (lower, upper) == pytest.approx((point - half, point + half), rel=1e-4)


@pytest.mark.parametrize("weights", [-1.0, math.nan, [1.0, -0.5]])
def test_stratified__refuses_bad_weights(weights):
    with pytest.raises(ValueError, match="`weights` must not"):
        stratified([cell(4, 0, 2)] * 2, weights, **OPTIONS)


def test_score_moments__covers_the_mean_of_three_valued_trials():
    rng = np.random.default_rng(1)
    draws = rng.multinomial(24, [0.3, 0.1, 0.6], size=(4000, 10))

    sums = score_moments(draws[..., 0], 24, nothing=draws[..., 2], chance=0.5).sum(axis=-2)
    _, lower, upper = combine(sums[..., np.newaxis, :], least=-1.0)

    assert np.mean((lower <= 0.2) & (upper >= 0.2)) == pytest.approx(0.95, abs=0.012)


@with_cases("n", [8, 32, 128, 512])
@with_cases("guess", [0.0, 0.125, 0.25, 0.5])
def test_exact_estimate__covers_weak_and_strong_models_with_guessing(n, guess):
    """By the binomial distribution itself, nothing drawn."""
    right = np.arange(n + 1)
    cells = np.stack(
        [np.full(n + 1, n), np.full(n + 1, n), right, 0 * right, np.full(n + 1, guess * n)], axis=-1
    )

    _, lower, upper = exact_estimate(cells, labels=LABELS)

    for rate in (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.95, 0.98):
        chances = binom.pmf(right, n, guess + (1 - guess) * rate)
        assert chances[(lower <= rate) & (rate <= upper)].sum() > 0.94
    assert (lower < upper).all()


def test_exact_estimate__point_is_that_of_the_estimator():
    cells = [[128, 112, 84, 16, 56], [40, 40, 13, 0, 4]]

    for mode in MODES:
        point, lower, upper = exact_estimate(cells, labels=LABELS, mode=mode)
        assert point.tolist() == estimate(cells, labels=LABELS, mode=mode)[0].tolist()
        assert ((lower <= point) & (point <= upper)).all()


STRATA = st.lists(
    st.tuples(
        st.sampled_from([2, 4, 8, 30, 128, 512, 1000]),  # planned
        st.sampled_from([0.0, 0.0, 0.02, 0.25]),  # of these not come
        st.sampled_from([0.0, 0.05, 0.5, 0.9, 1.0]),  # right
        st.sampled_from([0.0, 0.25, 0.5]),  # guess chance
        st.sampled_from([1.0, 1.0, 0.3, 2.5]),  # weight
    ),
    min_size=1,
    max_size=8,
)


@given(STRATA, st.data())
def test_combine__one_trial_moves_bounds_by_a_few_trials_worth(strata, data):
    planned, absent, rate, chance, weight = np.array(strata).T
    n = np.maximum(planned - np.round(absent * planned), 1)
    right = np.round(np.maximum(rate, chance) * n)  # nobody is worse than guessing
    place = data.draw(st.integers(0, len(n) - 1))
    change = data.draw(st.sampled_from(["right", "wrong", "right more", "wrong more"]))
    after_n, after = n.copy(), right.copy()
    if change.endswith("more"):
        after_n[place] += 1
    after[place] += {"right": 1, "wrong": -1, "right more": 1, "wrong more": 0}[change]
    assume(0 <= after[place] <= after_n[place] <= planned[place])

    def bounds(right, n):
        sums = score_moments(right, n, chance=chance, weights=weight)
        return np.array(combine(parts_of(sums, planned), exact=True))

    worth = weight[place] / weight.sum() / n[place] / (1 - chance[place])
    # Of one stratum that was all right, one wrong trial moves the exact lower bound by 1.9.
    assert np.abs(bounds(after, after_n) - bounds(right, n)).max() <= 3.5 * worth
