"""Selective missingness: no gain rests on what is not there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.verdict import verdict

NAN = np.nan


def names(count):
    return [f"u{place:03}" for place in range(count)]


def ask(layers, **options):
    return verdict(layers, ["base", "new"], names(layers.shape[-2]), **{"draws": 1000, **options})


def hard_and_easy(units=80, seed=0):
    """Two arms that are alike on half of the units; on the other half, the treatment fails."""
    rng = np.random.default_rng(seed)
    layers = np.clip(np.full((2, units, 3), 4.0) + rng.normal(0, 0.2, (2, units, 3)), 1, 5)
    layers[1, : units // 2] += 0.5
    layers[1, units // 2 :] -= 2.0
    return np.clip(layers, 1, 5)


@pytest.mark.parametrize("how", ["nan", "ok", "entries"])
def test_verdict__a_treatment_measured_on_the_easy_half_is_no_progress(how):
    layers, there = hard_and_easy(), np.ones((2, 80), dtype=bool)
    there[1, 40:] = False
    options = {} if how == "nan" else {how: there}
    if how == "nan":
        layers[1, 40:] = NAN

    found = ask(layers, **options)

    assert (found.verdict, found.branch, found.exit_code) == ("CAUTIOUS", "positive_missing", 1)
    assert "composite in 40 of 80" in found.reasons[1]
    pair = found.pairs[0]
    assert pair.composite.positive
    assert pair.missing.if_failed.estimate == pytest.approx((0.5 - 3.0) / 2, abs=0.1)
    assert pair.missing.worst == pair.missing.if_failed  # the control lacks nothing


def test_verdict__a_control_measured_on_its_hard_half_is_no_progress():
    layers = np.full((2, 80, 3), 4.0)
    layers[0, :40] = 3.6
    layers[0, 40:] = NAN

    found = ask(layers)

    assert (found.verdict, found.branch) == ("CAUTIOUS", "positive_missing")
    assert found.pairs[0].missing.if_failed.positive  # that the control failed speaks for the treatment ...
    assert found.pairs[0].missing.worst.estimate == pytest.approx((0.4 - 1.0) / 2)  # ... if it did


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_verdict__a_whole_layer_of_one_arm_missing_is_no_progress(layer):
    layers = np.clip(np.full((2, 40, 3), 4.0) + np.random.default_rng(1).normal(0, 0.2, (2, 40, 3)), 1, 5)
    layers[1] = np.clip(layers[1] + 0.4, 1, 5)
    layers[1, :, layer] = NAN

    found = ask(layers)

    assert (found.verdict, found.branch) == ("CAUTIOUS", "positive_missing")
    assert found.reasons[1].startswith(
        f"the treatment lacks {('fact', 'behavior', 'judge')[layer]} in 40 of 40"
    )


def test_verdict__a_judge_that_answers_for_one_arm_only_is_no_progress():
    readings = np.full((2, 40, 2), 4.0)
    readings[1, :, 0], readings[1, :, 1] = NAN, 5.0
    layers = np.full((2, 40, 3), NAN)

    found = ask(layers, judges=readings, judge_names=["strict", "loose"])

    assert (found.verdict, found.branch) == ("CAUTIOUS", "positive_missing")
    assert found.reasons[1].startswith("the treatment lacks readings of strict in 40 of 40 answers")


def test_verdict__missing_runs_of_a_unit_count_too():
    runs = np.stack([hard_and_easy()] * 2)
    runs[1] = 4.0
    runs[0, 1, 40:] = NAN  # the failures, of which the other runs know nothing

    found = ask(runs)

    assert found.pairs[0].complete_pairs == 80
    assert (found.verdict, found.branch) == ("CAUTIOUS", "positive_missing")


def test_verdict__runs_that_were_never_planned_are_not_missing():
    runs = np.stack([np.full((2, 40, 3), [[[3.8]], [[4.4]]])] * 2)
    entries = np.ones((2, 2, 40), dtype=bool)
    entries[1, 1] = False
    runs[1, 1] = NAN

    assert ask(runs, entries=entries).verdict == "PROGRESS"


@pytest.mark.parametrize(
    ("lost", "missing", "expected"),
    [(0, 0.1, "PROGRESS"), (4, 0.1, "PROGRESS"), (12, 0.1, "CAUTIOUS"), (12, 0.2, "PROGRESS")],
)
def test_verdict__the_share_that_may_be_missing_in_both_arms_is_declared(lost, missing, expected):
    layers = np.full((2, 100, 3), [[[3.8]], [[4.4]]])
    layers[:, :lost] = NAN

    assert ask(layers, missing=missing).verdict == expected


def test_verdict__a_few_missing_answers_that_could_explain_the_gain_do():
    layers = np.full((2, 100, 3), [[[4.0]], [[4.12]]])
    layers[1, :4] = NAN

    found = ask(layers)

    assert found.branch == "positive_missing"
    assert "the gain rests" in found.reasons[1]


def test_verdict__noise_of_half_the_units_is_underpowered():
    layers = np.full((2, 80, 3), 4.0)
    layers[1, 40:] = NAN

    found = ask(layers)

    assert (found.verdict, found.branch) == ("UNDERPOWERED", "not_significant_missing")


def test_verdict__a_gate_is_not_passed_by_the_half_that_answered():
    layers = np.full((1, 40, 3), 4.0)
    layers[0, 20:] = NAN

    found = verdict(layers, ["base"], names(40))

    assert (found.branch, found.exit_code) == ("solo_missing", 1)
    assert "20 of 40 answers lack" in found.reasons[1]
    assert verdict(layers, ["base"], names(40), missing=0.5).exit_code == 0


def test_verdict__a_gate_is_not_passed_by_the_readings_that_a_judge_gave():
    layers = np.full((1, 40, 3), 4.0)
    layers[0, 15:, 2] = NAN
    due = np.ones((40, 3), dtype=bool)

    found = verdict(layers, ["base"], names(40), due=due)

    assert (found.branch, found.exit_code) == ("solo_missing", 1)
    assert "25 of 40 answers lack" in found.reasons[1]
    layers[0, :, 2] = NAN  # by no judge at all
    assert verdict(layers, ["base"], names(40), due=due).exit_code == 1


@given(st.integers(0, 2**32 - 1), st.integers(20, 60), st.floats(0, 0.6), st.floats(0, 0.6))
def test_verdict__no_progress_unless_the_gain_survives_every_way_to_fill_what_is_missing(
    seed, units, lost_control, lost_treatment
):
    rng = np.random.default_rng(seed)
    layers = np.clip(np.rint(rng.normal(4.0, 0.7, (2, units, 3))), 1, 5)
    layers[1] = np.clip(layers[1] + 0.6, 1, 5)
    for arm, share in ((0, lost_control), (1, lost_treatment)):
        layers[arm, rng.random((units, 3)) < share] = NAN

    found = ask(layers, draws=500)

    if found.verdict != "PROGRESS" or found.pairs[0].missing is None:
        return
    known = ~np.isnan(layers).all(axis=0)
    filled = layers.copy()
    filled[0][np.isnan(layers[0]) & known], filled[1][np.isnan(layers[1]) & known] = 5.0, 1.0
    composites = np.nanmean(filled, axis=2)
    assert np.nansum(composites[1] - composites[0]) > 0


@pytest.mark.parametrize("size", [1e-12, -1e-12])
def test_verdict__rounding_is_neither_gain_nor_loss(size):
    layers = np.full((2, 40, 3), 4.0)
    layers[1] += size

    found = ask(layers)

    assert (found.verdict, found.badges.significant) == ("NOISE", "no")
    assert found.pairs[0].composite.estimate == 0.0
    assert found.pairs[0].joint.p_value == 1.0


@pytest.mark.parametrize(("lost", "expected"), [(0, "PROGRESS"), (44, "CAUTIOUS")])
def test_verdict__a_layer_that_a_unit_should_have_and_no_arm_has_is_missing(lost, expected):
    layers = np.full((2, 48, 3), 4.0) + np.random.default_rng(3).normal(0, 0.1, (2, 48, 3))
    layers[1, :, :2] += 0.5
    layers[:, :lost, 2] = NAN
    due = np.array([False, False, True])

    found, unsaid = ask(layers, due=due), ask(layers)

    assert found.verdict == expected
    assert unsaid.verdict == "PROGRESS"
    if lost:
        assert found.branch == "positive_missing"
        (gap,) = found.pairs[0].missing.gaps
        assert (gap.what, gap.control, gap.control_expected, gap.treatment) == ("judge", 44, 48, 44)
        # In both arms at its lowest: what nobody rated says nothing for either.
        gains = (layers[1] - layers[0])[:, :2].sum(axis=1) + np.nan_to_num((layers[1] - layers[0])[:, 2])
        assert found.pairs[0].missing.if_failed.estimate == pytest.approx((gains / 3).mean())


def test_verdict__at_worst_what_neither_arm_has_went_to_the_control():
    layers = np.full((2, 40, 3), [[[3.8]], [[4.4]]])
    layers[:, :4] = NAN

    missing = ask(layers).pairs[0].missing

    assert missing.if_failed.estimate == pytest.approx(0.6 * 36 / 40)
    assert missing.worst.estimate == pytest.approx((0.6 * 36 - 4 * 4) / 40)


def test_verdict__judges_of_a_unit_that_are_silent_enter_worst_and_best_case():
    """Judge b gave half of the readings of either arm: at the worst it hates the treatment and loves the control."""
    layers = np.full((2, 40, 3), 4.0)
    layers[..., 2] = NAN
    layers[1, :, :2] = 4.4
    judges = np.full((2, 40, 2), 4.0)
    judges[0, :10, 1] = judges[1, 20:, 1] = NAN

    missing = ask(layers, judges=judges, judge_names=["a", "b"]).pairs[0].missing

    (gap,) = missing.gaps
    assert (gap.what, gap.control, gap.treatment) == ("readings of b", 10, 20)
    failed, worst = (
        (0.4 * 80 + control * 10 + treatment * 20) / 120 for control, treatment in ((1.5, -1.5), (-0.5, -1.5))
    )
    assert missing.if_failed.estimate == pytest.approx(failed)
    assert missing.worst.estimate == pytest.approx(worst)


def test_reach__goes_by_how_much_gains_differ_and_not_by_how_large_they_are():
    noise = np.clip(np.random.default_rng(3).normal(0, 0.3, (60, 1)), -0.6, 0.6)
    steps = [size + spread * noise for size, spread in ((0.2, 1), (1.2, 1), (0.2, 2))]
    gains = [np.stack([np.full((60, 3), 2.5), np.full((60, 3), 2.5) + step]) for step in steps]

    near, far, wide = (ask(each, method="sign-flip").pairs[0].reach for each in gains)

    assert near.detectable == pytest.approx(far.detectable)
    assert wide.detectable == pytest.approx(2 * near.detectable, rel=0.05)
