import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from evalcube.stages.analyze.formulas.compare.paired import holm, paired_difference, paired_test


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
def test_paired_test__is_the_inverse_of_the_interval_whatever_the_sizes(strata, level):
    trials = np.array([number for number, _, _ in strata])
    first = np.floor(trials * [share for _, share, _ in strata])
    second = np.floor((trials - first) * [share for _, _, share in strata])

    bounds, p, _ = paired_test(first, second, trials)
    value, lower, upper = paired_difference(first, second, trials, confidence=level)

    assume(abs(p - (1 - level)) > 1e-6)
    assert (p < 1 - level) == (lower > 0 or upper < 0)
    assert p == pytest.approx(paired_test(second, first, trials)[1])
    assert value or p == 1
    assert bounds == pytest.approx(paired_difference(first, second, trials))
