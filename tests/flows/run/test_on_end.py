"""What a config wants done at the end of a run is done after every end, and never changes how the run ended."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.run.on_end import when_ended
from evalcube.flows.run.sweep import run
from evalcube.storage.cube.address import space_of
from evalcube.storage.errors import LeaseHeldError
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, sweep_config, write_config
from tests.waiting import PATIENCE

KEEP = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"


@pytest.fixture
def hook():
    """A server that keeps what is posted, and answers as it is told."""

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.posted.append((self.path, self.headers.get("Authorization"), json.loads(body)))
            self.send_response(server.status)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        server.posted, server.status = [], 200
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.address = f"http://127.0.0.1:{server.server_port}/hook"
        yield server
        server.shutdown()
        thread.join()


def ended(on_end, error=None):
    """What is noted after a run that ends with an error."""
    notes = []
    settings = from_mapping(sweep_config(Path("/nowhere"), "http://127.0.0.1:9/v1", on_end=on_end))
    with pytest.raises(type(error)), when_ended(settings, notes.append):
        raise error
    return notes


def failure():
    return LeaseHeldError("process 7 works on it", "cube/lease.json", "Wait.")


def test_when_ended__posts_why_a_run_failed(hook, monkeypatch):
    monkeypatch.setenv("HOOK", hook.address)
    monkeypatch.setenv("TOKEN", "abc")

    assert ended({"webhook_env": "HOOK", "key_env": "TOKEN"}, failure()) == []

    ((path, key, document),) = hook.posted
    assert (path, key) == ("/hook", "Bearer abc")
    assert (document["reason"], document["error"]) == ("failed", "LeaseHeldError")
    assert "process 7" in document["message"]


def test_when_ended__of_a_defect_nothing_but_its_kind_is_said(hook):
    ended({"webhook": hook.address}, ValueError("the model said: 42"))

    assert hook.posted[0][2]["message"] == ""


def test_when_ended__not_after_other_ends_than_those_named(hook):
    ended({"webhook": hook.address, "when": ["complete"]}, failure())

    assert hook.posted == []


def test_when_ended__follows_no_redirect(hook, monkeypatch):
    monkeypatch.setenv("TOKEN", "abc")
    hook.status = 302

    (note,) = ended({"webhook": hook.address, "key_env": "TOKEN"}, failure())

    assert "answered with 302" in note
    assert len(hook.posted) == 1


@pytest.mark.parametrize(
    ("on_end", "expected"),
    [
        ({"webhook": "http://127.0.0.1:9/secret"}, "on_end.webhook: cannot be reached (ConnectionRefused"),
        ({"webhook_env": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE holds no http(s) address"),
        (
            {"webhook": "http://127.0.0.1:9/", "key_env": "NO_SUCH_VARIABLE"},
            "NO_SUCH_VARIABLE is not set",
        ),
    ],
)
def test_when_ended__a_hook_that_fails_is_reported(on_end, expected):
    (note,) = ended(on_end, failure())

    assert expected in note
    assert "the run itself ended as it says" in note
    assert "secret" not in note


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("words", "timeout", "expected"),
    [
        (["sh", "-c", "echo no >&2; exit 3"], PATIENCE, "ended with exit code 3 (no)"),
        (["sh", "-c", "sleep 600 & sleep 600"], 0.5, "took longer than 0.5 s"),
        (["/no/such/program"], PATIENCE, "on_end.command: cannot be started (No such file"),
        (["true"], PATIENCE, None),
    ],
)
def test_when_ended__a_program_that_fails_or_hangs_is_reported(words, timeout, expected):
    notes = ended({"command": words, "timeout": timeout}, failure())

    assert (notes == []) if expected is None else expected in notes[0]


def test_run__gives_its_summary_to_a_program_and_the_cube_keeps_nothing_of_it(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    config["on_end"] = {"command": [sys.executable, "-c", KEEP, str(tmp_path / "told.json")]}

    summary = run(config, cluster=SHARED)

    told = json.loads((tmp_path / "told.json").read_text())
    assert (told["reason"], told["done"], told["name"]) == ("complete", summary.trials, "test")
    assert "details" not in told
    records = space_of(config["cube"]).at("_evalcube")
    assert b"told.json" not in records.get("sweep.json").data


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_run__ends_as_it_did_where_its_hook_fails(tmp_path, simulator, quiet):
    config = sweep_config(tmp_path, simulator.base_url, trials=2, on_end={"command": ["/no/such"]})

    code, _, errors = evalcube("run", write_config(tmp_path, config), *quiet, cwd=tmp_path)

    assert code == 0
    assert errors.count("on_end.command: cannot be started") == 1
