"""A cube from a stranger decides nothing: not who is asked, whose key goes there, nor which cache is opened."""

import json
import os
import shutil
import socket
import threading
from contextlib import contextmanager

import pytest

from evalcube import EvalcubeError
from evalcube.deploy.clusters import ThisProcess
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.state.trust import STATE_VARIABLE, remember_run, remembered_config
from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, reset, simulator_stats, sweep_config

ONE = ThisProcess()  # its worker reads the environment that a test has made, and need not be waited for
VARIABLE, KEY = "STRANGERS_CUBE_TEST_KEY", "sk-of-a-victim-0123456789"


@contextmanager
def listening():
    """A server that takes note of what it is sent, and says nothing; yields its port and the list."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = []

        def listen():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(1)
                    heard.append(connection.recv(4096))

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def attacker(monkeypatch):
    """Address of a server where nothing may arrive, with a key in the environment that it would like to have."""
    monkeypatch.setenv(VARIABLE, KEY)
    with listening() as (port, heard):
        yield f"127.0.0.1:{port}"
        assert heard == []


@pytest.fixture
def at_another_user(tmp_path, monkeypatch):
    """Begins the life of a user who has run nothing yet."""

    def begin():
        monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state of another user"))

    return begin


def change_notes(cube, **changes):
    """Let a cube's notes say what somebody wants."""
    records = Cube.open(cube).records
    notes = json.loads(records.get("sweep.json").data)
    records.put("sweep.json", json.dumps({**notes, **changes}).encode())


def luring(config, attacker, **changes):
    """The config that an attacker would have a victim use."""
    model = {**config["models"][0], "endpoint": f"http://{attacker}/v1", "key_env": VARIABLE, **changes}
    del model["simulate"]
    return {**config, "models": [model, *config["models"][1:]]}


