"""Whatever a cube has been through, it verifies, and can be published, pulled and merged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import stored, sweep_config

pytestmark = pytest.mark.cluster

_NUMBERS = count()
TASKS = ("arithmetic", "boolean")
MODELS = ("alpha", "beta", "gamma")


@pytest.fixture(autouse=True)
def small_regions():
    """Regions of so few trials that a cube has several of them soon."""
    with (
        patch("evalcube.flows.plan.plan._TRIAL_CHUNK", 4),
        patch("evalcube.flows.plan.plan._REGION_CELLS", 1),
    ):
        yield


class Life:
    """A cube, the config that it comes from, and another cube that it is merged with."""

    def __init__(self, folder: Any, endpoint: str, other: str) -> None:
        self.folder, self.other = folder, other
        self.config = sweep_config(folder, endpoint, models=MODELS[:1], trials=3, cells=1)
        self.run()

    @property
    def cube(self) -> str:
        return str(self.config["cube"])

    def run(self) -> None:
        run(self.config, cluster=SHARED)

    def more_trials(self, number: int) -> None:
        self.config["trials"] += number
        self.run()

    def more_repeats(self, number: int) -> None:
        self.config["repeats"] = max(self.config.get("repeats", 1), number)
        self.run()

    def more_models(self, number: int) -> None:
        self.config["models"] = [
            {**self.config["models"][0], "name": name} for name in MODELS[: max(self._models, number)]
        ]
        self.run()

    def more_points(self, number: int) -> None:
        lengths = [4, *range(5, 5 + number)]
        self.config["tasks"]["boolean"]["manifold"].append(
            {"points": [{"length": length} for length in lengths], "tiers": ["medium"]}
        )
        self.run()

    def more_tasks(self, number: int) -> None:
        name = ("dates", "sort")[number % 2]
        self.config["tasks"][name] = {"manifold": [{"points": [{}], "tiers": ["easy"]}]}
        self.run()

    def upsample(self, number: int) -> None:
        where = [f"task={TASKS[number % 2]}", f"model={MODELS[number % self._models]}"]
        upsample(self.config, trials=self.config["trials"] + 5 * number, cluster=SHARED, where=where)

    def budget(self, number: int) -> None:
        with suppress(SweepError):  # nothing may be left that tells where to spend
            upsample(self.config, budget=f"{number * 300}", purpose="intervals", cluster=SHARED)

    def forget(self, number: int) -> None:
        if not (stored(Cube.open(self.cube), "status") != Status.MISSING).any():
            return
        where = (f"model={MODELS[number % self._models]}",) if number % 2 else (f"task={TASKS[0]}",)
        with suppress(SweepError):  # nothing of it may be left
            forget(self.cube, Choice(where))

    def merge(self, _: int) -> None:
        self.config["cube"] = merged(self.folder, self.cube, self.other)

    @property
    def _models(self) -> int:
        return len(self.config["models"])


def merged(folder: Any, *cubes: str, rename: Sequence[str] = ()) -> str:
    output = str(folder / f"merged-{next(_NUMBERS)}.zarr")
    merge_cubes(output, cubes, rename=rename)
    return output


LIVES = [
    [("more_points", 1), ("upsample", 1), ("forget", 3), ("more_models", 2)],
    # Single steps have tests of their own.
    pytest.param([("more_repeats", 2), ("more_tasks", 1), ("upsample", 3)], marks=pytest.mark.integration),
    pytest.param([("budget", 3), ("merge", 1), ("more_trials", 3)], marks=pytest.mark.integration),
]


@pytest.fixture(scope="module")
def other(tmp_path_factory, _served):
    """Another sweep of some of the same models and cells, and of others."""
    folder = tmp_path_factory.mktemp("other")
    config = sweep_config(folder, _served.base_url, models=("delta", "alpha"), trials=5, cells=2)
    run(config, cluster=SHARED)
    return config["cube"]


@pytest.mark.parametrize("steps", LIVES)
def test_cube__stays_whole_however_it_grew(tmp_path, simulator, other, steps) -> None:
    life = Life(tmp_path, simulator.base_url, other)

    for name, number in steps:
        getattr(life, name)(number)
        assert verify_cube(life.cube).damages == [], name

    publish_cube(life.cube, str(tmp_path / "out"))
    pulled = pull_cube(str(tmp_path / "out"), str(tmp_path / "pulled.zarr")).cube
    for cube in (pulled, merged(tmp_path, pulled, other), merged(tmp_path, life.cube, pulled)):
        assert verify_cube(cube).damages == []
