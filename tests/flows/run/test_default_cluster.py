"""Where a run works that names no cluster."""

import pytest

from evalcube.deploy.clusters import LocalProcesses, ThisProcess
from evalcube.flows.run.chosen_cluster import default_cluster
from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config


@pytest.mark.parametrize(
    ("trials", "kind"), [(0, ThisProcess), (10_000, ThisProcess), (10_001, LocalProcesses)]
)
def test_default_cluster__small_sweeps_need_no_process(trials, kind):
    assert isinstance(default_cluster(trials), kind)


def test_run__in_this_process_gives_the_cube_of_worker_processes(tmp_path, simulator):
    ours, theirs = (
        {
            **sweep_config(tmp_path, simulator.base_url, repeats=2),
            "cube": str(tmp_path / name),
            "cache": str(tmp_path / f"{name}-cache"),
        }
        for name in ("one", "two")
    )

    summary = run(ours)
    run(theirs, cluster=SHARED)

    assert (summary.reason, summary.sent) == ("complete", simulator_stats(simulator)["requests"] / 2)
    assert_same_cube(ours["cube"], theirs["cube"])
