import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from evalcube.stages.analyze.formulas.intervals import exact_bounds, quantile, wilson, wilson_bounds
from tests.cases import with_cases

VECTORS = [
    (100, 100, 0.981502596, 0.018497404),
    (520.4, 614.8, 0.844302743, 0.028490433),
    (183.5, 219.5, 0.830211658, 0.048905726),
    (118.5, 126.5, 0.923886158, 0.043723634),
    (48.2, 62.2, 0.758927706, 0.101988239),
    (16.8, 30.8, 0.540413838, 0.165892068),
]
COUNTS = st.floats(min_value=1e-6, max_value=1e15)


@with_cases(("successes", "trials", "centre", "margin"), VECTORS)
def test_wilson__vectors(successes, trials, centre, margin):
    assert wilson(successes, trials) == pytest.approx((centre, margin), abs=1e-9)


def test_wilson__reference_point_bit_for_bit():
    assert wilson(337 - 74, 888 - 74) == (0.3239267848444002, 0.03206244563179326)


@pytest.mark.parametrize(("trials", "upper"), [(32, 0.107183), (1280, 0.002992)])
def test_wilson__upper_bound_without_success(trials, upper):
    centre, margin = wilson(0, trials)

    assert centre + margin == pytest.approx(upper, abs=1e-6)
    assert centre - margin == 0.0


@given(COUNTS)
def test_wilson__all_successes_end_exactly_at_one(trials):
    centre, margin = wilson(trials, trials)

    assert centre + margin == 1.0


def test_wilson__clips_successes_to_the_trials():
    assert wilson(-3, 10) == wilson(0, 10)
    assert wilson(13, 10) == wilson(10, 10)


@pytest.mark.parametrize("trials", [0, -1, -0.5, math.nan])
def test_wilson__undefined_without_trials(trials):
    assert np.isnan(wilson(0, trials)).all()
    assert np.isnan(wilson_bounds(1, trials)).all()


def test_wilson__huge_integer_counts():
    centre, margin = wilson(np.int64(2**62), np.int64(2**63 - 1))

    assert centre == pytest.approx(0.5)
    assert 0 < margin < 1e-8
    assert np.isfinite(wilson(1e300, 1e301)).all()


def test_wilson__broadcasts_and_mixes_defined_with_undefined():
    centre, margin = wilson([[1.0], [2.0]], [0.0, 2.0, 4.0])

    assert centre.shape == margin.shape == (2, 3)
    assert np.isnan(centre[:, 0]).all()
    assert np.isfinite(centre[:, 1:]).all()


def test_wilson__confidence_chooses_another_quantile():
    narrow, wide = wilson(5, 10, confidence=0.8)[1], wilson(5, 10, confidence=0.99)[1]

    assert narrow < wilson(5, 10)[1] < wide
    assert quantile(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert quantile(None) == 1.96


@with_cases("confidence", [0.0, 1.0, 95, -0.1, math.nan])
def test_quantile__refuses_a_level_outside_zero_and_one(confidence):
    with pytest.raises(ValueError, match=r"inside \(0, 1\)"):
        quantile(confidence)


@given(COUNTS, st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_wilson__bounds_are_ordered_inside_the_unit_interval_and_grow_with_successes(trials, one, other):
    point, lower, upper = wilson_bounds(np.sort([one, other]) * trials, trials)

    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert (lower <= point + 1e-12).all()
    assert (point <= upper + 1e-12).all()
    assert lower[0] <= lower[1] + 1e-12
    assert upper[0] <= upper[1] + 1e-12


@with_cases("successes", [0.0, 0.25, 1.0, 6.5, 8.0])
def test_exact_bounds__leave_half_of_what_is_left_on_either_side(successes):
    point, lower, upper = exact_bounds(successes, 8.0, confidence=0.9)

    assert point == successes / 8
    assert lower == 0 if successes == 0 else betainc(successes, 9 - successes, lower) == pytest.approx(0.05)
    assert (
        upper == 1 if successes == 8 else betainc(successes + 1, 8 - successes, upper) == pytest.approx(0.95)
    )
