import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.design import (
    design_factors,
    design_moments,
    effective,
    normalise,
    ratios,
    task_weights,
)

LABELS = ["trials", "correct", "transport"]
POINTS = st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), min_size=1, max_size=6)


def summed(cells, base):
    factors = normalise(design_factors(cells, base, labels=LABELS), cells[..., 0] > 0, axis=-1)
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


def test_design_factors__a_point_that_lost_requests_keeps_its_weight():
    cells = np.array([[64, 32, 0], [32, 16, 32], [0, 0, 64]], float)

    assert design_factors(cells, 64, labels=LABELS).tolist() == [1.0, 2.0, 1.0]


@given(POINTS, st.integers(1, 9))
def test_ratios__are_the_same_of_designs_that_are_multiples(points, times):
    base = np.array([n for n, _ in points])

    assert ratios(times * base, base > 0).tolist() == ratios(base, base > 0).tolist()
    assert (ratios(base, base > 0) * base[0] == base * ratios(base, base > 0)[0]).all()


def test_task_weights__points_of_a_task_with_one_unknown_weigh_alike():
    used = np.array([[True, True, False], [True, True, False]])

    assert task_weights([[10, 30, 5], [0, 30, 5]], used).tolist() == [[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]


def test_effective__of_groups_without_trials_is_none():
    sums, squares = np.zeros((2, len(LABELS))), [0.0, 4.0]
    sums[1, LABELS.index("trials")] = 2.0

    assert effective(sums, squares, labels=LABELS)[:, LABELS.index("trials")].tolist() == [0.0, 1.0]


def test_normalise__the_largest_that_is_used_is_one_and_without_any_all_are():
    factors, used = [[2.0, 4.0, 8.0], [0.5, 3.0, 1.0]], [[True, True, False], [False] * 3]

    assert normalise(factors, used, axis=-1).tolist() == [[0.5, 1.0, 1.0], [1.0] * 3]
