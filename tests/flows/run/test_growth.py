"""A changed config over a cube that is there: it adds what it adds, asks only that, and keeps the rest."""

import copy
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.estimate import estimate
from evalcube.flows.read.reader import Reader
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory.objects import Directory
from tests.flows.judging import judged_config
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    UNTIMED,
    copied,
    evalcube,
    loaded,
    reset,
    set_faults,
    simulator_stats,
    stored,
    sweep_config,
    write_config,
)


def cells(url):
    """What a cube holds, by evaluation, task and point: the same for cubes whose axes stand in another order."""
    dataset = loaded(url)
    counters = dataset["counters"].drop_sel(counter="latency_sum")
    places = ("model", "task", "params", ...)
    arrays = [array.transpose(*places).values for array in (*(dataset[name] for name in UNTIMED), counters)]
    planned = [dataset[f"planned_{dim}s"].transpose(*places).values for dim in ("trial", "repeat")]
    tiers = dataset["tier"].values
    found = {}
    for model, evaluation in enumerate(dataset["eval_id"].values):
        for (task, slot), cell in np.ndenumerate(dataset["cell_id"].values):
            if cell:
                key = (str(evaluation), str(dataset["task"].values[task]), str(cell))
                found[key] = [values[model, task, slot].tobytes() for values in arrays]
                found[key] += [int(counts[model, task, slot]) for counts in planned]
                found[key] += [sorted(tiers[dataset["in_tier"].values[:, task, slot]])]
                found[key] += [dataset["duplicate"].values[task, slot].tobytes()]
    return found


def config_in(tmp_path, simulator, **changes):
    return sweep_config(tmp_path, simulator.base_url, **changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, _served):
    """A finished sweep of two models."""
    reset(_served)
    config = config_in(tmp_path_factory.mktemp("finished"), _served, models=("alpha", "beta"))
    run(config, cluster=SHARED)
    return config


@pytest.fixture
def two_models(finished, tmp_path):
    """That sweep in a folder of the test."""
    return copied(finished, tmp_path)


def add_model(config):
    config["models"].append({**config["models"][0], "name": "beta"})


def add_template(config):
    config["templates"] = {
        "plain": [{"role": "user", "content": "{{ prompt }}"}],
        "kind": [{"role": "user", "content": "Please. {{ prompt }}"}],
    }


def add_sampler(config):
    config["samplers"]["hot"] = {"temperature": 1, "max_tokens": 100}


def add_task(config):
    config["tasks"]["letters"] = {"manifold": [{"points": [{}], "tiers": ["easy"]}]}


def add_points(config):
    config["tasks"]["arithmetic"]["manifold"][0]["grid"]["length"] += [5, 6]


def add_tier(config):
    config["tasks"]["arithmetic"]["manifold"].append({"points": [{"length": 3}], "tiers": ["extreme"]})


def add_trials(config):
    config["trials"] += 2


def another_order(config):
    config["models"].reverse()
    config["tasks"] = dict(reversed(config["tasks"].items()))


def test_run__a_config_that_adds_something_asks_only_that(tmp_path, simulator):
    before = config_in(tmp_path, simulator, trials=2, cells=2)
    after = copy.deepcopy(before)
    for add in (add_model, add_template, add_sampler, add_task, add_points, add_tier, add_trials):
        add(after)
    asked = run(before, cluster=SHARED).sent
    assert {row.done for row in estimate(after).evaluations} <= {asked, 0}
    to_send = estimate(after).to_send

    grown = run(after, cluster=SHARED)

    assert (grown.reason, grown.sent) == ("complete", to_send)
    assert estimate(after).to_send == run(after, cluster=SHARED).sent == 0
    born = {**after, "cube": str(tmp_path / "born.zarr")}
    assert run(born, cluster=SHARED).sent == 0
    assert cells(before["cube"]) == cells(born["cube"])
    assert verify_cube(before["cube"]).damages == []


def test_run__what_the_config_no_longer_names_is_kept_and_not_asked(two_models):
    whole = two_models
    kept = cells(whole["cube"])
    part = copy.deepcopy(whole)
    del part["models"][0], part["tasks"]["boolean"]
    part["tasks"]["arithmetic"]["manifold"][0]["grid"]["length"] = [3]
    part["trials"] = 12
    part["models"][0]["prices"] = {"prompt": 1.0, "completion": 2.0}

    summary = run(part, cluster=SHARED)

    assert (summary.trials, summary.done, summary.sent) == (12, 12, 4)
    now = cells(whole["cube"])
    assert now.keys() == kept.keys()
    changed = [key for key in now if now[key][-4:-2] != kept[key][-4:-2]]
    assert len(changed) == 1
    assert Reader(whole["cube"]).plan.labels == ("alpha", "beta")
    prices = Cube.open(whole["cube"]).read_label("price_prompt").tolist()
    assert prices == [0.0, 1.0]
    assert run(whole, cluster=SHARED).sent == 0


