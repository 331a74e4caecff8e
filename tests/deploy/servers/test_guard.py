"""The parent of a model server: how it starts it, what it ends with, and how it ends all of it."""

import os
import signal
import subprocess
from contextlib import suppress

import pytest

from evalcube.deploy.servers import guard
from tests.waiting import PATIENCE

POLITE = 'trap "touch done; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
STUBBORN = 'trap "" TERM; echo ready; while :; do sleep 0.02; done'
LEAVES = "(trap '' TERM; echo ready; while :; do sleep 0.02; done) & exit 0"


@pytest.fixture
def start(tmp_path):
    """Starts a shell script in a session of its own; it is ready once it has said so."""
    made = []

    def run(script):
        server = subprocess.Popen(
            ["sh", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
        )
        made.append(server)
        assert server.stdout.readline() == b"ready\n"
        return server

    yield run
    for server in made:
        with suppress(OSError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(PATIENCE)
        server.stdout.close()


@pytest.fixture
def main(monkeypatch):
    """Runs the guard of a command in this process, whose parent dies if so wanted."""
    monkeypatch.setattr(guard.signal, "signal", lambda *_: None)
    monkeypatch.setattr(guard, "_die_with_parent", lambda: None)

    def run(*command, dies=False):
        monkeypatch.setattr(guard, "when_parent_dies", lambda action: action() if dies else None)
        return guard.main(command)

    return run


@pytest.mark.cluster
def test_end_group__gives_a_server_time_to_end_by_itself(start, tmp_path):
    server = start(POLITE)

    guard._end_group(server)

    assert (tmp_path / "done").exists()
    assert server.returncode == 0


@pytest.mark.cluster
def test_end_group__kills_what_does_not_end_in_time(start, monkeypatch):
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.1)
    server = start(STUBBORN)

    guard._end_group(server)

    assert server.wait(PATIENCE) == -signal.SIGKILL


@pytest.mark.cluster
def test_end_group__takes_what_a_server_left_behind(start, monkeypatch):
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.1)
    server = start(LEAVES)
    server.wait(PATIENCE)
    assert guard._has_members(server)

    guard._end_group(server)

    assert server.stdout.read() == b""  # nobody holds it any more


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + 9)],
    ids=["well", "badly", "killed"],
)
def test_main__ends_as_the_server_did(main, script, code):
    assert main("sh", "-c", script) == code


@pytest.mark.cluster
def test_main__ends_a_server_whose_run_is_gone(main):
    assert main("sleep", "600", dies=True) == 0


@pytest.mark.cluster
def test_main__says_that_there_is_no_such_program(main, capsys):
    assert main("no-such-program") == guard.NOT_STARTED
    assert "cannot start no-such-program" in capsys.readouterr().err


@pytest.mark.parametrize(("outer", "path"), [("", None), ("/theirs", "/theirs")])
def test_environment__is_the_servers_own(monkeypatch, outer, path):
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("OTHER", "kept")
    monkeypatch.setenv(guard.OUTER_PATH, outer)

    variables = guard._environment()

    assert variables["OTHER"] == "kept"
    assert variables.get("PYTHONPATH") == path
    assert guard.OUTER_PATH not in variables


def test_wait__notices_the_end_of_the_pipe_and_another_parent(monkeypatch):
    monkeypatch.setattr(guard, "CHECK_SECONDS", 0.01)
    ended = []
    reading, writing = os.pipe()
    os.write(writing, b"means nothing")
    os.close(writing)
    guard._wait(reading, os.getppid(), lambda: ended.append("pipe"))
    os.close(reading)
    reading, writing = os.pipe()
    guard._wait(reading, -1, lambda: ended.append("parent"))
    os.close(reading)
    os.close(writing)

    assert ended == ["pipe", "parent"]
