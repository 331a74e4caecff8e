"""Sweeps that are measured further: everywhere, in part, or by need."""

from pathlib import Path

import numpy as np
import pytest

from evalcube import EvalcubeError
from evalcube.deploy.clusters import ClusterError, ExistingScheduler
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Noted
from evalcube.flows.plan.build import build_plan
from evalcube.flows.read.estimate import estimate
from evalcube.flows.read.selection import open_part
from evalcube.flows.run import driver
from evalcube.flows.run.driver import Driver
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import _confirm, upsample
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.store import open_store, relabel
from evalcube.flows.state.trust import STATE_VARIABLE
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import StorageError
from tests.cases import with_cases
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    arrays,
    assert_same_cube,
    copied,
    evalcube,
    loaded,
    refused,
    reset,
    simulator_stats,
    sweep_config,
    write_config,
)


def trials(cube):
    """Finished trials, (model, task, params)."""
    return loaded(cube)["counters"].sel(counter="trials").to_numpy().astype(int)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, _served):
    """A finished sweep of two models."""
    reset(_served)
    config = sweep_config(
        tmp_path_factory.mktemp("sweep"), _served.base_url, trials=2, models=("alpha", "beta")
    )
    run(config, cluster=SHARED)
    return config


@pytest.fixture
def finished(sweep, tmp_path, simulator):  # noqa: ARG001 - nothing has been asked yet
    """That sweep in a folder of the test."""
    return copied(sweep, tmp_path)


def test_upsample__asks_only_what_is_new_where_it_was_asked_for(finished, simulator):
    cube = finished["cube"]
    before = arrays(cube)

    summary = upsample(cube, trials=40, where=["model=beta", "tier=hard"], cluster=SHARED)

    assert (summary.reason, summary.trials, summary.done) == ("complete", 40, 40)
    assert simulator_stats(simulator)["requests"] == 38
    assert trials(cube).tolist() == [[[2] * 4, [2, 0, 0, 0]], [[2] * 4, [40, 0, 0, 0]]]
    np.testing.assert_array_equal(arrays(cube)["status"][..., :2, :], before["status"])
    missing = loaded(cube)["counters"].sel(counter="missing")
    assert missing.sum() == 0  # beyond the plan nothing is missing


def test_upsample__that_cannot_begin_leaves_the_plan_as_it_was(finished):
    before = Cube.open(finished["cube"]).sizes

    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9' "):
        upsample(finished, trials=8, cluster=ExistingScheduler("tcp://127.0.0.1:9", timeout=0.2))

    assert Cube.open(finished["cube"]).sizes == before
    plan = build_plan(from_mapping(finished))
    assert open_store(plan, finished["cube"]).planned.trials.max() == 2
    assert upsample(finished, trials=8, cluster=SHARED).done == 8 * 10


def test_upsample__in_parts_makes_the_cube_that_one_run_makes(tmp_path, finished):
    upsample(finished, trials=5, where=["task=boolean"], cluster=SHARED)
    upsample(finished["cube"], trials=5, where=["task=arithmetic"], repeats=1, cluster=SHARED)

    at_once = {**finished, "trials": 5, "cube": str(tmp_path / "at_once.zarr")}
    run(at_once, cluster=SHARED)

    assert_same_cube(finished["cube"], at_once["cube"])


class Killed(BaseException):
    """Ends a run amid its work."""


class KilledDriver(Driver):
    """One that is killed once the second round has recorded something."""

    rounds = 0

    def __init__(self, *parts):
        super().__init__(*parts)
        KilledDriver.rounds += 1

    def _record(self, region, receipt):
        super()._record(region, receipt)
        if KilledDriver.rounds == 2:
            raise Killed


@pytest.fixture
def kill(monkeypatch):
    """Kills a run or an upsampling amid its second round."""

    def kill(begin, config, **options):
        with monkeypatch.context() as patch:
            patch.setattr(KilledDriver, "rounds", 0)
            patch.setattr(driver, "Driver", KilledDriver)
            with pytest.raises(Killed):
                begin(config, **options, cluster=SHARED)

    return kill


