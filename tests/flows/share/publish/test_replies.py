"""Replies that lie beside a publication."""

import json

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.flows.run.sweep import run
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cube.cube import Cube
from tests.flows.share.publish.publications import objects
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, sweep_config


@pytest.mark.usefixtures("stranger")
def test_pull__makes_the_same_cube_with_its_replies(published, out, tmp_path):
    done = pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")

    assert_same_cube(published / "cube.zarr", done.cube)
    assert verify_cube(done.cube).damages == []
    assert done.trials == done.replies == done.publication.trials
    assert done.publication.licence == "CC0-1.0"
    assert Reader(done.cube).view(1, 0, 0, 0).response is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.replies", "mine.zarr", "theirs"]


def test_publish__says_nothing_of_the_machine_and_of_endpoints(made, done, simulator):
    whole = b"".join(objects(done.cube).values())
    for text in (str(made), simulator.base_url, "/cache", "127.0.0.1"):
        assert text.encode() not in whole
    notes = json.loads(objects(done.cube)["_evalcube/sweep.json"])
    assert [model["endpoint"] for model in notes["config"]["models"]] == ["sim:", "sim:"]
    assert done.replies.missing == 0


def test_publish__of_a_data_set_leaves_its_place_out(tmp_path, simulator):
    rows = [{"id": f"r{i}", "prompt": f"What is {i}+1?", "answer": str(i + 1)} for i in range(6)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = sweep_config(tmp_path, simulator.base_url, trials=6)
    params = {"file": str(tmp_path / "q.jsonl"), "id": "id"}
    config["tasks"] = {"dataset": {"manifold": [{"points": [params], "tiers": ["easy"]}]}}
    run(config, cluster=SHARED)

    done = publish_cube(config["cube"], str(tmp_path / "out"), with_replies=True)
    (tmp_path / "q.jsonl").unlink()

    assert str(tmp_path).encode() not in b"".join(objects(done.cube).values())
    assert verify_cube(done.cube).damages == []
    assert sorted(Cube.open(done.cube).read_label("row_id")[0][:6]) == [f"r{i}" for i in range(6)]
    assert done.replies.entries == 6
