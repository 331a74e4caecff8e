import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control

from evalcube.stages.analyze.formulas.compare.paired import (
    compare_pairs,
    difference_p,
    holm,
    mcnemar,
    paired_difference,
)
from evalcube.stages.reply.status import Status

R, W, T, M, X = Status.CORRECT, Status.INCORRECT, Status.TRUNCATED, Status.MISSING, Status.TRANSPORT


def compared(first, second, **options):
    return compare_pairs(np.array([first, second], dtype=np.uint8).reshape(2, 1, 1, -1), **options)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar__exact_is_the_sign_test(b, c):
    expected = binomtest(b, b + c).pvalue if b + c else 1.0

    assert mcnemar(b, c, method="exact") == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar__midp_lies_below_exact_and_is_symmetric(b, c):
    assert mcnemar(b, c) <= mcnemar(b, c, method="exact") + 1e-12
    assert mcnemar(b, c) == pytest.approx(mcnemar(c, b))
    assert 0 <= mcnemar(b, c) <= 1


def test_mcnemar__by_hand_and_elementwise():
    # b = 1, c = 7: tail (1 + 8)/256, of which the 8 counts half for the mid-p value
    assert mcnemar([[1, 0]], [[7, 0]], method="exact") == pytest.approx(np.array([[2 * 9 / 256, 1.0]]))
    assert mcnemar(1, 7) == pytest.approx(2 * 5 / 256)
    assert mcnemar(10**6, 10**6 + 10**4) < 1e-11


def test_mcnemar__refuses():
    with pytest.raises(ValueError, match="whole numbers"):
        mcnemar(1.5, 2)
    with pytest.raises(ValueError, match="midp, exact, got 'wald'"):
        mcnemar(1, 2, method="wald")


def test_holm__by_hand_along_an_axis_and_around_nan():
    p = np.array([[0.01, math.nan, 0.04, 0.03], [0.5, 0.9, 0.001, 0.6]])

    expected = pytest.approx(np.array([[0.03, math.nan, 0.06, 0.06], [1.0, 1.0, 0.004, 1.0]]), nan_ok=True)

    assert holm(p) == expected
    assert holm(p.T, axis=0).transpose() == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm__keeps_the_order_and_is_no_smaller_than_the_false_discovery_rate(p):
    adjusted = holm(p)

    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
    assert (adjusted >= false_discovery_control(p) - 1e-12).all()
    assert adjusted.max() <= 1


def test_compare_pairs__counts_discordant_trials_that_both_finished():
    found = compared([R, R, R, W, T, M, R, R], [R, W, T, R, R, R, X, M])

    assert (found.trials, found.first_only, found.second_only) == (5, 2, 2)
    assert found.difference == 0.0
    assert found.p == 1.0


def test_compare_pairs__truncated_trials_can_be_dropped():
    found = compared([R, R, W, T], [W, T, R, R], truncated="drop")

    assert (found.trials, found.first_only, found.second_only) == (2, 1, 1)


def test_compare_pairs__pairing_is_sharper_than_margins():
    rng = np.random.default_rng(0)
    easy = rng.random(400) < 0.5
    first = np.where(easy | (rng.random(400) < 0.12), R, W)
    second = np.where(easy, R, W)

    found = compared(first, second)

    assert found.p < 0.001
    assert found.lower > 0
    assert found.upper - found.lower < 0.1  # unpaired: 0.14


