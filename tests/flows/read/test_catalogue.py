"""The commands about tasks, run in this process."""

import json

import pytest
from typer.testing import CliRunner

from evalcube.flows.cli.app import app
from evalcube.flows.errors import SweepError
from evalcube.flows.read.catalogue import find_task, sample_trials, task_params
from evalcube.stages.generate import DOORS, TASKS, Cell, TaskError


def output(*arguments):
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_tasks__lists_every_task():
    rows = json.loads(output("tasks", "--json"))["tasks"]
    table = output("tasks")

    assert [row["name"] for row in rows] == list(TASKS)
    assert all(name in table for name in TASKS)
    assert all(f"{door}:NAME" in table for door in DOORS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gym:", "write gym:NAME"),
        ("gym:chainsum", "gym:chain_sum"),
        ("gym:sudoku", "251 ms"),
        ("gim:x", "no task"),
    ],
)
def test_tasks__says_why_a_task_of_another_package_is_none(name, said):
    result = CliRunner().invoke(app, ["tasks", name])

    assert result.exit_code != 0
    assert said in str(result.exception)


def test_task_params__of_another_package_are_levels_and_settings():
    params = {param.name: param for param in task_params(TASKS["gym:chain_sum"])}

    assert params["level"].allowed == "0 to 10"
    assert params["level_num_terms"].description.startswith("Level of num_terms, in order: 2; 3; 4")
    assert (params["min_terms"].allowed, params["min_terms"].default) == ("integer", None)
    assert "2 where no level" in params["min_terms"].description


def test_sample_trials__of_another_package_say_what_an_optional_param_must_be():
    with pytest.raises(TaskError, match="0 to 10, got 99"):
        sample_trials(TASKS["gym:chain_sum"], {"level": 99}, 1, 42)


@pytest.mark.parametrize("name", TASKS)
def test_tasks__shows_every_param_with_its_range_and_an_example(name):
    document = json.loads(output("tasks", name, "--json"))
    text = output("tasks", name)

    assert [param["name"] for param in document["params"]] == list(TASKS[name].Params.model_fields)
    assert all(param["allowed"] and param["description"] for param in document["params"])
    assert document["example"]["prompt"].splitlines()[0] in text
    assert f"Reference answer: {document['example']['answer']}" in text


def test_sample__is_what_a_sweep_asks():
    trials = json.loads(
        output("sample", "arithmetic", "--params", "length=8,max_depth=2", "--n", "4", "--json")
    )

    task = TASKS["arithmetic"]
    cell = Cell(task, task.Params(length=8, max_depth=2), 42)
    assert [trial["prompt"] for trial in trials] == [cell.trial(i).prompt for i in range(4)]
    assert cell.trial(3).prompt in output(
        "sample", "arithmetic", "--params", '{"length": 8, "max_depth": 2}', "--n", "4"
    )


def test_find_task__suggests_the_nearest():
    with pytest.raises(SweepError, match="mean 'arithmetic'"):
        find_task("aritmetic")


def test_sample_trials__refuses_what_is_out_of_range():
    with pytest.raises(TaskError, match="99"):
        sample_trials(TASKS["arithmetic"], {"length": 99}, 1, 42)


def test_task_params__tell_the_range():
    length = next(param for param in task_params(TASKS["arithmetic"]) if param.name == "length")

    assert (length.allowed, length.default) == ("3 to 50", 8)
