import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.design import design_factors, design_moments, effective, levelled

LABELS = ["trials", "correct", "transport"]
POINTS = st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), min_size=1, max_size=6)


def summed(cells, base):
    factors = levelled(design_factors(cells, base, labels=LABELS), cells[..., 0] > 0, axis=-1)
    parts = design_moments(cells, factors, labels=LABELS)
    return effective(*(part.sum(axis=0) for part in parts), labels=LABELS)


@given(POINTS, st.integers(1, 16))
def test_effective__growth_of_all_points_alike_is_the_plain_sum(points, times):
    cells = np.array([[times * n, times * round(n * rate), 0] for n, rate in points], float)

    assert summed(cells, [n for n, _ in points]).tolist() == cells.sum(axis=0).tolist()


@given(POINTS, st.integers(1, 64))
def test_effective__a_point_that_is_asked_more_often_moves_no_rate(points, times):
    cells = np.array([[n, n * rate, 0] for n, rate in points], float)
    more = cells.copy()
    more[0] *= times

    before, after = (summed(each, cells[:, 0]) for each in (cells, more))

    np.testing.assert_allclose(after[1] / after[0], before[1] / before[0], atol=1e-12)
    assert before[0] * (1 - 1e-12) <= after[0] <= more[:, 0].sum() * (1 + 1e-12)


def test_design_factors__a_lost_request_takes_its_own_weight_only():
    cells = np.array([[64, 32, 0], [127, 60, 1]], float)

    assert design_factors(cells, 64, labels=LABELS).tolist() == [1.0, 0.5]
