"""Trials that kill their worker each time: found, named, left out, and asked again by the next run."""

import json
import re

import numpy as np
import pytest

from evalcube.flows.run.sweep import run
from evalcube.storage.cube.cube import Cube
from tests.chaos import poison
from tests.flows.shared_cluster import SHARED
from tests.flows.support import (
    assert_same_cube,
    evalcube,
    own_process,
    simulator_stats,
    sweep_config,
    write_config,
)

pytestmark = pytest.mark.chaos


@pytest.fixture
def poisoned(tmp_path):
    """Environment of a run whose workers die with the given trials."""
    deaths = tmp_path / "deaths"
    deaths.write_text("")

    def environment(*trials):
        return {
            "DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps([poison.__file__]),
            poison.VARIABLE: json.dumps(
                [dict(zip(("when", "length", "trial"), one, strict=True)) for one in trials]
            ),
            poison.DEATHS: str(deaths),
        }

    environment.deaths = lambda: len(deaths.read_text())
    return environment


@pytest.mark.integration
def test_run__trials_that_kill_their_worker_are_found_and_all_others_are_done(tmp_path, simulator, poisoned):
    trials = [("grade", 4, 3), ("make", 5, 17)]
    config = sweep_config(tmp_path, simulator.base_url, trials=40)
    path = write_config(tmp_path, config)
    deadly = poisoned(*trials)

    code, output, errors = own_process("run", path, "--workers", 2, cwd=tmp_path, env=deadly)

    assert code == 1, errors
    assert f"{200 - len(trials)} of 200" in output
    assert f"{len(trials)} trials: worker killed" in errors
    for _, length, trial in trials:
        assert re.search(rf"alpha, arithmetic length={length}, [^;]*, trial {trial}\b", errors), errors
    cube = Cube.open(config["cube"])
    status = cube.dataset()["status"].transpose("model", "task", "params", "trial", "repeat").to_numpy()
    places = [[0, 0, length - 3, trial, 0] for _, length, trial in trials]
    assert np.argwhere(status == 254).tolist() == places
    assert not list(cube.records.list("suspects/"))
    # Dask's own count of failures, one death for each cut and one more as proof; again for the comparison of prompts.
    assert poisoned.deaths() <= 12 * len(trials)

    code, output, errors = evalcube("run", path, "--quiet", cwd=tmp_path)

    assert code == 0, errors
    # With a worker die the requests in flight, one per connection, and what was answered in the moment before.
    assert simulator_stats(simulator)["requests"] <= 200 + 12 * poisoned.deaths()
    calm = {**config, "cube": str(tmp_path / "calm.zarr"), "cache": str(tmp_path / "calm-cache")}
    assert run(calm, cluster=SHARED).reason == "complete"
    assert_same_cube(config["cube"], calm["cube"])
