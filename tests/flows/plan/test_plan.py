"""What questions are worth; tools in requests, in what is read of replies, and where an API knows none."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import read_stored
from evalcube.flows.plan.grading import grade_reading
from evalcube.flows.plan.plan import Named, Plan
from evalcube.flows.plan.requests import trial_request
from evalcube.stages.generate import Trial
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from tests.flows.support import sweep_config

NOWHERE = "http://127.0.0.1:9/v1"


def plan_of(tmp_path: Any, params: dict[str, Any], **model: Any) -> Plan:
    config = sweep_config(tmp_path, NOWHERE)
    config["tasks"] = {"tools": {"params": params}}
    config["samplers"] = {"greedy": {"max_tokens": 99}}
    config["models"][0] |= {"endpoint": NOWHERE, "model": "m", **model}
    config["models"][0].pop("simulate", None)
    return build_plan(from_mapping(config))


def body_of(plan: Plan, trial: Trial) -> dict[str, Any]:
    cell = plan.tasks[0].cells[0].cell
    found: dict[str, Any] = json.loads(trial_request(plan.evaluations[0], cell, trial, 0).body)
    return found


@pytest.mark.parametrize(
    ("api", "fields"), [("chat", {"type", "function"}), ("messages", {"name", "description", "input_schema"})]
)
def test_trial_request__has_the_trials_tools(tmp_path, api: str, fields: set[str]) -> None:
    plan = plan_of(tmp_path, {"call": "api"}, api=api)
    trial = plan.tasks[0].cells[0].cell.trial(0)

    body = body_of(plan, trial)

    assert len(body["tools"]) == 4
    assert all(set(tool) == fields for tool in body["tools"])
    assert "tools" not in body_of(plan, Trial(trial.prompt, trial.answer))


def test_grade_reading__of_calls_by_the_api_and_of_calls_in_words(tmp_path) -> None:
    cell = plan_of(tmp_path, {"call": "api"}).tasks[0].cells[0].cell
    trial = cell.trial(0)
    (call,) = json.loads(trial.answer)
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}

    def graded(message: dict[str, Any]) -> Status:
        body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
        reading = read_stored(Record(200, 1.0, body).encode(), trial)
        assert reading is not None
        return grade_reading(reading, cell, trial).status

    assert graded({"content": None, "tool_calls": [{"id": "1", "function": function}]}) == Status.CORRECT
    assert (
        graded({"content": "Well.", "tool_calls": [{"function": {**function, "name": "x"}}]})
        == Status.INCORRECT
    )
    assert graded({"content": f"Answer: {trial.answer}"}) == Status.INVALID


def test_build_plan__an_api_without_tools_is_refused_where_a_task_has_some(tmp_path) -> None:
    plan_of(tmp_path, {"call": "text"}, api="completions")
    with pytest.raises(SweepError, match=r"tasks.tools: .* api: completions of model .*`call: text`"):
        plan_of(tmp_path, {"call": "api"}, api="completions")


def test_worth__is_that_of_the_points_that_are_asked(tmp_path) -> None:
    plan = build_plan(from_mapping(sweep_config(tmp_path, NOWHERE)))

    worth, limiting = plan.worth([[10, 10, 0, 0], [20, 0, 0, 0]])

    assert (worth, limiting) == (pytest.approx(40), "")
    assert plan.worth([[10, 10, 0, 0], [1, 0, 0, 0]])[1] == "boolean"
    assert plan.worth([[0] * 4, [7, 0, 0, 0]])[0] == pytest.approx(7)


def plain_plan(tmp_path: Any, **changes: Any) -> Plan:
    """Four easy points of one task, and one easy and hard point of another."""
    return build_plan(from_mapping(sweep_config(tmp_path, NOWHERE, models=("a", "b"), **changes)))


def test_points__are_arrays_whose_padding_is_nothing(tmp_path) -> None:
    plan = plain_plan(tmp_path)

    every = [[True] * 4, [True, False, False, False]]
    assert plan.valid().tolist() == plan.referenced.tolist() == every
    assert plan.tiers == ("easy", "hard")
    assert plan.in_tier.tolist() == [every, [[False] * 4, [True, False, False, False]]]
    assert plan.named_cells.tolist() == [every, every]
    assert (plan.base > 0).tolist() == (plan.sources > 0).tolist() == every
    assert plan.cells == 5
    assert plan.places == {
        (task.label, planned.cell.id): (row, slot)
        for row, task in enumerate(plan.tasks)
        for slot, planned in enumerate(task.cells)
    }


def test_named_cells__are_those_of_evaluations_and_points_that_are_named(tmp_path) -> None:
    named = Named((False, True), ((True, False, False, True), (True,)))

    cells = replace(plain_plan(tmp_path), named=named).named_cells

    assert cells.tolist() == [[[False] * 4] * 2, [[True, False, False, True], [True, False, False, False]]]


@pytest.mark.parametrize(
    ("trials", "repeats", "chunks"),
    [
        (32, 1, {"trial": 512, "repeat": 1}),
        (32, 8, {"trial": 64, "repeat": 8}),
        (32, 512, {"trial": 64, "repeat": 8}),
        (32, 513, {"trial": 32, "repeat": 16}),
        (33, 513, {"trial": 64, "repeat": 8}),
    ],
)
def test_chunks__are_long_in_questions_unless_few_are_repeated_very_often(
    tmp_path, trials: int, repeats: int, chunks: dict[str, int]
) -> None:
    assert replace(plain_plan(tmp_path), trials=trials, repeats=repeats).chunks == chunks


def test_from_spec__has_cells_of_tasks_that_are_not_at_hand(tmp_path) -> None:
    spec: Any = copy.deepcopy(plain_plan(tmp_path).spec())
    spec["tasks"][0]["name"] = "nowhere"
    spec["tasks"][1]["version"] += 1
    spec["tasks"][1]["points"][0]["base"] = 7

    plan = Plan.from_spec(spec, 8, 1, packages={"nowhere": "sums 1.2"})

    for task, told in zip(plan.tasks, spec["tasks"], strict=True):
        assert isinstance(task.task, AbsentTask)
        assert [planned.spec() for planned in task.cells] == told["points"]
    assert plan.spec() == spec
    assert plan.absent == plan.not_run
    assert ["nowhere" in plan.absent[0], "sums==1.2" in plan.absent[0]] == [True, True]
    assert f"version {spec['tasks'][1]['version'] - 1}" in plan.absent[1]


def test_from_spec__names_the_point_whose_params_no_task_takes(tmp_path) -> None:
    spec: Any = copy.deepcopy(plain_plan(tmp_path).spec())
    spec["tasks"][0]["points"][2]["params"]["length"] = "long"

    with pytest.raises(SweepError, match=r"spec\.tasks\[0\]\.points\[2\]\.params\.length: "):
        Plan.from_spec(spec, 8, 1)


def test_from_spec__keeps_which_points_are_of_an_earlier_file(tmp_path) -> None:
    spec: Any = copy.deepcopy(plain_plan(tmp_path).spec())
    spec["tasks"][0]["points"][1]["older"] = True

    plan = Plan.from_spec(spec, 8, 1)

    assert [planned.older for planned in plan.tasks[0].cells] == [False, True, False, False]
    assert plan.spec() == spec


def test_ranked__leaves_out_what_has_no_right_answers(tmp_path) -> None:
    rows = tmp_path / "rows.jsonl"
    row = {"prompt": "Say something.", "id": "a", "assertions": [{"type": "json_valid"}]}
    rows.write_text(json.dumps(row) + "\n" + json.dumps({**row, "prompt": "Say more.", "id": "b"}))
    config = sweep_config(tmp_path, NOWHERE, cells=1, trials=2)
    config["tasks"]["dataset"] = {
        "manifold": [
            {
                "points": [
                    {"file": str(rows), "id": "id", "answer": "", "kind": "text", "assertions": "assertions"}
                ],
                "tiers": ["easy"],
            }
        ]
    }

    plan = build_plan(from_mapping(config))

    assert plan.referenced.tolist() == [[True], [True], [False]]
    assert plan.in_tier[0].tolist() == [[True]] * 3
    assert plan.ranked[0].tolist() == plan.referenced.tolist()
    assert plan.sources[2].tolist() == [2]
    assert (plan.sources[:2] > 10**6).all()
    assert (plan.named_points, plan.sizes["dataset"]) == (((2, 0),), 1)
    assert [task.graded for task in plan.tasks] == [False, False, True]
    assert set(plan.layers) == {"fact", "behavior", "judge"}
    assert plan.worth(np.full((3, 1), 5))[0] == pytest.approx(10)  # where any is ranked, no other counts
    (path,) = plan.files.values()
    assert path == str(rows)


def test_few_problems__are_those_of_tasks_that_repeat_themselves(tmp_path) -> None:
    config = sweep_config(tmp_path, NOWHERE, cells=1)
    config["tasks"]["brackets"] = {
        "manifold": [{"points": [{"length": 1}, {"length": 30}], "tiers": ["easy"]}]
    }
    plan = build_plan(from_mapping(config))

    assert plan.few_problems(1) == {}
    assert plan.few_problems(1000) == {"brackets": 1}
