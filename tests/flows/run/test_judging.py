"""Sweeps with assertions and judges end to end: simulator processes and real workers."""

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.cache import request_keys
from evalcube.flows.read.estimate import estimate
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.run.sweep import run
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.judging import LANDS, LAYERS, judged_config
from tests.flows.shared_cluster import PROCESSES, SHARED
from tests.flows.support import (
    loaded,
    reset,
    set_faults,
    simulator_stats,
    stored,
)
from tests.simulator.managed import Simulator


@pytest.fixture(scope="module")
def court():
    """A simulator of its own for the judges, so that their requests can be counted."""
    with Simulator() as server:
        yield server


def layers(cube):
    opened = Cube.open(cube)
    return {name: stored(opened, name) for name in LAYERS}


def test_run__scores_layers_asks_each_judge_once_and_keeps_to_its_connections(tmp_path, simulator, court):
    reset(court)
    config = judged_config(tmp_path, simulator.base_url, court.base_url)

    summary = run({**config, "trials": 10}, cluster=PROCESSES)
    first, half = layers(config["cube"]), simulator_stats(court)
    grown = run(config, cluster=PROCESSES)

    units = 2 * len(LANDS)
    stats = simulator_stats(court)
    assert (summary.reason, grown.reason, grown.done) == ("complete", "complete", units)
    assert simulator_stats(simulator)["requests"] == units
    assert half["requests"] <= 2 * 10 * 3
    # equal answers to equal questions are judged once, whoever gave them
    assert stats["requests"] == stats["distinct"] <= units * 3
    assert stats["most_in_flight"] == 1
    dataset = loaded(config["cube"])
    for name, values in first.items():
        np.testing.assert_array_equal(dataset[name].to_numpy()[:, :, :, :10], values)
    correct = dataset["status"] == 1
    assert 0 < int(correct.sum()) < units
    np.testing.assert_array_equal(dataset["fact"], np.where(correct, 5.0, 1.0))
    assert set(np.unique(dataset["behavior"])) == {1.0, 5.0}
    readings = dataset["judge_readings"]
    assert readings.dims[-2:] == ("judge_name", "judge_repeat")
    assert np.isnan(readings.sel(judge_name="loose", judge_repeat=1)).all()
    assert set(np.unique(readings.sel(judge_name="strict"))) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    strict, loose = (
        readings.sel(judge_name="strict").mean("judge_repeat"),
        readings.sel(judge_name="loose")[..., 0],
    )
    np.testing.assert_allclose(dataset["judge"], (strict + loose) / 2, rtol=1e-6)
    assert dataset["judge"].isel(model=1).mean() > dataset["judge"].isel(model=0).mean() + 1
    asked = list(request_keys(Reader(config["cube"])))
    assert len(asked) == units * 4
    held = open_cache(tmp_path / "cache", writable=False)
    assert set(asked) == {info.key for info in held.entries()}
    planned = estimate({**config, "cube": str(tmp_path / "new.zarr")})
    assert (planned.requests, planned.to_send) == (units * 4, 0)
    assert [(row.evaluation, row.requests, row.cached) for row in planned.judges] == [
        ("judge strict", units * 2, units * 2),
        ("judge loose", units, units),
    ]
    _shows_what_judges_said_also_after_the_rows_moved(config, tmp_path)


def _shows_what_judges_said_also_after_the_rows_moved(config, folder):
    (folder / "rows.jsonl").rename(folder / "moved.jsonl")
    params = {**config["tasks"]["dataset"]["params"], "file": str(folder / "moved.jsonl")}
    assert run({**config, "tasks": {"dataset": {"params": params}}}, cluster=SHARED).sent == 0

    view = Reader(config["cube"]).view(1, 0, 0, 3)

    assert view.messages[-1]["content"].startswith("What is the capital of ")
    trial = loaded(config["cube"]).isel(model=1, task=0, params=0, trial=3, repeat=0)
    assert view.layers == {name: float(trial[name]) for name in ("fact", "behavior", "judge")}
    said = [(opinion.judge, opinion.repeat, opinion.score) for opinion in view.opinions]
    readings = trial["judge_readings"].to_numpy()
    assert said == [
        ("strict", 0, readings[0, 0]),
        ("strict", 1, readings[0, 1]),
        ("loose", 0, readings[1, 0]),
    ]
    assert all(opinion.reason.endswith(" of it.") for opinion in view.opinions)
    assert {name for sent in view.judged for name in sent["judge"].split(", ")} == {"strict", "loose"}
    assert any(view.response in sent["content"] for sent in view.judged)


def test_run__without_references_nothing_is_ranked_and_the_composite_is_measured(tmp_path, simulator):
    config = judged_config(tmp_path, simulator.base_url, trials=3)
    config["tasks"]["dataset"]["params"] |= {"answer": "", "rubric": ""}
    config = {**config, "judges": [], "models": config["models"][:1]}

    run(config, cluster=SHARED)

    dataset = loaded(config["cube"])
    assert not dataset["in_tier"].any()
    assert np.isfinite(dataset["fact"]).all()
    assert "judge_readings" not in dataset
    assert Reader(config["cube"]).view(0, 0, 0, 0).status == "answered"
    assert leaderboard(config["cube"]).rows[0].rank is None


def test_run__another_rubric_is_another_cube_and_only_judges_are_asked(tmp_path, simulator):
    config = judged_config(tmp_path, simulator.base_url, trials=6)
    task = {**config["tasks"]["dataset"], "params": {"file": str(tmp_path / "rows.jsonl")}}
    plain = {**config, "tasks": {"dataset": {**task, "rubric": "Is short."}}, "judges": config["judges"][1:]}
    run(plain, cluster=SHARED)
    asked = simulator_stats(simulator)["models"]
    changed = {**plain, "tasks": {"dataset": {**task, "rubric": "Is polite."}}}

    with pytest.raises(SweepError, match=r"rubric of task dataset"):
        run(changed, cluster=SHARED)
    summary = run({**changed, "cube": str(tmp_path / "other.zarr")}, cluster=SHARED)

    stats = simulator_stats(simulator)["models"]
    assert summary.reason == "complete"
    assert (stats["before"], stats["after"]) == (asked["before"], asked["after"]) == (6, 6)
    assert stats["grader"] == 2 * asked["grader"]
    assert np.isnan(stored(Cube.open(plain["cube"]), "fact")).all()


def test_run__judges_out_of_reach_leave_trials_to_be_retried_and_cost_no_answer(tmp_path, simulator, court):
    reset(court)
    config = judged_config(tmp_path, simulator.base_url, court.base_url, trials=12)
    config["models"][-1]["limits"] = {"connections": 8, "retries": 0}
    set_faults(court, [{"kind": "status", "status": 500, "share": 0.2}])

    summary = run(config, cluster=SHARED)

    assert summary.reason == "incomplete"
    assert 0 < summary.transport < 24
    assert {cause.partition(":")[2] for cause in summary.causes} == {" http 500"}
    assert {cause.partition(":")[0] for cause in summary.causes} <= {"judge strict", "judge loose"}
    status = stored(Cube.open(config["cube"]), "status")
    assert (np.isnan(layers(config["cube"])["judge"]) == (status == 254)).all()
    set_faults(court, [])
    answers = simulator_stats(simulator)["requests"]

    healed = run(config, cluster=SHARED)

    assert healed.reason == "complete"
    assert simulator_stats(simulator)["requests"] == answers == 24
    assert not np.isnan(layers(config["cube"])["judge"]).any()
