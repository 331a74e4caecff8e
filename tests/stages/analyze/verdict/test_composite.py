"""What the reference's verdict says of its own measurements, where these are few or weigh nothing."""

import math

import pytest

from evalcube.stages.analyze.verdict.agreement import GoldAgreement
from evalcube.stages.analyze.verdict.composite import describe, weighty
from evalcube.stages.analyze.verdict.verdict import _people_badge


@pytest.mark.parametrize(
    ("alpha", "low", "high", "units", "badge"),
    [
        (0.9, 0.85, 0.95, 40, "yes"),
        (0.7, 0.6, 0.78, 40, "partly"),
        (0.2, 0.1, 0.4, 40, "no"),
        (0.5, 0.1, 0.9, 40, "unknown"),
        (0.2, 0.1, 0.4, 3, "unknown"),
        (math.nan, math.nan, math.nan, 40, "unknown"),
    ],
)
def test_aligned__is_unknown_where_ratings_are_too_few_to_say(alpha, low, high, units, badge):
    assert _people_badge(GoldAgreement(alpha, low, high, 0.0, 0.0, units)) == badge


def test_weighty__leaves_a_layer_without_weight_out_of_what_the_composite_rests_on():
    assert describe(4.1, weighty([7, 7], (1.0, 0.0, 2.0))) == "4.10 (fact + judge)"
    assert describe(4.1, weighty([7, 7], None)) == "4.10 (3/3)"
    assert describe(4.1, weighty([7, 5], (1.0, 0.0, 2.0))) == "4.10 (fact + judge)"
