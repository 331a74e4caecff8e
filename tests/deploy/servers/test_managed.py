import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers import managed
from evalcube.deploy.servers.managed import TAIL_LINES, ManagedServer, module_path
from tests.simulator.managed import Simulator
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.cluster


def script(source: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(source)]


SERVE = """
    import http.server, signal, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        left = {failures}
        def do_GET(self):
            Handler.left -= 1
            self.send_response(503 if Handler.left >= 0 else 200)
            self.end_headers()
        def log_message(self, *_): pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    {extra}
    print("noise before")
    print(f"listening on http://127.0.0.1:{{server.server_port}}", flush=True)
    server.serve_forever()
"""


def serving(*, failures: int = 0, extra: str = "pass") -> list[str]:
    return script(textwrap.dedent(SERVE).format(failures=failures, extra=extra))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_managed_server__runs_inside_its_block_only():
    with ManagedServer(serving(), name="a server") as server:
        pid = server.pid
        assert alive(pid)
        assert server.base_url == f"{server.address}/v1"
        assert server.base_url.startswith("http://127.0.0.1:")

    assert not alive(pid)
    assert server.pid == 0
    with pytest.raises(DeployError, match="not running"):
        _ = server.base_url


def test_managed_server__can_be_started_again():
    server = ManagedServer(serving(), name="a server")
    for _ in range(2):
        with server:
            assert alive(server.pid)
            with pytest.raises(DeployError, match="running already"):
                server.start()


def test_managed_server__waits_until_healthy():
    with ManagedServer(serving(failures=3), name="a server", start_timeout=PATIENCE) as server:
        assert alive(server.pid)


def test_managed_server__tells_why_it_stopped():
    command = script("""
        import sys
        for i in range(100): print("line", i, file=sys.stderr)
        sys.exit("no such weights")
    """)
    with pytest.raises(DeployError) as caught:
        ManagedServer(command, name="a server", remedy="Fetch the weights.").start()

    text = str(caught.value)
    assert "a server stopped with code 1" in text
    assert "no such weights" in text
    assert text.endswith("Fetch the weights.")
    assert len(caught.value.log.splitlines()) == TAIL_LINES


@pytest.mark.parametrize("command", [script("import time; time.sleep(999)"), serving(failures=10**9)])
def test_managed_server__gives_up_after_its_timeout(command):
    server = ManagedServer(command, name="a server", start_timeout=0.5)
    start = time.monotonic()

    with pytest.raises(DeployError, match=r"within 0\.5 seconds"):
        server.start()

    assert time.monotonic() - start < PATIENCE
    assert server.pid == 0


def test_managed_server__rests_no_longer_than_it_has(monkeypatch):
    monkeypatch.setattr(managed, "_FIRST_DELAY", 999.0)
    server = ManagedServer(serving(failures=10**9), name="a server", start_timeout=1.0)
    rests = []
    monkeypatch.setattr(
        server, "_rest", lambda seconds: rests.append(seconds) or time.sleep(min(seconds, 1.0))
    )

    with pytest.raises(DeployError):
        server.start()

    assert max(rests) <= 1.0


def test_managed_server__that_loads_is_asked_with_pauses_and_what_it_answered_is_said():
    extra = 'Handler.log_message = lambda *_: print("asked", flush=True)'
    command = serving(failures=10**9, extra=extra)
    server = ManagedServer(command, name="a server", start_timeout=4.0)

    with pytest.raises(DeployError, match=r"within 4 seconds; .* 503 "):
        server.start()

    assert 1 <= server.log_tail.count("asked") <= 20


def test_managed_server__says_that_the_program_is_missing():
    with pytest.raises(DeployError, match="no-such-program"):
        ManagedServer(["no-such-program"], name="a server").start()


def test_stop__kills_what_does_not_listen(monkeypatch):
    monkeypatch.setattr("evalcube.deploy.servers.managed.STOP_SECONDS", 0.3)
    with ManagedServer(serving(extra="signal.signal(15, signal.SIG_IGN)"), name="a server") as server:
        pid = server.pid

    assert not alive(pid)


def test_managed_server__has_its_own_session_and_keeps_its_output():
    with ManagedServer(serving(), name="a server") as server:
        assert os.getsid(server.pid) == server.pid
        assert server.log_tail.startswith("noise before\nlistening on http://")


def test_managed_server__is_not_held_up_by_a_talkative_child():
    extra = "sys.stderr.write('x' * 3_000_000); sys.stderr.flush()"
    with ManagedServer(serving(extra=extra), name="a server", start_timeout=PATIENCE) as server:
        assert max(map(len, server.log_tail.splitlines())) <= 300


PARENT = """
    import os, sys, time
    from tests.simulator.managed import Simulator
    server = Simulator()
    server.start()
    if {fork} and os.fork() == 0:
        time.sleep(300)
        os._exit(0)
    print(server.pid, flush=True)
    time.sleep(999)
"""


@pytest.mark.parametrize("fork", [False, True], ids=["plain", "with the pipe held open by a fork"])
def test_managed_server__dies_with_its_killed_parent(fork):
    command = [sys.executable, "-c", textwrap.dedent(PARENT).format(fork=fork)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, **module_path()}, start_new_session=True
    ) as parent:
        child = int(parent.stdout.readline())
        assert alive(child)

        parent.kill()
        parent.wait()

        wait_until(lambda: not alive(child))
        try:
            os.killpg(parent.pid, signal.SIGKILL)
        except ProcessLookupError:
            assert not fork


def test_simulator__is_not_shadowed_by_a_folder_of_the_user(tmp_path, monkeypatch):
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "__init__.py").write_text("raise SystemExit('the wrong deploy')")
    monkeypatch.chdir(tmp_path)

    with Simulator() as server:
        assert alive(server.pid)


def test_simulator__reports_wrong_faults_when_it_starts():
    with pytest.raises(DeployError, match=r"rules\[0\]\.kind"):
        Simulator(faults='[{"kind": "rest"}]').start()
