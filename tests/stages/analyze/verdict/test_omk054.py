"""The parts of a verdict agree with oh-my-knowledge 0.54.0 (omk), which made all the expected numbers.

`source` in the data file says how. What omk reports beyond a verdict is worked out in `omk_report`, for tests only.
"""

import math

import numpy as np
import pytest

from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.analyze.verdict.gates import layer_gate
from evalcube.stages.analyze.verdict.holdout import split_holdout
from evalcube.stages.analyze.verdict.omk054 import bootstrap as boot
from evalcube.stages.analyze.verdict.omk054 import judges, rules, ttest
from evalcube.stages.analyze.verdict.omk054.mulberry import drawn_places
from evalcube.stages.analyze.verdict.result import exit_code
from evalcube.stages.analyze.verdict.rounding import half_away, round4
from tests.stages.analyze.verdict import omk_report, omk_samples
from tests.stages.analyze.verdict.omk import GOLDEN, named, number, report_of


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
    assert [round4(case["x"]) for case in GOLDEN["rounding"]["round4"]] == [
        case["y"] for case in GOLDEN["rounding"]["round4"]
    ]


@pytest.mark.parametrize("case", GOLDEN["rng_draws"])
def test_drawn_places__equals_that_of_omk(case):
    given = case["input"]

    places = drawn_places(given["length"], given["resamples"], seed=given["seed"])

    expected = case["expected"]["first_indices_per_resample"]
    assert [row[: len(first)].tolist() for row, first in zip(places, expected, strict=True)] == expected


def bootstrap_of(case):
    given = case["input"]
    options = {"alpha": given["alpha"], "draws": given["resamples"], "seed": given["seed"]}
    if case["kind"] == "mean":
        return boot.mean_interval(given["x"], **options)
    if case["kind"] == "metric":
        metric = {"median": np.median, "sample_sd": lambda drawn: drawn.std(ddof=1)}[given["metric"]]
        return omk_report.metric_interval(given["x"], lambda drawn: float(metric(drawn)), **options)
    make = {"paired_diff": boot.paired_difference, "unpaired_diff": omk_report.unpaired_difference}[
        case["kind"]
    ]
    return make(given["control"], given["treatment"], **options)


@pytest.mark.parametrize(
    "case", GOLDEN["bootstrap"]["cases"], ids=[case["id"] for case in GOLDEN["bootstrap"]["cases"]]
)
def test_bootstrap__equals_that_of_omk(case):
    found, expected = bootstrap_of(case), case["expected"]

    assert (found.low, found.high, found.estimate) == (
        expected["low"],
        expected["high"],
        expected["estimate"],
    )
    assert found.draws == expected["resamples"]
    assert found.significant == expected.get("significant", False)


def test_paired_difference__depends_on_the_order_of_units_as_in_omk():
    given = next(case for case in GOLDEN["bootstrap"]["cases"] if case["id"] == "pair_10")["input"]
    back = boot.paired_difference(given["control"][::-1], given["treatment"][::-1])

    assert [back.low, back.high] == GOLDEN["bootstrap"]["order_demo"]["reversed"]


@pytest.mark.parametrize("case", GOLDEN["evolve_intervals"])
def test_unpaired_difference__gives_the_intervals_of_its_rewriting_loop(case):
    given, expected = case["input"], case["expected"]

    found = omk_report.unpaired_difference(
        given["best"], given["candidate"], alpha=given["alpha"], seed=given["seed"]
    )

    assert (found.low, found.high, found.significant) == (
        expected["low"],
        expected["high"],
        expected["significant"],
    )


@pytest.mark.parametrize("case", GOLDEN["ci_label"])
def test_level_label__equals_that_of_omk(case):
    assert omk_report.level_label(case["alpha"]) == case["label"]


@pytest.mark.parametrize("case", **named("statistics"))
def test_statistics__equals_that_of_omk(case):
    a, b, expected = case["input"]["a"], case["input"]["b"], case["expected"]

    test, size, interval = omk_report.welch(a, b), omk_report.effect(a, b), ttest.mean_interval(a)

    assert (test.t, test.df, test.significant) == (expected["t"], expected["df"], expected["significant"])
    assert test.bucket == expected["p_bucket"]
    assert [size.cohens_d, size.hedges_g, size.primary, size.magnitude, size.pooled_sd] == [
        expected[name] for name in ("cohens_d", "hedges_g", "primary", "magnitude", "pooled_sd")
    ]
    assert interval == ttest.MeanInterval(*(expected["ci_a"][name] for name in ("mean", "low", "high", "sd")))


