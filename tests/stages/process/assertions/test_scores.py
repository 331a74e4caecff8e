from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.process.assertions import (
    Graded,
    LayeredScores,
    Layers,
    flat_score,
    layered_scores,
    with_fact_check,
)


def graded(layer: str | None, *passed: bool, weight: float = 1.0) -> list[Graded]:
    return [Graded("contains", layer, weight, one) for one in passed]  # type: ignore[arg-type]


GRADED = st.lists(
    st.builds(
        Graded,
        st.just("contains"),
        st.sampled_from(["fact", "behavior", None]),
        st.floats(1e-3, 1e3),
        st.booleans(),
    ),
    max_size=12,
)
JUDGE = st.none() | st.floats(1, 5)


def test_layered_scores__keep_full_precision() -> None:
    scores = layered_scores(graded("fact", True, True, False), 4.0)

    assert scores.fact == pytest.approx(11 / 3, rel=1e-15)
    assert scores.composite == pytest.approx(23 / 6, rel=1e-15)


def test_layered_scores__without_any_layer_are_missing() -> None:
    assert layered_scores([]) == LayeredScores()
    assert layered_scores(graded(None, True)).composite is None
    assert flat_score([]) is None


@pytest.mark.parametrize("judge", [None, math.nan, 0.0, -1.0])
def test_layered_scores__failed_judge_is_no_layer(judge: float | None) -> None:
    assert layered_scores(graded("fact", True), judge).layers == Layers.FACT


@given(GRADED, JUDGE)
def test_layered_scores__lie_from_one_to_five(assertions: list[Graded], judge: float | None) -> None:
    scores = layered_scores(assertions, judge)
    present = [score for score in (scores.fact, scores.behavior, scores.judge) if score is not None]

    assert all(1 <= score <= 5 for score in present)
    assert len(present) == len(scores.layers)
    assert (scores.composite is None) == (not present)
    if present:
        assert min(present) - 1e-12 <= float(scores.composite or 0) <= max(present) + 1e-12


@given(GRADED, JUDGE, st.randoms(use_true_random=False))
def test_layered_scores__do_not_depend_on_order(
    assertions: list[Graded], judge: float | None, rng: object
) -> None:
    shuffled = list(assertions)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]

    assert layered_scores(shuffled, judge) == layered_scores(assertions, judge)


@given(GRADED, JUDGE)
def test_layered_scores__omk054_is_near_full_precision(assertions: list[Graded], judge: float | None) -> None:
    full, rounded = layered_scores(assertions, judge), layered_scores(assertions, judge, profile="omk054")

    assert rounded.layers == full.layers
    if full.composite is not None and rounded.composite is not None:
        assert rounded.composite == pytest.approx(full.composite, abs=0.0101)


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (LayeredScores(4.5, 4.0, 4.5, 13 / 3), "4.33 (3/3)"),
        (LayeredScores(judge=4.33, composite=4.33), "4.33 (judge only)"),
        (LayeredScores(fact=4.0, judge=5.0, composite=4.5), "4.50 (2/3: fact and judge)"),
        (LayeredScores(), "missing (no layer)"),
    ],
)
def test_layered_scores__text_names_the_layers(scores: LayeredScores, text: str) -> None:
    assert str(scores) == text


def test_with_fact_check__without_claims_changes_nothing() -> None:
    scores = layered_scores(graded("fact", True, False), 4.0)

    assert with_fact_check(scores, 0.5, 0) == scores
    assert with_fact_check(scores, math.nan, 3) == scores
    assert with_fact_check(scores, 1.0, 3).fact == 4.0