@pytest.fixture(scope="module")
def made(tmp_path_factory, _served):
    """A folder with a small sweep, which has run, and its config."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    found = sweep_config(folder, _served.base_url, trials=2, cells=1)
    run(found, cluster=ONE)
    return folder, found


@pytest.fixture
def config(tmp_path, made, simulator):  # noqa: ARG001 - whose counts begin anew
    """The config of that sweep in a copy."""
    folder, found = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return {**found, "cube": str(tmp_path / "cube.zarr"), "cache": str(tmp_path / "cache")}


def test_upsample__asks_nobody_whom_only_the_cube_names(config, attacker, simulator, at_another_user):
    change_notes(config["cube"], config=luring(config, attacker))
    at_another_user()
    before = simulator_stats(simulator)["requests"]

    with pytest.raises(EvalcubeError) as raised:
        upsample(config["cube"], trials=4, cluster=ONE)

    for name in ("alpha", f"http://{attacker}/v1", VARIABLE, "`config`", "`endpoints`"):
        assert name in str(raised.value)
    assert simulator_stats(simulator)["requests"] == before


@pytest.mark.parametrize(
    ("kind", "key_envs"), [("key_file", {}), ("key_command", {}), ("key_command", {"alpha": VARIABLE})]
)
def test_upsample__reads_no_file_and_runs_no_command_because_a_cube_says_so(
    config, attacker, tmp_path, at_another_user, kind, key_envs
):
    (tmp_path / "private").write_text(KEY)
    change = {
        "key_file": str(tmp_path / "private"),
        "key_command": ["touch", str(tmp_path / "ran")],
    }
    lure = luring(config, attacker, **{kind: change[kind]})
    del lure["models"][0]["key_env"]
    change_notes(config["cube"], config=lure)
    at_another_user()
    endpoints = {"alpha": f"http://{attacker}/v1"}

    with pytest.raises(EvalcubeError, match=r"would (send alpha |run 'touch)"):
        upsample(config["cube"], trials=4, cluster=ONE, endpoints=endpoints, key_envs=key_envs)

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", [{"headers": {"x-to": "me"}}, {"ca_file": "/tmp/ca.pem"}])
def test_upsample__needs_a_config_where_a_cube_brings_headers_or_authorities(
    config, attacker, at_another_user, change
):
    change_notes(config["cube"], config=luring(config, attacker, **change))
    at_another_user()

    with pytest.raises(EvalcubeError, match=r"of its own|would believe"):
        upsample(config["cube"], trials=4, cluster=ONE, endpoints={"alpha": f"http://{attacker}/v1"})


def test_upsample__of_an_own_cube_follows_the_own_config(config, attacker):
    change_notes(config["cube"], config=luring(config, attacker), cache=f"redis://{attacker}")

    summary = upsample(config["cube"], trials=4, cluster=ONE)

    assert (summary.reason, summary.done) == ("complete", 8)


def test_upsample__knows_an_own_cube_that_was_moved(config, tmp_path):
    moved = tmp_path / "elsewhere" / "moved.zarr"
    moved.parent.mkdir()
    shutil.move(config["cube"], moved)

    summary = upsample(moved, trials=4, cluster=ONE)

    assert (summary.reason, summary.done) == ("complete", 8)
    assert Cube.open(moved).sizes["trial"] >= 4


@pytest.mark.parametrize("given", ["config", "endpoints"])
def test_upsample__of_a_strangers_cube_asks_whom_the_user_names(
    config, attacker, simulator, at_another_user, given
):
    lure = luring(config, attacker)
    lure["models"][0] |= {
        "endpoint": f"sim:http://{attacker}/v1",
        "simulate": config["models"][0]["simulate"],
    }
    del lure["models"][0]["key_env"]
    change_notes(config["cube"], config=lure)
    at_another_user()
    own = (
        {"config": config}
        if given == "config"
        else {"endpoints": {"alpha": config["models"][0]["endpoint"]}, "cache": config["cache"]}
    )

    summary = upsample(config["cube"], trials=4, cluster=ONE, **own)

    assert (summary.reason, summary.done) == ("complete", 8)
    assert (
        remembered_config(Cube.open(config["cube"]))["models"][0]["endpoint"] == f"sim:{simulator.base_url}"
    )


def test_upsample__asks_no_judge_whom_only_the_cube_names(tmp_path, simulator, attacker, at_another_user):
    judge = {"name": "judge", "endpoint": "sim:", "measured": False}
    made = sweep_config(tmp_path, simulator.base_url, trials=2, cells=1, judges=[{"model": "judge"}])
    made["models"].append(judge)
    made["tasks"]["boolean"]["rubric"] = "Is it right?"
    run(made, cluster=ONE)
    lure = {
        **made,
        "models": [made["models"][0], {**judge, "endpoint": f"http://{attacker}/v1", "key_env": VARIABLE}],
    }
    change_notes(made["cube"], config=lure)
    at_another_user()

    with pytest.raises(EvalcubeError, match="ask judge at"):
        upsample(made["cube"], trials=4, cluster=ONE, endpoints={"alpha": made["models"][0]["endpoint"]})


def test_upsample__creates_no_cache_because_a_cube_says_so(config, tmp_path, at_another_user):
    far = tmp_path / "far" / "away"
    change_notes(config["cube"], cache=str(far), config={**config, "cache": str(far)})
    at_another_user()
    endpoints = {"alpha": config["models"][0]["endpoint"]}

    with pytest.raises(EvalcubeError, match="which cache"):
        upsample(config["cube"], trials=4, cluster=ONE, endpoints=endpoints)

    assert not far.parent.exists()
    assert (
        upsample(config["cube"], trials=4, cluster=ONE, endpoints=endpoints, cache=config["cache"]).reason
        == "complete"
    )


def test_reader__opens_no_cache_that_only_the_cube_names(config, attacker, tmp_path, at_another_user):
    change_notes(config["cube"], cache=f"redis://{attacker}?password_env={VARIABLE}")
    at_another_user()

    assert Reader(config["cube"]).view(0, 0, 0, 0).response is None
    report(config["cube"], tmp_path / "report.html")


def test_show__says_why_there_is_no_reply(config, attacker, at_another_user, tmp_path):
    change_notes(config["cube"], cache=f"redis://{attacker}?password_env={VARIABLE}")
    shown = ("show", config["cube"], "--model", "alpha", "--task", "boolean")
    at_another_user()

    code, output, _ = evalcube(*shown, cwd=tmp_path)

    assert code == 0
    assert "--cache" in " ".join(output.replace("│", " ").split())
    assert "(the cache does" not in output


def test_reader__opens_the_cache_of_an_own_run_and_one_beside_the_cube(config, at_another_user):
    assert Reader(config["cube"]).view(0, 0, 0, 0).response is not None

    at_another_user()
    change_notes(config["cube"], cache="/home/stranger/results/cache")

    assert Reader(config["cube"]).view(0, 0, 0, 0).response is not None


def test_reader__follows_no_link_to_a_cache(config, tmp_path, at_another_user):
    link = tmp_path / "linked"
    link.symlink_to(config["cache"])
    change_notes(config["cube"], cache=str(link))
    at_another_user()

    assert Reader(config["cube"]).cache() is None
    assert Reader(config["cube"], link).cache() is not None


def test_reader__takes_nothing_else_for_a_cache(config, at_another_user, tmp_path):
    (tmp_path / "other").mkdir()
    at_another_user()
    paths = ("..", ".", "/", "", "x/..", "x/.", "cube.zarr", "other", "s3://bucket/cache", "x" * 300, "a\0b")
    for noted in (*paths, 7, None):
        change_notes(config["cube"], cache=noted)
        assert Reader(config["cube"]).cache() is None, noted


def test_reader__follows_no_link_in_a_cache_beside_the_cube(config, tmp_path, at_another_user):
    packs = tmp_path / "cache" / "packs"
    packs.rename(tmp_path / "elsewhere")
    packs.symlink_to(tmp_path / "elsewhere")
    at_another_user()

    assert Reader(config["cube"]).cache() is None


def test_upsample__removes_nothing_through_a_link_in_a_cache(config, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    (private / "precious").write_text("mine")
    os.utime(private / "precious", (0, 0))
    folder = tmp_path / "cache" / "tmp"
    shutil.rmtree(folder)
    folder.symlink_to(private)

    upsample(config["cube"], trials=4, cluster=ONE, config=config)

    assert (private / "precious").read_text() == "mine"


def test_show__does_not_wait_for_a_pipe_in_a_cache(config, tmp_path, at_another_user):
    for path in (tmp_path / "cache" / "packs").iterdir():
        path.unlink()
        os.mkfifo(path)
    at_another_user()

    code, _, errors = evalcube(
        *("show", config["cube"], "--model", "alpha", "--task", "boolean"), cwd=tmp_path
    )

    assert (code, "neither a file" in errors) in {(2, True), (0, False)}


def test_remembered_config__of_a_damaged_record_is_none(config, at_another_user, tmp_path):
    at_another_user()
    cube = Cube.open(config["cube"])
    remember_run(cube, config)
    assert remembered_config(cube) == config
    (record,) = tmp_path.rglob("state*/**/*.json")

    for data in (b"[" * 100_000, b'{"config": 7}', b"7", b"\xff", b""):
        record.write_bytes(data)
        assert remembered_config(cube) is None, data[:9]


def test_run__goes_on_without_a_home_to_write_to(tmp_path, simulator, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, "/proc/nowhere")
    made = sweep_config(tmp_path, simulator.base_url, trials=1, cells=1)

    assert run(made, cluster=ONE).reason == "complete"

    assert remembered_config(Cube.open(made["cube"])) is None
