"""Whole sweeps: a real simulator process, real workers, real kills."""

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from evalcube.deploy.clusters import LocalProcesses
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Noted
from evalcube.flows.run.sweep import run
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube, Region
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import LeaseHeldError
from tests.flows.judging import LAYERS, judged_config
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    UNTIMED,
    arrays,
    assert_same_cube,
    command,
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
from tests.storage.support.cache_stores import DirectoryPlace
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, _served):
    """A finished sweep of 40 trials."""
    reset(_served)
    config = sweep_config(tmp_path_factory.mktemp("sweep"), _served.base_url)
    run(config, cluster=SHARED)
    return config


@pytest.fixture
def finished(sweep, tmp_path, simulator):  # noqa: ARG001 - nothing has been asked yet
    """That sweep in a folder of the test."""
    return copied(sweep, tmp_path)


def test_run__fills_the_cube_and_sends_each_request_once(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"))

    summary = run(config, cluster=SHARED)

    stats = simulator_stats(simulator)
    assert summary.reason == "complete"
    assert summary.trials == summary.done == 2 * 5 * 8
    assert stats["requests"] == stats["distinct"] == summary.sent == 80
    dataset = loaded(config["cube"])
    status = dataset["status"].transpose("model", "task", "params", "trial", "repeat").to_numpy()
    assert np.isin(status[:, 0], [0, 1, 2, 3, 4]).all()
    assert (status[:, 1, 1:] == 255).all()  # padding of the shorter manifold
    trials = dataset["counters"].sel(counter="trials").sum().item()
    assert trials == 80


def test_run__again_sends_nothing_and_starts_no_cluster(finished, simulator):
    cube = arrays(finished["cube"])

    class NoCluster(LocalProcesses):
        def connect(self):
            raise AssertionError("a finished sweep needs no cluster")

    summary = run(finished, cluster=NoCluster())

    assert summary.reason == "complete"
    assert simulator_stats(simulator)["requests"] == 0
    for name, values in arrays(finished["cube"]).items():
        np.testing.assert_array_equal(values, cube[name])


def test_run__more_trials_leave_the_first_untouched_and_ask_only_the_new(tmp_path, finished, simulator):
    first, latency = arrays(finished["cube"]), stored(Cube.open(finished["cube"]), "latency")

    summary = run({**finished, "trials": 32}, cluster=SHARED)

    assert summary.reason == "complete"
    assert simulator_stats(simulator)["requests"] == 24 * 5
    grown = Cube.open(finished["cube"])
    for name in UNTIMED:
        np.testing.assert_array_equal(stored(grown, name)[..., :8, :], first[name])
    np.testing.assert_array_equal(stored(grown, "latency")[..., :8, :], latency)
    at_once = {**finished, "trials": 32, "cube": str(tmp_path / "at_once.zarr")}
    run(at_once, cluster=SHARED)
    assert_same_cube(finished["cube"], at_once["cube"])


def test_run__fewer_trials_than_the_cube_has_is_done_at_once(finished):
    summary = run({**finished, "trials": 2}, cluster=SHARED)

    assert (summary.reason, summary.trials, summary.done) == ("complete", 10, 10)
    assert Cube.open(finished["cube"]).sizes["trial"] == 8


def test_run__repeats_grow_too_and_differ(finished, simulator):
    run({**finished, "repeats": 3}, cluster=SHARED)

    cube = Cube.open(finished["cube"])
    status = stored(cube, "status")
    assert cube.sizes["repeat"] == 3
    assert simulator_stats(simulator)["requests"] == 8 * 5 * 2
    assert (status[..., 0] != status[..., 1]).any()


def test_run__a_driver_keeps_others_out_and_is_resumed_bit_for_bit_when_it_is_killed(tmp_path, simulator):
    config = judged_config(tmp_path, simulator.base_url)
    for model in config["models"]:
        model["simulate"]["latency"] = 0.2
        model["limits"]["connections"] = 2  # many seconds: the kill comes amid what judges are asked
    path = write_config(tmp_path, config)
    process = command("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    try:
        wait_until(lambda: simulator_stats(simulator)["models"].get("grader", 0) > 12)
        with pytest.raises(LeaseHeldError, match=str(process.pid)):
            run(config, cluster=SHARED)
        watched = evalcube("status", config["cube"], cwd=tmp_path)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    wait_until(lambda: simulator_stats(simulator)["in_flight"] == 0)
    interrupted = simulator_stats(simulator)
    for model in config["models"]:
        model["limits"]["connections"] = 32
    write_config(tmp_path, config)

    code, output, errors = evalcube("run", path, "--quiet", cwd=tmp_path)

    assert watched[0] == 0
    assert f"running as process {process.pid}" in watched[1]
    assert code == 0, errors
    assert "48 of 48" in output
    stats = simulator_stats(simulator)
    assert interrupted["finished"] < stats["distinct"]
    # Only what was in flight at the kill, at most one per connection, may be asked again.
    assert stats["requests"] <= stats["distinct"] + 3 * 2
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "other-cache")}
    assert run(calm, cluster=SHARED).sent == stats["distinct"]
    assert_same_cube(config["cube"], calm["cube"])
    ours, theirs = (Cube.open(one["cube"]) for one in (config, calm))
    for name in LAYERS:
        np.testing.assert_array_equal(stored(ours, name), stored(theirs, name))


def test_run__a_lost_ledger_costs_no_request(finished, simulator):
    before = arrays(finished["cube"])
    Cube.open(finished["cube"]).records.delete("ledger.jsonl")

    summary = run(finished, cluster=SHARED)

    assert (summary.reason, summary.cached, summary.sent) == ("complete", 40, 0)
    assert simulator_stats(simulator)["requests"] == 0
    for name, values in arrays(finished["cube"]).items():
        np.testing.assert_array_equal(values, before[name])