@pytest.mark.parametrize("case", GOLDEN["p_buckets"])
def test_p_bucket__equals_that_of_omk(case):
    assert omk_report.p_bucket(case["t"], case["df"]) == case["bucket"]


@pytest.mark.parametrize("case", **named("judge_agreement"))
def test_judge_agreement__equals_that_of_omk(case):
    found, expected = judges.judge_agreement(case["input"]["judge_scores"]), case["expected"]

    assert equal_or_undefined(found.pearson, expected["pearson"])
    assert (found.mad, found.pairs) == (expected["mad"], expected["pair_count"])


@pytest.mark.parametrize("case", **named("agreement_ci"))
def test_gold_agreement__equals_that_of_omk(case):
    given, expected = case["input"], case["expected"]
    options = {"level_alpha": given["level_alpha"], "draws": given["resamples"], "seed": given["seed"]}
    scale = (given["scale"]["min"], given["scale"]["max"])

    found = omk_report.tool_gold_agreement(given["coder_a"], given["coder_b"], scale=scale, **options)

    assert (found.alpha, found.kappa, found.pearson, found.units) == tuple(
        expected[name] for name in ("alpha", "kappa", "pearson", "n")
    )
    # a draw without variance is NaN in the tool and upsets its sort; those intervals cannot be reproduced
    if case["exact"]:
        assert (found.low, found.high) == (expected["ci_low"], expected["ci_high"])
    assert found.low <= found.alpha <= found.high


@pytest.mark.parametrize("case", **named("gold_compare"))
def test_gold_compare__equals_that_of_omk(case):
    given, expected = case["input"], case["expected"]
    gold, judged = given["gold"], {name: number(value) for name, value in given["judge_layer"].items()}
    both = [name for name in gold if not math.isnan(judged.get(name, math.nan))]

    found = omk_report.tool_gold_agreement([gold[name] for name in both], [judged[name] for name in both])

    assert (found.units, found.alpha, found.kappa, found.pearson) == tuple(
        expected[name] for name in ("n", "alpha", "kappa", "pearson")
    )
    assert omk_report.same_source(given["annotator"], given["judges"]) == expected["contaminated"]


@pytest.mark.parametrize("case", **named("layer_gates"))
def test_gate__is_that_of_omk_in_both_engines(case):
    means, threshold = case["input"]["layer_means"], case["input"]["threshold"]

    assert rules.gate_passes(means, threshold) == case["expected"]["pass"]
    assert layer_gate(means, threshold).passed == case["expected"]["pass"]


@pytest.mark.parametrize("case", **named("saturation"))
def test_saturation__equals_that_of_omk(case):
    given, expected = case["input"], case["expected"]

    found = omk_report.tool_saturation(
        given["runs"],
        method=given["method"],
        threshold=given["threshold"],
        window=given["window"],
        draws=given["resamples"],
        seed=given["seed"],
    )

    assert (found.saturated, found.at, found.confidence, found.threshold) == tuple(
        expected[name] for name in ("saturated", "at_n", "confidence", "threshold")
    )
    trace = [(n, change if math.isfinite(change) else None) for n, change in found.trace]
    assert trace == [(point["n"], point["metric"]) for point in expected["trace"]]


@pytest.mark.parametrize("case", GOLDEN["holdout_split"])
def test_split_holdout__equals_that_of_omk(case):
    ids, expected = case["input"]["ids"], case["expected"]

    split = split_holdout(ids, case["input"]["ratio"])

    if expected is None:
        assert split is None
    else:
        assert [ids[place] for place in split.holdout] == expected["holdout"]
        assert [ids[place] for place in split.train] == expected["train"]


@pytest.mark.parametrize("case", GOLDEN["power_warnings"])
def test_power_warnings__equals_that_of_omk(case):
    found, expected = (
        omk_samples.power_warnings(case["input"]["n"], case["input"]["repeat"]),
        case["expected"],
    )

    assert (found.tiny, found.small, found.single_run) == (
        expected["tiny"],
        expected["small"],
        expected["repeat_one"],
    )


