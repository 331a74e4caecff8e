"""What `evalcube data` brings here and lists, and runs that need no network after it."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from evalcube.flows.cli.keep import data_commands
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.flows.keep import data
from evalcube.flows.keep.data import addresses, data_here, fetch_data
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.state.questions import keep_questions
from evalcube.flows.state.store import open_store
from evalcube.stages.generate import TaskError
from evalcube.stages.generate.dataset import Dataset
from evalcube.stages.generate.dataset.hub import shelf
from tests.flows.support import sweep_config, write_config
from tests.hub import GSM, cut_network, jsonl, parquet

SUMS = "hf://acme/sums?split=test"


@pytest.fixture
def sums(hub):
    hub.add("acme/sums", {"train-0.parquet": parquet(GSM[:9]), "test-0.parquet": parquet(GSM[9:])})
    return hub


def config(folder, **params):
    fields = {"file": SUMS, "prompt": "question", "kind": "number", "answer_after": "####"} | params
    return sweep_config(
        folder, "http://127.0.0.1:1/v1", tasks={"sums": {"task": "dataset", "params": fields}}
    )


def call(*arguments):
    result = CliRunner().invoke(
        data_commands, list(arguments), catch_exceptions=False, env={"COLUMNS": "200"}
    )
    assert result.exit_code == 0
    return json.loads(result.stdout) if "--json" in arguments else result.output


def test_fetch_data__takes_configs_suites_and_addresses(sums, tmp_path, monkeypatch):
    sums.add("acme/more", {"test.jsonl": jsonl(GSM)})
    suite = {"tasks": {"a": {"task": "dataset", "params": {"file": "hf://acme/more"}}}}
    monkeypatch.setattr(data, "suite_names", lambda: ["more"])
    monkeypatch.setattr(data, "suite_section", {"more": suite}.get)
    written = write_config(tmp_path, config(tmp_path))

    found = fetch_data(["more", str(written), SUMS])

    assert [record.asked for record in found] == ["hf://acme/more", SUMS]
    assert [row["rows"] for row in data_here()] == [40, 31]


def test_addresses__follow_tasks_to_their_suites(monkeypatch):
    params = {"file": ["hf://o/n", "x.csv"], "fewshot": {"from": {"file": "hf://o/m"}}}
    sections = {
        "a": {"tasks": {"x": {"suite": "b"}, "y": {"suite": "a"}}},
        "b": {"tasks": {"z": {"params": params}}},
    }
    monkeypatch.setattr(data, "suite_names", lambda: list(sections))
    monkeypatch.setattr(data, "suite_section", sections.get)

    assert addresses("a") == ["hf://o/n", "hf://o/m"]


@pytest.mark.parametrize(
    ("target", "told"),
    [("quick", "no data set of the hub"), ("quik", "Did you mean 'quick'"), ("./x.yaml", "no suite")],
)
def test_addresses__says_why_there_are_none(target, told):
    with pytest.raises(SweepError, match=told):
        addresses(target)


def test_fetch_data__asks_again_what_a_name_means_and_sends_nothing_twice(sums):
    (first,) = fetch_data([SUMS])
    fetch_data([SUMS])
    assert sum("GET /datasets" in request for request in sums.asked) == 1
    sums.repos["acme/sums"].files["test-0.parquet"] = parquet(GSM)

    (second,) = fetch_data([SUMS])

    assert (first.rows, second.rows) == (31, 40)
    assert shelf.find(first.address) == first
    told = []
    fetch_data([first.address], told.append)
    assert [record.is_pinned for record in told] == [True]  # though it was asked for by its name at first
    assert shelf.find(SUMS) == second


def test_data_list__tells_licence_revision_and_size(sums):
    assert "nothing was fetched" in call("list")
    told = call("fetch", SUMS)
    commit = sums.commit("acme/sums")

    (row,) = call("list", "--json")["data"]

    assert f"@{commit}?split=test: 31 rows" in told
    assert (row["licence"], row["commit"], row["rows"], row["pinned"]) == ("mit", commit, 31, False)
    assert commit[:12] in call("list")


def test_data_fetch__tells_nothing_that_a_terminal_would_act_on(hub):
    hub.add("acme/bad", {"test.jsonl": jsonl(GSM)}, card={"license": ["\x1b[2J", 7, "x" * 5000]})

    told = call("fetch", "hf://acme/bad")

    assert "\x1b" not in told
    assert len(told) < 1000


def test_build_plan__means_the_commit_that_the_cube_has_asked(sums, tmp_path, monkeypatch):
    """Whatever was fetched since, and without network or anything fetched."""
    first = build_plan(from_mapping(config(tmp_path)))
    keep_questions(open_store(first, str(tmp_path / "cube.zarr")).cube.records, first)
    sums.repos["acme/sums"].files["test-0.parquet"] = parquet(GSM)
    fetch_data([SUMS])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    cut_network(monkeypatch)

    again = build_plan(from_mapping(config(tmp_path)))

    assert again.spec() == first.spec()
    assert again.tasks[0].cells[0].cell.trial(30) == first.tasks[0].cells[0].cell.trial(30)


def test_from_spec__fetches_nothing_on_the_word_of_a_cube(sums, tmp_path, monkeypatch):
    plan = build_plan(from_mapping(config(tmp_path)))
    before = list(sums.asked)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    again = Plan.from_spec(plan.spec(), plan.trials, plan.repeats)

    with pytest.raises(TaskError, match="run: evalcube data fetch"):
        replace(again.tasks[0].cells[0].cell, task=Dataset()).trial(0)

    assert sums.asked == before


@pytest.mark.usefixtures("sums")
def test_build_plan__finds_examples_of_another_split_in_the_cube(tmp_path, monkeypatch):
    shots = {"fewshot": {"n": 2, "from": {"split": "train"}}}
    first = build_plan(from_mapping(config(tmp_path, **shots)))
    keep_questions(open_store(first, str(tmp_path / "cube.zarr")).cube.records, first)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    cut_network(monkeypatch)

    again = build_plan(from_mapping(config(tmp_path, **shots)))

    assert again.spec() == first.spec()


def test_config__says_how_to_get_leave(hub, tmp_path):
    hub.add("acme/sums", {"test.jsonl": jsonl(GSM)}, gated=True)

    with pytest.raises(ConfigError, match=r"is gated: ask for leave on .* HF_TOKEN"):
        from_mapping(config(tmp_path))
