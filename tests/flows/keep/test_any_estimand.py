"""Whatever a cube has been through, all pages mean the same by all tasks."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from typing import Any

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import compare, leaderboard, metrics, table
from evalcube.flows.run.sweep import run
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.keep.test_any_growth import TASKS, Life, merged
from tests.flows.shared_cluster import SHARED
from tests.flows.support import set_faults, stored, sweep_config

pytestmark = pytest.mark.integration

STEPS = (
    *(
        "more_trials",
        "more_repeats",
        "more_models",
        "more_points",
        "more_tasks",
        "upsample",
        "budget",
        "forget",
    ),
    *("merge", "merge_turned", "rescore", "loss", "rename"),
)


class OtherLife(Life):
    """With the steps that move, grade or lose what there is."""

    simulator: Any

    def merge_turned(self, _: int) -> None:
        self.config["cube"] = merged(self.folder, self.other, self.cube)

    def rescore(self, _: int) -> None:
        rescore_cube(self.cube, cache=self.config["cache"])

    def loss(self, number: int) -> None:
        """Ask more while the server fails now and then, and leave what it did not answer."""
        set_faults(self.simulator, [{"kind": "status", "status": 500, "share": 0.2 * number}])
        limits = [model["limits"] for model in self.config["models"]]
        try:
            for model in self.config["models"]:
                model["limits"] = {**model["limits"], "retries": 0}
            self.more_trials(2 * number)
        finally:
            set_faults(self.simulator, [])
            for model, before in zip(self.config["models"], limits, strict=True):
                model["limits"] = before

    def rename(self, number: int) -> None:
        """Take in a colleague's cube, whose models have names of their own, and one of its tasks, too."""
        names = [f"alpha=theirs-{number}", f"{TASKS[number % 2]}=logic"]
        renames = [f"{self.other}:{name}" for name in names]
        self.config["cube"] = merged(self.folder, self.cube, self.other, rename=renames)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, _served: Any) -> str:
    """A colleague's sweep of some of the same models and cells, and of others."""
    config = sweep_config(
        tmp_path_factory.mktemp("other"), _served.base_url, models=("delta", "alpha"), trials=5, cells=2
    )
    run(config, cluster=SHARED)
    return str(config["cube"])


def test_loss__stays_in_the_cube_and_rename_brings_a_task(tmp_path: Any, simulator: Any, other: str) -> None:
    life = OtherLife(tmp_path, simulator.base_url, other)
    life.simulator = simulator

    for step in ("more_repeats", "more_models", "loss", "rename"):
        getattr(life, step)(2)

    lost = (stored(Cube.open(life.cube), "status") == Status.TRANSPORT).sum()
    assert lost > 0
    assert "logic" in leaderboard(life.cube).tasks
    same_means(life.cube, Part())


@pytest.mark.parametrize("seed", range(100))
def test_pages__mean_the_same_whatever_a_cube_has_been_through(
    tmp_path: Any, simulator: Any, other: str, seed: int
) -> None:
    choice = random.Random(seed)
    life = OtherLife(tmp_path, simulator.base_url, other)
    life.simulator = simulator

    for step in choice.choices(STEPS, k=4):
        with suppress(SweepError):  # a step may have nothing left to do, or contradict what the cube has
            getattr(life, step)(choice.randint(1, 3))

    for part in (Part(), Part(trials=2), Part(unique_only=True)):
        with suppress(SweepError):  # nothing may be left of a part
            same_means(life.cube, part)


def same_means(cube: str, part: Part) -> None:
    found = leaderboard(cube, part)
    board = {row.model_name: row for row in found.rows}
    shares = {row["model"]: row["point"] for row in table(cube, part, by=["model"], mode="E_P").records()}
    passed = {
        row["model"]: row["pass_at_k"] for row in metrics(cube, part, names=["pass_at_k"], k=[1]).records()
    }
    for name, row in board.items():
        assert shares.get(name, math.nan) == pytest.approx(row.accuracy.value, nan_ok=True)
        assert passed.get(name, row.accuracy.value) == pytest.approx(row.accuracy.value, nan_ok=True)
        spent = row.score.value / row.tokens_per_trial
        assert row.score_per_token.value == pytest.approx(spent, nan_ok=True)
    whole = [name for name, row in board.items() if not row.marked]
    # A pair rests on all that both were asked, and a board on what most were.
    if len(whole) > 1 and not any("left out" in text for text in found.cautions):
        for pair in compare(cube, whole, part).pairs:
            ours = board[pair.first], board[pair.second]
            if pair.overall.trials == ours[0].trials == ours[1].trials and not pair.alike:
                rates = pair.overall.first_rate, pair.overall.second_rate
                assert rates == pytest.approx(tuple(row.accuracy.value for row in ours))