def test_run__adaptive_precision_measures_where_it_is_not_sure_also_after_a_kill(tmp_path, simulator, kill):
    config = sweep_config(tmp_path, simulator.base_url, precision={"base": 16, "target": 0.11, "max": 80})
    del config["trials"]
    config["models"][0]["simulate"] = {"ability": 6.0, "slope": 1.0, "tokens": 20}
    config["tasks"]["arithmetic"]["manifold"][0]["grid"] = {"length": [3, 6, 12, 50], "max_depth": 0}
    kill(run, config)

    summary = run(config, cluster=SHARED)

    done = trials(config["cube"])
    assert summary.reason == "complete"
    assert summary.done == summary.trials == done.sum() == simulator_stats(simulator)["requests"]
    assert len({*done[0, 0]}) > 1
    assert set(done[0, 0]) <= {16, 32, 48, 64, 80}
    again = run(config, cluster=SHARED)
    assert (again.sent, again.cached, again.done) == (0, 0, summary.done)
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm")}
    assert run(calm, cluster=SHARED).sent == summary.done
    assert_same_cube(config["cube"], calm["cube"])


def test_run__marks_prompts_that_occurred_before(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=30, cells=1)
    config["tasks"]["brackets"] = {"params": {"length": 1, "max_depth": 1}}
    run(config, cluster=SHARED)

    dataset = loaded(config["cube"])

    flags = dataset["duplicate"].to_numpy()
    assert set(np.unique(flags[:, 0])) <= {0, 1}
    counted = dataset["counters"].sel(counter="duplicates").to_numpy()[0]
    np.testing.assert_array_equal(counted[:, 0], flags[:, 0].sum(axis=1))
    assert counted[2, 0] > 0
    board, planned = open_part(config["cube"]).warnings, estimate(config).few_problems
    assert [text.split(" repeat")[0] for text in board if "few problems" in text] == [
        "brackets: 1 of 1 points"
    ]
    assert planned == {"brackets": 1}
    run({**config, "trials": 45}, cluster=SHARED)
    grown = loaded(config["cube"])
    np.testing.assert_array_equal(grown["duplicate"].to_numpy()[..., :30], flags)
    assert grown["counters"].sel(counter="duplicates").sum() == (grown["duplicate"] == 1).sum()


def test_upsample__the_command_works_from_the_cube_alone(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url)
    config["tasks"] = dict(sorted(config["tasks"].items(), reverse=True))  # the order is part of the identity
    config["tasks"]["boolean"]["manifold"][0] = {"grid": {"max_depth": [1], "length": [4]}, "tiers": ["hard"]}
    path = write_config(tmp_path, config)
    assert evalcube("run", path, "--quiet", "--workers", 1, cwd=tmp_path)[0] == 0
    Path(path).unlink()

    code, output, errors = evalcube(
        "upsample",
        "cube.zarr",
        "--trials",
        12,
        "--where",
        "task=boolean",
        "--quiet",
        "--workers",
        1,
        cwd=tmp_path,
    )

    assert code == 0, errors
    assert "12 of 12 trials done" in output
    assert "4 requests sent" in output


def test_upsample__refuses_what_makes_no_sense(tmp_path, simulator):
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))
    refused(evalcube("upsample", path, cwd=tmp_path), "nothing to add", "--trials")
    (tmp_path / "empty").mkdir()
    for source, options, message in (
        (path, {"trials": 9, "where": ["model=x"]}, "`where`: there is no model 'x'.*alpha"),
        (path, {"precision": "best"}, "'best'.*low, medium, high"),
        (path, {"trials": 10**8}, "`trials`: must be .* 1 to 10,000,000, got 100000000"),
        (path, {"repeats": 0}, "`repeats`: must be .* 1 to 100,000, got 0"),
        (tmp_path / "none.zarr", {"trials": 9}, r"none\.zarr"),
        (tmp_path / "empty", {"trials": 9}, "not a cube"),
    ):
        with pytest.raises((EvalcubeError, StorageError), match=message):
            upsample(source, **options)


def test_upsample__a_cube_that_forgot_its_config_is_told(tmp_path, finished, monkeypatch):
    config = finished
    run(config, cluster=SHARED)  # in its place
    (Path(config["cube"]) / "_evalcube" / "sweep.json").unlink()

    assert upsample(config["cube"], trials=3, cluster=SHARED).reason == "complete"  # this user ran it
    (Path(config["cube"]) / "_evalcube" / "sweep.json").unlink()
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "of another user"))

    with pytest.raises(SweepError, match=r"config file"):
        upsample(config["cube"], trials=4, cluster=SHARED)


def spent_tokens(cube):
    counters = loaded(cube)["counters"]
    return counters.sel(counter=["tokens_sum", "prompt_tokens_sum"]).to_numpy().sum()