def test_run__another_order_in_the_config_is_no_difference(tmp_path, two_models):
    metadata = (tmp_path / "cube.zarr/zarr.json").read_bytes()
    another_order(two_models)

    assert run(two_models, cluster=SHARED).sent == 0
    assert (tmp_path / "cube.zarr/zarr.json").read_bytes() == metadata


def test_run__a_new_name_for_the_same_evaluation_is_taken_over(two_models):
    config = two_models
    config["samplers"] = {"cold": config["samplers"]["greedy"]}

    assert run(config, cluster=SHARED).sent == 0
    assert Cube.open(config["cube"]).read_label("sampler").tolist() == ["cold", "cold"]
    assert verify_cube(config["cube"]).damages == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda config: config.update(seed=7), ["seed is 42 in the cube and 7", "`cube`"]),
        (
            lambda config: config["samplers"]["greedy"].update(max_tokens=77),
            [
                'sampler greedy is {"max_tokens": 200',
                '"max_tokens": 77',
                "with 80 trials",
                "greedy-2",
                "/cube.zarr --where sampler=greedy",
            ],
        ),
        (
            lambda config: config["models"][0].update(revision="Q4"),
            ["model alpha is ", '"revision": "Q4"', "with 40 trials", "--where model=alpha"],
        ),
        (
            lambda config: config.update(
                templates={"plain": [{"role": "user", "content": "? {{ prompt }}"}]}
            ),
            ["template plain is", "plain-2"],
        ),
        (
            lambda config: config["tasks"]["boolean"].update(task="arithmetic"),
            ["generator of task boolean is boolean version", "arithmetic version", "boolean-2"],
        ),
        (
            lambda config: config["tasks"]["boolean"].update(assertions=[{"type": "json_valid"}]),
            ["assertions of task boolean are in the config only", "boolean-2"],
        ),
    ],
)
def test_run__a_contradiction_is_told_once_with_what_to_type(finished, change, words):
    config = copy.deepcopy(finished)  # refused before anything is changed
    described = Path(config["cube"]) / "zarr.json"
    metadata = described.read_bytes()
    change(config)

    with pytest.raises(SweepError) as caught:
        run(config, cluster=SHARED)

    text = str(caught.value)
    for word in words:
        assert text.count(word) == 1, (word, text)
    with pytest.raises(SweepError, match="contradicts the config"):
        estimate(config)
    assert described.read_bytes() == metadata


def judges_of(url):
    """Readings, by judge, with all else that grading has made of each trial."""
    dataset = loaded(url)
    names = dataset["judge_name"].values.tolist()
    readings = {
        name: dataset["judge_readings"].isel(judge_name=place).dropna("judge_repeat", how="all").values
        for place, name in enumerate(names)
    }
    return readings | {name: dataset[name].values for name in ("status", "fact", "behavior", "judge")}


def test_run__a_new_judge_rates_what_is_recorded_and_no_model_is_asked(tmp_path, simulator):
    born = judged_config(tmp_path, simulator.base_url, trials=6, cube=str(tmp_path / "born.zarr"))
    config = {**born, "cube": str(tmp_path / "cube.zarr"), "judges": born["judges"][:1]}
    config["judges"] = [{**config["judges"][0], "repeats": 1}]
    run(config, cluster=SHARED)
    before = simulator_stats(simulator)["models"]

    summary = run({**born, "cube": config["cube"]}, cluster=SHARED)

    asked = simulator_stats(simulator)["models"]
    assert (summary.reason, summary.graded, summary.unrated) == ("complete", 0, 0)
    assert (asked["before"], asked["after"]) == (before["before"], before["after"])
    assert run(born, cluster=SHARED).sent == 0
    ours, theirs = judges_of(config["cube"]), judges_of(born["cube"])
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        np.testing.assert_array_equal(ours[name], values, err_msg=name)
    assert verify_cube(config["cube"]).damages == []
    assert run({**born, "cube": config["cube"]}, cluster=SHARED).sent == 0


@pytest.fixture(scope="module")
def judged(tmp_path_factory, _served):
    """A sweep of two judges, of which the first alone has rated so far."""
    reset(_served)
    config = judged_config(tmp_path_factory.mktemp("judged"), _served.base_url, trials=4)
    run({**config, "judges": config["judges"][:1]}, cluster=SHARED)
    return config


