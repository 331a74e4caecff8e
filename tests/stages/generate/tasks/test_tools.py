"""Task `tools`: what is read as a call, what is wrong with one, and that both ways of calling ask the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell, Trial
from evalcube.stages.generate.answers.calls import keeps_schema, read_calls
from tests.cases import with_cases
from tests.stages.generate.no_work import excess_of_no_work
from tests.stages.generate.solvers_documents import solve_calls
from tests.strategies import hostile_text, params_of

TASK: Any = TASKS["tools"]
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


def changed(trial: Trial, **fields: object) -> str:
    """The right answer with fields of its first call changed."""
    first, *others = json.loads(trial.answer)
    return json.dumps([{**first, **fields}, *others])


def test_fault__tells_the_four_ways_of_a_wrong_answer() -> None:
    cell = Cell(TASK, TASK.Params(calls=2, distractors=2, nesting=1), 5)
    trial = cell.trial(0)
    first = json.loads(trial.answer)[0]
    name = next(n for n, v in first["arguments"].items() if isinstance(v, (str, int)))
    wrong = {
        "no call": "I would call it.",
        "wrong tool": changed(trial, name="weigh_moon"),
        "broken schema": changed(trial, arguments={**first["arguments"], "more": 1}),
        "wrong arguments": changed(trial, arguments={**first["arguments"], name: other(cell, first, name)}),
    }

    found = {text: cell.parse(reply, trial) for text, reply in wrong.items()}

    assert {text: cell.fault(answer, trial) for text, answer in found.items()} == {
        text: text for text in wrong
    }
    assert not any(cell.grade(answer, trial) for answer in found.values() if answer)
    assert cell.fault(json.dumps([first]), trial) == "wrong tool"  # one call of two
    assert cell.fault(trial.answer, trial) == ""


def other(cell: Cell, call: dict[str, Any], name: str) -> object:
    """Another value of the same kind, as other trials have it."""
    calls = (call for i in range(200) for call in json.loads(cell.trial(i).answer))
    values = (one["arguments"][name] for one in calls if name in one["arguments"])
    return next(value for value in values if value != call["arguments"][name])


@given(params=params_of(TASK), index=st.integers(0, 10**6))
def test_api__asks_the_same_with_the_tools_beside_the_prompt(params: Any, index: int) -> None:
    told = Cell(TASK, params, 5).trial(index)
    cell = Cell(TASK, params.model_copy(update={"call": "api"}), 5)
    trial = cell.trial(index)
    functions = [one["function"] for one in trial.extras["tools"]]  # type: ignore[attr-defined]

    solved = solve_calls(trial.prompt.split("\n\n")[1].splitlines(), functions)

    assert solved == trial.answer == told.answer
    assert "tools" not in told.extras
    assert cell.parse(f"I call them.\nTool calls: {trial.answer}", trial) == trial.answer
    assert cell.parse(f"{trial.answer}\nTool calls: []", trial) is None  # said, and not called


def test_calls__of_one_request_differ_and_are_right_in_any_order() -> None:
    cell = Cell(TASK, TASK.Params(tools=1, calls=6), 5)
    for trial in map(cell.trial, range(50)):
        calls = json.loads(trial.answer)

        assert len({json.dumps(call) for call in calls}) == 6
        assert cell.parse(json.dumps(calls[::-1]), trial) == trial.answer


@pytest.mark.parametrize("shape", [{"tools": 1}, {}, {"tools": 16, "distractors": 32}])
def test_guess__no_work_makes_no_call(shape: dict[str, int]) -> None:
    excess, strategy = excess_of_no_work(Cell(TASK, TASK.Params(**shape), 5), 300)

    assert excess == 0, strategy


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
