"""JSON schemas: their dialects, and references and numbers without an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evalcube.stages.process.assertions import Context, Graded, evaluate, parse_assertions, schemas


def grade(declared: dict[str, Any], output: str) -> Graded:
    return evaluate(parse_assertions([declared]), Context(output))[0]


"""Seconds of CPU time that nothing here takes a hundredth of unless it goes on for ever."""


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