def test_run__a_new_judge_leaves_trials_whose_answers_the_cache_lacks_as_they_were(
    judged, tmp_path, simulator
):
    born = copied(judged, tmp_path)
    before = loaded(born["cube"])
    shutil.rmtree(born["cache"])
    asked = simulator_stats(simulator)["models"]

    summary = run(born, cluster=SHARED)

    assert simulator_stats(simulator)["models"] == asked
    assert summary.reason == "complete"
    assert list(summary.causes.values()) == [8]
    after = loaded(born["cube"])
    for name in ("status", "judge", "tokens"):
        np.testing.assert_array_equal(after[name].values, before[name].values)
    assert run(born, cluster=SHARED).causes == {}


def test_run__judges_out_of_reach_leave_recorded_trials_to_be_rated_later(judged, tmp_path, simulator):
    born = copied(judged, tmp_path)
    born["models"][-1]["limits"]["retries"] = 0
    before = stored(Cube.open(born["cube"]), "status")
    set_faults(simulator, [{"kind": "status", "status": 500, "share": 1.0}])

    summary = run(born, cluster=SHARED)

    set_faults(simulator, [])
    assert (summary.reason, summary.done, summary.unrated) == ("incomplete", 8, 8)
    np.testing.assert_array_equal(stored(Cube.open(born["cube"]), "status"), before)
    assert run(born, cluster=SHARED).reason == "complete"
    assert (stored(Cube.open(born["cube"]), "judge_readings")[..., 1, 0] > 0).all()


def test_run__only_a_part_is_asked_and_the_rest_stays_pending(finished, tmp_path, simulator):
    config = config_in(tmp_path, simulator, models=("alpha", "beta"))
    assert (estimate(config, only=["model=beta"]).to_send, estimate(config, only=["model=beta"]).pending) == (
        40,
        40,
    )

    summary = run(config, cluster=SHARED, only=["model=beta", "task=boolean,arithmetic", "tier=hard"])

    assert (summary.reason, summary.trials, summary.done, summary.sent) == ("complete", 8, 8, 8)
    assert summary.pending == 72
    planned = Cube.open(config["cube"]).read_planned("trial")
    assert (planned[planned > 0] == 8).all()
    rest = run(config, cluster=SHARED)
    assert (rest.reason, rest.trials, rest.done, rest.sent, rest.pending) == ("complete", 80, 80, 72, 0)
    assert cells(config["cube"]) == cells(finished["cube"])


def test_run__trials_of_a_range_are_asked_and_the_others_stay_pending(tmp_path, simulator):
    config = config_in(tmp_path, simulator, cells=2)

    late = run(config, cluster=SHARED, trials="16:40")
    assert (late.reason, late.trials, late.sent, late.pending) == ("complete", 3 * 24, 3 * 24, 3 * 16)
    dataset = loaded(config["cube"])
    assert (dataset["status"][..., :16, :] == 255).all()
    assert (dataset["status"].where(dataset["cell_id"] != "", 0)[..., 16:40, :] < 5).all()
    assert run(config, cluster=SHARED, trials="16:40").sent == 0
    part = run(config, cluster=SHARED)
    assert (part.reason, part.trials, part.sent, part.pending) == ("complete", 3 * 8, 3 * 8, 3 * 8)
    assert "; 24 trials" in str(part)
    early = run(config, cluster=SHARED, trials="16")
    assert (early.sent, early.pending) == (3 * 8, 0)
    born = {**config, "cube": str(tmp_path / "born.zarr"), "trials": 40}
    run(born, cluster=SHARED)
    assert cells(config["cube"]) == cells(born["cube"])


@pytest.mark.parametrize(
    ("only", "trials", "message"),
    [
        (["model"], None, "`only`: 'model' is no NAME=VALUE"),
        (["modell=alpha"], None, "Did you mean 'model'"),
        (["model=gamma"], None, "`only`: there is no model 'gamma'"),
        (["model=alpha", "model=beta"], None, "'model' is given twice"),
        (["task=arithmetic", "tier=nightmare"], None, "nightmare"),
        (["task=bool"], None, "`only`: there is no task 'bool'"),
        (["length=90.."], None, "`only`: there is no length '90..'"),
        ((), "8:8", "'8:8' is empty"),
        ((), "16:8", "'16:8' is empty"),
        ((), "0:999999999999", "too large: a cell has at most [0-9,]+ trials"),
        ((), "x", "no range of trials"),
    ],
)
def test_run__a_part_that_is_none_is_refused_before_anything_is_made(tmp_path, only, trials, message):
    config = sweep_config(tmp_path, "http://127.0.0.1:1/v1")

    for call in (run, estimate):
        with pytest.raises(SweepError, match=message):
            call(config, only=only, trials=trials)

    assert not (tmp_path / "cube.zarr").exists()


