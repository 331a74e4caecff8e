"""Expected best rewards against rational arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube import stats as outcomes
from tests.stages.analyze.formulas.outcomes import exact
from tests.stages.analyze.formulas.outcomes.exact import average


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=4), st.integers(1, 7)
)
def test_max_at_k__is_the_expected_best_reward(rows, k):
    for rewards in ([0.0, 0.25, 0.5, 1.0], [-3.0, 2.0, -1.0, 0.5], [-1.0, -2.0, -2.0, -8.0]):
        wanted = average([exact.best_of([rewards[x] for x in row], k) for row in rows])
        found = outcomes.max_at_k(rows, k, rewards)
        assert abs(found - float(wanted)) < 1e-14
        assert outcomes.max_at_k_ci(rows, 1, rewards) == pytest.approx(outcomes.bayes_ci(rows, rewards))
