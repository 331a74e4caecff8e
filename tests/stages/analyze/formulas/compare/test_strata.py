"""The p value of groups that answer alike, against another implementation and simulation."""

import numpy as np
import pytest
from scipy.stats import chi2

from evalcube.stages.analyze.formulas.compare.repeated import alike


def test_alike__two_groups_are_as_the_test_of_cochran_mantel_and_haenszel():
    """Agresti, Categorical Data Analysis (2nd ed.), table 6.9: eight centres, statistic 6.38 without correction."""
    right = [[11, 10], [16, 22], [14, 7], [2, 1], [6, 0], [1, 0], [1, 1], [4, 6]]
    asked = [[36, 37], [20, 32], [19, 19], [16, 17], [17, 12], [11, 10], [5, 9], [6, 7]]

    assert chi2.isf(alike(right, asked), 1) == pytest.approx(6.38, abs=0.01)


@pytest.mark.parametrize(
    ("right", "asked"), [([[0, 0]], [[5, 5]]), ([[3, 0]], [[5, 0]]), ([[5, 5]], [[5, 5]])]
)
def test_alike__is_unknown_where_nothing_tells(right, asked):
    assert np.isnan(alike(right, asked))


def test_alike__is_right_as_often_as_it_says():
    rng = np.random.default_rng(7)
    asked = rng.integers(0, 12, (400, 20, 3))
    right = rng.binomial(asked, rng.random((400, 20, 1)))

    found = np.mean([alike(*one) < 0.05 for one in zip(right, asked, strict=True)])

    assert 0.02 < found < 0.085
