"""Costs, and who is on the Pareto front."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.forensics import costs, pareto_front

LABELS = ["trials", "correct", "cost_sum"]
values = st.sampled_from([0.0, 1.0, 2.0, 3.0, float("nan")])
points = st.lists(st.tuples(values, values, values), max_size=12)


def test_costs__per_trial_and_per_right_answer():
    found = costs([[200.0, 50.0, 3.0], [10.0, 0.0, 1.0], [0.0, 0.0, 0.0]], labels=LABELS)

    np.testing.assert_allclose(found.per_trial, [0.015, 0.1, np.nan])
    np.testing.assert_allclose(found.per_correct, [0.06, np.nan, np.nan])
    assert found.per_correct_lower[0] < 0.06 < found.per_correct_upper[0]
    assert found.per_correct_upper[1] == np.inf
    assert np.isnan(found.per_correct_lower[2])


def test_costs__a_total_that_is_not_known():
    found = costs([[200.0, 50.0, 3.0]] * 2, [np.nan, 4.0], labels=LABELS)

    np.testing.assert_array_equal(found.per_correct, [np.nan, 0.08])


def test_pareto_front__equal_points_share_it():
    assert pareto_front([2, 2, 1, 3], [5, 5, 5, 9]).tolist() == [True, True, False, True]


def test_pareto_front__a_point_with_nan_is_not_on_it_and_beats_nobody():
    assert pareto_front([9, 2, np.nan], [np.nan, 5, 1]).tolist() == [False, True, False]


@given(points)
def test_pareto_front__is_who_nobody_beats(rows):
    table = np.array(rows, dtype=float).reshape(-1, 3)

    def beats(one, other):
        gain = (one[0] - other[0], other[1] - one[1], other[2] - one[2])
        return min(gain) >= 0 < max(gain) and not np.isnan(gain).any()

    expected = [not np.isnan(row).any() and not any(beats(other, row) for other in table) for row in table]

    assert pareto_front(*table.T).tolist() == expected


@pytest.mark.parametrize("arrays", [([1.0],), ([1.0], [1.0, 2.0]), (1.0, 2.0)])
def test_pareto_front__refuses(arrays):
    with pytest.raises(ValueError, match="one shape"):
        pareto_front(*arrays)
