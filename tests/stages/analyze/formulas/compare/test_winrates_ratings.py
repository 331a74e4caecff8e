import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.compare.winrates import bradley_terry, expected_wins
from tests.cases import with_cases

VECTOR = [[0, 0.7, 0.9], [0.3, 0, 0.6], [0.1, 0.4, 0]]


def round_robin(models, seed, least=0.02):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(least, 1 - least, (models, models)), 1)
    return upper + np.tril(1 - upper.T, -1)


def scaled(wins, prior, rounds=20_000):
    """The reference's iterative scaling."""
    games = wins + wins.T
    ratings = np.ones(len(wins))
    for _ in range(rounds):
        before = ratings
        met = (games / (ratings[:, np.newaxis] + ratings)).sum(axis=1) + prior / (ratings + 1)
        ratings = (wins.sum(axis=1) + prior / 2) / met
        ratings /= 1 if prior else ratings.sum()
        if (np.abs(ratings - before) <= 1e-15 * ratings).all():
            break
    return ratings / ratings.sum()


def test_expected_wins__vector():
    assert expected_wins(VECTOR) == pytest.approx([1.6, 0.9, 0.5])


def test_expected_wins__counts_matches_that_exist():
    nan = math.nan

    assert expected_wins([[nan, 0.7, nan], [0.3, nan, nan], [nan] * 3]) == pytest.approx(
        [0.7, 0.3, nan], nan_ok=True
    )


def test_bradley_terry__vector():
    assert bradley_terry(VECTOR) == pytest.approx([0.662503, 0.219699, 0.117798], abs=5e-7)


@pytest.mark.parametrize("prior", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("models", [2, 3, 8])
def test_bradley_terry__agrees_with_iterative_scaling(models, prior):
    wins = round_robin(models, seed=models)

    assert bradley_terry(wins, prior=prior) == pytest.approx(scaled(wins, prior), rel=1e-9)


@given(st.integers(2, 12), st.integers(0, 10_000), st.sampled_from([0.0, 1.0]))
def test_bradley_terry__orders_a_full_round_robin_as_expected_wins_do(models, seed, prior):
    wins = round_robin(models, seed, least=0.001)

    assert np.argsort(bradley_terry(wins, prior=prior)).tolist() == np.argsort(expected_wins(wins)).tolist()


@with_cases("diagonal", [0.0, 0.5, 1.0, 7.0, math.nan])
def test_ratings__ignore_what_models_score_against_themselves(diagonal):
    wins = round_robin(4, seed=1)
    filled = wins.copy()
    np.fill_diagonal(filled, diagonal)

    assert bradley_terry(filled, prior=1.0) == pytest.approx(bradley_terry(wins, prior=1.0))
    assert expected_wins(filled) == pytest.approx(expected_wins(wins))
    assert filled[0, 0] == pytest.approx(diagonal, nan_ok=True)


def test_bradley_terry__two_models_are_their_win_rate():
    assert bradley_terry([[0, 0.8], [0.2, 0]]) == pytest.approx([0.8, 0.2])
    assert bradley_terry([[0, 1 - 1e-12], [1e-12, 0]])[1] == pytest.approx(1e-12, rel=1e-3)


def test_bradley_terry__all_wins_need_a_prior():
    wins = [[0, 1, 1], [0, 0, 0.5], [0, 0.5, 0]]

    with pytest.raises(ValueError, match=r"no other model ever beat those of rows \[0\].*prior=1"):
        bradley_terry(wins)
    ratings = bradley_terry(wins, prior=1)

    assert ratings[0] > ratings[1] == pytest.approx(ratings[2])
    assert bradley_terry(wins, prior=0.1)[0] > ratings[0]


def test_bradley_terry__matches_that_were_not_played_are_no_draws():
    nan = math.nan
    chain = [[nan, 0.8, nan], [0.2, nan, 0.75], [nan, 0.25, nan]]

    ratings = bradley_terry(chain)

    assert ratings[0] / ratings[1] == pytest.approx(4)
    assert ratings[1] / ratings[2] == pytest.approx(3)


@pytest.mark.parametrize(
    ("rates", "options", "match"),
    [
        ([[0.5]], {}, "at least two models, got 1"),
        ([[0, 0.5]], {}, "square matrix"),
        ([[0, 1.5], [0, 0]], {}, r"must lie in \[0, 1\]"),
        (VECTOR, {"prior": -1}, "at least 0, got -1"),
    ],
)
def test_bradley_terry__refuses(rates, options, match):
    with pytest.raises(ValueError, match=match):
        bradley_terry(rates, **options)
