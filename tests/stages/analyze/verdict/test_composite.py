"""What the reference's verdict says of its own measurements, where these are few or weigh nothing."""

import math

import numpy as np
import pytest

from evalcube.stages.analyze.verdict.agreement import GoldAgreement
from evalcube.stages.analyze.verdict.composite import (
    check_layers,
    checked_weights,
    common,
    composite,
    decimal,
    describe,
    difference,
    half_away,
    judge_layer,
    layer_bits,
    layer_means,
    weighted_mean,
    weighty,
)
from evalcube.stages.analyze.verdict.verdict import _people_badge
from tests.cases import with_cases


@with_cases(
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


@with_cases(
    ("value", "digits", "rounded"),
    [
        (1.125, 2, 1.13),
        (-1.125, 2, -1.13),
        (0.5, 0, 1.0),
        (1e20 + 0.5, 2, 1e20),
        (1e21, 2, 1e21),
        (math.inf, 2, math.inf),
        (-math.inf, 2, -math.inf),
    ],
)
def test_half_away__rounds_ties_away_from_zero_and_leaves_the_huge(value, digits, rounded):
    assert half_away(value, digits) == rounded


def test_decimal__has_as_many_digits_as_are_asked_for():
    assert [decimal(2.345, digits) for digits in (0, 1)] == ["2", "2.3"]
    assert (decimal(0.0, sign=True), decimal(-0.004), decimal(math.nan)) == ("+0.00", "-0.00", "missing")


def test_composite__is_the_weighted_mean_of_the_layers_that_are_there():
    layers = [[5.0, 3.0, 1.0], [math.nan, 3.0, 1.0], [math.nan] * 3, [5.0, math.nan, math.nan]]

    assert composite(layers).tolist() == pytest.approx([3.0, 2.0, math.nan, 5.0], nan_ok=True)
    found = composite(layers, [2.0, 0.0, 1.0])
    assert found.tolist() == pytest.approx([11 / 3, 1.0, math.nan, 5.0], nan_ok=True)
    assert math.isnan(
        composite([[math.nan, 3.0, math.nan]], [1.0, 0.0, 1.0])[0]
    )  # what is there has no weight
    assert layer_bits(layers).tolist() == [7, 6, 0, 1]


@with_cases(
    "weights",
    [[1.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 1.0], [math.nan, 1.0, 1.0], [math.inf, 1.0, 1.0], [[1.0] * 3]],
)
def test_checked_weights__are_one_number_for_each_layer(weights):
    with pytest.raises(ValueError, match="`weights` must be 3 numbers >= 0"):
        checked_weights(weights, 3)


def test_checked_weights__add_up_to_one_however_large():
    assert checked_weights(None, 4).tolist() == [0.25] * 4
    assert checked_weights([1e308, 1e308, 0.0], 3).tolist() == [0.5, 0.5, 0.0]


def test_difference__is_treatment_less_control_where_both_have_a_layer():
    control, treatment = [[3.0, math.nan, 2.0]], [[4.5, 1.0, 2.0 + 1e-10]]

    assert difference(control, treatment).tolist()[0] == pytest.approx([1.5, math.nan, 0.0], nan_ok=True)
    assert difference(control, treatment)[0, 2] == 0.0
    assert difference([1.0], [1.0 + 2e-9])[0] > 0
    first, second = common(control, treatment)
    assert np.isnan(first).tolist() == np.isnan(second).tolist() == [[False, True, False]]
    assert (first[0, 0], second[0, 0]) == (3.0, 4.5)


def test_judge_layer__leaves_failed_readings_out():
    assert judge_layer([[4.0, 0.0, 2.0], [-1.0, math.nan, 0.0]]).tolist() == pytest.approx(
        [3.0, math.nan], nan_ok=True
    )


def test_weighted_mean__is_of_what_is_there():
    values, shares = np.array([1.0, math.nan, 4.0]), np.array([1.0, 9.0, 2.0])

    assert weighted_mean(values, shares) == 3.0
    assert math.isnan(weighted_mean(values, np.zeros(3)))
    assert math.isnan(weighted_mean(np.full(3, math.nan), shares))
    assert layer_means([[1.0, math.nan, 4.0], [4.0, math.nan, math.nan]], [1.0, 2.0]) == {
        "fact": 3.0,
        "judge": 4.0,
    }


def test_check_layers__fails_where_a_layer_is_below_or_nothing_was_measured():
    found = check_layers({"fact": 3.5, "behavior": math.nan, "judge": 3.4})

    assert (found.failed, found.passes, sorted(found.means)) == (("judge",), False, ["fact", "judge"])
    assert check_layers({"fact": 3.5 - 1e-10}).passes
    assert not check_layers({"fact": 3.5 - 2e-9}).passes
    assert not check_layers({}).passes
    assert check_layers({"fact": 2.0}, 2.0).passes
    assert describe(math.nan, 7) == describe(4.0, [0, 0]) == "missing"
