"""Task `tools`: what is read as a call, what is wrong with one, and that both ways of calling ask the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell, Trial
from tests.stages.generate.no_work import excess_of_no_work
from tests.stages.generate.solvers_documents import solve_calls
from tests.strategies import params_of

TASK: Any = TASKS["tools"]


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
