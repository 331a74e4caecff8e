"""Which bias of a judge between two arms makes up a gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stages.analyze.verdict.variants import ask, noisy


@given(st.integers(0, 9), st.sampled_from([None, [2, 1, 1], [0, 0, 1]]))
@settings(max_examples=10)
def test_verdict__says_which_bias_of_the_judge_takes_a_gain(seed, weights):
    layers = noisy(3.0, 3.5, seed=seed)
    found = ask(layers, weights=weights, draws=500).pairs[0]
    assert found.bias.weight == pytest.approx({None: 1 / 3, 2: 0.25, 0: 1}[weights and weights[0]])

    for points, left in (
        (found.bias.erased, 0.0),
        (found.bias.unsure, found.composite.estimate - found.composite.low),
    ):
        fair = layers - np.array([0, 0, points]) * np.arange(2)[:, None, None]
        if fair.min() >= 1:  # else its scale ends
            assert ask(fair, weights=weights, draws=500).pairs[0].composite.estimate == pytest.approx(left)


def test_verdict__without_a_judge_or_a_gain_names_no_bias():
    layers = noisy(4.0, 4.5)

    assert ask(layers[::-1]).pairs[0].bias is None
    assert ask(np.where([True, True, False], layers, np.nan)).pairs[0].bias is None
    assert "no bias of" in ask(layers, weights=[30, 30, 1]).notes[0]
