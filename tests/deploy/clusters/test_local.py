"""The cluster within one process: nothing of it is left, and nobody else reaches it."""

import os
import threading

import dask
import psutil
import pytest

from evalcube.deploy.clusters import LocalProcesses, ThisProcess
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def listening():
    return [
        one.laddr.ip for one in psutil.Process().net_connections("inet") if one.status == psutil.CONN_LISTEN
    ]


def test_this_process__works_here_and_leaves_nothing():
    before, threads = listening(), set(threading.enumerate())

    with ThisProcess().connect() as connection:
        client = connection.client
        assert client.submit(os.getpid).result() == os.getpid()
        assert client.scheduler.address.startswith("inproc://")
        assert set(listening()) <= {"127.0.0.1", *before}

    def left():
        return [thread.name for thread in set(threading.enumerate()) - threads if not thread.daemon]

    wait_until(lambda: (listening(), left()) == (before, []), told=lambda: (listening(), left()))


def test_this_process__gives_workers_no_limit_of_memory_that_would_pause_them():
    with ThisProcess().connect() as connection:
        client = connection.client
        found = client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit)

    assert list(found.values()) == [None]


@pytest.mark.parametrize("begun", [True, False])
def test_local_processes__fork_workers_where_there_is_what_forks_them(monkeypatch, begun):
    monkeypatch.setattr("evalcube.deploy.clusters.local.fork_server.begin", lambda: begun)
    before = dask.config.get("distributed.worker.multiprocessing-method", None)

    with LocalProcesses()._setting_up():
        assert (dask.config.get("distributed.worker.multiprocessing-method") == "forkserver") == begun
    assert dask.config.get("distributed.worker.multiprocessing-method", None) == before


def test_local_processes__are_one_for_each_core_and_eight_at_most(monkeypatch):
    assert LocalProcesses(workers=3)._count == 3
    for cores, workers in ((1, 1), (8, 8), (9, 8)):
        monkeypatch.setattr("evalcube.deploy.clusters.local.CPU_COUNT", cores)
        assert LocalProcesses()._count == workers
    assert LocalProcesses()._trouble(OSError("no memory")).startswith("8 local worker processes")
