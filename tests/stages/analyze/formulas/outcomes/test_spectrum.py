"""Threshold spectra against rational arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from evalcube import stats as outcomes
from tests.stages.analyze.formulas.outcomes import exact
from tests.stages.analyze.formulas.outcomes.exact import average, bank, banks, close


@given(banks(), st.randoms(use_true_random=False))
def test_threshold_spectrum__agrees_with_rational_arithmetic(case, random):
    samples, counts, k = case
    weights = [random.choice([0.0, random.random() / k]) for _ in range(k)]

    wanted = average([exact.mean_payoff(exact.spectrum(weights), samples, c) for c in counts])

    assert close(outcomes.threshold_spectrum_at_k(bank(samples, counts), k, weights), wanted)
