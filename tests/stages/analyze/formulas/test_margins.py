"""Margins: what is inside them, against the normal test of a paired difference."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.margins import (
    border_score,
    claim_scores,
    enough_worth,
    inside,
    inside_score,
    tail,
)


def test_tail__of_a_change_at_the_border_is_one_half():
    for claim, change in (("noninferior", -0.05), ("superior", 0.05), ("equivalent", 0.05)):
        assert tail(inside_score(change, 500.0, claim, 0.05)) == pytest.approx(0.5)


@given(st.floats(-0.9, 0.9), st.floats(1, 1e6), st.floats(0.001, 0.5))
def test_inside_score__of_equivalence_is_the_nearer_border(change, worth, margin):
    found = inside_score(change, worth, "equivalent", margin)

    assert found == min(border_score(change, worth, -margin), -border_score(change, worth, margin))
    assert found <= inside_score(change, worth, "noninferior", margin)
    assert (found > 0) == inside(change, change, "equivalent", margin)


def test_border_score__beyond_all_differences_is_infinite():
    assert border_score(0.5, 10.0, math.inf) == -math.inf
    assert border_score(0.5, 10.0, -1.0) == math.inf


def test_claim_scores__are_of_the_worst_and_of_the_best():
    seen = [(0.0, 1e4), (-0.03, 1e4), (0.02, 1e4)]

    low, high = claim_scores(seen, "noninferior", 0.01)

    assert (low < -1.9, high > 2.9) == (True, True)
    assert claim_scores(seen, "equivalent", 0.01)[1] == math.inf


def test_enough_worth__has_the_power_that_is_asked_for():
    from scipy.special import ndtr, ndtri

    for claim in ("noninferior", "equivalent"):
        worth = enough_worth(0.0, claim, 0.02)
        low = float(ndtr(0.02 * math.sqrt(worth) + ndtri(0.025)))

        assert (low if claim == "noninferior" else 2 * low - 1) == pytest.approx(0.8)
    assert enough_worth(0.0, "superior", 0.0) == math.inf
