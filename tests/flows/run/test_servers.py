"""Sweeps whose models are served by what the config starts, or by several servers; a tiny one stands for them all."""

import json
import os
import shutil
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from evalcube.deploy.servers.command import CommandServer
from evalcube.deploy.servers.supervisor import Supervisor
from evalcube.flows.state.engines import ENGINES
from evalcube.storage.cube.cube import Cube
from tests.flows.support import assert_same_cube, evalcube, write_config
from tests.waiting import PATIENCE, wait_until

FAKE = Path(__file__).parents[2] / "deploy" / "servers" / "fake_server.py"
pytestmark = pytest.mark.cluster
CONNECTIONS = 4


def command(*arguments):
    return [sys.executable, str(FAKE), "--port", "{port}", *map(str, arguments)]


def served(name, *arguments, **serve):
    return {
        "name": name,
        "serve": {"command": command(*arguments), "start_limit": PATIENCE, **serve},
        "limits": {"connections": CONNECTIONS, "retries": 0},
    }


def config(folder, *models, trials=60, cube="cube.zarr", cache="cache"):
    return {
        "name": "test",
        "trials": trials,
        "cube": str(folder / cube),
        "cache": str(folder / cache),
        "models": list(models),
        "tasks": {"sort": {"params": {"length": 4}}},
    }


def run(folder, settings):
    return evalcube("run", write_config(folder, settings), "--quiet", cwd=folder)


def asked(path):
    """Process ids of the servers that were asked, in order."""
    return path.read_text().split() if path.exists() else []


def test_run__a_server_that_dies_in_mid_sweep_costs_what_was_in_flight_and_nothing_else(tmp_path):
    calm = config(tmp_path, served("a"), cube="calm.zarr", cache="calm")
    assert run(tmp_path, calm)[0] == 0
    count = tmp_path / "count"
    model = served("a", "--delay", 0.01, "--die-after", 20, "--once", tmp_path / "died", "--count", count)

    code, output, errors = run(tmp_path, config(tmp_path, model))

    assert code == 0, errors
    assert "60 of 60 trials done" in output
    assert len(set(asked(count))) == 2
    assert 60 < len(asked(count)) <= 60 + CONNECTIONS
    assert_same_cube(str(tmp_path / "cube.zarr"), str(tmp_path / "calm.zarr"))


def test_run__a_server_that_dies_for_good_ends_its_model_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(Supervisor, "restarts", 0)
    models = served("a", "--die-after", 10), served("b")

    log = tmp_path / "events"
    path = write_config(tmp_path, config(tmp_path, *models))
    code, _, errors = evalcube("run", path, "--quiet", "--log", log, cwd=tmp_path)
    status = json.loads(evalcube("status", tmp_path / "cube.zarr", "--json", cwd=tmp_path)[1])

    assert code == 1
    assert "with code 9" in errors
    assert "[31mGPU" in errors
    assert "\x1b" not in errors
    assert "with code 9" in log.read_text()
    assert "out of memory" not in log.read_text()
    rows = {row["model"].split(" ")[0]: row for row in status["models"]}
    assert rows["b"]["done"] == 60
    assert rows["a"]["done"] < 60


def test_run__a_server_that_does_not_start_ends_the_run_before_anything_is_sent(tmp_path):
    count = tmp_path / "count"
    broken = {**served("b"), "serve": {"command": "no-such-server {port}"}}

    code, _, errors = run(tmp_path, config(tmp_path, served("a", "--count", count), broken))

    assert code == 2
    assert "cannot start no-such-server" in errors
    assert "Traceback" not in errors
    assert asked(count) == []


def test_run__of_a_part_starts_the_servers_of_its_models_alone(tmp_path):
    count = tmp_path / "count"
    other = {"name": "b", "serve": {"command": ["no-such-server", "{port}"]}}
    path = write_config(tmp_path, config(tmp_path, served("a", "--count", count), other, trials=10))

    code, _, errors = evalcube("run", path, "--quiet", "--only", "model=a", cwd=tmp_path)

    assert code == 0, errors
    assert len(asked(count)) == 10


