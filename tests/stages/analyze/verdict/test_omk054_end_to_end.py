"""Whole reports agree with those of oh-my-knowledge 0.54.0 (omk), from its summaries to its verdict."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.analyze.verdict.omk054 import Settings, evaluate
from evalcube.stages.analyze.verdict.omk054.rules import decide
from evalcube.stages.analyze.verdict.result import exit_code
from tests.stages.analyze.verdict import omk_report
from tests.stages.analyze.verdict.omk import GOLDEN, named, scores_of

each_report = pytest.mark.parametrize("case", **named("verdict_end_to_end"))


def settings_of(options):
    return Settings(
        threshold=options.get("gate_threshold", 3.5),
        trivial=options.get("trivial_diff", 0.1),
        holdout_ratio=options.get("holdout_ratio", 0.0),
    )


def evaluated(case):
    found = evaluate(scores_of(case["input"]), settings_of(case["input"]["options"]))
    if case["input"]["options"].get("bootstrap", True):
        return found
    report = replace(found.report, pairs=())  # the tool's --no-bootstrap: rules without intervals
    return replace(found, report=report, outcome=decide(report))


def equal_or_undefined(value, expected, tolerance=1e-9):
    if expected is None:
        return value is None or math.isnan(value)
    return value == pytest.approx(expected, abs=tolerance, rel=tolerance)


@each_report
def test_evaluate__has_omks_verdict(case):
    expected = case["expected"]

    outcome = evaluated(case).outcome

    assert (outcome.decision.verdict, outcome.decision.branch) == (expected["verdict"], expected["branch"])
    assert exit_code(outcome.decision.verdict, gate_passed=outcome.gate_passed) == expected["exit_code"]
    assert [(decision.verdict, decision.branch) for _, decision, _ in outcome.pairs] == [
        (pair["verdict"], pair["branch"]) for pair in expected["per_pair"]
    ]
    assert equal_or_undefined(outcome.median_cv, expected["median_cv"], 1e-6)
    overfitting = outcome.overfitting and dict(zip(("variant", "gap"), outcome.overfitting, strict=True))
    assert overfitting == (expected["overfitting"] and pytest.approx(expected["overfitting"], abs=1e-9))


@each_report
def test_evaluate__has_omks_summaries(case):
    found = evaluated(case)

    for name, expected in case["expected"]["variants"].items():
        summary = found.summaries[name]
        assert (summary.entries, summary.finished) == (expected["n_entries"], expected["n_ok"])
        for metric in (*LAYERS, "composite"):
            assert summary.means.get(metric) == expected[metric]
        assert equal_or_undefined(summary.lowest, expected["min_composite"])
        assert equal_or_undefined(summary.highest, expected["max_composite"])
        assert equal_or_undefined(summary.between_sd, expected["between_sample_sd"])
        agreement = summary.agreement
        assert equal_or_undefined(agreement.pearson if agreement else math.nan, expected["judge_pearson"])
        assert equal_or_undefined(agreement.mad if agreement else math.nan, expected["judge_mad"])
        assert (agreement and agreement.units) == expected["judge_aligned_n"]


@each_report
def test_evaluate__has_omks_intervals(case):
    found, expected = evaluated(case), case["expected"]

    assert [
        (
            p.control,
            p.treatment,
            p.interval.estimate,
            p.interval.low,
            p.interval.high,
            p.interval.significant,
            p.alpha,
        )
        for p in found.report.pairs
    ] == [tuple(pair.values()) for pair in expected["pairs"]]
    intervals = omk_report.mean_intervals(scores_of(case["input"]))
    if not case["input"]["options"].get("bootstrap", True):
        intervals = {}
    for name, variant in expected["variants"].items():
        interval = intervals.get(name)
        wanted = variant["mean_ci"]
        assert (wanted is None) == (interval is None)
        if wanted is not None:
            assert (interval.low, interval.high, interval.estimate) == tuple(wanted.values())


@each_report
def test_evaluate__has_omks_runs(case):
    found, expected = evaluated(case), case["expected"]

    assert (expected["run_stats"] is None) == (not found.run_stats)
    for name, wanted in (expected["run_stats"] or {}).items():
        stats = found.run_stats[name]
        assert run_stats(stats["composite"]) == {key: wanted[key] for key in ("run_means", "mean", "sd")}
        assert (stats["composite"].interval.low, stats["composite"].interval.high) == (
            wanted["low"],
            wanted["high"],
        )
        for layer, own in wanted["layers"].items():
            assert run_stats(stats[layer]) == own
    for comparison, wanted in zip(
        comparisons(found, "composite"), expected["run_comparisons"] or [], strict=True
    ):
        assert compared(comparison) == {key: wanted[key] for key in compared(comparison)}
        for layer, own in wanted["layers"].items():
            assert by_layer(found, layer, comparison) == own


def comparisons(found, metric):
    return omk_report.run_comparisons(
        {name: stats[metric] for name, stats in found.run_stats.items() if metric in stats}
    )


def run_stats(stats):
    return {"run_means": list(stats.run_means), "mean": stats.interval.mean, "sd": stats.interval.sd}


def compared(comparison):
    return {
        "a": comparison.a,
        "b": comparison.b,
        "mean_diff_a_minus_b": comparison.mean_difference,
        "t": comparison.test.t,
        "df": comparison.test.df,
        "significant": comparison.test.significant,
        "cohens_d": comparison.effect.cohens_d,
        "hedges_g": comparison.effect.hedges_g,
        "magnitude": comparison.effect.magnitude,
    }


def by_layer(found, layer, comparison):
    own = next(c for c in comparisons(found, layer) if (c.a, c.b) == (comparison.a, comparison.b))
    return {
        "mean_diff": own.mean_difference,
        "t": own.test.t,
        "df": own.test.df,
        "significant": own.test.significant,
    }


@each_report
def test_evaluate__has_omks_saturation_and_holdout(case):
    found, expected = evaluated(case), case["expected"]

    assert {
        name: {"saturated": curve.saturated, "at_n": curve.at, "confidence": curve.confidence}
        for name, curve in found.saturation.items()
    } == (expected["saturation"] or {})
    checkpoints = omk_report.checkpoints(scores_of(case["input"]))
    assert checkpoints == (expected["saturation_checkpoints"] or [])
    wanted = (expected["holdout"] or {"per_variant": {}})["per_variant"]
    assert set(found.report.holdout) == set(wanted)
    for name, part in found.report.holdout.items():
        assert (part.train, part.holdout, part.train_scorable, part.holdout_scorable) == tuple(
            wanted[name][key] for key in ("trainScore", "holdoutScore", "trainScorable", "holdoutScorable")
        )
        assert len(found.split.train) == wanted[name]["trainCount"]


@each_report
def test_self_preference__is_noted_where_omk_notes_it(case):
    given = case["input"]
    judging = [judge["executor"] for judge in given.get("judges", [])]

    exposed = omk_report.self_preference([given["executor"]] if judging else [], judging)

    assert exposed == case["expected"]["self_preference_note"]


@pytest.mark.parametrize("case", [case for case in GOLDEN["verdict_end_to_end"] if case["expected"]["pairs"]])
def test_verdict__the_public_entry_answers_the_same(case):
    given, expected = case["input"], case["expected"]
    scores, settings = scores_of(given), settings_of(given["options"])

    found = verdict(
        scores.layers,
        scores.variants,
        scores.units,
        judges=scores.judges,
        ok=scores.ok,
        entries=scores.entries,
        engine="omk054",
        threshold=settings.threshold,
        trivial=settings.trivial,
        holdout_ratio=settings.holdout_ratio,
    )

    assert (found.verdict, found.branch, found.exit_code) == tuple(
        expected[key] for key in ("verdict", "branch", "exit_code")
    )
    assert [pair.composite.estimate for pair in found.pairs] == [
        pair["estimate"] for pair in expected["pairs"]
    ]
    assert [arm.units > 0 for arm in found.arms] == [not np.isnan(arm.composite) for arm in found.arms]
