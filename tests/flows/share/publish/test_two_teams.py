"""Two teams share a cube through S3, from a first run to a merged leaderboard, by the commands that people type."""

import json

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.storage.cube.cube import Cube
from tests.flows.support import assert_same_cube, evalcube, simulator_stats, sweep_config, write_config
from tests.storage.support.cache_stores import s3_server

URL = "s3://bucket/boards/base"


@pytest.fixture
def store(monkeypatch):
    """The environment of this process leads to an S3 server."""
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.fixture
def typed(monkeypatch):
    """Types a command in the folder of a team, which is a user of its own; returns its JSON."""

    def type_in(folder, *arguments):
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        code, output, errors = evalcube(*arguments, "--json", cwd=folder)
        assert code == 0, output + errors
        return json.loads(output)

    return type_in


@pytest.mark.usefixtures("store")
def test_two_teams__share_a_cube(tmp_path, simulator, typed):
    ours, theirs = tmp_path / "a", tmp_path / "b"
    config = sweep_config(ours, simulator.base_url, trials=4, cells=2)
    ours.mkdir()
    typed(ours, "run", write_config(ours, config))

    first = typed(ours, "publish", "cube.zarr", URL, "--tag", "v1", "--with-replies", "--licence", "CC0-1.0")
    assert (first["trials"], first["replies"]) == (12, {"entries": 12, "missing": 0})
    board = typed(theirs, "leaderboard", f"{URL}/v1")
    assert board["rows"] == typed(ours, "leaderboard", "cube.zarr")["rows"]

    pulled = typed(theirs, "pull", URL, "mine.zarr", "--tag", "v1")
    assert (pulled["digest"], pulled["trials"]) == (first["digest"], 12)
    assert typed(theirs, "cube", "verify", "mine.zarr")["whole"]
    assert Reader(theirs / "mine.zarr").view(0, 0, 0, 0).response is not None

    asked = simulator_stats(simulator)["requests"]
    config |= {"cube": str(theirs / "mine.zarr"), "cache": str(theirs / "own"), "trials": 8}
    typed(theirs, "run", write_config(theirs, config))
    assert simulator_stats(simulator)["requests"] - asked == 12

    second = typed(theirs, "publish", "mine.zarr", URL, "--tag", "v2", "--with-replies")
    assert (second["replies"], second["licence"]) == ({"entries": 24, "missing": 0}, "CC0-1.0")
    assert second["grown_from"] == first["digest"]

    typed(ours, "pull", URL, "back.zarr", "--tag", "v2")
    merged = typed(ours, "merge", "joint.zarr", "cube.zarr", "back.zarr")
    assert (merged["trials"], merged["conflicts"]) == (24, [])
    assert_same_cube(ours / "joint.zarr", theirs / "mine.zarr")
    assert (
        typed(ours, "leaderboard", "joint.zarr")["rows"] == typed(theirs, "leaderboard", f"{URL}/v2")["rows"]
    )
    # All of team B's answers came along, as well as those that B had from A.
    views = [Reader(ours / "back.zarr").view(0, 0, 0, trial).response for trial in range(8)]
    assert None not in views
    assert Cube.open(ours / "back.zarr").sizes["trial"] == 8
    # What is published stays as it is.
    code, _, errors = evalcube("publish", "mine.zarr", URL, "--tag", "v1", cwd=theirs)
    assert (code, "v1" in errors) == (2, True)
    code, _, errors = evalcube("upsample", f"{URL}/v1", "--trials", "4", "--cache", "x", cwd=ours)
    assert (code, "evalcube pull" in errors) == (2, True)
