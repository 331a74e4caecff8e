"""What worker processes are forked from: in a process of its own, as each has one for as long as it lives."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.cluster

_PROGRAM = """
import os, signal, sys
from evalcube.deploy import fork_server
from evalcube.deploy.clusters import LocalProcesses

def seen():
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return "ftplib" in sys.modules, os.environ["SET_LATE"], sorted(blocked), os.getppid()

if __name__ == "__main__":
    fork_server.begin(["ftplib", "no_such_module"])
    parents = []
    for value in "one", "two", "three":
        os.environ["SET_LATE"] = value
        with LocalProcesses(1, dashboard=False).connect() as connection:
            connection.client.wait_for_workers(1)
            *found, parent = connection.client.run(seen).popitem()[1]
        # A new one imports nothing, and workers that it forks import what they need.
        assert found == [value != "three", value, [signal.SIGHUP, signal.SIGINT]], found
        parents.append(parent)
        if value == "two":
            os.kill(parent, signal.SIGKILL)
    assert parents[0] == parents[1] != parents[2], parents
    assert "pandas" not in sys.modules
"""


_LONG = """
import os
from evalcube.deploy.clusters import LocalProcesses

if __name__ == "__main__":
    with LocalProcesses(1, dashboard=False).connect() as connection:
        connection.client.wait_for_workers(1)
        assert list(connection.client.run(os.getppid).values()) == [os.getpid()]
"""


def test_workers__have_what_was_imported_for_them_and_know_what_was_set_since(tmp_path):
    assert _ended(tmp_path, _PROGRAM) == (0, "")


def test_workers__are_started_one_by_one_where_a_socket_has_no_room_for_the_path(tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))

    assert _ended(tmp_path, _LONG) == (0, "")


def _ended(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(text)
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr
