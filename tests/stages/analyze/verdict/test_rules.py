"""The reference's order of rules, one line per rule, and what happens if several apply."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.verdict.agreement import Agreement
from evalcube.stages.analyze.verdict.composite import check_layers, layer_means
from evalcube.stages.analyze.verdict.measures import Holdout, Saturation, reach
from evalcube.stages.analyze.verdict.paired import Interval
from evalcube.stages.analyze.verdict.result import ROLL_UP, Decision
from evalcube.stages.analyze.verdict.rules import (
    Evidence,
    Thresholds,
    decide_pair,
    difference_text,
    next_step,
    worst,
)
from tests.cases import with_cases


def interval(low, high, pairs=30):
    return Interval((low + high) / 2, low, high, 0.5, 0.05, pairs, "given")


def judged(pearson, ac2=0.5):
    return Agreement(pearson, 1.0, 1, 30, ac2)


def curve(saturated, confidence):
    return Saturation(saturated, 30 if saturated else None, confidence, "bootstrap-ci-width", 0.05, ())


UP, FLAT, DOWN = interval(0.2, 0.6), interval(-0.1, 0.3), interval(-0.6, -0.2)
GOOD = check_layers({"fact": 4.0, "judge": 4.0})
BAD = check_layers({"fact": 2.0, "judge": 4.0})
WORSE = check_layers({"fact": 2.0, "judge": 3.0})
NOTHING = check_layers({})
CLEAN = Evidence(UP, {"fact": UP, "judge": FLAT}, GOOD, GOOD)


def case(verdict, branch, **changes):
    return changes, verdict, branch


@with_cases(
    ("changes", "verdict", "branch"),
    [
        case("REGRESS", "significant_negative", composite=DOWN),
        case("REGRESS", "significant_negative", composite=DOWN, treatment_check=BAD, layers={"fact": UP}),
        case("REGRESS", "significant_negative", composite=interval(-0.6, -0.2, 6)),
        case("CAUTIOUS", "positive_gate_broken", treatment_check=BAD),
        case("CAUTIOUS", "positive_gate_broken", treatment_check=BAD, control_check=BAD),
        case("REGRESS", "gate_dropped", composite=FLAT, treatment_check=BAD),
        case("REGRESS", "gate_dropped", composite=interval(-0.1, 0.3, 4), treatment_check=BAD),
        case("REGRESS", "gate_dropped", composite=FLAT, treatment_check=WORSE, control_check=BAD),
        case("REGRESS", "gate_dropped", composite=interval(-math.inf, math.inf, 0), treatment_check=NOTHING),
        case("CAUTIOUS", "gate_broken_in_both", composite=FLAT, treatment_check=BAD, control_check=BAD),
        case("CAUTIOUS", "gate_broken_in_both", composite=FLAT, treatment_check=BAD, control_check=WORSE),
        case(
            "CAUTIOUS",
            "gate_broken_in_both",
            composite=FLAT,
            treatment_check=BAD,
            control_check=check_layers({"judge": 4}),
        ),
        case(
            "CAUTIOUS", "gate_broken_in_both", composite=FLAT, treatment_check=NOTHING, control_check=NOTHING
        ),
        case("UNDERPOWERED", "not_significant_underpowered", composite=interval(-0.1, 0.3, 19), layers={}),
        case("NOISE", "not_significant_noise", composite=interval(-0.1, 0.3, 20), layers={}),
        case("NOISE", "not_significant_noise", composite=interval(0.0, 0.3), layers={"fact": FLAT}),
        case(
            "UNDERPOWERED",
            "not_significant_underpowered",
            composite=FLAT,
            layers={},
            saturation=curve(False, "low"),
        ),
        case("NOISE", "not_significant_noise", composite=FLAT, layers={}, saturation=curve(False, "high")),
        case("NOISE", "not_significant_noise", composite=FLAT, layers={}, saturation=curve(True, "high")),
        case("CAUTIOUS", "layer_moved", composite=FLAT),
        case("CAUTIOUS", "layer_moved", composite=interval(-0.1, 0.3, 8), layers={"fact": UP, "judge": DOWN}),
        case("CAUTIOUS", "positive_layer_loss", layers={"fact": UP, "judge": DOWN}),
        case("CAUTIOUS", "positive_underpowered", composite=interval(0.2, 0.6, 19)),
        case("CAUTIOUS", "positive_unsaturated", saturation=curve(False, "high")),
        case(
            "CAUTIOUS", "positive_judge_dissent", agreement={"c": judged(0.9, 0.2), "t": judged(0.39, 0.59)}
        ),
        case("CAUTIOUS", "positive_judge_dissent", agreement={"c": judged(-0.2, 0.1), "t": judged(0.8)}),
        case("CAUTIOUS", "positive_judge_dissent", agreement={"t": judged(math.nan, 0.59)}),
        case("CAUTIOUS", "positive_trivially_small", composite=interval(0.01, 0.09)),
        case("CAUTIOUS", "positive_unstable", variation=0.151),
        case("CAUTIOUS", "positive_overfit", holdout=Holdout(0.5, 0.1, UP)),
        case("PROGRESS", "positive_clean"),
        case("PROGRESS", "positive_clean", composite=interval(0.2, 0.6, 20)),
        case("PROGRESS", "positive_clean", composite=interval(0.05, 0.15)),
        case("PROGRESS", "positive_clean", saturation=curve(True, "low")),
        case("PROGRESS", "positive_clean", agreement={"c": judged(0.4, 0.1), "t": judged(math.nan, 0.6)}),
        case("PROGRESS", "positive_clean", agreement={"c": judged(-0.03, 0.95), "t": judged(0.9, 0.2)}),
        case("PROGRESS", "positive_clean", variation=0.15, holdout=Holdout(0.5, 0.4, FLAT)),
        case("PROGRESS", "positive_recovers_broken_control", control_check=BAD),
    ],
)
def test_decide_pair__first_rule_that_applies(changes, verdict, branch):
    found = decide_pair(replace(CLEAN, **changes))

    assert (found.verdict, found.branch) == (verdict, branch)
    assert all(found.reasons)


def test_decide_pair__names_the_layer_that_the_composite_hides():
    found = decide_pair(replace(CLEAN, composite=FLAT, layers={"fact": UP, "judge": DOWN}))

    assert found.reasons[0] == "the composite hides a change: fact rose, judge fell"


def test_decide_pair__lists_every_reservation():
    found = decide_pair(
        replace(CLEAN, composite=interval(0.01, 0.09, 10), variation=0.5, agreement={"t": judged(0.1)})
    )

    assert found.branch == "positive_underpowered"
    assert len(found.reasons) == 5


def test_decide_pair__where_clusters_are_drawn_so_many_of_them_are_needed():
    few = replace(interval(0.2, 0.6, 96), clusters=12)

    for composite, branch in ((few, "positive_underpowered"), (replace(few, clusters=24), "positive_clean")):
        assert decide_pair(replace(CLEAN, composite=composite)).branch == branch
    found = decide_pair(replace(CLEAN, layers={}, composite=replace(few, low=-0.2)))
    assert "96 complete pairs; below 20" in found.reasons[1], found


@with_cases(
    ("found", "said"),
    [
        (interval(0.2, 0.6, 0), "no question has a composite of both variants"),
        (interval(0.2, 0.6, 1), "+0.40 [+0.20, +0.60] at 95%, 1 pair"),
        (interval(-0.6, -0.2, 24), "-0.40 [-0.60, -0.20] at 95%, 24 pairs"),
        (interval(-0.6, -0.2, 1), "-0.40 [-0.60, -0.20] at 95%, 1 pair"),
        (interval(-math.inf, 0.6, 2), "too few pairs (2) for an interval at 95%"),
        (interval(0.2, math.inf, 2), "too few pairs (2) for an interval at 95%"),
    ],
)
def test_difference_text__has_an_interval_where_there_is_one(found, said):
    assert said in difference_text(found).replace("\u2212", "-")


def test_decide_pair__limits_can_be_declared():
    assert decide_pair(CLEAN, Thresholds(trivial=0.5)).branch == "positive_trivially_small"
    assert (
        decide_pair(replace(CLEAN, composite=interval(0.2, 0.6, 5)), Thresholds(min_pairs=5)).verdict
        == "PROGRESS"
    )


def test_decide_pair__no_call_says_what_it_could_have_seen_and_is_no_proof_of_no_harm():
    seen = reach(0.5, 30, 0.1, alpha=0.05)

    wide, narrow = (
        decide_pair(Evidence(interval(low, 0.3), {}, GOOD, GOOD, reach=seen)) for low in (-0.2, -0.08)
    )

    assert wide.reasons[-2:] == (
        "minimum detectable difference of 30 pairs: 0.26 (80% power)",
        "a loss of up to 0.20 is not excluded: this does not show that there is no harm",
    )
    assert narrow.reasons[-1] == "a composite lower by 0.1 or more is excluded for the complete pairs"


@pytest.mark.parametrize(
    ("pairs", "again", "words"),
    [
        (30, False, ["to 460 pairs", "plan 211"]),
        (30, True, ["to 460 pairs", "plan 211"]),
        (300, False, ["No difference found", "300 pairs"]),
        (300, True, ["to 429 pairs"]),
    ],
)
def test_next_step__says_how_many_pairs_find_what_matters_and_when_to_stop(pairs, again, words):
    noise = Decision("NOISE", "not_significant_noise", ())

    seen = replace(interval(-0.1, 0.1, pairs), method="anytime" if again else "sign-flip")
    said = reach(0.5, pairs, 0.1, alpha=0.05, again=again)
    found = next_step(noise, said, seen, Thresholds())
    drawn = next_step(noise, said, replace(seen, pairs=9 * pairs, clusters=pairs), Thresholds())

    assert all(word in found for word in words), found
    assert all(word.replace("pairs", "clusters") in drawn for word in words), drawn


bounds = st.tuples(st.floats(-2, 2), st.floats(0.001, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))
layers = st.dictionaries(st.sampled_from(["fact", "judge"]), bounds.map(lambda pair: interval(*pair)))
gates = st.dictionaries(st.sampled_from(["fact", "judge"]), st.floats(1, 5)).map(check_layers)


@given(bounds, st.integers(1, 60), layers, gates, gates, st.floats(0, 0.3), st.floats(-1, 1))
def test_decide_pair__ships_nothing_that_fell_failed_or_is_not_powered(
    pair, n, moved, control, treatment, cv, gap
):
    composite = interval(*pair, n)

    held = Holdout(gap, 0.0, interval(gap, gap + 0.5))
    found = decide_pair(Evidence(composite, moved, control, treatment, variation=cv, holdout=held))

    if found.verdict == "PROGRESS":
        assert composite.low > 0
        assert n >= 20
        assert treatment.passes
        assert not any(layer.negative for layer in moved.values())
        assert cv <= 0.15 + 1e-8
        assert gap <= 0
    if composite.negative:
        assert found.verdict == "REGRESS"


@given(st.lists(st.sampled_from(ROLL_UP), min_size=1, max_size=6))
def test_worst__the_first_of_the_worst_level_decides(levels):
    decisions = [Decision(level, str(place), ()) for place, level in enumerate(levels)]

    place = worst(decisions)

    assert ROLL_UP.index(levels[place]) == min(map(ROLL_UP.index, levels))
    assert levels.index(levels[place]) == place


def test_check_layers__a_mean_on_the_threshold_passes_however_it_was_summed():
    assert check_layers(layer_means([[3.4, 3.3, 3.5], [3.5, 3.6, 3.5], [3.6, 3.6, 3.5]])).passes
    assert check_layers({"fact": 3.5 - 4e-16}).passes
    assert check_layers({"fact": 3.499}).failed == ("fact",)


def test_layer_means__skip_absent_layers():
    assert layer_means([[4.0, math.nan, 2.0], [5.0, math.nan, math.nan]]) == {"fact": 4.5, "judge": 2.0}
    assert not check_layers(layer_means([[math.nan] * 3])).passes