def test_compare_pairs__every_pair_task_by_task_with_holm():
    rng = np.random.default_rng(1)
    chances = np.array([0.9, 0.6, 0.6])[:, np.newaxis, np.newaxis, np.newaxis]
    status = np.where(rng.random((3, 2, 4, 50)) < chances, R, W)
    status[2, 1] = M

    found = compare_pairs(status)

    assert found.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert found.trials.tolist() == [[200, 200], [200, 0], [200, 0]]
    assert np.isnan(found.task_p[1:, 1]).all()
    assert found.task_p_holm[0, 1] == found.task_p[0, 1]
    assert found.task_p_holm == pytest.approx(holm(found.task_p, axis=0), nan_ok=True)
    assert (found.p_holm >= found.p).all()
    assert found.difference[0] == pytest.approx(
        np.mean((status[0] == R).mean(axis=-1) - (status[1] == R).mean(axis=-1))
    )
    assert found.lower[0] > 0
    assert found.lower[2] < 0 < found.upper[2]


def test_compare_pairs__weighs_points_not_trials():
    status = np.full((2, 1, 2, 30), M)
    status[:, 0, 0, :] = [[R] * 30, [W] * 30]
    status[:, 0, 1, :4] = [[W] * 4, [R] * 4]

    assert compare_pairs(status).difference == pytest.approx(0.0)
    assert compare_pairs(status, [[3, 1]]).difference == pytest.approx(0.5)
    assert compare_pairs(status).p < 0.001


def test_compare_pairs__swapping_the_models_mirrors_everything():
    status = np.random.default_rng(2).choice([R, W, T], size=(2, 2, 3, 20))

    one, other = compare_pairs(status), compare_pairs(status[::-1])

    mirrored = np.array([-one.difference, -one.upper, -one.lower])
    assert np.array([other.difference, other.lower, other.upper]) == pytest.approx(mirrored)
    assert other.p == pytest.approx(one.p)


def test_compare_pairs__repeats_are_trials_and_no_common_trial_is_undefined():
    status = np.random.default_rng(2).choice([R, W], size=(2, 2, 3, 10, 2))
    flat = compare_pairs(status.reshape(2, 2, 3, 20))
    status_apart = np.full((2, 1, 1, 2), M)

    assert compare_pairs(status).p == flat.p
    apart = compare_pairs(status_apart)
    assert np.isnan([apart.p, apart.p_holm, apart.difference, apart.lower, apart.upper]).all()


def test_compare_pairs__refuses():
    with pytest.raises(ValueError, match="at least two models, got 1"):
        compare_pairs(np.zeros((1, 1, 1, 4)))
    with pytest.raises(ValueError, match="`truncated` must be one of wrong, drop, got 'right'"):
        compare_pairs(np.zeros((2, 1, 1, 4)), truncated="right")
    with pytest.raises(ValueError, match=r"\(model, task, params, trial, ...\)"):
        compare_pairs(np.zeros((2, 4)))


def test_paired_difference__covers_the_truth_of_many_small_strata():
    rng = np.random.default_rng(5)
    b, c, _ = np.moveaxis(rng.multinomial(16, [0.2, 0.1, 0.7], size=(4000, 24)), -1, 0)

    _, lower, upper = paired_difference(b, c, 16)

    assert np.mean((lower <= 0.1) & (upper >= 0.1)) == pytest.approx(0.95, abs=0.012)


def test_paired_difference__no_discordant_trial_still_has_an_interval():
    point, lower, upper = paired_difference([0], [0], [50])

    assert point == 0
    assert -0.1 < lower < -0.02
    assert upper == pytest.approx(-lower)


@given(
    st.lists(
        st.tuples(st.sampled_from([3, 8, 40, 512]), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6
    ),
    st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
def test_difference_p__is_the_inverse_of_the_interval_whatever_the_sizes(strata, level):
    trials = np.array([number for number, _, _ in strata])
    first = np.floor(trials * [share for _, share, _ in strata])
    second = np.floor((trials - first) * [share for _, _, share in strata])

    p = difference_p(first, second, trials)
    value, lower, upper = paired_difference(first, second, trials, confidence=level)

    assume(abs(p - (1 - level)) > 1e-6)
    assert (p < 1 - level) == (lower > 0 or upper < 0)
    assert p == pytest.approx(difference_p(second, first, trials))
    assert value or p == 1
