import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube import stats as outcomes
from evalcube.stages.analyze.formulas.outcomes import hypergeometric
from tests.stages.analyze.formulas.outcomes import exact
from tests.stages.analyze.formulas.outcomes.exact import average, bank, banks, close


@given(banks())
def test_points__agree_with_rational_arithmetic(case):
    samples, counts, k = case
    for name, payoff in exact.PAYOFFS.items():
        wanted = average([exact.mean_payoff(payoff(k), samples, c) for c in counts])
        assert close(getattr(outcomes, name)(bank(samples, counts), k), wanted), name
    assert close(
        outcomes.auc_at_k(bank(samples, counts), k), average([exact.area(samples, c, k) for c in counts])
    )


@given(st.integers(1, 60), st.data())
def test_square_coefficients__short_cut_agrees_with_the_sum(k, data):
    least = data.draw(st.integers(1, k))
    payoff = (np.arange(k + 1) >= least).astype(float)
    nearly = payoff * np.linspace(1.0, 1.0 + 1e-13, k + 1)  # not constant, so that the short cut is not taken

    np.testing.assert_allclose(
        hypergeometric.square_coefficients(payoff),
        hypergeometric.square_coefficients(nearly),
        rtol=1e-11,
        atol=1e-300,
    )


@pytest.mark.parametrize(("successes", "k"), [(1, 7), (3, 5000), (5000, 5000), (9990, 5000), (9000, 40)])
def test_points__keep_their_digits_at_ten_thousand_samples(successes, k):
    samples = 10_000
    one = bank(samples, [successes])

    assert close(outcomes.pass_at_k(one, k), 1 - exact.draw(samples, successes, k, 0))
    every = exact.draw(samples, successes, k, k)
    found = outcomes.pass_hat_k(one, k)
    assert close(found, every) if every > Fraction(1, 10**300) else found < 1e-290


@pytest.mark.parametrize(("successes", "k"), [(5000, 101), (9000, 40), (3, 5)])
def test_maj_at_k__keeps_its_digits_at_ten_thousand_samples(successes, k):
    wanted = sum(exact.draw(10_000, successes, k, x) for x in range(k // 2 + 1, min(k, successes) + 1))

    assert close(outcomes.maj_at_k(bank(10_000, [successes]), k), wanted)


def test_points__hundreds_of_thousands_of_samples_neither_overflow_nor_warn():
    samples = 400_000
    half = bank(samples, [samples // 2])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert outcomes.pass_at_k(half, 1) == pytest.approx(0.5, rel=1e-12)
        assert outcomes.pass_at_k(half, samples) == 1.0
        assert outcomes.pass_hat_k(half, samples) == 0.0
        assert outcomes.auc_at_k(half, 2) == pytest.approx(0.5 + 0.125 * (1 + 1 / (samples - 1)), rel=1e-12)
        assert outcomes.maj_at_k(half, 200_001) == pytest.approx(0.5, rel=1e-10)
        assert outcomes.pass_at_k_ci(half, 200_000)[0] == pytest.approx(1.0)
        assert 0.0 <= outcomes.mg_pass_at_k(half, 200_000) < 1e-3
