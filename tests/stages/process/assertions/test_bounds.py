"""Outputs made to take for ever, and the dialects of patterns and schemas."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evalcube.stages.process.assertions import Context, Graded, evaluate, parse_assertions, patterns, schemas
from evalcube.stages.process.assertions.documents import DocumentError, parse_document
from evalcube.stages.process.assertions.model import UnmeasuredError


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


@pytest.mark.parametrize(
    ("schema", "note"),
    [({"$ref": "#"}, "recurses too deep"), ({"$ref": "#/$defs/x"}, "a part that it does not have")],
)
def test_json_schema__endless_or_dangling_reference_is_noted(schema: dict[str, Any], note: str) -> None:
    assert note in grade({"type": "json_schema", "schema": schema}, "1").note


def test_json_schema__number_beyond_arithmetic_is_noted() -> None:
    graded = grade({"type": "json_schema", "schema": {"multipleOf": 0.3}}, "1e999")

    assert "cannot be computed with" in graded.note


def test_json_schema__dialect_is_2020_or_the_one_it_names() -> None:
    schema = {"items": {"type": "integer"}, "prefixItems": [{"type": "string"}]}

    assert schemas.conforms(["a", 1], schema)
    named = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    assert not schemas.conforms(["a", 1], named)


SCHEMAS: list[dict[str, Any]] = [
    {"uniqueItems": True},
    {"items": {"uniqueItems": True}},
    {"additionalProperties": False, "properties": {"a": {}}},
    {"additionalProperties": {"type": "integer"}, "patternProperties": {"^a": {"type": "null"}}},
    {"patternProperties": {"b": {"type": "string"}, "^a$": False}},
    {"pattern": "^[ab]*$"},
    {"items": {"anyOf": [{"pattern": "a"}, {"type": "number"}]}},
    {"additionalProperties": {"items": {"type": "boolean"}}},
]
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from([0.0, 1.0, 1.5, "", "a", "ab", "c"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "ab", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(SCHEMAS), DOCUMENTS)
def test_conforms__agrees_with_the_unbounded_library(schema: dict[str, Any], document: object) -> None:
    assert schemas.conforms(document, schema) is Draft202012Validator(schema).is_valid(document)


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "", "{'a': 1}", "\ufeff1", "1 2", "[" * 101 + "]" * 101, " " * 2_000_001]
)
def test_parse_document__refuses(text: str) -> None:
    with pytest.raises(DocumentError):
        parse_document(text)


def test_parse_document__takes_what_json_allows() -> None:
    assert parse_document("[" * 100 + "]" * 100)
    assert parse_document("9" * 5_000) == float("inf")
    assert parse_document(' {"a": 1, "a": 2}\n') == {"a": 2}
    assert parse_document(r'"\ud800"') == "\ud800"


# What each does in JavaScript, by ECMA-262 (no engine was run).
@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
