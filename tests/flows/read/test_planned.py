"""Every reader of a cube counts as planned what the plan says, also of a model that was never asked."""

import pytest

from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.sweep import run
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import sweep_config


@pytest.fixture
def half(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"))
    run(config, cluster=SHARED, only=["model=alpha"])
    return config["cube"]


def test_planned__of_a_model_that_was_never_asked_is_the_same_to_all_readers(half):
    status = {model["model"]: model["trials"] for model in cube_status(half)["models"]}
    ranking = ask(Explored([half]), "ranking", Query())

    assert status == {"alpha": 40, "beta": 40}
    for part in (None, Part(trials=8), Part(clip_tokens=10**6)):
        assert {row.model_name: row.planned for row in leaderboard(half, part).rows} == status
    assert {row["model_name"]: row["planned"] for row in ranking["rows"]} == status


def test_planned__cells_that_nobody_planned_are_not(half):
    cube = Cube.open(half, writable=True)
    planned = cube.read_planned("trial")
    planned[1, 0] = 0
    cube.group.write_chunks((slice(None),), {"planned_trials": planned})

    dataset = open_part(half).dataset
    missing = dataset["counters"].sel(counter="missing").values
    assert (missing[1] == planned[1] * cube.read_planned("repeat")[1]).all()
    assert (missing[0] == 0).all()