def test_run__a_damaged_cache_entry_is_asked_again(finished):
    key = next(info.key for info in open_cache(finished["cache"], writable=False).entries())
    place = DirectoryPlace(finished["cache"])
    place.overwrite(key, place.raw(key)[:-3])
    Cube.open(finished["cube"]).records.delete("ledger.jsonl")

    summary = run(finished, cluster=SHARED)

    assert (summary.reason, summary.cached, summary.sent) == ("complete", 39, 1)


def test_run__counters_left_behind_by_a_kill_are_brought_up_to_date(finished):
    cube = Cube.open(finished["cube"], writable=True)
    right = cube.read_counters()
    cube.write_counters({0: np.zeros_like(right[0])})

    run(finished, cluster=SHARED)

    np.testing.assert_array_equal(Cube.open(finished["cube"]).read_counters(), right)


def test_run__a_region_written_but_not_recorded_is_done_again(finished, simulator):
    config = {**finished, "trials": 16}
    records = Cube.open(config["cube"]).records
    ledger = records.get("ledger.jsonl").data
    early = Cube.open(config["cube"]).read_counters()
    run(config, cluster=SHARED)
    right = arrays(config["cube"])
    # As a kill leaves it between writing the grown region and recording it, with part of an array torn.
    records.put("ledger.jsonl", ledger)
    cube = Cube.open(config["cube"], writable=True)
    cube.write_counters({0: early[0]})
    region = cube.read_region(Region(0, 0, 0))
    region["tokens"][..., 8:, :] = -1
    cube.write_region(Region(0, 0, 0), region)
    sent = simulator_stats(simulator)["requests"]

    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.sent, summary.cached) == ("complete", 0, 8 * 5)
    assert simulator_stats(simulator)["requests"] == sent
    for name, values in arrays(config["cube"]).items():
        np.testing.assert_array_equal(values, right[name], name)


def test_run__transport_errors_are_no_answers_and_are_finished_by_the_next_run(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url)
    set_faults(simulator, [{"kind": "status", "status": 500, "share": 0.4}])

    summary = run(config, cluster=SHARED)

    assert summary.reason == "incomplete"
    assert 0 < summary.transport < 40
    assert summary.causes == {"http 500": summary.transport}
    counters = loaded(config["cube"])["counters"]
    assert counters.sel(counter="transport").sum().item() == summary.transport
    assert counters.sel(counter="trials").sum().item() == 40 - summary.transport
    set_faults(simulator, [])
    sent = simulator_stats(simulator)["requests"]
    healed = run(config, cluster=SHARED)
    assert healed.reason == "complete"
    assert simulator_stats(simulator)["requests"] - sent == summary.transport


def test_run__changed_prices_and_facets_are_taken_over_without_a_request(finished, simulator):
    config = finished
    config["models"][0]["prices"] = {"prompt": 1.0, "completion": 10.0}
    config["models"][0]["facets"] = {"family": "new"}

    summary = run(config, cluster=SHARED)

    assert (summary.reason, simulator_stats(simulator)["requests"]) == ("complete", 0)
    dataset = loaded(config["cube"])
    counters = dataset["counters"].sum(("task", "params")).isel(model=0)
    expected = (counters.sel(counter="prompt_tokens_sum") + 10 * counters.sel(counter="tokens_sum")) / 1e6
    assert counters.sel(counter="cost_sum").item() == pytest.approx(expected.item())
    assert dataset["price_completion"].item() == 10.0
    assert dataset["facets"].item() == '{"family": "new"}'


def test_run__another_config_is_refused_with_the_difference(sweep):
    with pytest.raises(SweepError) as caught:
        run({**sweep, "seed": 7, "samplers": {"greedy": {"temperature": 1}}}, cluster=SHARED)

    text = str(caught.value)
    assert re.search(r"seed is 42 .* 7 ", text)
    assert "sampler greedy is" in text
    assert "`cube`" in text


def test_run__evaluations_that_send_the_same_requests_are_refused(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:1/v1")
    config["models"] = [
        {"name": name, "endpoint": f"http://127.0.0.1:{port}/v1", "model": "same"}
        for name, port in (("a", 1), ("b", 2))
    ]

    with pytest.raises(SweepError, match="same requests"):
        run(config)


def test_run__says_that_it_watches_a_holder_on_another_machine_and_takes_over(finished):
    process = {"host": "far-away", "boot": "another", "pid": 77, "start": 5}
    held = {"token": "t", "process": process, "since": 1e9, "ttl": 0.3}
    (Path(finished["cube"]) / "_evalcube" / "lease.json").write_text(json.dumps(held))
    notes = []

    run(finished | {"trials": 9}, cluster=SHARED, subscribers=[notes.append])

    texts = [note.message for note in notes if isinstance(note, Noted)][:2]
    assert "process 77 on" in texts[0]
    assert "far-away" in texts[0]
    assert "Ctrl-C" in texts[0]
    assert "taken over" in texts[1]


def test_run__a_region_under_way_can_be_read_before_it_is_complete(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=24)
    config["models"][0]["simulate"]["latency"] = 0.1

    run(config, cluster=SHARED, flush_seconds=0.2)

    receipts = list(Ledger(Cube.open(config["cube"]).records).receipts())
    assert len(receipts) > 1
    assert [receipt.complete for receipt in receipts] == [False] * (len(receipts) - 1) + [True]
    calm = {**config, "cube": str(tmp_path / "calm.zarr")}
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])