def test_upsample__a_budget_is_spent_about_where_it_tells_most_also_after_a_kill(tmp_path, simulator, kill):
    config = sweep_config(tmp_path, simulator.base_url, trials=16)
    config["tasks"]["arithmetic"]["manifold"][0]["grid"] = {"length": [3, 12, 50], "max_depth": 0}
    config["models"][0]["simulate"] = {"ability": 3.46, "slope": 3.0, "tokens": 20}
    run(config, cluster=SHARED)
    before = spent_tokens(config["cube"])
    budget = {"budget": "20k", "purpose": "intervals"}
    kill(upsample, config, **budget)

    summary = upsample(config["cube"], **budget, cluster=SHARED)

    assert summary.reason == "complete"
    assert 16_000 < spent_tokens(config["cube"]) - before < 22_000
    assert "budget" not in read_notes(Cube.open(config["cube"]).records)  # the same one later is a new one
    done = trials(config["cube"])
    assert done.sum() == summary.done
    assert done[:, 0, 1].sum() > 1.5 * done[:, 0, 0].sum()  # open outcomes against certain ones
    assert run(config, cluster=SHARED).sent == 0


def test_upsample__refuses_budgets_that_cannot_be_spent(tmp_path, simulator):
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))

    for arguments, fragments in (
        (("--budget", "much"), ("--budget: 'much' is no amount", "2M")),
        (("--budget", "2M"), ("no cube", "trials: 16")),
        (("--budget", "2M", "--trials", 5), ("--trials, --budget exclude each other",)),
        (("--budget", "2M", "--goal", "fame"), ("--goal: 'fame'", "ranking, intervals")),
    ):
        refused(evalcube("upsample", path, *arguments, cwd=tmp_path), *fragments)


@with_cases(("models", "more"), [(4, ""), (6, "2 more")])
def test_confirm__names_some_of_many_addresses_and_how_many_more_there_are(tmp_path, models, more):
    config = sweep_config(
        tmp_path, "http://127.0.0.1:1/v1", models=[f"m{number}" for number in range(models)]
    )

    with pytest.raises(SweepError) as raised:
        _confirm(from_mapping(config), {}, {})

    assert [f"m{number} at" in str(raised.value) for number in range(models)] == [True] * 4 + [False] * (
        models - 4
    )
    assert (" more" in str(raised.value), more in str(raised.value)) == (bool(more), True)


def test_upsample__a_budget_of_dollars_needs_prices(finished):
    config = finished
    with pytest.raises(SweepError, match=r"no prices.*prices:"):
        upsample(config, budget="5USD", cluster=SHARED)
    for model in config["models"]:
        model["prices"] = {"prompt": 100.0, "completion": 400.0}
    store = open_store(build_plan(from_mapping(config)), config["cube"])
    relabel(store.cube, store.plan)
    assert store.stale() == [0, 1]  # whoever was killed here counts the costs in the next run

    summary = upsample(config, budget="0.2USD", purpose="intervals", cluster=SHARED)

    assert (summary.reason, summary.trials > 20) == ("complete", True)
    counters = loaded(config["cube"])["counters"].sum(["model", "task", "params"])
    tokens = counters.sel(counter=["prompt_tokens_sum", "tokens_sum"]).to_numpy()
    assert float(counters.sel(counter="cost_sum")) == pytest.approx((tokens * [100.0, 400.0]).sum() / 1e6)
    assert open_store(store.plan, config["cube"]).stale() == []


def test_upsample__says_where_there_are_no_more_questions(tmp_path, simulator):
    (tmp_path / "sums.jsonl").write_text('{"q": "1+1?", "a": "2"}\n{"q": "2+2?", "a": "4"}\n')
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    params = {"file": str(tmp_path / "sums.jsonl"), "prompt": "q", "answer": "a"}
    config["tasks"] = {"sums": {"task": "dataset", "params": params}}
    run(config, cluster=SHARED)
    told = []

    summary = upsample(config, trials=50, cluster=SHARED, subscribers=[told.append])

    assert (summary.trials, summary.sent) == (2 * len(config["models"]), 0)
    notes = [str(event) for event in told if isinstance(event, Noted)]
    assert any("sums has 2 " in note and "50 trials" in note for note in notes)


def test_run__what_the_cube_was_grown_to_and_is_not_done_is_pending(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url)
    run(config, cluster=SHARED, trials="16:24")

    foreseen = estimate(config)
    summary = run(config, cluster=SHARED)

    assert (foreseen.to_send, foreseen.pending) == (40, 40)
    assert (summary.reason, summary.trials, summary.sent, summary.pending) == ("complete", 40, 40, 40)
    assert "; 40 trials" in str(summary)
