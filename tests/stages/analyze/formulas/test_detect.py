"""Numbers of questions that tell a difference, against published ones and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gate_operating import Design, compared
from evalcube.stages.analyze.formulas.compare.paired import paired_test
from evalcube.stages.analyze.formulas.detect import (
    Spread,
    detect_power,
    enough_questions,
    pair_spread,
    told_difference,
)
from evalcube.stages.errors import ArgumentError


def test_enough_questions__is_connors_with_a_continuity_term():
    """R. J. Connor (1987), with the variance of the alternative: (1.96 + 0.84)² (π − δ²)/δ²."""
    for discordance, difference in ((0.2, 0.02), (0.3, 0.1), (0.1, 0.05)):
        found = enough_questions(difference, Spread.of_discordance(discordance, difference))

        exact = 7.8489 * (discordance - difference**2) / difference**2
        assert found == pytest.approx(exact + 2 * 0.75 / difference, abs=2)


@pytest.mark.parametrize(("discordance", "difference"), [(0.2, 0.15), (0.3, 0.2), (0.5, 0.25), (0.5, 0.4)])
def test_enough_questions__keeps_its_promise_below_100_questions(discordance, difference):
    number = int(enough_questions(difference, Spread.of_discordance(discordance, difference)))
    parts = [(discordance + difference) / 2, (discordance - difference) / 2]
    drawn = np.random.default_rng(2).multinomial(number, [*parts, 1 - discordance], size=4000)
    pairs, times = np.unique(drawn[:, :2], axis=0, return_counts=True)

    told = [paired_test([first], [second], [number])[1] < 0.05 for first, second in pairs]

    assert number < 100
    assert np.average(told, weights=times) == pytest.approx(0.8, abs=0.03)


@given(st.floats(0.01, 0.5), st.floats(0.0, 0.5), st.integers(1, 8), st.floats(0.005, 0.3))
def test_enough_questions__and_the_difference_told_are_inverse(between, within, repeats, difference):
    spread = Spread(between, within)

    number = enough_questions(difference, spread, repeats)

    assert detect_power(difference, number, spread, repeats) >= 0.8
    assert told_difference(number, spread, repeats) <= difference * (1 + 1e-6)


def test_enough_questions__none_are_enough_where_clusters_are_few_and_alike():
    alone = Spread(0.1, 0.1)
    clustered = Spread(0.1, 0.1, shared=0.1, size=10, mean_size=10)

    assert enough_questions(0.05, clustered) > 5 * enough_questions(0.05, alone)
    assert np.isnan(told_difference(10, clustered))
    assert enough_questions(1e-5, alone) == np.inf
    with pytest.raises(ArgumentError, match="difference"):
        enough_questions(0.0, alone)


def test_told_difference__is_discordance_itself_whatever_the_spread():
    assert told_difference(10, Spread(0.0, 0.0)) == pytest.approx(0.518, abs=0.001)
    assert told_difference(10, Spread.of_discordance(0.2)) == told_difference(10, Spread(0.0, 0.0))
    assert (
        enough_questions(0.5, Spread.of_discordance(0.2, 0.5)) >= 6
    )  # fewer tell nothing, even where one is always right
    assert told_difference(10, Spread(0.0, 0.0), 4) < told_difference(10, Spread(0.0, 0.0))


@pytest.mark.parametrize(
    "design",
    [
        Design("repeats", change=0.05, repeats=4),
        Design("clusters", change=0.08, cluster=8, together=0.6, own=1.0, repeats=2),
    ],
    ids=lambda design: design.name,
)
def test_pair_spread__finds_what_was_simulated(design):
    right = design.draw(np.random.default_rng(3), 8000)
    clusters = np.arange(8000)[np.newaxis] // design.cluster
    alone, other = (
        (right[place] & ~right[1 - place]).sum(axis=-1, dtype=float)[np.newaxis] for place in (0, 1)
    )

    found = pair_spread(np.full((1, 8000), float(design.repeats)), alone, other, np.ones(1), clusters)

    truth = design.spread()
    assert (found.between, found.within) == pytest.approx((truth.between, truth.within), rel=0.1)
    assert found.shared == pytest.approx(truth.shared, abs=0.15 * truth.between)
    assert (found.size, found.mean_size) == pytest.approx((design.cluster, design.cluster))


def test_pair_spread__weighs_points_as_their_mean_does():
    trials = np.ones((2, 4))
    first, second = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0]]), np.zeros((2, 4))

    found = pair_spread(trials, first, second, np.array([3.0, 1.0]))

    assert found.between == pytest.approx((0.75**2 * 0.25 + 0.25**2 / 3) / (0.75**2 + 0.25**2))
    with pytest.raises(ArgumentError, match="fewer than two"):
        pair_spread(np.ones((2, 1)), first[:, :1], second[:, :1], np.ones(2))


def test_enough_questions__is_the_power_that_simulations_have():
    design = Design("clusters", change=0.1, cluster=5, together=0.6, own=1.0)
    number = int(enough_questions(design.change, design.spread()))
    rng = np.random.default_rng(1)

    hits = [compared(design.dataset(design.draw(rng, number - number % 5))).p < 0.05 for _ in range(150)]

    assert np.mean(hits) == pytest.approx(0.8, abs=0.1)  # its standard error is 0.033
