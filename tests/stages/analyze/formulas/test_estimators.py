import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.estimators import MODES, counts, estimate, factor_confidence
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from tests.cases import with_cases

LABELS = ("trials", "completed", "correct", "truncated", "guess_sum")


def cell(n, truncated, correct, guesses=0.0):
    return [n, n - truncated, correct, truncated, guesses]


def bounds(counters, mode, **options):
    return [float(value) for value in estimate(counters, labels=LABELS, mode=mode, **options)]


@st.composite
def cells(draw, *, guessing=True):
    n = draw(st.integers(min_value=1, max_value=400))
    truncated = draw(st.integers(min_value=0, max_value=n))
    correct = draw(st.integers(min_value=0, max_value=n - truncated))
    chance = draw(st.sampled_from([0.0, 0.1, 0.25, 0.5])) if guessing else 0.0
    return cell(n, truncated, correct, chance * (n - truncated))


# A binary task, n = 128, n_t = 16, n_e = 84, g = 56: point, lower, upper.
BINARY = {
    "E_I": (0.75, 0.662421, 0.820998),
    "E_P": (0.65625, 0.570495, 0.732900),
    "E_O": (0.78125, 0.702014, 0.844096),
    "C_I": (0.5, 0.373315, 0.626685),
    "C_P": (0.4375, 0.301106, 0.577537),
    "C_O": (0.5625, 0.422463, 0.698894),
}


@with_cases("mode", MODES)
def test_estimate__vectors_of_a_binary_task(mode):
    assert bounds(cell(128, 16, 84, 56), mode) == pytest.approx(BINARY[mode], abs=1e-6)


@pytest.mark.parametrize(
    ("counters", "mode", "lower", "upper"),
    [
        (cell(128, 16, 84, 56), "C_P", 0.283456, 0.596265),
        (cell(128, 16, 84, 56), "C_O", 0.403735, 0.716544),
        (cell(896, 8, 337, 74), "C_P", 0.282016, 0.359335),
    ],
)
def test_estimate__bonferroni_vectors(counters, mode, lower, upper):
    assert bounds(counters, mode, joint="bonferroni")[1:] == pytest.approx([lower, upper], abs=1e-6)


@pytest.mark.parametrize(
    ("mode", "lower", "upper"), [("C_P", 0.286751, 0.354376), ("C_O", 0.295073, 0.367272)]
)
def test_estimate__vectors_of_a_twelve_option_task(mode, lower, upper):
    assert bounds(cell(896, 8, 337, 74), mode)[1:] == pytest.approx([lower, upper], abs=1e-6)


def test_estimate__without_truncation_and_guessing_five_agree_and_a_product_is_wider():
    found = {mode: bounds(cell(128, 0, 100), mode) for mode in MODES}

    for mode in ("E_I", "E_P", "E_O", "C_I"):
        assert found[mode] == pytest.approx([0.78125, 0.702014, 0.844096], abs=1e-6)
    assert found["C_P"] == pytest.approx([0.78125, 0.681559, 0.844096], abs=1e-6)
    assert found["C_O"] == pytest.approx([0.78125, 0.702014, 0.848639], abs=1e-6)


def test_estimate__reference_point_bit_for_bit():
    _, lower, upper = bounds(cell(896, 8, 337, 74), "C_I")

    assert ((lower + upper) / 2, (upper - lower) / 2) == pytest.approx(
        (0.3239267848444002, 0.03206244563179326), abs=1e-15
    )


@pytest.mark.parametrize("mode", ["E_I", "E_P", "E_O", "C_I"])
def test_estimate__one_factor_does_not_change_with_bonferroni(mode):
    assert bounds(cell(128, 16, 84, 56), mode, joint="bonferroni") == bounds(cell(128, 16, 84, 56), mode)


def test_factor_confidence__halves_the_error():
    assert factor_confidence(None, "bonferroni") == factor_confidence(0.95, "bonferroni") == 0.975
    assert factor_confidence(0.9, "none") == 0.9


@given(cells(), st.sampled_from(MODES), st.sampled_from(["none", "bonferroni"]))
def test_estimate__is_ordered_inside_the_unit_interval(counters, mode, joint):
    point, lower, upper = bounds(counters, mode, joint=joint)

    if not math.isnan(point):
        assert -1e-12 <= lower <= point + 1e-12
        assert point <= upper + 1e-12
        assert upper <= 1 + 1e-12


