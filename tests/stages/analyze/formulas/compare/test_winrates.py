import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc, betaln, xlogy

from evalcube.stages.analyze.formulas.compare.winrates import moment_matched, win_rates
from tests.cases import with_cases

WHOLE = st.integers(1, 60)
COUNTS = st.tuples(st.floats(0, 1), st.floats(0.5, 5000)).map(lambda pair: (pair[0] * pair[1], pair[1]))


def exact(a, b, c, d):
    """P(X > Y) for whole parameters in rational arithmetic: the sum over X's order statistics."""

    def beta(x, y):
        return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

    return sum(beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a))


def integral(s1, m1, s2, m2):
    """The same chance by adaptive quadrature in θ, split where the densities live."""
    a, b, c, d = s1 + 0.5, m1 - s1 + 0.5, s2 + 0.5, m2 - s2 + 0.5

    def inner(t):
        log = xlogy(2 * a - 1, math.sin(t)) + xlogy(2 * b - 1, math.cos(t)) - betaln(a, b)
        return 2 * math.exp(log) * betainc(c, d, math.sin(t) ** 2)

    modes = [math.atan2(math.sqrt(2 * x - 1), math.sqrt(2 * y - 1)) for x, y in ((a, b), (c, d))]
    reach = 6 / math.sqrt(a + b - 1)
    cuts = sorted(
        {0, math.pi / 2, *(min(max(x, 0), math.pi / 2) for x in (*modes, modes[0] - reach, modes[0] + reach))}
    )
    return sum(quad(inner, x, y, limit=500, epsabs=1e-13, epsrel=1e-13)[0] for x, y in pairwise(cuts))


def jeffreys(s1, m1, s2, m2):
    """P(A > B) for A ~ Beta(s1 + ½, m1 − s1 + ½) and B likewise."""
    return win_rates([[s1], [s2]], [[m1], [m2]]).rates[0, 1]


def superiority(a, b, c, d):
    """P(X > Y) for X ~ Beta(a, b) and Y ~ Beta(c, d)."""
    return jeffreys(a - 0.5, a + b - 1, c - 0.5, c + d - 1)


def test_jeffreys__vector():
    assert jeffreys(100, 128, 92, 128) == pytest.approx(0.875948, abs=5e-7)


def test_moment_matched__vector():
    first, second = moment_matched(100, 128), moment_matched(92, 128)

    assert superiority(*first, *second) == pytest.approx(0.871884, abs=5e-7)


@given(WHOLE, WHOLE, WHOLE, WHOLE)
def test_superiority__agrees_with_rational_arithmetic(a, b, c, d):
    assert superiority(a, b, c, d) == pytest.approx(float(exact(a, b, c, d)), abs=1e-12)


@with_cases(
    ("s1", "m1", "s2", "m2"),
    [
        (0, 3, 0, 900),
        (0.2, 55.7, 1.3, 900.2),
        (55.5, 55.7, 899.9, 900.2),
        (0.003, 0.4, 0.3, 0.4),
        (1200.5, 3328, 30, 64),
        (5, 5, 5000, 5000),
    ],
)
def test_jeffreys__agrees_with_adaptive_quadrature(s1, m1, s2, m2):
    assert jeffreys(s1, m1, s2, m2) == pytest.approx(integral(s1, m1, s2, m2), abs=1e-10)


@given(COUNTS, COUNTS)
def test_jeffreys__sides_add_to_one_and_grow_with_successes(first, second):
    chance = jeffreys(*first, *second)

    assert chance + jeffreys(*second, *first) == pytest.approx(1, abs=1e-10)
    assert jeffreys(first[1], first[1], *second) >= chance - 1e-10
    assert jeffreys(*first, *first) == pytest.approx(0.5, abs=1e-10)


def test_jeffreys__limits():
    assert jeffreys(9e6, 1e7, 1e6, 1e7) == pytest.approx(1, abs=1e-12)
    assert jeffreys(1e6, 1e7, 9e6, 1e7) == pytest.approx(0, abs=1e-12)


def test_win_rates__averages_over_the_tasks_common_to_both():
    successes = np.array([[100.0, 30.0], [92.0, 0.0], [0.0, 40.0]])
    trials = np.array([[128.0, 64.0], [128.0, 0.0], [0.0, 64.0]])

    found = win_rates(successes, trials)

    assert found.rates[0, 1] == pytest.approx(0.875948, abs=5e-7)
    assert found.rates[0, 2] == pytest.approx(jeffreys(30, 64, 40, 64))
    assert np.isnan(found.rates[1, 2])
    assert np.isnan(np.diag(found.rates)).all()
    assert found.tasks.tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert found.rates + found.rates.T == pytest.approx(np.where(found.tasks > 0, 1, np.nan), nan_ok=True)


def test_win_rates__clips_below_guessing():
    assert win_rates([[-3], [2]], [[10], [10]]).rates[0, 1] == pytest.approx(
        jeffreys(0, 10, 2, 10), abs=1e-10
    )


def test_win_rates__reference_is_seeded_and_near_the_exact_value():
    counts = np.array([[100.0, 60.0], [92.0, 64.0], [40.0, 30.0]]), np.full((3, 2), 128.0)
    one = win_rates(*counts, method="reference", seed=5).rates

    assert np.array_equal(one, win_rates(*counts, method="reference", seed=5).rates, equal_nan=True)
    assert not np.array_equal(one, win_rates(*counts, method="reference", seed=6).rates, equal_nan=True)
    assert one == pytest.approx(win_rates(*counts).rates, abs=0.02, nan_ok=True)


@given(st.lists(COUNTS, min_size=2, max_size=9))
def test_win_rates__of_all_models_are_those_of_each_pair(counts):
    s, m = np.array(counts).T

    found = win_rates(s[:, np.newaxis], m[:, np.newaxis]).rates

    each = np.vectorize(jeffreys)(s[:, np.newaxis], m[:, np.newaxis], s, m)
    np.fill_diagonal(each, np.nan)
    assert found == pytest.approx(each, abs=1e-10, nan_ok=True)


def test_win_rates__refuses():
    with pytest.raises(ValueError, match="two models, got 1"):
        win_rates([[1]], [[2]])
    with pytest.raises(ValueError, match=r"must both be \(model, task\)"):
        win_rates([1, 2], [2, 3])
    with pytest.raises(ValueError, match="reference, got 'wald'"):
        win_rates([[1], [1]], [[2], [2]], method="wald")