@pytest.mark.parametrize("case", GOLDEN["sample_health"])
def test_sample_health__equals_that_of_omk(case):
    samples = [
        omk_samples.Sample(
            f"s{place}",
            tuple(row["s"]),
            tuple(row.get("ok", [True] * len(row["s"]))),
            cost=row.get("c", 0.01),
            latency=row.get("l", 1000),
            judge_sd=row.get("sd", 0.0),
        )
        for place, row in enumerate(case["input"]["rows"])
    ]

    found = omk_samples.sample_health(samples)

    assert found.score == case["expected"]["health"]
    assert [[issue.sample, issue.severity, issue.kind] for issue in found.issues] == case["expected"][
        "issues"
    ]


@pytest.mark.parametrize("case", **named("verdict_rules"))
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


@pytest.mark.parametrize("case", **named("verdict_rules"))
def test_decide__has_the_caveats_of_omk(case):
    given, expected = case["input"], case["expected"]
    meta = given.get("judge_meta", {})

    gaps = {
        name: omk_report.Gap(gap["gapRate"], bool(gap.get("testSetPath") or gap.get("testSetHash")))
        for name, gap in given.get("gap", {}).items()
    }

    report = report_of(given)
    found = rules.decide(report)

    assert found.overfitting == (
        expected["overfitting"] and pytest.approx(tuple(expected["overfitting"].values()))
    )
    assert omk_report.gap_signal(report, gaps) == (
        expected["gap_signal"] and tuple(expected["gap_signal"].values())
    )
    judging = [judge["executor"] for judge in meta.get("judgeModels", [])]
    exposed = omk_report.self_preference(
        [meta["executor"]] if meta else [], judging, calibrated="humanAgreement" in meta
    )
    assert exposed == expected["self_preference_note"]


def test_exit_code__as_the_command_line_was_seen_to_answer():
    rows = dict(map(tuple, GOLDEN["cli_exit_codes_observed"]["rows"]))

    for level in ("PROGRESS", "REGRESS", "CAUTIOUS", "NOISE", "UNDERPOWERED"):
        assert exit_code(level, gate_passed=True) == rows[level]
    assert exit_code("SOLO", gate_passed=True) == rows["SOLO, gate passed"]
    assert exit_code("SOLO", gate_passed=False) == rows["SOLO, gate failed"]
    assert exit_code("REGRESS", gate_passed=True, report_only=True) == rows["REGRESS with --report-only"]


def test_self_preference__several_judges_of_one_vendor_do_not_check_each_other():
    assert omk_report.self_preference(["claude"], ["openai-api", "codex"])
    assert not omk_report.self_preference(["claude"], ["openai-api", "claude-sdk"])
    assert not omk_report.self_preference(["claude"], ["anthropic-api"], calibrated=True)
    assert not omk_report.self_preference(["claude"], ["anthropic-api"], judged=False)


def test_verdict__one_pair_has_no_interval_and_is_decided_by_its_point_estimate():
    """The tool makes intervals of two pairs and more: `aggregateReport` of 0.54.0."""
    layers = np.full((2, 24, 3), 4.0)
    layers[1] = np.nan
    layers[1, 0] = 4.6

    found = verdict(layers, ["a", "b"], [str(place) for place in range(24)], engine="omk054")

    assert (found.verdict, found.branch, found.exit_code) == ("CAUTIOUS", "no_ci_positive", 1)
    assert found.pairs[0].composite is None


@pytest.mark.parametrize("measured", [0, 1])
def test_verdict__a_treatment_that_produced_nothing_does_not_share_alpha(measured):
    rng = np.random.default_rng(0)
    layers = np.clip(rng.normal(4.0, 0.3, (3, 24, 3)), 1, 5)
    layers[2, measured:] = np.nan
    units = [str(place) for place in range(24)]

    found = verdict(layers, ["a", "b", "c"], units, engine="omk054")
    alone = verdict(layers[:2], ["a", "b"], units, engine="omk054")

    assert [pair.treatment for pair in found.pairs] == ["b"]
    assert found.pairs[0].composite == alone.pairs[0].composite
    assert found.pairs[0].composite.alpha == 0.05
    assert found.notes == ("c takes no part in the verdict: it shares fewer than two measured units with a",)
