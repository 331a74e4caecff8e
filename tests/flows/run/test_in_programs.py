"""A run inside somebody's program: beside another in a second thread, after a fork, and under an open client."""

import copy
import logging
import os
from concurrent.futures import ThreadPoolExecutor

import dask
import pytest
from distributed import Client

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.base import EVERYTHING
from evalcube.flows.events import Noted
from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config
from tests.waiting import PATIENCE

pytestmark = pytest.mark.cluster


def process_wide():
    """What belongs to the whole process."""
    loggers = [logging.getLogger(name) for name in EVERYTHING]
    levels = [(one.level, *(handler.level for handler in one.handlers)) for one in loggers]
    return copy.deepcopy(dask.config.config), levels


@pytest.mark.parametrize("workers", [None, 1])
def test_run__of_two_threads_at_once_both_end_and_leave_nothing_changed(tmp_path, simulator, capfd, workers):
    configs = [
        {
            **sweep_config(tmp_path, simulator.base_url, trials=10, cube=f"{i}.zarr"),
            "cache": str(tmp_path / f"c{i}"),
        }
        for i in range(2)
    ]
    before = process_wide()

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run, config, workers=workers) for config in configs]
        summaries = [one.result(PATIENCE) for one in running]

    assert [one.reason for one in summaries] == ["complete"] * 2
    assert simulator_stats(simulator)["requests"] == 2 * summaries[0].trials
    assert process_wide() == before
    assert capfd.readouterr() == ("", "")
    assert_same_cube(*(config["cube"] for config in configs))


def in_fork(act):
    """What `act` raises in a forked process, as text."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        os.waitpid(child, 0)
        return said.read()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # from Python 3.12 on
def test_run__after_a_fork_of_a_process_that_ran_one_is_refused_by_name(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    run(config)

    said = in_fork(lambda: run({**config, "trials": 4}))

    assert said.startswith(
        f"ClusterError: this process is a fork of one ({os.getpid()}) in which a sweep was run"
    )
    assert "spawn" in said


def test_run__works_on_the_client_that_is_open_and_leaves_it_open(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr("evalcube.flows.run.cluster.LocalProcesses", lambda _: SHARED)
    config, seen = sweep_config(tmp_path, simulator.base_url, trials=2), []

    with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
        summary = run(config, subscribers=[seen.append])
        still = client.submit(abs, -3).result()
        here = run({**config, "trials": 3}, workers=1, subscribers=[seen.append])

        notes = [event.message for event in seen if isinstance(event, Noted)]
        assert [client.scheduler.address in note for note in notes if "Dask cluster at" in note] == [True]
    assert (summary.reason, still, here.reason) == ("complete", 3, "complete")


def test_run__refuses_a_cluster_that_is_closed(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
        cluster = client.cluster

    with pytest.raises(ClusterError, match="is closed"):
        run(config, cluster=cluster)
