from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.assertions import Graded, LayeredScores, layered_scores


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
    assert scores == LayeredScores(scores.fact, None, 4.0)


def test_layered_scores__without_any_layer_are_missing() -> None:
    assert layered_scores([]) == LayeredScores()
    assert layered_scores(graded(None, True)) == LayeredScores()


@pytest.mark.parametrize("judge", [None, math.nan, 0.0, -1.0])
def test_layered_scores__failed_judge_is_no_layer(judge: float | None) -> None:
    assert layered_scores(graded("fact", True), judge) == LayeredScores(fact=5.0)


@given(GRADED, JUDGE)
def test_layered_scores__lie_from_one_to_five(assertions: list[Graded], judge: float | None) -> None:
    scores = layered_scores(assertions, judge)

    assert scores.judge == judge
    for layer, score in (("fact", scores.fact), ("behavior", scores.behavior)):
        passed = {one.passed for one in assertions if one.layer == layer}
        assert (score is None) == (not passed)
        assert score is None or 1 <= score <= 5
        assert score != 5 or False not in passed
        assert score != 1 or True not in passed


@given(GRADED, JUDGE, st.randoms(use_true_random=False))
def test_layered_scores__do_not_depend_on_order(
    assertions: list[Graded], judge: float | None, rng: object
) -> None:
    shuffled = list(assertions)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]

    assert layered_scores(shuffled, judge) == layered_scores(assertions, judge)
