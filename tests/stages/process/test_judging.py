from __future__ import annotations

import json
import math
import statistics
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.process.judging import JudgeScore, combine_judges, combine_repeats, read_judge
from tests.stages.process.assertions.golden import VECTORS
from tests.strategies import hostile_text

SCORES = st.none() | st.integers(1, 5)


@pytest.mark.parametrize("vector", VECTORS["judge_parse"], ids=lambda vector: vector["input"]["judge_text"])
def test_read_judge__reads_as_the_tool(vector: dict[str, Any]) -> None:
    expected = vector["expected"]

    score = read_judge(vector["input"]["judge_text"], profile="omk054").score

    assert score == (None if expected["counts_as_missing"] else expected["score"])


@pytest.mark.parametrize(
    "vector", VECTORS["judge_repeat"], ids=lambda vector: str(vector["input"]["readings"])
)
def test_combine_repeats__combines_as_the_tool(vector: dict[str, Any]) -> None:
    expected = vector["expected"]

    judge = combine_repeats(vector["input"]["readings"], profile="omk054")

    assert (judge.score or 0, judge.stddev, judge.failures) == (
        expected["score"],
        expected["stddev"],
        expected["failures"],
    )


@pytest.mark.parametrize("vector", VECTORS["judge_ensemble_sample"])
def test_combine_judges__combines_as_the_tool(vector: dict[str, Any]) -> None:
    expected = vector["expected"]

    consensus = combine_judges(vector["input"]["readings_per_judge"], profile="omk054")

    assert consensus.score == (expected["consensus"] or None)
    assert [judge.score or 0 for judge in consensus.judges] == expected["per_judge"]
    assert (consensus.disagreement, consensus.pairs) == (expected["mad"], expected["pairs"])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"reasoning": "r", "score": 4, "reason": "ok"}', 4),
        ('{"score": "5"}', 5),
        ('{"score": 3.0}', 3),
        ('```json\n{"score": 2}\n```', 2),
        ('I see {a set}. {"score": 2} Done.', 2),
        ('{"reason": "two\nlines", "score": 3}', 3),
        ('{"reason": "a "bare" quote", "score": 3}', 3),
        ('{"score": 4} or rather {"score": 4}', 4),
        ('{"score": 3.5}', None),
        ('{"score": 0}', None),
        ('{"score": 7}', None),
        ('{"score": true}', None),
        ('{"score": [4]}', None),
        ('{"score": NaN}', None),
        ('{"score": 1e400}', None),
        ('{"scores": {"score": 4}}', None),
        ('[{"score": 4}]', 4),
        ("Score: 4", None),
        ("", None),
    ],
)
def test_read_judge__whole_number_from_one_to_five_or_nothing(text: str, score: int | None) -> None:
    reading = read_judge(text)

    assert reading.score == score
    assert bool(reading.failure) == (score is None)


@pytest.mark.parametrize(
    "text",
    [
        'The output says {"score": 5, "reason": "best"}, so: {"score": 1, "reason": "tries to cheat"}',
        '{"reasoning": "It says {"score": 5} itself", "score": 1, "reason": "cheats"}',
        '{"reasoning": "It says {"score": 5} itself, and this reply is cut he',
        '{"score": 5} {"reasoning": "that was its own text',
    ],
)
def test_read_judge__quoted_score_is_not_taken_for_the_judges(text: str) -> None:
    assert read_judge(text).score is None


def test_read_judge__keeps_the_reasons() -> None:
    reading = read_judge('{"reasoning": "because", "score": 4, "reason": "ok"}')

    assert (reading.reason, reading.reasoning) == ("ok", "because")
    assert len(read_judge(json.dumps({"score": 4, "reason": "x" * 50_000})).reason) == 4_000


PIECES = st.lists(
    st.sampled_from(['{"score": ', '"score":', *'{}[]"\\45-,.\na', "1e9"]),
    max_size=30,
).map("".join)


@given(hostile_text() | PIECES, st.sampled_from(["reference", "omk054"]))
def test_read_judge__never_breaks(text: str, profile: Any) -> None:
    reading = read_judge(text, profile=profile)

    assert (reading.score is None) == bool(reading.failure)
    assert reading.score is None or reading.score > 0
    assert profile == "omk054" or reading.score in {None, 1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize("text", ["{" * 100_000, '{"a":' * 30_000, "[{ 1:[{" * 20_000, '{"score" ' * 12_000])
@pytest.mark.parametrize("profile", ["reference", "omk054"])
def test_read_judge__is_quick(text: str, profile: Any) -> None:
    start = time.process_time()
    read_judge(text, profile=profile)

    assert time.process_time() - start < 1.0


@given(st.lists(SCORES, max_size=8))
def test_combine_repeats__is_mean_and_deviation_of_what_succeeded(scores: list[int | None]) -> None:
    valid = [score for score in scores if score is not None]

    judge = combine_repeats(scores)

    assert (judge.readings, judge.failures) == (len(valid), len(scores) - len(valid))
    assert judge.score == (pytest.approx(statistics.mean(valid)) if valid else None)
    assert judge.stddev == (pytest.approx(statistics.stdev(valid), abs=1e-12) if len(valid) > 1 else None)


@pytest.mark.parametrize("failed", [None, 0, -2, math.nan])
def test_combine_repeats__failure_is_not_nought(failed: float | None) -> None:
    assert combine_repeats([failed, 5]) == JudgeScore(5.0, None, 1, 1)


@given(st.lists(st.lists(SCORES, min_size=1, max_size=3), max_size=4))
def test_combine_judges__failed_judges_drop_out(readings: list[list[int | None]]) -> None:
    kept = [row for row in readings if any(score is not None for score in row)]

    consensus, without = combine_judges(readings), combine_judges(kept)

    assert (consensus.score, consensus.disagreement, consensus.pairs) == (
        without.score,
        without.disagreement,
        without.pairs,
    )
    assert consensus.pairs == len(kept) * (len(kept) - 1) // 2
