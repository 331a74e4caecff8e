"""A sweep that is handed to a running Dask cluster goes on there, also when its driver's worker is killed."""

import os
import signal
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from distributed import Client

from evalcube.flows.read.status import cube_status
from evalcube.flows.run.jobs import dask_driver
from evalcube.flows.run.jobs.dask_driver import DriverOrder, _with_paths
from evalcube.flows.run.sweep import run
from tests import waiting
from tests.flows.bare_cluster import bare_cluster, bare_python
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    assert_same_cube,
    evalcube,
    refused,
    simulator_stats,
    sweep_config,
    write_config,
)
from tests.waiting import PATIENCE

pytestmark = pytest.mark.cluster
wait_until = partial(waiting.wait_until, pause=0.5)  # each look at the cube takes a tenth of a second


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers of an environment that has evalcube."""
    folder = tmp_path_factory.mktemp("dask") / "cluster"
    with bare_cluster(folder, python=sys.executable, options=("--no-nanny",)) as cluster:
        yield cluster


def submit(tmp_path, cluster, config):
    return evalcube("submit", write_config(tmp_path, config), "--scheduler", cluster.address, cwd=tmp_path)


def slow(tmp_path, simulator, trials):
    config = sweep_config(tmp_path, simulator.base_url, trials=trials)
    config["models"][0]["simulate"]["latency"] = 0.2
    return config


def is_over(config):
    return cube_status(config["cube"])["running"] is None


def test_submit__refuses_what_a_run_refuses_before_it_asks(tmp_path, cluster, simulator):
    config = sweep_config(tmp_path, simulator.base_url)
    config["models"][0]["key_env"] = "NO_SUCH_KEY_HERE"

    refused(submit(tmp_path, cluster, config), "NO_SUCH_KEY_HERE is not set on the worker")

    assert simulator_stats(simulator)["requests"] == 0


@pytest.fixture
def with_bare_worker(tmp_path, cluster):
    """The cluster, with one more worker that has no evalcube."""
    with Client(cluster.address, set_as_default=False) as client:
        others = len(client.scheduler_info(n_workers=-1)["workers"])
        process = cluster.add_worker(python=bare_python(tmp_path))
        client.wait_for_workers(others + 1, timeout=PATIENCE)
        yield cluster
        os.killpg(process.pid, signal.SIGKILL)
        waiting.wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == others)


def test_submit__refuses_workers_without_evalcube(tmp_path, with_bare_worker, simulator):
    config = sweep_config(tmp_path, simulator.base_url)

    refused(submit(tmp_path, with_bare_worker, config), "has no evalcube")


def test_submit__returns_while_the_sweep_goes_on_which_is_stopped_submitted_again_and_goes_on_after_a_kill(
    tmp_path, cluster, simulator
):
    config = slow(tmp_path, simulator, 30)

    code, output, errors = submit(tmp_path, cluster, config)
    begun = cube_status(config["cube"])
    stopped = evalcube("stop", config["cube"], cwd=tmp_path)
    wait_until(lambda: is_over(config), told=cluster.logs)
    left = cube_status(config["cube"])
    asked_until_stopped = simulator_stats(simulator)["requests"]
    again = submit(tmp_path, cluster, config)
    worker = cube_status(config["cube"])["driver"]["worker"]
    with Client(cluster.address, set_as_default=False) as client:
        (process,) = client.run(os.getpid, workers=[worker]).values()
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: cube_status(config["cube"])["complete"], told=cluster.logs)
    wait_until(lambda: is_over(config), told=cluster.logs)
    asked = simulator_stats(simulator)["requests"]
    shown = evalcube("status", config["cube"], cwd=tmp_path)[1]

    assert code == 0, errors
    assert f"{config['cube']}: asking" in output
    assert not begun["complete"]
    assert begun["driver"]["scheduler"] == cluster.address
    assert stopped[0] == 0, stopped
    assert not left["complete"]
    assert any("ended: stopped" in line for line in left["driver"]["lines"])
    assert sum(row["done"] for row in left["models"]) == asked_until_stopped
    assert again[0] == 0, again
    assert f"submitted to {cluster.address}" in " ".join(shown.split())
    assert "ended: complete" in shown
    driver = cube_status(config["cube"])["driver"]
    assert any("the driver goes on here" in line for line in driver["lines"])
    assert driver["worker"] != worker
    assert asked <= 150 + 2 * 8  # what was in flight
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm-cache")}
    calm["models"] = [{**config["models"][0], "limits": {"connections": 32}}]
    run(calm, cluster=SHARED)
    assert_same_cube(config["cube"], calm["cube"])


def test_submit__says_what_it_can_do(tmp_path, simulator, monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))

    nowhere = evalcube("submit", path, cwd=tmp_path)
    both = evalcube("submit", path, "--scheduler", "tcp://h:1", "--dry-run", cwd=tmp_path)

    refused(nowhere, "to a running Dask cluster or to Slurm", "--scheduler", "evalcube run")
    refused(both, "--dry-run is for Slurm")


def test_drive__asks_the_part_that_was_submitted(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        dask_driver, "run", lambda _, **options: asked.append(options["only"]) or SimpleNamespace(reason="x")
    )
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1")

    outcome = dask_driver.drive(
        DriverOrder("n", config, "tcp://a:1", 1, 60.0, ((), "", 0), ("model=alpha",), "tcp://a:1")
    )

    assert (outcome, asked) == ({"done": "x"}, [("model=alpha",)])


def test_with_paths__moves_files_and_nothing_else():
    document = {"a": [{"file": "q.csv"}], "b": "other", "c": 3, "q.csv": None}

    moved = _with_paths(document, {"q.csv": "/here/q.csv"})

    assert moved == {"a": [{"file": "/here/q.csv"}], "b": "other", "c": 3, "q.csv": None}
