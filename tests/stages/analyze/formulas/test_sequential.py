import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln
from scipy.stats import betabinom, binom, norm

from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.analyze.formulas.sequential import (
    LARGEST_E,
    METHODS,
    confidence_sequence,
    mean_e_value,
    sign_e_value,
)

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def log_martingale(s, n, q):
    return betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) - s * math.log(q) - (n - s) * math.log1p(-q)


@pytest.mark.parametrize(("s", "n"), [(5, 8), (96, 128), (1, 1000), (700_000, 1_000_000)])
def test_confidence_sequence__ends_where_the_martingale_reaches_one_in_twenty(s, n):
    point, lower, upper = confidence_sequence(s, n)

    assert point == s / n
    assert log_martingale(s, n, lower) == pytest.approx(math.log(20), abs=1e-6)
    assert log_martingale(s, n, upper) == pytest.approx(math.log(20), abs=1e-6)


@pytest.mark.parametrize(("n", "q"), [(1, 0.3), (7, 0.05), (40, 0.62)])
def test_confidence_sequence__the_mixture_is_a_likelihood_ratio_with_mean_one(n, q):
    # scipy's beta-binomial distribution is the mixture; under q the ratio has mean 1: Ville's premise
    s = np.arange(n + 1)
    ratio = np.array([math.exp(log_martingale(k, n, q)) for k in s])

    assert ratio == pytest.approx(betabinom.pmf(s, n, 0.5, 0.5) / binom.pmf(s, n, q), rel=1e-9)
    assert (ratio * binom.pmf(s, n, q)).sum() == pytest.approx(1)


@pytest.mark.long
@pytest.mark.parametrize("p", [0.02, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_confidence_sequence__holds_at_all_looks_together(p, method):
    rng = np.random.default_rng(3)
    n = np.arange(1, 401)
    s = np.cumsum(rng.random((300, 400)) < p, axis=1)

    _, lower, upper = confidence_sequence(s, n, method=method)

    assert ((lower <= p) & (p <= upper)).all(axis=1).mean() >= 0.95


def test_confidence_sequence__wilson_would_not_hold():
    n = np.arange(1, 401)
    s = np.cumsum(np.random.default_rng(3).random((1000, 400)) < 0.5, axis=1)

    _, lower, upper = wilson_bounds(s, n)

    assert ((lower <= 0.5) & (upper >= 0.5)).all(axis=1).mean() < 0.7


def test_confidence_sequence__hoeffding_holds_for_the_mean_of_changing_rates():
    n = np.arange(1, 401)
    rates = np.where(n % 5 < 2, 0.9, 0.2)
    s = np.cumsum(np.random.default_rng(4).random((1000, 400)) < rates, axis=1)
    truth = np.cumsum(rates) / n

    _, lower, upper = confidence_sequence(s, n, method="hoeffding")

    assert ((lower <= truth) & (truth <= upper)).all(axis=1).mean() >= 0.95


@given(COUNTS, st.sampled_from(METHODS))
def test_confidence_sequence__contains_the_fixed_interval_and_mirrors(counts, method):
    s, n = counts
    point, lower, upper = confidence_sequence(s, n, method=method)
    _, fixed_lower, fixed_upper = wilson_bounds(s, n, confidence=0.95)

    assert 0 <= lower <= point <= upper <= 1
    assert lower <= fixed_lower + 0.02
    assert upper >= fixed_upper - 0.02
    assert confidence_sequence(n - s, n, method=method)[1] == pytest.approx(1 - upper, abs=1e-12)


@given(COUNTS)
def test_confidence_sequence__grows_with_successes_and_confidence(counts):
    s, n = counts
    low = confidence_sequence(s, n + 1)
    high = confidence_sequence(s + 1, n + 1)
    sure = confidence_sequence(s, n + 1, confidence=0.999)

    assert low[1] <= high[1]
    assert low[2] <= high[2]
    assert sure[1] <= low[1]
    assert low[2] <= sure[2]


def test_confidence_sequence__guess_correction_is_the_affine_map_of_the_raw_bounds():
    raw = np.array(confidence_sequence(96, 128))

    assert np.array(confidence_sequence(96, 128, 32)) == pytest.approx((raw - 0.25) / 0.75)
    assert confidence_sequence(10, 128, 64)[0] == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_confidence_sequence__undefined_without_trials_and_where_guessing_is_all(method):
    found = np.array(confidence_sequence([0, 3, 3], [0, 4, 4], [0, 4, 1], method=method))

    assert np.isnan(found[:, :2]).all()
    assert np.isfinite(found[:, 2]).all()


def test_confidence_sequence__narrows_to_the_point_and_takes_huge_counts():
    _, lower, upper = confidence_sequence([3e3, 3e6, 3e11], [1e4, 1e7, 1e12])

    assert (np.diff(upper - lower) < 0).all()
    assert upper[-1] - lower[-1] < 1e-5


@pytest.mark.parametrize(
    ("args", "options", "match"),
    [
        ((5, 4), {}, "must lie between 0 and `trials`"),
        ((1, 4, 5), {}, "must lie between 0 and `trials`"),
        ((1, 4), {"confidence": 95}, r"inside \(0, 1\)"),
        ((1, 4), {"method": "wald"}, "betabinomial, hoeffding, got 'wald'"),
    ],
)
def test_confidence_sequence__refuses(args, options, match):
    with pytest.raises(ValueError, match=match):
        confidence_sequence(*args, **options)


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400))
def test_mean_e_value__of_discordant_pairs_is_a_ratio_of_likelihoods(first, second, same):
    differences = np.repeat([1.0, -1.0, 0.0], [first, second, same])

    found = mean_e_value(np.random.default_rng(first).permutation(differences))

    ratio = betaln(first + 0.5, second + 0.5) - betaln(0.5, 0.5) + (first + second) * math.log(2)
    assert found == pytest.approx(math.exp(ratio), rel=1e-9)
    assert mean_e_value(-differences) == pytest.approx(found, rel=1e-9)