@pytest.fixture
def two(tmp_path):
    """Two servers of one model, of different versions of an engine, which count what they are asked."""
    with ExitStack() as stack:
        found = []
        for fingerprint in ("fp_old", "fp_new"):
            words = (
                "--fingerprint",
                fingerprint,
                "--version",
                fingerprint[3:],
                "--count",
                tmp_path / "count",
            )
            # Long enough that whoever watches can kill one of them amid its questions.
            made = CommandServer(command("--delay", 0.1, *words), name="m")
            found.append(stack.enter_context(made))
        yield found


def pool(servers, **more):
    addresses = [f"{server.known_address}/v1" for server in servers]
    return {"name": "a", "endpoint": addresses, "limits": {"connections": 8, "retries": 0}, **more}


def test_run__one_of_several_servers_may_die_and_costs_what_was_in_flight_there(tmp_path, two):
    guard = two[1].pid
    server = int(Path(f"/proc/{guard}/task/{guard}/children").read_text().split()[0])

    def kill():
        wait_until(lambda: asked(tmp_path / "count").count(str(server)) >= 15)
        os.kill(server, signal.SIGKILL)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    code, output, errors = run(tmp_path, config(tmp_path, pool(two), trials=200))
    killing.join(PATIENCE)

    assert code == 0, errors
    assert "200 of 200 trials done" in output
    pids = asked(tmp_path / "count")
    assert 200 <= len(pids) <= 200 + 8
    assert pids[-1] != str(server)


def test_run__says_where_replies_of_one_model_come_from_several_engines(tmp_path, two):
    code, _, errors = run(tmp_path, config(tmp_path, pool(two)))
    assert code == 0, errors
    cube = tmp_path / "cube.zarr"

    status = json.loads(evalcube("status", cube, "--json", cwd=tmp_path)[1])
    (row,) = status["models"]
    assert {info["version"] for info in row["engines"]} == {"old", "new"}
    assert sum(row["fingerprints"].values()) == 60
    assert set(row["fingerprints"]) == {"fp_old", "fp_new"}
    assert "(vLLM new, vLLM old)" in row["warning"]
    assert row["warning"] in evalcube("leaderboard", cube, cwd=tmp_path)[2]
    page = tmp_path / "report.html"
    assert evalcube("report", cube, "-o", page, cwd=tmp_path)[0] == 0
    assert "from different engines" in page.read_text()

    # It goes along with what is shared, without the addresses.
    copy = tmp_path / "copy.zarr"
    code, _, errors = evalcube("publish", cube, copy, cwd=tmp_path)
    assert code == 0, errors
    assert json.loads(evalcube("status", copy, "--json", cwd=tmp_path)[1])["models"][0]["warning"]
    assert "127.0.0.1" not in (copy / "_evalcube" / ENGINES).read_text()


def test_status__stands_any_record_of_engines(small_sweep, tmp_path):
    cube = Cube.open(shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr"), writable=True)
    (eval_id,) = cube.read_label("eval_id")
    hostile = {"engine": "\x1b[2J<b>" + "x" * 9999, "version": ["1"], "quantization": 5}
    for document in (b"[", b"[]", b'{"evaluations": 5}', b'{"evaluations": {"a": 5}}'):
        cube.records.put(ENGINES, document)
        assert evalcube("status", tmp_path / "cube.zarr", cwd=tmp_path)[0] == 0
    cube.records.put(ENGINES, json.dumps({"evaluations": {eval_id: [hostile, 5, {}]}}).encode())

    code, output, _ = evalcube("status", tmp_path / "cube.zarr", cwd=tmp_path)

    assert code == 0
    assert "answered by ?[2J<b>xxx" in output
    assert "\x1b" not in output
    assert "x" * 65 not in output