def test_run__what_is_kept_is_told_wherever_it_is_shown(tmp_path, two_models):
    config = two_models
    del config["models"][0]
    config["tasks"]["arithmetic"]["manifold"][0]["grid"]["length"] = [3, 4]
    path = write_config(tmp_path, config)
    told = "not in the run's config: alpha, 2 points of arithmetic (56 trials)"

    assert told in evalcube("plan", path, cwd=tmp_path)[1]
    code, output, _ = evalcube("run", path, "--quiet", cwd=tmp_path)
    assert code == 0
    assert "24 of 24 trials done" in output
    assert f"{told}: kept" in output
    output = evalcube("status", config["cube"], cwd=tmp_path)[1]
    assert told in output
    assert "alpha (not" in output
    assert told[1:] in evalcube("leaderboard", config["cube"], cwd=tmp_path)[2]
    assert "`" not in told
    with pytest.raises(SweepError, match="model=alpha"):
        upsample(config, trials=9, where=["model=alpha"], cluster=SHARED)


def test_run__data_sets_with_row_ids_come_before_and_after_one_another(tmp_path, simulator):
    config = judged_config(tmp_path, simulator.base_url, trials=6, judges=[])
    config["models"] = config["models"][:1]
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    more = tmp_path / "more.jsonl"
    more.write_text("".join(line.replace("capital", "chief town") + "\n" for line in rows[:5]))
    asked = {"id": "id"}
    config["tasks"] = {"old": {"task": "dataset", "params": {"file": str(tmp_path / "rows.jsonl"), **asked}}}
    run(config, cluster=SHARED)
    (tmp_path / "rows.jsonl").rename(tmp_path / "moved.jsonl")
    after = copy.deepcopy(config)
    after["trials"] = 8
    after["tasks"] = {"new": {"task": "dataset", "params": {"file": str(more), **asked}}}

    run(after, cluster=SHARED)
    # The file's rows are known by what is in it, wherever it lies.
    after["tasks"]["old"] = {"task": "dataset", "params": {"file": str(tmp_path / "moved.jsonl"), **asked}}
    spec = Cube.open(config["cube"]).attrs["spec"]
    run(after, cluster=SHARED)

    cube = Cube.open(config["cube"])
    assert cube.attrs["spec"] == spec
    assert cube.read_label("dataset_task").tolist() == ["old", "new"]
    ids = cube.read_label("row_id")
    assert [(row != "").sum() for row in ids] == [8, 5]
    assert set(ids[1]) - {""} == {"france", "italy", "germany", "spain", "portugal"}
    assert verify_cube(config["cube"]).damages == []
    born = {**after, "cube": str(tmp_path / "born.zarr")}
    assert run(born, cluster=SHARED).sent == 0
    assert cells(config["cube"]) == cells(born["cube"])


class Killed(BaseException):
    """Ends a run wherever it writes."""


def test_run__a_kill_while_the_cube_grows_leaves_a_cube_that_the_next_run_completes(
    tmp_path, simulator, monkeypatch
):
    before = config_in(tmp_path, simulator, trials=2)
    after = copy.deepcopy(before)
    for add in (add_model, add_task, add_points, add_tier):
        add(after)
    run(before, cluster=SHARED)
    born = {**after, "cube": str(tmp_path / "born.zarr")}
    run(born, cluster=SHARED)
    put, specs = Directory.put, []
    for left in (10, 70):
        config = {**after, "cube": str(tmp_path / f"{left}.zarr")}
        shutil.copytree(before["cube"], config["cube"])
        budget = iter(range(left))

        def until_killed(self, *args, budget=budget, **options):
            if next(budget, None) is None:
                raise Killed
            return put(self, *args, **options)

        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(Directory, "put", until_killed)
            run(config, cluster=SHARED)
        specs.append(Cube.open(config["cube"]).attrs["spec"])

        assert run(config, cluster=SHARED).reason == "complete"
        assert cells(config["cube"]) == cells(born["cube"]), left

    old, new = (Cube.open(one["cube"]).attrs["spec"] for one in (before, config))
    assert [old, new] == [spec for place, spec in enumerate(specs) if spec not in specs[:place]]
