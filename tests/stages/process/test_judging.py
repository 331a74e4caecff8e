from __future__ import annotations

import json
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.judging import combine_judges, read_judge
from tests.cases import with_cases
from tests.growth import grows_in_proportion
from tests.stages.process.assertions.golden import VECTORS, rounded
from tests.strategies import hostile_text

SCORES = st.none() | st.integers(1, 5)


# The tool takes any number above 0 for a score; here one is a whole number from 1 to 5.
NO_SCORES = (7, 3.5)


@with_cases("vector", VECTORS["judge_parse"])
def test_read_judge__reads_as_the_tool(vector: dict[str, Any]) -> None:
    expected = vector["expected"]

    score = read_judge(vector["input"]["judge_text"]).score

    missing = expected["counts_as_missing"] or expected["score"] in NO_SCORES
    assert score == (None if missing else expected["score"])


@with_cases("vector", VECTORS["judge_repeat"])
def test_combine_judges__combines_repeats_as_the_tool(vector: dict[str, Any]) -> None:
    score = combine_judges([vector["input"]["readings"]])

    assert (rounded(score) or 0) == vector["expected"]["score"]


@with_cases("vector", VECTORS["judge_ensemble_sample"])
def test_combine_judges__combines_as_the_tool(vector: dict[str, Any]) -> None:
    readings, expected = vector["input"]["readings_per_judge"], vector["expected"]

    assert rounded(combine_judges(readings)) == (expected["consensus"] or None)
    assert [rounded(combine_judges([row])) or 0 for row in readings] == expected["per_judge"]
    # The tool compares a judge that failed as if it had said 0, and so does the verdict's engine of its name.


@with_cases(
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


@given(hostile_text() | PIECES)
def test_read_judge__never_breaks(text: str) -> None:
    reading = read_judge(text)

    assert (reading.score is None) == bool(reading.failure)
    assert reading.score in {None, 1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize("piece", ["{", '{"a":', "[{ 1:[{", '{"score" '])
def test_read_judge__takes_linear_time(piece: str) -> None:
    assert grows_in_proportion(lambda size: read_judge(piece * (size // len(piece))), 120_000)


@given(st.lists(st.lists(SCORES, max_size=4), max_size=4))
def test_combine_judges__is_the_mean_of_the_judges_means(readings: list[list[int | None]]) -> None:
    rows = [[score for score in row if score is not None] for row in readings]
    means = [statistics.mean(row) for row in rows if row]

    assert combine_judges(readings) == (pytest.approx(statistics.mean(means)) if means else None)


@pytest.mark.parametrize("failed", [None, 0, -2, math.nan])
def test_combine_judges__failure_is_not_nought(failed: float | None) -> None:
    assert combine_judges([[failed, 5]]) == 5.0
    assert combine_judges([[failed], [3, 4]]) == 3.5
    assert combine_judges([[failed]]) is None
