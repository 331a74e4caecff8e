import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals


def test_rank_intervals__by_hand():
    found = rank_intervals([[9, 8, 9, 9], [5, 6, 4, 5], [1, 7, 3, 2]])

    assert found.expected.tolist() == [1, 2.25, 2.75]
    assert (found.lower.tolist(), found.upper.tolist()) == ([1, 2, 2], [1, 3, 3])
    assert found.shares.tolist() == [[1, 0, 0], [0, 0.75, 0.25], [0, 0.25, 0.75]]


def test_rank_intervals__leaves_out_what_is_rarer_than_the_tail():
    draws = np.array([[2.0] * 1000, [1.0] * 1000])
    draws[:, :20] = draws[::-1, :20]

    assert rank_intervals(draws).upper.tolist() == [1, 2]
    assert rank_intervals(draws, confidence=0.99).upper.tolist() == [2, 2]
    assert rank_intervals(draws, confidence=0.99).lower.tolist() == [1, 1]


def test_rank_intervals__ties_widen_and_share():
    found = rank_intervals([[1, 1], [1, 1], [0, 0]])

    assert (found.lower.tolist(), found.upper.tolist()) == ([1, 1, 3], [2, 2, 3])
    assert found.expected.tolist() == [1.5, 1.5, 3]
    assert found.shares[:2].tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0]]


def test_rank_intervals__models_without_a_score_are_not_ranked():
    found = rank_intervals([[3, 3], [math.nan] * 2, [1, 1]])

    assert found.expected[[0, 2]].tolist() == [1, 2]
    assert np.isnan([found.expected[1], found.lower[1], found.upper[1], *found.shares[1]]).all()
    assert np.isnan(rank_intervals([[math.nan], [math.nan]]).expected).all()


def test_rank_intervals__shares_add_to_one_both_ways_and_hold_the_expected_rank():
    draws = np.random.default_rng(0).normal(np.arange(6)[:, np.newaxis] / 2, 1, size=(6, 500)).round(1)

    found = rank_intervals(draws)

    assert found.shares.sum(axis=0) == pytest.approx(np.ones(6))
    assert found.shares.sum(axis=1) == pytest.approx(np.ones(6))
    assert found.shares @ np.arange(1, 7) == pytest.approx(found.expected)
    assert (np.diff(found.expected) < 0).all()
    assert ((found.lower <= found.expected) & (found.expected <= found.upper)).all()


@pytest.mark.parametrize(
    ("draws", "options", "match"),
    [
        ([[1, 2]], {}, "at least two models, got 1"),
        ([1, 2], {}, r"must be \(model, draw\)"),
        (np.zeros((2, 0)), {}, "at least one draw"),
        ([[1], [2]], {"confidence": 95}, r"inside \(0, 1\)"),
    ],
)
def test_rank_intervals__refuses(draws, options, match):
    with pytest.raises(ValueError, match=match):
        rank_intervals(draws, **options)


@settings(max_examples=60, derandomize=True)
@given(st.integers(2, 7), st.integers(1, 9), st.integers(1, 8), st.integers(0, 100))
def test_rank_intervals__ranks_are_those_counted_draw_by_draw(models, draws, levels, seed):
    scores = np.random.default_rng(seed).integers(0, levels, (models, draws))
    counted = np.zeros((models, models))
    for drawn in scores.T:
        for model, score in enumerate(drawn):
            better, equal = (drawn > score).sum(), (drawn == score).sum()
            counted[model, better : better + equal] += 1 / equal
    best, worst = (
        (1 + (scores > row).sum(axis=0) for row in scores),
        ((scores >= row).sum(axis=0) for row in scores),
    )

    found = rank_intervals(scores)

    np.testing.assert_allclose(found.shares, counted / draws, rtol=0, atol=1e-12)
    assert found.lower.tolist() == [np.quantile(places, 0.025, method="inverted_cdf") for places in best]
    assert found.upper.tolist() == [np.quantile(places, 0.975, method="inverted_cdf") for places in worst]
    assert (found.shares >= 0).all()
