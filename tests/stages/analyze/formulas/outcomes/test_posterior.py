"""Exact posterior moments against rational arithmetic."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalcube import stats as outcomes
from evalcube.stages.analyze.formulas.outcomes.posterior import log_moment, moment_variance
from tests.stages.analyze.formulas.outcomes import exact
from tests.stages.analyze.formulas.outcomes.exact import average, bank, banks, close

POWERS = st.sampled_from([0.5, 1.0, 2.0, 7.25, 0.001])


@given(banks(largest=10), POWERS, POWERS)
def test_posteriors__agree_with_rational_arithmetic(case, alpha0, beta0):
    samples, counts, k = case
    payoffs = {name: payoff(k) for name, payoff in exact.PAYOFFS.items()}
    payoffs["auc_at_k"] = [exact.area(k, x, k) for x in range(k + 1)]
    for name, payoff in payoffs.items():
        parts = [exact.posterior(payoff, Fraction(alpha0) + c, Fraction(beta0) + samples - c) for c in counts]
        ci = getattr(outcomes, name.replace("_k", "_k_ci"))
        mean, sigma, _, _ = ci(bank(samples, counts), k, alpha0=alpha0, beta0=beta0)
        assert close(mean, average([mean for mean, _ in parts])), name
        assert close(Fraction(sigma) ** 2, average([var for _, var in parts]) / len(parts), 1e-9), name


@given(st.integers(1, 30), st.integers(1, 40), POWERS, POWERS)
def test_moments__agree_with_rational_arithmetic(k, shift, a, b):
    first, second = Fraction(a) + shift, Fraction(b)
    one, two = exact.mixed_moment(first, second, k, 0), exact.mixed_moment(first, second, 2 * k, 0)

    assert close(np.exp(log_moment(float(first), b, k)), one, 1e-13)
    assert close(moment_variance(float(first), b, k), two - one * one, 1e-11)
