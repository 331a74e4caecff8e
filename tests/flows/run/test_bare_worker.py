"""Workers that join in mid-run without evalcube, and after somebody typed what they were told."""

import itertools
import re

import pytest

from evalcube.deploy.clusters import ClusterError
from evalcube.flows.events import BlockDone, Noted
from evalcube.flows.run.sweep import run
from tests.flows.bare_cluster import BareCluster, assert_nothing_is_left, bare_cluster, bare_python
from tests.flows.support import simulator_stats, sweep_config
from tests.installed import environment_with, wheel

pytestmark = pytest.mark.integration
__all__ = ["wheel"]


def test_run__a_late_worker_without_evalcube_is_told_what_to_type_and_one_that_has_the_wheel_takes_part(
    tmp_path, simulator, wheel
):
    config = sweep_config(tmp_path, simulator.base_url, trials=400)
    config["models"][0]["simulate"]["latency"] = 0.2
    installed = environment_with(wheel, tmp_path / "installed")
    notes, joined = [], itertools.count()

    def follow(event):
        if isinstance(event, BlockDone) and next(joined) == 0:
            cluster.add_worker("--name", "bare", python=bare_python(tmp_path))
            cluster.add_worker("--name", "wheel", python=installed)
        if isinstance(event, Noted):
            notes.append(event.message)

    with bare_cluster(tmp_path / "cluster") as cluster:
        summary = run(config, scheduler=cluster.address, subscribers=[follow])
        assert_nothing_is_left(cluster)

    assert (summary.reason, summary.done) == ("complete", 2000)
    (refused,) = [note for note in notes if "does not take part in the run" in note]
    assert re.search(
        r"has no evalcube\. Type there, and start the worker again: .*/bin/python -m pip install", refused
    )
    assert simulator_stats(simulator)["requests"] == 2000


def test_run__a_scheduler_without_evalcube_is_told_what_to_type(tmp_path, simulator):
    (tmp_path / "cluster").mkdir()
    cluster = BareCluster(tmp_path / "cluster", python=bare_python(tmp_path))
    try:
        cluster.start_scheduler()
        with pytest.raises(ClusterError, match="scheduler has no evalcube"):
            run(sweep_config(tmp_path, simulator.base_url), scheduler=cluster.address)
    finally:
        cluster.close()
