"""What questions are worth; tools in requests, in what is read of replies, and where an API knows none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import read_stored
from evalcube.flows.plan.grading import grade_reading
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import trial_request
from evalcube.stages.generate import Trial
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
