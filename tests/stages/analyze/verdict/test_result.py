"""What a verdict has in common with oh-my-knowledge 0.54.0 (omk), which made all the expected numbers.

`source` in the data file says how. That tool's order of rules is an oracle here: one case for each of its branches.
"""

import math

import pytest

from evalcube.stages.analyze.verdict.composite import check_layers, half_away
from evalcube.stages.analyze.verdict.measures import split_holdout
from evalcube.stages.analyze.verdict.result import exit_code
from tests.cases import with_cases
from tests.oracles import omk054 as rules
from tests.stages.analyze.verdict.omk import GOLDEN, report_of


def equal_or_undefined(value, expected, tolerance=1e-9):
    return (
        math.isnan(value)
        if expected is None
        else value == pytest.approx(expected, abs=tolerance, rel=tolerance)
    )


def test_rounding__equals_that_of_omk():
    assert [half_away(case["x"], 2) for case in GOLDEN["rounding"]["round2"]] == [
        case["y"] for case in GOLDEN["rounding"]["round2"]
    ]


@with_cases("case", GOLDEN["layer_gates"])
def test_gate__is_that_of_omk(case):
    means, threshold = case["input"]["layer_means"], case["input"]["threshold"]

    assert rules.gate_passes(means, threshold) == case["expected"]["pass"]
    assert check_layers(means, threshold).passes == case["expected"]["pass"]


@with_cases("case", GOLDEN["holdout_split"])
def test_split_holdout__equals_that_of_omk(case):
    ids, expected = case["input"]["ids"], case["expected"]

    split = split_holdout(ids, case["input"]["ratio"])

    if expected is None:
        assert split is None
    else:
        assert [ids[place] for place in split.holdout] == expected["holdout"]
        assert [ids[place] for place in split.train] == expected["train"]


@with_cases("case", GOLDEN["verdict_rules"])
def test_decide__equals_that_of_omk(case):
    given, expected = case["input"], case["expected"]

    found = rules.decide(report_of(given))

    assert (found.decision.verdict, found.decision.branch) == (expected["verdict"], expected["branch"])
    assert exit_code(found.decision.verdict, gate_passed=found.gate_passed) == expected["exit_code"]
    assert found.representative == (
        None if expected["representative"] is None else tuple(expected["representative"].values())
    )
    for (pair, decision, dissent), pair_expected in zip(found.pairs, expected["per_pair"], strict=True):
        assert (pair.control, pair.treatment) == (pair_expected["control"], pair_expected["treatment"])
        assert (decision.verdict, decision.branch) == (pair_expected["verdict"], pair_expected["branch"])
        assert (dissent and dissent.variant) == pair_expected.get("dissent_variant")
        assert (dissent and dissent.pearson) == pair_expected.get("dissent_pearson")
    assert equal_or_undefined(found.median_cv, expected["median_cv"])


def test_exit_code__as_the_command_line_was_seen_to_answer():
    rows = dict(map(tuple, GOLDEN["cli_exit_codes_observed"]["rows"]))

    for level in ("PROGRESS", "REGRESS", "CAUTIOUS", "NOISE", "UNDERPOWERED"):
        assert exit_code(level, gate_passed=True) == rows[level]
    assert exit_code("SOLO", gate_passed=True) == rows["SOLO, gate passed"]
    assert exit_code("SOLO", gate_passed=False) == rows["SOLO, gate failed"]
