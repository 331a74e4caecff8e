"""JSON in replies: the last whole document."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate.answers.documents import json_text, read_json
from tests.cases import with_cases

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@given(value=JSON, indent=st.sampled_from([None, 2]), fence=st.booleans())
def test_read_json__reads_any_value_in_any_layout(value: Any, indent: int | None, fence: bool) -> None:
    written = json.dumps(value, indent=indent)
    text = f"So [1] it is {{2}}.\nAnswer: ```json\n{written}\n```" if fence else f"Answer: {written}"

    assert read_json(text) == json_text(value)


@with_cases(
    ("text", "found"),
    [
        ('Answer: {"b": 1.0, "a": [true, null]}', '{"a": [true, null], "b": 1}'),
        ('Answer: {"note": "the answer is: 5", "n": 1}', '{"n": 1, "note": "the answer is: 5"}'),
        ('Answer: 1\nAnswer: {"x": "Answer: 2"}', '{"x": "Answer: 2"}'),
        ("Answer: [1]\nAnswer: [2]", "[2]"),
        ("It is [1], no, ```json\n[2, 3]\n``` as said.", "[2, 3]"),
        ("**Answer:** `15`.", "15"),
        ("Answer: 15 apples", "15"),
        ("Answer: 15-3", None),
        ("Answer: 1,000", None),
        ("Answer: 15 / 3", None),
        ("Answer: Paris", None),
        ("Answer: {'a': 1}", None),
        ('Sure! {"a": 1}\nLet me know if more is needed.', '{"a": 1}'),
        ("[1, 2], 3]", None),
        ('Answer:\n\n```json\n{"a": 1}\n```\n\nThe key "b" was null.', '{"a": 1}'),
        ('{"a": 1}\n{"a": 2}', None),
        ('Option 1:\n```json\n{"a": 1}\n```\nOption 2:\n```json\n{"a": 2}\n```\nTake either.', None),
        ('Input:\n```json\n{"a": 1}\n```\nOutput:\n```json\n{"a": 2}\n```', '{"a": 2}'),
        ('Here it is: {"a": 1}\n\nExplanation: the value 1 is first.', '{"a": 1}'),
        ('So it is {"a": 1}, as 1 + 1 is 2.', '{"a": 1}'),
        ("Answer: 1,234, 7", None),
        ("Answer: 1,234 or 7", None),
        ("Answer: NaN", None),
        ("Answer: 1e999", None),
    ],
)
def test_read_json__takes_the_last_answer(text: str, found: str | None) -> None:
    assert read_json(text) == found


def test_read_json__truth_is_not_one() -> None:
    assert read_json("Answer: true") != read_json("Answer: 1") == read_json("Answer: 1.0")
    assert json_text({"a": float("inf")}) is None
    assert json_text({1, 2}) is None


@with_cases(
    "text",
    ['{"a": 1', "[1, [2, 3]", '{"a": {"b": 1}', '{"a": 1}}', "[1, 2, ...]", '{"a": 1,}', '"abc', '{"a": [1, 2]\n',
     "12 34", '```json\n{"a": {"b": 1},\n```'],
)  # fmt: skip
@with_cases("frame", ["Answer: %s", "The answer is %s", "%s", "So:\n%s"])
def test_read_json__takes_no_part_for_the_whole(frame: str, text: str) -> None:
    assert read_json(frame % text) is None
