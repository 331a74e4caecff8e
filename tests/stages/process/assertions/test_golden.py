from __future__ import annotations

from typing import Any

import pytest

from stages.process.assertions import (
    LayeredScores,
    evaluate,
    flat_score,
    layered_scores,
    parse_assertions,
    similarity,
    with_fact_check,
)
from stages.process.assertions.model import layer_of
from stages.rounding import half_away
from tests.stages.process.assertions.golden import VECTORS, context_of, graded_of


@pytest.mark.parametrize("vector", VECTORS["rounding"]["round2"], ids=lambda vector: str(vector["x"]))
def test_half_away__is_the_tools_rounding(vector: dict[str, float]) -> None:
    assert half_away(vector["x"], 2) == vector["y"]


def test_layer_of__is_the_tools_table() -> None:
    table = VECTORS["assertion_classes"]["layer"]

    assert {kind: layer_of(kind) for kind in table} == table
    assert layer_of("assert-set") is None
    assert layer_of("no_such_type") is None


@pytest.mark.parametrize("vector", VECTORS["assertion_eval"], ids=lambda vector: vector["id"])
def test_evaluate__grades_as_the_tool(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]

    assertions = parse_assertions(given["assertions"], profile="omk054")
    graded = evaluate(assertions, context_of(given["output"], given["context"]), profile="omk054")
    scores = layered_scores(graded, profile="omk054")

    assert [one.passed for one in graded] == expected["passed"]
    assert [one.layer for one in graded] == expected["layer"]
    assert flat_score(graded, profile="omk054") == expected["flat_score"]
    assert (scores.fact, scores.behavior) == (expected["fact"], expected["behavior"])


@pytest.mark.parametrize("vector", VECTORS["layered_scores"], ids=lambda vector: vector["id"])
def test_layered_scores__are_the_tools(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]

    scores = layered_scores(graded_of(given["assertions"]), given["llm_score"], profile="omk054")

    assert (scores.fact, scores.behavior, scores.judge) == (
        expected["fact"],
        expected["behavior"],
        expected["judge"],
    )
    assert scores.composite == (expected["composite"] or None)  # the tool writes 0 for missing
    assert [str(layer.name).lower() for layer in scores.layers] == expected["layers"]


@pytest.mark.parametrize("vector", VECTORS["fact_check_merge"])
def test_with_fact_check__merges_as_the_tool(vector: dict[str, Any]) -> None:
    given = vector["input"]
    before = LayeredScores(given["fact"], given["behavior"], given["judge"], given["composite_before"])

    after = with_fact_check(before, given["verified_rate"], given["claim_count"], profile="omk054")

    assert {
        "fact": after.fact,
        "behavior": after.behavior,
        "judge": after.judge,
        "composite": after.composite,
    } == vector["expected"]


@pytest.mark.parametrize("vector", VECTORS["similarity_metrics"])
@pytest.mark.parametrize("profile", ["omk054", "reference"])
def test_similarity__measures_as_the_tool(vector: dict[str, Any], profile: Any) -> None:
    candidate, reference = vector["input"]["candidate"], vector["input"]["reference"]

    measured = {
        "rouge1": similarity.rouge_n(candidate, reference, 1, profile),
        "rouge2": similarity.rouge_n(candidate, reference, 2, profile),
        "bleu4": similarity.bleu(candidate, reference, 4, profile),
        "bleu2": similarity.bleu(candidate, reference, 2, profile),
        "levenshtein": similarity.levenshtein(candidate, reference),
    }

    assert measured == pytest.approx(vector["expected"], rel=1e-14)
