"""Two runs at once that need the same answers, with one cache: each answer is paid for once."""

import os
import signal

from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, command, simulator_stats, sweep_config, write_config
from tests.waiting import wait_until

TRIALS, CONNECTIONS = 60, 8
REQUESTS = 5 * TRIALS


def config_of(tmp_path, simulator, name):
    config = sweep_config(tmp_path, simulator.base_url, trials=TRIALS, cube=f"{name}.zarr")
    config["models"][0]["simulate"]["latency"] = 0.1
    return config


def test_run__of_two_at_once_one_asks_and_goes_on_where_the_other_dies(tmp_path, simulator):
    configs = {name: config_of(tmp_path, simulator, name) for name in ("first", "second")}
    processes = {}
    for name, config in configs.items():
        (tmp_path / name).mkdir()
        path = write_config(tmp_path / name, config)
        processes[name] = command("run", path, "--quiet", cwd=tmp_path)

    wait_until(lambda: simulator_stats(simulator)["requests"] >= REQUESTS // 3)
    os.killpg(processes["first"].pid, signal.SIGKILL)
    processes["first"].communicate()
    _, errors = processes["second"].communicate()

    assert processes["second"].returncode == 0, errors
    stats = simulator_stats(simulator)
    assert stats["distinct"] == REQUESTS
    assert stats["requests"] <= REQUESTS + 2 * CONNECTIONS
    summary = run(configs["first"], cluster=SHARED)
    assert (summary.reason, summary.sent) == ("complete", 0)
    assert_same_cube(configs["first"]["cube"], configs["second"]["cube"])
