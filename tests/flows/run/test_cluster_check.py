"""Workers are asked whether they could take part in a sweep; nothing is sent to a model, and nothing is left behind."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run import cluster_check
from evalcube.flows.run.cluster_check import _check_of, _Place, _Questions, check_cluster
from evalcube.flows.run.reach import unreached
from evalcube.stages.infer.endpoint import Endpoint
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, refused, simulator_stats, sweep_config, write_config


@pytest.fixture
def place(tmp_path):
    made = _Place(str(tmp_path / "cube.zarr"), str(tmp_path / "cube.zarr.check"), "secret")
    made.make()
    yield made
    made.remove()
    assert list(tmp_path.iterdir()) == []


def test_place__is_seen_by_whoever_sees_the_same_one(place, tmp_path):
    assert place.problem() == ""
    assert "does not see where the sweep's cube is" in replace(place, secret="another").problem()
    elsewhere = replace(place, url=str(tmp_path / "nowhere"))
    assert "Mount the same file system there" in elsewhere.problem()


def test_place__of_several_workers_one_wins(place):
    found = [place.puts(f"worker-{number}") for number in range(3)]

    assert found == [("", True), ("", False), ("", False)]


@pytest.mark.parametrize("ignored", ["absent", "version"])
def test_place__a_store_that_keeps_to_no_condition_is_found_out(place, monkeypatch, ignored):
    kind, put = type(place.space), type(place.space).put

    def careless(self, key, data, *, when=cluster_check.When.ALWAYS, durable=True):
        careless_about = when is cluster_check.When.ABSENT if ignored == "absent" else hasattr(when, "mark")
        return put(
            self, key, data, when=cluster_check.When.ALWAYS if careless_about else when, durable=durable
        )

    monkeypatch.setattr(kind, "put", careless)

    problem, _ = place.puts("worker")
    assert problem.startswith("a put on the condition that nothing ")


def test_unreached__says_what_is_wrong_with_an_address():
    assert "cannot be reached (Connection refused)" in unreached(Endpoint("m", "http://127.0.0.1:9/v1"))
    assert "cannot be reached" in unreached(Endpoint("m", "http://no-such-host.invalid/v1"))


def test_check_of__a_worker_that_says_nothing_is_not_well():
    assert not _check_of("tcp://a", "a", None, None, 0.0).well
    report = {"host": "h", "python": "3", "dask": "1", "problems": {}, "won": True}
    late = _check_of("tcp://a", "a", None, report, -300.0)
    assert (late.well, late.warning) == (True, "its clock is 5.0 minutes off")


def settings(tmp_path, simulator, **changes):
    return sweep_config(tmp_path, simulator.base_url, cube="results/new/cube.zarr", **changes)


def test_check_cluster__asks_workers_and_no_model_and_leaves_nothing(tmp_path, simulator):
    config = settings(tmp_path, simulator)

    found = check_cluster(from_mapping(config), cluster=SHARED)

    assert [one.well for one in found] == [True, True]
    assert all(one.python and one.dask and one.host for one in found)
    assert simulator_stats(simulator)["requests"] == 0
    assert [path for path in (tmp_path / "results").rglob("*") if not path.is_dir()] == []
    assert list((tmp_path / "cache").rglob("*check*")) == []


def test_check_cluster__brings_its_code_to_workers_of_a_scheduler(tmp_path, simulator):
    with SHARED.connect() as connection:
        address = connection.client.scheduler.address
        config = settings(tmp_path, simulator)
        config["models"][0]["key_env"] = "NO_SUCH_KEY"

        found = check_cluster(from_mapping(config), scheduler=address)

        assert [set(one.problems) for one in found] == [{"keys"}, {"keys"}]
        assert "NO_SUCH_KEY" in found[0].problems["keys"]
        left = connection.client.run(lambda dask_worker: list(dask_worker.plugins))
        assert not [name for names in left.values() for name in names if "check" in name]


def test_questions__without_their_data_file_are_no_questions(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    config = sweep_config(tmp_path, "http://127.0.0.1:9", trials=1)
    point = {"file": str(rows), "prompt": "question", "answer": "answer"}
    config["tasks"] = {"dataset": {"manifold": [{"points": [point], "tiers": ["easy"]}]}}
    plan = build_plan(from_mapping(config))
    questions = _Questions(plan.spec(), plan.trials, plan.repeats)

    assert questions.problem() == ""
    elsewhere = json.loads(json.dumps(plan.spec()).replace("rows.jsonl", "gone.jsonl"))
    assert "gone.jsonl" in replace(questions, spec=elsewhere).problem()


def test_check__prints_a_table_and_says_by_its_exit_code_whether_all_is_well(
    tmp_path, simulator, monkeypatch
):
    monkeypatch.setattr(cluster_check, "LocalProcesses", lambda *_, **__: SHARED)
    path = write_config(tmp_path, settings(tmp_path, simulator))

    code, output, errors = evalcube("cluster", "check", path, cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert "2 of 2 workers could take part" in output

    config = settings(tmp_path, simulator)
    config["models"][0]["endpoint"] = "http://127.0.0.1:9/v1"
    del config["models"][0]["simulate"]
    path = write_config(tmp_path, config)
    errors = refused(evalcube("cluster", "check", path, cwd=tmp_path), "127.0.0.1:9 cannot be reached")
    assert errors.count("worker tcp://") == 2
    code, output, _ = evalcube("cluster", "check", path, "--json", cwd=tmp_path)
    assert (code, [list(one["problems"]) for one in json.loads(output)]) == (2, [["endpoints"]] * 2)


def test_check__where_this_process_cannot_write_is_refused(tmp_path, simulator):
    config = settings(tmp_path, simulator)
    (tmp_path / "file").write_text("")
    config["cube"] = str(tmp_path / "file" / "cube.zarr")

    refused(evalcube("cluster", "check", write_config(tmp_path, config), cwd=tmp_path), "file")
    assert Path(tmp_path / "file").read_text() == ""
