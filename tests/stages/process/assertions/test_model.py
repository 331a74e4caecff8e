from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalcube.stages.analyze.verdict.composite import composite as mean_of_layers
from evalcube.stages.process.assertions import (
    DeclarationError,
    Graded,
    LayeredScores,
    checks,
    evaluate,
    layered_scores,
    parse_assertions,
)
from evalcube.stages.process.assertions.model import layer_of
from tests.cases import with_cases
from tests.stages.process.assertions.golden import OURS, REFUSED, VECTORS, context_of, graded_of, rounded


def composite(scores: LayeredScores) -> float:
    """The mean of rounded layers as a verdict takes it; 0 without any, as the tool writes."""
    layers = [rounded(score) for score in (scores.fact, scores.behavior, scores.judge)]
    (mean,) = mean_of_layers(np.array([layers], dtype=float))
    return 0.0 if np.isnan(mean) else rounded(float(mean))


def flat_score(graded: list[Graded]) -> float:
    """The tool's score over all assertions, whatever their layer: 1 without any."""
    return rounded(layered_scores([replace(one, layer="fact") for one in graded]).fact) or 1.0


def test_layer_of__is_the_tools_table() -> None:
    table = VECTORS["assertion_classes"]["layer"]

    assert {kind: layer_of(kind) for kind in table} == table
    assert layer_of("assert-set") is None
    assert layer_of("no_such_type") is None


@with_cases("vector", VECTORS["assertion_eval"])
def test_evaluate__grades_as_the_tool(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    kept = [place for place, one in enumerate(given["assertions"]) if one.get("value") not in REFUSED]
    whole = len(kept) == len(given["assertions"]) and vector["id"] not in OURS

    assertions = parse_assertions([given["assertions"][place] for place in kept])
    graded = evaluate(assertions, context_of(given["output"], given["context"]))
    scores = layered_scores(graded)

    passed = OURS.get(vector["id"], [expected["passed"][place] for place in kept])
    assert [one.passed for one in graded] == passed
    assert [one.layer for one in graded] == [expected["layer"][place] for place in kept]
    if whole:
        assert flat_score(list(graded)) == expected["flat_score"]
        assert (rounded(scores.fact), rounded(scores.behavior)) == (expected["fact"], expected["behavior"])


def test_parse_assertions__refuses_what_the_tool_lets_never_hold() -> None:
    never = [
        one
        for vector in VECTORS["assertion_eval"]
        for one in vector["input"]["assertions"]
        if one.get("value") in REFUSED
    ]

    assert len(never) == 2
    for one in never:
        with pytest.raises(DeclarationError, match="a tool and a"):
            parse_assertions([one])


@with_cases("vector", VECTORS["layered_scores"])
def test_layered_scores__are_the_tools(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]

    scores = layered_scores(graded_of(given["assertions"]), given["llm_score"])

    by_name = {"fact": scores.fact, "behavior": scores.behavior, "judge": scores.judge}
    assert {name: rounded(score) for name, score in by_name.items()} == {
        name: expected[name] for name in by_name
    }
    assert composite(scores) == expected["composite"]
    assert [name for name, score in by_name.items() if score is not None] == expected["layers"]


@with_cases("vector", VECTORS["fact_check_merge"])
def test_composites__follow_the_layers_after_a_fact_check(vector: dict[str, Any]) -> None:
    expected = vector["expected"]

    scores = LayeredScores(expected["fact"], expected["behavior"], expected["judge"])

    assert composite(scores) == expected["composite"]


@with_cases("vector", VECTORS["similarity_metrics"])
def test_similarity__measures_as_the_tool(vector: dict[str, Any]) -> None:
    candidate, reference = vector["input"]["candidate"], vector["input"]["reference"]

    measured = {
        "rouge1": checks.rouge_n(candidate, reference, 1),
        "rouge2": checks.rouge_n(candidate, reference, 2),
        "bleu4": checks.bleu(candidate, reference, 4),
        "bleu2": checks.bleu(candidate, reference, 2),
        "levenshtein": checks.levenshtein(candidate, reference),
    }

    assert measured == pytest.approx(vector["expected"], rel=1e-14)
