"""Sweeps on a real Slurm of one node, whose jobs are taken away."""

import importlib.util
import os
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from evalcube.flows.events import BlockDone
from evalcube.flows.run.sweep import run
from tests import waiting
from tests.deploy.clusters.slurm.slurm_node import slurm_node
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, command, simulator_stats, sweep_config, write_config
from tests.tiers import need

pytestmark = pytest.mark.integration
wait_until = partial(waiting.wait_until, pause=0.3)  # each look at the queue starts a program
CONNECTIONS = 8


@pytest.fixture(scope="module")
def node():
    need("dask-jobqueue", importlib.util.find_spec("dask_jobqueue"), "pip install dask-jobqueue")
    with slurm_node() as found:
        yield found


@pytest.fixture
def slurm(node, monkeypatch):
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    # So that this test's own evalcube is what the workers import, and nothing is asked of a network's name service.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    node.wait_until_empty()
    return node


def on_slurm(tmp_path, simulator, *, latency=0.1, cluster=None, **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = latency
        model["limits"]["connections"] = CONNECTIONS
    options = {"cores": 1, "processes": 1, "memory": "1GiB", "walltime": "00:01:00", "interface": "lo"}
    folders = {"shared_temp_directory": str(tmp_path), "log_directory": str(tmp_path / "logs")}
    there = {
        "class": "dask_jobqueue.SLURMCluster",
        "options": {**options, **folders, **(cluster or {})},
        "scale": 2,
        "patience": "3m",
    }
    return {**config, "cluster": there}


def notes_of(events):
    return [event.message for event in events if hasattr(event, "message")]


def test_run__is_complete_and_the_same_though_walltime_and_scancel_take_its_jobs(tmp_path, simulator, slurm):
    config = on_slurm(tmp_path, simulator, latency=0.5, trials=220)
    hurried = [{**model, "limits": {**model["limits"], "connections": 256}} for model in config["models"]]
    calm = {"cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm-cache"), "models": hurried}
    run({**config, **calm}, cluster=SHARED)
    asked_calmly = simulator_stats(simulator)["distinct"]
    events, seen = [], set()

    def take_away():
        wait_until(lambda: any(isinstance(event, BlockDone) for event in events))
        seen.update(slurm.jobs())
        slurm.command("scancel", str(min(seen)))
        wait_until(lambda: seen.update(slurm.jobs()) or len(seen) >= 3)

    disturber = threading.Thread(target=take_away)
    disturber.start()
    # One of them retires before its walltime ends it, as a recipe has it.
    extra = ["--lifetime", "45s", "--lifetime-stagger", "5s"]
    config["cluster"]["options"]["worker_extra_args"] = extra
    summary = run(config, subscribers=[events.append])
    disturber.join()

    assert summary.reason == "complete"
    assert_same_cube(config["cube"], calm["cube"])
    slurm.wait_until_empty()
    assert len(seen) >= 3
    assert any("others are started" in note for note in notes_of(events))
    counts = simulator_stats(simulator)
    assert 0 <= counts["requests"] - 2 * asked_calmly <= CONNECTIONS * len(seen)


def test_run__a_refusal_of_sbatch_is_one_message(tmp_path, simulator, slurm):
    config = write_config(tmp_path, on_slurm(tmp_path, simulator, cluster={"memory": "900GiB"}))

    process = command("run", config, "--quiet", cwd=tmp_path)
    _, errors = process.communicate()

    assert process.returncode == 2, errors
    assert "Requested node configuration" in errors
    assert len(errors.splitlines()) == 1
    slurm.wait_until_empty()


def test_run__ctrl_c_cancels_its_jobs_also_while_they_wait(tmp_path, simulator, slurm):
    config = write_config(
        tmp_path, on_slurm(tmp_path, simulator, cluster={"job_extra_directives": ["--hold"]})
    )

    process = command("run", config, "--quiet", cwd=tmp_path)
    wait_until(lambda: "PENDING" in slurm.jobs().values())
    [keys] = tmp_path.glob(".evalcube-keys-*")
    files = len(list(keys.iterdir()))
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()

    assert process.returncode == 130, errors
    assert (files, keys.exists()) == (3, False)
    slurm.wait_until_empty()
