"""Servers that a command starts; a tiny one stands for them all."""

import http.client
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.command import CommandServer
from evalcube.deploy.servers.managed import module_path
from evalcube.deploy.servers.supervisor import Supervisor
from tests.deploy.servers.test_managed import alive
from tests.waiting import PATIENCE, wait_until

FAKE = Path(__file__).with_name("fake_server.py")
pytestmark = pytest.mark.cluster


def fake(*arguments, **settings):
    command = [sys.executable, str(FAKE), "--port", "{port}", *map(str, arguments)]
    settings = {"name": "the server of m", "start_timeout": PATIENCE, **settings}
    return CommandServer(command, **settings)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_command_server__is_up_once_it_is_healthy_and_gone_with_its_block():
    with fake("--load", 0.3, "--say", "{model} {name}", words={"model": "w.gguf", "name": "m"}) as server:
        assert server.is_healthy()
        (pid,) = children(server.pid)
        assert server.base_url == f"{server.known_address}/v1"

    assert not alive(pid)
    assert server.log_tail == "fake server w.gguf m"


def test_command_server__gives_up_at_once_when_its_process_dies():
    code = "import sys; print('\\x1b[31mno such\\x07 GPU'); sys.exit(3)"
    server = CommandServer([sys.executable, "-c", code, "{port}"], name="the server of m")
    began = time.monotonic()

    with pytest.raises(DeployError, match="the server of m stopped with code 3") as caught:
        server.start()

    assert time.monotonic() - began < PATIENCE  # of 20 minutes
    assert " [31mno such  GPU" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_command_server__names_a_program_that_is_not_there():
    with pytest.raises(DeployError, match="cannot start no-such-server"):
        CommandServer(["no-such-server", "{port}"], name="the server of m").start()


def test_command_server__hides_secrets_and_names_the_variable_that_is_not_set(monkeypatch):
    monkeypatch.setenv("TEAM_TOKEN", "hunter2secret")
    code = "import os; print('token is', os.environ['HF_TOKEN'], os.environ['PLAIN'], os.environ.get('PYTHONPATH'))"
    server = CommandServer(
        [sys.executable, "-c", code],
        name="the server of m",
        env={"PLAIN": "at {port}"},
        secrets={"HF_TOKEN": "TEAM_TOKEN"},
    )

    with pytest.raises(DeployError) as caught:
        server.start()

    said = f"token is [key] at {server.port} {os.environ.get('PYTHONPATH')}"
    assert said in str(caught.value)
    with pytest.raises(DeployError, match="environment variable TEAM_OTHER, which is not set"):
        CommandServer(["x"], name="the server of m", secrets={"A": "TEAM_OTHER"})


FAMILY = """
    import signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(999)"
    child = subprocess.Popen([sys.executable, "-c", deaf])
    print("child", child.pid, flush=True)
    time.sleep(999)
"""


def test_command_server__ends_a_server_that_does_not_listen_with_all_its_processes(monkeypatch):
    monkeypatch.setattr("evalcube.deploy.servers.managed.STOP_SECONDS", 0.3)
    command = [sys.executable, "-c", textwrap.dedent(FAMILY)]
    server = CommandServer(command, name="the server of m", start_timeout=300)

    def start():
        with pytest.raises(DeployError):
            server.start()

    threading.Thread(target=start, daemon=True).start()
    wait_until(lambda: "child" in server.log_tail)
    child = int(server.log_tail.split()[-1])
    # The guard is killed with what it guards: its grace is for servers that free a GPU.
    (pid,) = children(server.pid)
    os.killpg(pid, signal.SIGKILL)
    server.stop()

    wait_until(lambda: not alive(child))
    wait_until(lambda: not alive(pid))


PARENT = """
    import os, sys, time
    from evalcube.deploy.servers.command import CommandServer
    server = CommandServer([sys.executable, {fake!r}, "--port", "{{port}}"], name="m")
    server.start()
    print(server.pid, flush=True)
    time.sleep(999)
"""


def test_command_server__dies_with_a_driver_that_is_killed():
    code = textwrap.dedent(PARENT).format(fake=str(FAKE))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, **module_path()}
    ) as parent:
        guard = int(parent.stdout.readline())
        (server,) = children(guard)
        parent.kill()
        parent.wait()

    wait_until(lambda: not alive(server))
    wait_until(lambda: not alive(guard))


def supervised(server, tmp_path):
    notes = []
    supervisor = Supervisor(
        server, note=lambda *note: notes.append(": ".join(note)), given_up=tmp_path / "over"
    )
    return supervisor, notes


def test_supervisor__starts_a_server_again_so_many_times_and_says_when_it_gives_it_up(tmp_path, monkeypatch):
    monkeypatch.setattr(Supervisor, "restarts", 1)
    supervisor, notes = supervised(fake(), tmp_path)
    supervisor.start()
    try:
        first = supervisor.server.pid
        os.killpg(children(first)[0], signal.SIGKILL)
        wait_until(lambda: any("is back" in note for note in notes))
        assert supervisor.server.pid != first
        assert not supervisor.over
        os.killpg(children(supervisor.server.pid)[0], signal.SIGKILL)
        wait_until(lambda: supervisor.over)
    finally:
        supervisor.stop()

    assert "the server of m stopped with code 137 and is started again (0 of 1 restarts left)" in notes[0]
    assert "1 restarts are used up" in supervisor.over
    wait_until((tmp_path / "over").exists)
    assert (tmp_path / "over").read_text() == supervisor.over


def test_supervisor__starts_a_server_again_that_answers_no_probe(tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.deploy.servers.supervisor._ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("evalcube.deploy.servers.supervisor._PROBE_SECONDS", 0.1)
    hanging = fake("--hang-after", 0, "--once", tmp_path / "hung")
    supervisor, notes = supervised(hanging, tmp_path)
    supervisor.start()
    try:
        connection = http.client.HTTPConnection(hanging.address.removeprefix("http://"), timeout=PATIENCE)
        connection.request("POST", "/v1/chat/completions", "{}")
        connection.close()
        wait_until(lambda: any("is back" in note for note in notes))
    finally:
        supervisor.stop()

    assert "does not answer any more and is started again" in notes[0]


def test_supervisor__can_be_stopped_while_the_server_loads(tmp_path):
    supervisor, notes = supervised(fake("--load", 0.1), tmp_path)
    supervisor.start()
    supervisor.server._command[-1] = "300"  # from the next start on
    os.killpg(children(supervisor.server.pid)[0], signal.SIGKILL)
    wait_until(lambda: notes)
    began = time.monotonic()

    supervisor.stop()

    assert time.monotonic() - began < PATIENCE  # of 300 s
    assert supervisor.server.pid == 0
    assert not (tmp_path / "over").exists()