@given(cells(), st.sampled_from(MODES))
def test_estimate__another_correct_answer_never_lowers_it(counters, mode):
    more = list(counters)
    more[2] += 1
    if more[2] > more[1]:
        return

    before, after = bounds(counters, mode), bounds(more, mode)

    assert all(b <= a + 1e-12 for b, a in zip(before, after, strict=True) if not math.isnan(b))


@given(cells(), st.sampled_from("EC"))
def test_estimate__pessimism_independence_optimism_are_ordered(counters, event):
    point = {way: bounds(counters, f"{event}_{way}")[0] for way in "IPO"}

    if not math.isnan(point["I"]):
        assert point["P"] <= point["I"] + 1e-12
        assert point["I"] <= point["O"] + 1e-12


@given(cells(guessing=False))
def test_estimate__without_guessing_points_of_both_families_agree(counters):
    for way in "IPO":
        equality, correctness = (bounds(counters, f"{event}_{way}")[0] for event in "EC")
        assert equality == pytest.approx(correctness, nan_ok=True)


@given(cells(), st.sampled_from(MODES))
def test_estimate__narrows_with_confidence_and_with_trials(counters, mode):
    _, lower, upper = bounds(counters, mode)
    wide = bounds(counters, mode, confidence=0.99)
    many = bounds([100 * value for value in counters], mode)

    if not math.isnan(lower):
        assert wide[1] <= lower + 1e-12
        assert upper <= wide[2] + 1e-12
        assert many[2] - many[1] <= upper - lower + 1e-12


def test_estimate__nothing_finished_is_undefined():
    for mode in MODES:
        assert np.isnan(bounds(cell(0, 0, 0), mode)).all()


def test_estimate__everything_truncated_has_a_value_where_the_assumption_gives_one():
    counters = cell(32, 32, 0)
    _, _, most = wilson_bounds(0, 32)

    assert bounds(counters, "E_P") == bounds(counters, "C_P") == [0.0, 0.0, float(most)]
    assert bounds(counters, "E_O") == pytest.approx([1.0, 1.0 - most, 1.0])
    assert bounds(counters, "C_O") == pytest.approx([1.0, 1.0 - most, 1.0])
    assert np.isnan([bounds(counters, "E_I"), bounds(counters, "C_I")]).all()


def test_estimate__a_single_option_leaves_no_correctness_to_measure():
    counters = cell(16, 4, 12, 12)

    assert all(np.isnan(bounds(counters, mode)).all() for mode in ("C_I", "C_P", "C_O"))
    assert bounds(counters, "E_I")[0] == 1.0


def test_estimate__worse_than_guessing_is_clipped_after_pooling():
    poor, good = cell(100, 0, 30, 50), cell(100, 0, 80, 50)

    together = bounds(np.sum([poor, good], axis=0), "C_I")

    assert bounds(poor, "C_I")[0] == 0.0
    assert together[0] == pytest.approx(0.1)


def test_estimate__is_elementwise_and_silent():
    table = [[cell(128, 16, 84, 56), cell(0, 0, 0)], [cell(8, 8, 0), cell(10**12, 0, 10**11)]]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [estimate(table, labels=LABELS, mode=mode) for mode in MODES]

    assert all(np.shape(part) == (2, 2) for triple in found for part in triple)
    assert found[4][0][0, 0] == pytest.approx(0.4375)


def test_estimate__unknown_mode_lists_the_six():
    with pytest.raises(ValueError, match="E_I, E_P, E_O, C_I, C_P, C_O, got 'C_X'"):
        bounds(cell(1, 0, 1), "C_X")
    with pytest.raises(ValueError, match="`joint`"):
        bounds(cell(1, 0, 1), "C_P", joint="sidak")
    with pytest.raises(ValueError, match=r"inside \(0, 1\)"):
        bounds(cell(1, 0, 1), "C_P", confidence=95)


@pytest.mark.parametrize(
    ("counters", "rule"),
    [
        ([10, 8, 9, 2, 0], "correct must not exceed completed"),
        ([10, 8, 5, 1, 0], r"completed \+ truncated must equal trials"),
        ([10, 8, 5, 2, 8.5], "guess_sum must not exceed completed"),
        ([10, 11, 5, -1, 0], "none may be negative"),
    ],
)
def test_counts__refuses_what_contradicts_itself(counters, rule):
    with pytest.raises(ValueError, match=rule) as caught:
        counts([cell(4, 1, 2), counters], labels=LABELS)

    assert "at index (1,)" in str(caught.value)
    assert f"correct {counters[2]}" in str(caught.value)


def test_counts__undefined_is_no_contradiction():
    assert np.isnan(counts([math.nan] * 5, labels=LABELS).trials)
