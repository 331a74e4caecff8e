"""Sweeps whose requests go in batches: killed, stopped and resumed, with judges, beside ordinary ones."""

import json
import os
import signal
import sys
import threading
from functools import partial

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.events import Traffic
from evalcube.flows.plan.build import build_plan
from evalcube.flows.read.estimate import estimate
from evalcube.flows.run.endpoint_use import limit_use
from evalcube.flows.run.in_flight import make_limits
from evalcube.flows.run.summary import requests_in_batches
from evalcube.flows.run.sweep import run
from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory import Directory
from tests.flows.judging import judged_config
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    assert_same_cube,
    evalcube,
    hooked,
    set_batches,
    simulator_stats,
    stored,
    subprocess_of,
    sweep_config,
    write_config,
)
from tests.waiting import wait_until

QUICK = {"poll": 0.1, "patience": 0.3}
QUICK_PROCESS = f"""
import functools
import evalcube.flows.run.servers as servers
from evalcube.__main__ import main
servers.Batching = functools.partial(servers.Batching, **{QUICK})
main()
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("evalcube.flows.run.servers.Batching", partial(Batching, **QUICK))


def quick_process(*arguments, cwd):
    return subprocess_of([sys.executable, "-c", QUICK_PROCESS, *map(str, arguments)], cwd=cwd)


def batched(config, **changes):
    return {**config, **changes, "models": [{**model, "batch": True} for model in config["models"]]}


def wait_for(simulator, name, count):
    wait_until(lambda: simulator_stats(simulator)["batches"][name] >= count)


def test_run__killed_and_stopped_while_in_batches_it_pays_for_nothing_twice(tmp_path, simulator):
    plain = sweep_config(tmp_path, simulator.base_url, trials=12, models=("alpha", "beta"))
    config = batched(plain)
    path = write_config(tmp_path, config)
    set_batches(simulator, seconds=3600)

    process = quick_process("run", path, "--quiet", cwd=tmp_path)
    wait_for(simulator, "requests", 120)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    looks = simulator_stats(simulator)["batches"]["poll"]

    def interrupt():
        wait_for(simulator, "poll", looks + 8)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    code, _, errors = evalcube("run", path, "--quiet", cwd=tmp_path)
    assert code == 130, errors
    assert "120 requests are in batches at the endpoint; the same command collects" in errors

    set_batches(simulator, seconds=0)
    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.sent, summary.limits, summary.in_batches) == ("complete", 0, (), 0)
    stats = simulator_stats(simulator)
    assert (stats["requests"], stats["distinct"]) == (120, 120)
    assert np.isnan(stored(Cube.open(config["cube"]), "latency")).all()
    calm = {**plain, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm")}
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])
    # Either way, what the cache holds is not asked again.
    for other in ({**plain, "cube": str(tmp_path / "a.zarr")}, batched(calm, cube=str(tmp_path / "b.zarr"))):
        assert estimate(other).to_send == 0


def test_run__killed_while_it_creates_a_batch_that_has_no_metadata_it_pays_once(tmp_path, simulator):
    config = batched(sweep_config(tmp_path, simulator.base_url, trials=12))
    config["models"][0] |= {"api": "messages"}
    path = write_config(tmp_path, config)
    set_batches(simulator, seconds=0, faults={"create": [-1]})

    process = quick_process("run", path, "--quiet", cwd=tmp_path)
    wait_for(simulator, "batches", 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.sent) == ("complete", 0)
    stats = simulator_stats(simulator)
    assert (stats["requests"], stats["distinct"], stats["batches"]["create"]) == (60, 60, 1)


def test_run__a_killed_workers_batch_is_collected_by_another_and_judges_have_batches_too(tmp_path, simulator):
    judged = judged_config(tmp_path, simulator.base_url, trials=8)
    config = batched(judged)
    set_batches(simulator, seconds=2.0)
    victims = []

    def note_workers(client):
        victims.extend(client.run(os.getpid).values())
        yield

    def kill_one(event):
        if isinstance(event, Traffic) and event.sent and len(victims) == 2:
            victims.remove(int(event.worker.rpartition("/")[2]))
            os.kill(int(event.worker.rpartition("/")[2]), signal.SIGKILL)

    summary = run(config, cluster=hooked(note_workers, 2), subscribers=[kill_one])

    assert (summary.reason, len(victims)) == ("complete", 1)
    stats = simulator_stats(simulator)
    assert (stats["requests"], stats["most_attempts"]) == (stats["distinct"], 1)
    assert stats["batches"]["requests"] == stats["requests"] > 16
    calm = {**judged, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm")}
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])


def test_make_limits__batches_get_as_many_requests_as_they_take():
    endpoints = {
        "single": Endpoint("single", "http://h/v1", connections=4),
        "batch": Endpoint("batch", "http://h/v1", connections=1, batch=Batching(requests=50_000)),
        "judge": Endpoint("judge", "http://h/v1", batch=Batching(requests=2_000)),
    }
    single, batch = make_limits(["single", "batch"], endpoints, [10**6, 10**6], 4)
    (judged,) = make_limits(["single"], endpoints, [10**6], 4, ["judge"])
    for limit in (single, batch, judged):
        limit.workers = 4

    assert 50_000 <= batch.depth * batch.block_size / 4 < 52_000
    assert single.connections == 4
    assert single.depth * single.block_size / 4 <= 3 * 1024
    assert 2_000 <= judged.depth * judged.block_size / 4 < 4_096


def test_limit_use__batches_use_none():
    endpoints = {"a": Endpoint("a", "http://h/v1", batch=Batching())}
    traffic = Traffic(models={"a": {"requests": 9, "seconds": 0.0}}, asked={"a": (0.0, 2.0)})
    assert limit_use(endpoints, traffic) == ()


def test_requests_in_batches__counts_those_of_models_that_are_not_done(tmp_path):
    plan = build_plan(from_mapping(sweep_config(tmp_path, "http://127.0.0.1:1/v1", models=("alpha", "beta"))))
    folder = tmp_path / "batches"
    folder.mkdir()
    for token, model, count in (("a" * 8, "alpha", 3), ("b" * 8, "beta", 5), ("c" * 8, "gone", 7)):
        note = {
            "format": 1,
            "model": model,
            "file": "f",
            "batch": "",
            "digests": list(map(str, range(count))),
        }
        (folder / f"{token}.json").write_text(json.dumps(note))

    assert requests_in_batches(Directory(tmp_path), plan, [True, True]) == 8
    assert requests_in_batches(Directory(tmp_path), plan, [False, True]) == 5
    assert requests_in_batches(Directory(tmp_path / "none"), plan, [True, True]) == 0


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"batch": True, "stream": True}, "batch: excludes stream: true"),
        ({"batch": {}, "endpoint": "local:smollm2"}, "batch: excludes local models"),
        ({"batch": 7}, "batch: must be true, false or a mapping, got 7"),
        ({"batch": {"requests": 0}}, "batch.requests: must be at least 1"),
        ({"batch": {"request": 5}}, "Did you mean 'requests'?"),
    ],
)
def test_config__what_batches_cannot_be_is_told(tmp_path, model, problem):
    config = sweep_config(tmp_path, "http://127.0.0.1:1/v1")
    config["models"][0] |= model
    with pytest.raises(Exception, match=r"models\[0\]") as caught:
        from_mapping(config)
    assert problem in str(caught.value)


def test_config__batches_are_on_or_off_and_no_part_of_the_sweep(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:1/v1")
    plans = []
    for batch in (None, False, True, {"requests": 5}):
        config["models"][0]["batch"] = batch
        settings = from_mapping(config)
        assert (settings.models[0].batch is not None) == bool(batch)
        again = from_mapping(settings.model_dump(mode="json", exclude_unset=True))
        assert again.models[0].batch == settings.models[0].batch
        plans.append(build_plan(settings).spec())
    assert plans == [plans[0]] * 4
