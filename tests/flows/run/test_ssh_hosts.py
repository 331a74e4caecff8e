"""A sweep on Dask's SSHCluster over loopback, of which a worker is lost in mid-sweep."""

import os
import sys
from pathlib import Path

import pytest

from evalcube.flows.events import BlockDone, Noted
from evalcube.flows.run.sweep import run
from tests.deploy.clusters.ssh.sshd import processes, serving
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
CONNECTIONS = 8


def test_run__on_an_ssh_cluster_goes_on_when_a_worker_is_lost_and_asks_nothing_again(
    tmp_path, simulator, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    config = sweep_config(tmp_path, simulator.base_url, trials=80)
    (model,) = config["models"]
    model["simulate"]["latency"] = 0.2
    model["limits"]["connections"] = CONNECTIONS
    lost, notes = [], []

    def lose(event):
        if isinstance(event, BlockDone) and not lost:
            # The first that is started is the scheduler.
            lost.extend(sorted(processes("dask_spec\0tls://"))[:1])
            for process in lost:
                os.kill(process, 9)
        if isinstance(event, Noted):
            notes.append(event.message)

    with serving(tmp_path / "ssh") as server:
        config["cluster"] = {
            "class": "distributed.SSHCluster",
            "options": {
                "hosts": ["127.0.0.1"] * 3,
                "connect_options": server.options,
                "worker_options": {"nthreads": 2},
                "remote_python": sys.executable,
            },
            "minimum": 2,
        }
        summary = run(config, subscribers=[lose])

    assert lost
    assert (summary.reason, summary.done) == ("complete", 400)
    assert simulator_stats(simulator)["requests"] <= 400 + CONNECTIONS
    wait_until(lambda: not processes("dask_spec\0tls://"))
    calm = {**config, "cube": str(tmp_path / "calm.zarr")}
    assert run(calm, cluster=SHARED).sent == 0
    assert_same_cube(config["cube"], calm["cube"])
