"""Outputs made to take for ever, and the dialects of patterns and schemas."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.assertions import Context, Graded, evaluate, parse_assertions, patterns, schemas
from evalcube.stages.process.assertions.model import UnmeasuredError
from tests.cases import with_cases


def grade(declared: dict[str, Any], output: str) -> Graded:
    return evaluate(parse_assertions([declared]), Context(output))[0]


def timed_grade(declared: dict[str, Any], output: str) -> tuple[Graded, float]:
    """The grade and the seconds of CPU time that it took."""
    start = time.process_time()
    graded = grade(declared, output)
    return graded, time.process_time() - start


HANGS = 60.0


"""Seconds of CPU time that nothing here takes a hundredth of unless it goes on for ever."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds as short as a test should be."""
    monkeypatch.setattr(schemas, "SECONDS", 0.05)
    monkeypatch.setattr(patterns, "SECONDS", 0.05)


TREE = {"properties": {"a": {"$ref": "#/$defs/n"}}}


FOREVER = [
    ({"type": "regex", "pattern": "(a+)+$"}, "a" * 20_000 + "b"),
    ({"type": "regex", "pattern": r"\s+$"}, " " * 300_000 + "x"),
    (
        {
            "type": "json_schema",
            "schema": {
                "$defs": {"n": {"anyOf": [{**TREE, "required": ["b"]}, {**TREE, "required": ["c"]}]}},
                "$ref": "#/$defs/n",
            },
        },
        '{"a":' * 60 + "{}" + "}" * 60,
    ),
    (
        {"type": "json_schema", "schema": {"items": {"type": "integer", "minimum": 0}}},
        f"[{'1,' * 200_000}1]",
    ),
    (
        {"type": "json_schema", "schema": {"items": {"pattern": "(x+x+)+y"}}},
        json.dumps(["x" * 5_000] * 50),
    ),
    (
        {"type": "json_schema", "schema": {"patternProperties": {"(x+x+)+y": {}}}},
        json.dumps({"x" * 5_000: 1}),
    ),
    (
        {
            "type": "json_schema",
            "schema": {"patternProperties": {"(x+x+)+y": {}}, "additionalProperties": {}},
        },
        json.dumps({"x" * 5_000: 1}),
    ),
]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(("declared", "output"), FOREVER)
def test_evaluate__gives_up_in_time_and_says_so(declared: dict[str, Any], output: str) -> None:
    graded, seconds = timed_grade(declared, output)

    assert seconds < HANGS
    assert not graded.passed
    assert "on this output" in graded.note


@pytest.mark.parametrize(
    ("declared", "output"),
    [
        (
            {"type": "json_schema", "schema": {"uniqueItems": True}},
            json.dumps([item for n in range(20_000) for item in (n, str(n), [n])]),
        ),
        ({"type": "levenshtein_max", "reference": "ab" * 2_000, "value": 20_000}, "ba" * 12_000),
        ({"type": "levenshtein_max", "reference": "ab" * 10_000, "value": 100}, "ba" * 1_000_000),
        ({"type": "json_valid"}, "[" * 1_000_000),
        ({"type": "word_count_max", "value": 1}, " a" * 500_000),
        ({"type": "rouge_n_min", "reference": "a b", "n": 2}, "a b " * 100_000),
    ],
)
def test_evaluate__large_outputs_take_linear_time(declared: dict[str, Any], output: str) -> None:
    assert timed_grade(declared, output)[1] < HANGS


# What each does in JavaScript, by ECMA-262 (no engine was run).
@with_cases(
    ("pattern", "text", "found"),
    [
        ("^yes$", "yes\n", False),
        (r"^\d+$", "１２", False),
        (r"^\w+$", "é", False),
        (r"\bé", "é", False),
        (r"a\Bb", "ab", True),
        (r"[\d\s]\ufeff", " \ufeff", True),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x1c", False),
        ("a.b", "a\u2028b", False),
        ("[^]", "\n", True),
        ("[]", "x", False),
        ("[a[]", "[", True),
        ("[^a]", "b", True),
        (r"(?<q>['\"]).\k<q>", "'a'", True),
        (r"(?<q>['\"]).\k<q>", "'a\"", False),
        (r"a\.b\/c", "a.b/c", True),
        (r"(?<!x)a(?=b)", "ab", True),
    ],
)
def test_search_ecmascript__reads_as_javascript(pattern: str, text: str, found: bool) -> None:
    assert patterns.search_ecmascript(pattern, text, seconds=1.0) is found


@with_cases(
    ("pattern", "flags", "text", "found"),
    [
        ("^yes$", "i", "Yes\n", True),
        ("^yes$", "", "Yes", False),
        (r"^\w+$", "", "é", True),
        ("^yes$", "m", "no\nyes\nno", True),
        ("^yes$", "", "no\nyes\nno", False),
        ("a.b", "s", "a\nb", True),
        ("a.b", "", "a\nb", False),
        ("b", "y", "ab", False),
        ("B", "gi", "ab", True),
        (r"(?<!x)a(?=b)", "duv", "ab", True),
    ],
)
def test_search__reads_as_python(pattern: str, flags: str, text: str, found: bool) -> None:
    assert patterns.search(pattern, flags, text, seconds=1.0) is found


def test_search__says_when_it_gave_up() -> None:
    with pytest.raises(UnmeasuredError, match=r"took more than 0\.05 s"):
        patterns.search("(a+)+$", "", "a" * 20_000 + "b", seconds=0.05)


@given(st.text(alphabet="ab\\[]^$.()|*+?{}dwsbBk<>-", max_size=12))
def test_compile_ecmascript__translated_or_refused(pattern: str) -> None:
    try:
        patterns.compile_ecmascript(pattern)
    except patterns.regex.error:
        return
    patterns.search_ecmascript(pattern, "ab[", seconds=1.0)
