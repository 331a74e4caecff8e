"""Levels of planned looks: published boundaries, and what they keep together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from evalcube.stages.analyze.formulas.sequential import conditional_power, look_levels, spent
from evalcube.stages.errors import ArgumentError


def test_look_levels__are_the_published_boundaries():
    """Lan and DeMets' O'Brien-Fleming boundaries, two-sided 5%, of their program ld98 and R's gsDesign."""
    found = -ndtri(look_levels((0.2, 0.4, 0.6, 0.8, 1.0), 0.025))

    assert found == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)
    assert look_levels((1.0,), 0.025) == pytest.approx((0.025,))


@settings(max_examples=5)
@given(st.lists(st.floats(0.1, 0.95), min_size=1, max_size=4, unique=True), st.sampled_from([0.005, 0.025]))
def test_look_levels__keep_the_level_together(shares, level):
    fractions = (*sorted(round(share, 2) for share in set(np.round(shares, 2).tolist())), 1.0)
    rng = np.random.default_rng(1)

    levels = look_levels(fractions, level)

    steps = rng.normal(size=(200_000, len(fractions))) * np.sqrt(np.diff((0, *fractions)))
    scores = steps.cumsum(axis=1) / np.sqrt(fractions)
    assert (scores >= -ndtri(levels)).any(axis=1).mean() == pytest.approx(level, abs=0.0015)
    assert levels[0] == pytest.approx(spent(fractions[0], level), rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("fractions", [(), (0.5, 0.5), (0.5, 1.2), (0.0, 1.0)])
def test_look_levels__refuse_looks_that_do_not_rise(fractions):
    with pytest.raises(ArgumentError, match="fractions"):
        look_levels(fractions, 0.025)


def test_conditional_power__is_that_of_a_walk():
    steps = np.random.default_rng(2).normal(size=400_000) * np.sqrt(0.4)

    found = conditional_power(1.5, 0.6, 2.8, 2.0)

    assert found == pytest.approx((1.5 * np.sqrt(0.6) + 2.8 * 0.4 + steps > 2.0).mean(), abs=0.003)