def ever_called(paths, looks, e_value):
    """Share of paths (path, unit, ...) on which 20 is reached at one of the looks."""
    return np.mean([any(e_value(path[:look]) >= 20 for look in looks) for path in paths])


@pytest.mark.long
def test_mean_e_value__optional_stopping_finds_nothing_in_equal_or_cancelling_parts():
    rng, looks, weights = np.random.default_rng(5), range(16, 241, 16), np.array([1.0, 0.2, 1.0])

    def weighted(rows):
        return mean_e_value(rows, weights)

    equal = rng.choice([-1.0, 0.0, 1.0], (120, 240, 3), p=[0.3, 0.4, 0.3])
    # The first part is 20 points better, the third 20 points worse: their mean, which is asked for, is 0.
    opposed = np.where(rng.random((120, 240, 3)) < 0.5 + np.array([0.1, 0.0, -0.1]), 1.0, -1.0)
    better = np.where(rng.random((40, 240, 3)) < 0.6, 1.0, -1.0)

    assert ever_called(equal, looks, weighted) <= 0.05
    assert ever_called(opposed, looks, weighted) <= 0.05
    assert ever_called(better, looks, weighted) > 0.8


def test_sign_e_value__optional_stopping_finds_nothing_in_symmetric_differences():
    rng, looks = np.random.default_rng(6), range(5, 201, 5)
    nothing = rng.standard_t(3, (300, 200)) * rng.choice([0.1, 0.5, 2.0], (300, 1))
    better = rng.normal(0.25, 0.5, (40, 200))

    assert ever_called(nothing, looks, sign_e_value) <= 0.05
    assert ever_called(better, looks, sign_e_value) > 0.9


def test_e_value__of_much_is_finite_and_of_nothing_is_1():
    assert mean_e_value(np.ones(5000)) == LARGEST_E == sign_e_value(np.ones(5000))
    assert mean_e_value([]) == sign_e_value([]) == mean_e_value([1.0, -1.0], 0.0) == 1.0


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=6))
def test_sign_e_value__is_the_mean_of_all_bets_and_at_most_1_over_all_signs(differences):
    d = np.array(differences)
    signs = np.array(list(product([-1.0, 1.0], repeat=len(d))))
    bets = np.linspace(-12, 12, 4001)

    found = sign_e_value(d)

    mixed = norm.pdf(bets) * np.exp(bets * d.sum() - bets**2 * (d @ d) / 2)
    assert found == pytest.approx(mixed.sum() * (bets[1] - bets[0]), rel=1e-6)
    assert np.mean([sign_e_value(row * d) for row in signs]) <= 1 + 1e-12


@pytest.mark.parametrize(
    ("differences", "weights", "match"),
    [([2.0], 1.0, "between -1 and 1"), ([math.nan], 1.0, "NaN|between"), ([1.0], -1.0, "negative")],
)
def test_mean_e_value__refuses(differences, weights, match):
    with pytest.raises(ValueError, match=match):
        mean_e_value(differences, weights)
