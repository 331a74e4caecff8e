"""Calls of tools in replies, and the schemas that they keep."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate.answers.calls import keeps_schema, read_calls
from tests.cases import with_cases
from tests.strategies import hostile_text

CALLS = '[{"arguments": {"x": 1}, "name": "f"}]'


@with_cases(
    ("reply", "read"),
    [
        ('{"name": "f", "arguments": {"x": 1.0}}', CALLS),
        ('{"name": "f", "parameters": {"x": 1}} and nothing else', CALLS),
        ('```json\n[{"name": "f", "arguments": "{\\"x\\": 1}"}]\n```', CALLS),
        (
            'Answer: [{"name": "g", "arguments": {}}] No.\nAnswer: [{"name": "f", "arguments": {"x": 1}}]',
            CALLS,
        ),
        (
            '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n<tool_call>{"name": "g", "arguments": {}}',
            '[{"arguments": {}, "name": "f"}, {"arguments": {}, "name": "g"}]',
        ),
        ('{"name": "f", "arguments": "{\\"x\\": NaN}"}', '[{"arguments": "{\\"x\\": NaN}", "name": "f"}]'),
        (
            '{"name": "f", "arguments": "{\\"x\\": 1, \\"x\\": 2}"}',
            '[{"arguments": "{\\"x\\": 1, \\"x\\": 2}", "name": "f"}]',
        ),
        ('{"name": "f"}', '[{"arguments": null, "name": "f"}]'),
        ('{"name": "f", "description": "Does f.", "parameters": {"type": "object"}}', None),
        ('{"name": "f", "arguments": ' + "[" * 200 + "]" * 200 + "}", None),
        ('{"name": "f", "arguments": {"x": 1e999}}', None),
        ('{"name": 1, "arguments": {}}', None),
        ('{"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]}', CALLS),
        ('[{"name": 5, "arguments": {"x": 1}}, 5]', None),
        ('{"name": "f", "arguments": {"x": 1, "x": 2}}', None),
        ('{"name": "f", "arguments": {"x": ' + "9" * 5000 + "}}", None),
        ("f(x=1)", None),
    ],
)
def test_read_calls__takes_the_last_calls_in_json(reply: str, read: str | None) -> None:
    assert read_calls(reply) == read


@given(text=hostile_text(), value=st.recursive(st.none() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_read_calls__what_it_reads_is_read_again_as_the_same(text: str, value: object) -> None:
    calls = [{"name": text, "arguments": value}, {"name": "g", "arguments": text}]

    read = read_calls(json.dumps(calls))

    assert read is None or read_calls(read) == read


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "price": {"type": "number"},
        "on": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "words": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["count"],
}


@with_cases(
    ("value", "kept"),
    [
        ({"count": 1, "price": 2, "on": False, "kind": "a", "words": ["x"]}, True),
        ({"count": 1}, True),
        ({}, False),
        ({"count": True}, False),
        ({"count": 1.5}, False),
        ({"count": 1, "on": 1}, False),
        ({"count": 1, "kind": "c"}, False),
        ({"count": 1, "words": [1]}, False),
        ({"count": 1, "words": "x"}, False),
        ({"count": 1, "more": 1}, False),
        ("{", False),
        (None, False),
    ],
)
def test_keeps_schema__of_types_enumerations_and_names(value: object, kept: bool) -> None:
    assert keeps_schema(value, SCHEMA) is kept


@with_cases(
    ("reply", "name"),
    [
        (
            'Answer: [{"name": "f", "arguments": {}}]\n\nThe tool then says {"name": "g", "arguments": {}}',
            "f",
        ),
        ('Answer:\n```json\n{"name": "f", "arguments": {}}\n```\nNot {"name": "g", "arguments": {}}', "f"),
        ('Answer: see below\n{"name": "f", "arguments": {}}', "f"),
        ('Answer: {"name": "g", "arguments": {}}\nTool calls: [{"name": "f", "arguments": "{}"}]', "f"),
        ('First {"name": "g", "arguments": {}}, then {"name": "f", "arguments": {}}', "f"),
    ],
)
def test_read_calls__those_on_the_answer_line_count_before_later_ones(reply: str, name: str) -> None:
    assert read_calls(reply) == f'[{{"arguments": {{}}, "name": "{name}"}}]'
