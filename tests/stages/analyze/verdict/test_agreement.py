"""Which bias of a judge between two arms makes up a gain."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stages.analyze.verdict.test_verdict import UNITS, ask, noisy


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


@pytest.mark.parametrize(
    ("kinder", "rated", "branch", "told"),
    [
        (0.0, 0, "positive_clean", "people rate 5"),
        (0.0, 24, "positive_clean", "which excludes it"),
        (1.5, 24, "positive_judge_bias", "which does not exclude it"),
        (1.5, 4, "positive_clean", "people rate 5"),
    ],
)
def test_verdict__ratings_by_people_tell_whether_a_gain_is_the_judges(kinder, rated, branch, told):
    layers = noisy(3.2, 3.2 if kinder else 3.7, spread=0.2)
    people = {
        name: dict(zip(UNITS[:rated], scores, strict=False))
        for name, scores in zip(("base", "t1"), layers[..., 2], strict=True)
    }
    layers[1, :, 2] = np.clip(layers[1, :, 2] + kinder, 1, 5)

    found = ask(layers, gold=people, threshold=2, draws=500)

    assert found.branch == branch
    assert re.search(told, " ".join((*found.reasons, *found.notes)))


def test_verdict__ratings_of_a_cluster_are_one_draw():
    layers = noisy(3.2, 3.7, spread=0.2)
    base, other = layers[..., 2]
    moved = np.clip(other + np.repeat([-0.4, 0.4] * 3, 4), 1, 5)
    people = {"base": dict(zip(UNITS, base, strict=True)), "t1": dict(zip(UNITS, moved, strict=True))}

    alone, together = (
        ask(layers, gold=people, clusters=groups, threshold=2, draws=500).pairs[0].bias
        for groups in (None, np.repeat(np.arange(6), 4) + 1)
    )

    assert together.high - together.low > 1.5 * (alone.high - alone.low)
