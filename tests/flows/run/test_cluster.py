"""Sweeps on clusters: stages by name, a scheduler that somebody else runs, workers that die, secrets that stay put."""

import os
import signal
import threading

import pytest
from distributed import Client, LocalCluster

from evalcube.deploy.clusters import ClusterError, LocalProcesses
from evalcube.deploy.clusters.code import Code
from evalcube.deploy.clusters.registrar import WANTED
from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone
from evalcube.flows.run.sweep import run
from evalcube.storage.cube.cube import Cube
from tests.flows.bare_cluster import bare_cluster
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, hooked, set_key, simulator_stats, sweep_config

STAGES = {"generate", "infer", "process", "score", "analyze"}


@pytest.mark.integration  # the short campaign of kills has this one, too
def test_run__a_killed_worker_costs_no_trial(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=60, models=("alpha", "beta"))
    for model in config["models"]:
        model["simulate"]["latency"] = 0.05
    victims = []

    def note_workers(client):
        victims.extend(client.run(os.getpid).values())
        yield

    def kill_one(event):
        if isinstance(event, BlockDone) and len(victims) == 2:
            os.kill(victims.pop(), signal.SIGKILL)

    summary = run(config, cluster=hooked(note_workers, 2), subscribers=[kill_one])

    assert len(victims) == 1
    assert (summary.reason, summary.done) == ("complete", 600)
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm-cache")}
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])


CLIENTS = []


def keep(client):
    """Let a test get at the cluster while a sweep runs."""
    CLIENTS.append(client)
    try:
        yield
    finally:
        CLIENTS.clear()


def once_running(action):
    """A subscriber that acts on the first graded block."""
    done = []

    def act(event):
        if isinstance(event, BlockDone) and not done:
            done.append(event)
            threading.Thread(target=action).start()

    return act


def slow_config(tmp_path, simulator, connections, **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    config["models"][0]["simulate"]["latency"] = 0.1
    config["models"][0]["limits"]["connections"] = connections
    return config


def completes(config):
    """Whether the next run does what is left, now with connections enough."""
    config["models"][0]["limits"]["connections"] = 32
    return run(config, cluster=SHARED).reason == "complete"


def test_run__workers_that_join_add_no_connections(tmp_path, simulator):
    config = slow_config(tmp_path, simulator, 4, trials=40)
    join = once_running(lambda: CLIENTS[0].cluster.scale(2))

    summary = run(config, cluster=hooked(keep, 1), subscribers=[join])

    assert summary.reason == "complete"
    # What a shrinking share has in flight ends as usual while a new worker begins.
    assert simulator_stats(simulator)["most_in_flight"] <= 4 + 2


def test_run__ends_with_a_message_when_no_worker_is_left(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(LocalProcesses, "patience", 4.0)
    monkeypatch.setattr("evalcube.flows.run.workers._NOTE_SECONDS", 0.5)
    config = slow_config(tmp_path, simulator, 2, trials=40)
    notes = []
    leave = once_running(lambda: CLIENTS[0].cluster.scale(0))

    with pytest.raises(ClusterError, match="no worker for"):
        run(
            config,
            cluster=hooked(keep, 1),
            subscribers=[leave, lambda event: notes.append(getattr(event, "message", ""))],
        )

    assert any("has no workers" in note for note in notes)
    assert completes(config)


@pytest.mark.integration
def test_run__ends_with_a_message_when_the_scheduler_dies_with_a_result(tmp_path, simulator, monkeypatch):
    config = sweep_config(tmp_path, simulator.base_url)
    fetch = Code.fetch

    with bare_cluster(tmp_path / "cluster", workers=1) as cluster:
        scheduler = cluster.processes[0]

        def late(code, future):
            scheduler.kill()
            scheduler.wait()
            return fetch(code, future)

        monkeypatch.setattr(Code, "fetch", late)
        with pytest.raises(ClusterError, match="its scheduler"):
            run(config, scheduler=cluster.address)

    assert completes(config)


KEY = "sk-verysecret-0123456789"


@pytest.mark.cluster
def test_run__on_a_scheduler_that_somebody_started_leaves_no_key_there_and_says_so_when_it_dies(
    tmp_path, simulator
):
    folder = tmp_path / "cluster"
    config = sweep_config(tmp_path, simulator.base_url)
    config["models"][0]["key_env"] = "SIMULATED_KEY"
    keyless = slow_config(tmp_path, simulator, 2, trials=40, cube="keyless.zarr", seed=7)
    set_key(simulator, KEY)

    with bare_cluster(folder, workers=1, env={"SIMULATED_KEY": KEY}, options=("--no-nanny",)) as cluster:
        summary = run(config, scheduler=cluster.address)
        again = run({**config, "trials": 10}, scheduler=cluster.address)
        requests = simulator_stats(simulator)["requests"]
        config["models"][0]["key_env"] = "ANOTHER_KEY"
        with pytest.raises(SweepError) as caught:
            run({**config, "trials": 11}, scheduler=cluster.address)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        holders = [path for path in files if KEY.encode() in path.read_bytes()]
        set_key(simulator)
        kill = once_running(cluster.processes[0].kill)
        with pytest.raises(ClusterError, match="its scheduler"):
            run(keyless, scheduler=cluster.address, subscribers=[kill])

    assert (summary.reason, summary.done) == ("complete", 40)
    assert (again.reason, again.sent, requests) == ("complete", 10, 50)
    assert "ANOTHER_KEY" in str(caught.value)
    assert "is not set" in str(caught.value)
    assert len(files) > 50
    assert holders == []
    assert completes(keyless)


def test_run__on_a_cluster_or_client_of_dasks_that_is_left_as_it_is(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url)

    with (
        LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        on_cluster = run(config, cluster=cluster)
        on_client = run({**config, "trials": 10}, cluster=client)
        stages = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
        after = client.submit(abs, -3).result()

    assert (on_cluster.reason, on_cluster.sent) == ("complete", 40)
    assert (on_client.reason, on_client.sent) == ("complete", 10)
    assert stages == {*STAGES, WANTED}  # as its dashboard shows them
    assert after == 3


@pytest.mark.model
def test_run__measures_a_real_model(tmp_path):
    config = {
        "trials": 4,
        "cube": str(tmp_path / "cube.zarr"),
        "cache": str(tmp_path / "cache"),
        "models": [
            {"name": "smollm2", "endpoint": "local:smollm2", "limits": {"connections": 2, "timeout": 200}}
        ],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 24}},
        "tasks": {
            "boolean": {"manifold": [{"points": [{"length": 3}]}]},
            "letters": {"manifold": [{"points": [{"target_words": 1, "confounder_words": 1}]}]},
        },
    }

    summary = run(config, workers=1)

    assert (summary.reason, summary.done, summary.sent) == ("complete", 8, 8)
    counters = Cube.open(config["cube"]).dataset()["counters"].sum(("model", "task", "params")).compute()
    assert counters.sel(counter="trials").item() == 8
    assert counters.sel(counter="prompt_tokens_sum").item() > 8 * 20
    assert 8 <= counters.sel(counter="tokens_sum").item() <= 8 * 24
