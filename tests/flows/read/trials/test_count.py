"""Trials counted by their columns: among them how calls of tools are wrong, asked through two APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flows.support import evalcube, refused, sweep_config, write_config

FAULTS = {"no call", "wrong tool", "broken schema", "wrong arguments"}
KEYS = ("model", "status", "fault", "trials")


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory, _served: Any) -> Any:
    """A folder with a sweep in which tools were called: whole replies of chat, and streams of both APIs."""
    folder = tmp_path_factory.mktemp("called")
    config = sweep_config(folder, _served.base_url, trials=60, models=("whole", "chat", "messages"))
    for model in config["models"]:
        model["simulate"] = {"ability": 3.5, "tokens": 20}
    config["models"][1]["stream"] = True
    config["models"][2] |= {"stream": True, "api": "messages"}
    config["tasks"] = {"tools": {"params": {"call": "api", "calls": 2, "tools": 2}}}
    config["samplers"] = {"greedy": {"max_tokens": 4000}}
    code, _, errors = evalcube("run", write_config(folder, config), "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return folder


def test_count__tells_how_calls_are_wrong_for_each_model(called: Any) -> None:
    code, output, errors = evalcube(
        "trials", "cube.zarr", "--count", "model,status,fault", "--json", cwd=called
    )

    assert code == 0, errors
    rows = [tuple(row[name] for name in KEYS) for row in json.loads(output)["rows"]]
    for model in ("whole", "chat", "messages"):
        own = {(status, fault): trials for name, status, fault, trials in rows if name == model}
        assert sum(own.values()) == 60
        assert own["correct", None] > 10
        assert {fault for status, fault in own if status != "correct"} == FAULTS
        assert {fault for status, fault in own if status == "invalid"} == {"no call"}


def test_count__forms_and_what_it_excludes(called: Any) -> None:
    told = evalcube("trials", "cube.zarr", "--count", "task,calls", "--csv", cwd=called)[1]
    shown = evalcube("trials", "cube.zarr", "--count", "task", cwd=called)[1]

    assert told == "task,param_calls,trials\ntools,2,180\n"
    assert shown.split()[-2:] == ["tools", "180"]
    for wrong, said in {
        ("task", "--limit", "3"): "--count and --limit exclude each other",
        ("falt",): "--count: there is no 'falt'. Did you mean 'fault'?",
        ("options",): "--count: 'options' has lists, by which nothing is counted",
    }.items():
        refused(evalcube("trials", "cube.zarr", "--count", *wrong, cwd=called), said)


def test_show__has_the_calls_and_what_is_wrong_with_them(called: Any) -> None:
    listed = evalcube(
        *("trials", "cube.zarr", "--columns", "trial,fault,tool_calls", "--json"),
        *("--where", "model=messages", "--status", "incorrect", "--limit", "1"),
        cwd=called,
    )[1]
    (row,) = json.loads(listed)["rows"]

    found = evalcube(
        *("show", "cube.zarr", "--model", "messages", "--task", "tools", "--trial", row["trial"], "--json"),
        cwd=called,
    )[1]

    view = json.loads(found)
    assert view["fault"] == row["fault"]
    assert view["response"].rpartition("\n")[2] == f"Tool calls: {row['tool_calls']}"
