"""Workers over SSH, against a real server: started, started again, and gone when the driver is gone."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.ssh import Host, Login, Ssh
from evalcube.deploy.clusters.ssh import host as host_module
from evalcube.flows.run.workers import present
from tests.deploy.clusters.ssh.sshd import processes, serving
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def tended(connection, notes):
    """The workers that are there, after a look after all of them."""
    there = present(connection)
    notes += connection.tend(there)
    return there


def of_worker(dask_worker):
    return os.getpid(), os.environ.get("A_KEY"), dask_worker.security.require_encryption


@pytest.mark.integration
def test_connect__workers_come_are_replaced_and_end_with_the_cluster(sshd, monkeypatch):
    monkeypatch.setenv("A_KEY", "not on a command line")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    cluster = Ssh((sshd.host,), sshd.login, variables=("A_KEY", "PYTHONPATH", "NOT_SET"), threads=1)
    notes = []
    with cluster.connect() as connection:
        wait_until(lambda: len(tended(connection, notes)) == 1)
        (name,) = tended(connection, notes).values()
        ((_, key, encrypted),) = connection.client.run(of_worker).values()
        assert (key, encrypted) == ("not on a command line", True)
        for process in processes(name):
            with suppress(
                ProcessLookupError, FileNotFoundError
            ):  # one that ends with another that was killed
                assert b"not on a" not in Path(f"/proc/{process}/cmdline").read_bytes()
                os.kill(process, signal.SIGKILL)

        wait_until(lambda: tended(connection, notes) and name not in tended(connection, notes).values())
        (again,) = tended(connection, notes).values()

    wait_until(lambda: not processes(again))
    assert notes == [f"{sshd.host.name}: its workers ended; others are started in their place"]


@pytest.mark.integration
def test_connect__workers_end_with_a_driver_that_is_killed(sshd):
    script = (
        "import sys, time; from evalcube.deploy.clusters.ssh import *; from evalcube.flows.run.workers import present\n"
        f"cluster = Ssh((Host({sshd.host.address!r}, port={sshd.host.port}, python=sys.executable),),"
        f" Login({sshd.login.known_hosts!r}, {sshd.login.identity!r}))\n"
        "with cluster.connect() as connection:\n"
        "    while not present(connection): connection.tend({}); time.sleep(0.2)\n"
        "    print(*present(connection).values(), flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as driver:
        name = driver.stdout.readline().decode().strip()
        assert processes(name)
        driver.kill()

    wait_until(lambda: not processes(name))


@pytest.mark.cluster
def test_connect__hosts_that_cannot_be_used_are_named(sshd, tmp_path):
    stranger = tmp_path / "known_hosts"
    stranger.write_text("")
    nobody = Host("127.0.0.1", port=1)

    with (
        pytest.raises(ClusterError, match=r"known_hosts") as refusal,
        Ssh((sshd.host, nobody), Login(str(stranger), sshd.login.identity)).connect(),
    ):
        pass

    assert "its host key is not known here" in str(refusal.value)
    assert "127.0.0.1:1: it cannot be reached" in str(refusal.value)


@pytest.mark.cluster
def test_tend__gives_up_where_no_worker_comes_up(sshd, monkeypatch):
    monkeypatch.setattr("evalcube.deploy.clusters.ssh.cluster._AGAIN_SECONDS", (0.1,))
    hosts = (replace(sshd.host, python="/no/python"),)
    notes = []

    def given_up():
        try:
            tended(connection, notes)
        except ClusterError as error:
            notes.append(str(error))
            return True
        return False

    with Ssh(hosts, sshd.login).connect() as connection:
        wait_until(given_up)

    assert notes[-1].startswith("on no host of the cluster a worker comes up")
    assert "/no/python" in notes[-1]


@pytest.mark.cluster
@pytest.mark.parametrize("stubborn", [False, True])
def test_remote__ends_what_it_started_when_its_input_ends(stubborn):
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if stubborn else ""
    words = ["-c", f"{ignore}import time; print('up', flush=True); time.sleep(600)"]
    code = host_module._REMOTE.read_text().replace("GRACE_SECONDS = 5.0", "GRACE_SECONDS = 0.3")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as remote:
        remote.stdin.write(json.dumps({"words": words, "environment": {"A": "b"}}).encode() + b"\n")
        remote.stdin.flush()
        assert remote.stdout.readline() == b"up\n"

        remote.stdin.close()

        assert remote.wait(PATIENCE) != 0
