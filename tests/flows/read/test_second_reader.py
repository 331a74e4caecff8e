"""Replies that were read twice: in the cube, on pages, in lists of trials, in old cubes and in merged ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import compare, leaderboard
from evalcube.flows.read.trials.read import trials
from evalcube.flows.run.sweep import run
from evalcube.flows.share.merge import merge_cubes
from evalcube.stages.reply.status import LAST_FINISHED, Status
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import reset, simulator_stats, stored, sweep_config

EVEN = {"name": "even", "pattern": "-?[0-9]*[02468](?![0-9])", "take": "last"}
"""Finds answers that are even numbers alone."""
THEIRS = Part(reader="theirs")


def config(folder: Path, served: Any, reader: Any = None) -> dict[str, Any]:
    made = sweep_config(folder, served.base_url, cells=2, models=("alpha", "beta"))
    if reader is not None:
        made["tasks"]["arithmetic"]["reader"] = reader
    return made


@pytest.fixture
def served(_served: Any) -> Any:
    """The simulator."""
    reset(_served)
    return _served


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, _served: Any) -> Path:
    """A folder with a sweep that was read once, `cube.zarr`, and one that was read twice, `twice.zarr`."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    run(config(folder, _served), cluster=SHARED)
    run({**config(folder, _served, EVEN), "cube": str(folder / "twice.zarr")}, cluster=SHARED)
    return folder


def codes(cube: str | Path) -> tuple[np.ndarray, np.ndarray]:
    opened = Cube.open(cube)
    return stored(opened, "status"), stored(opened, "status_theirs")


def test_run__reads_each_reply_of_a_task_with_a_reader_twice_and_asks_once(made, served):
    before = simulator_stats(served)["requests"]
    ours, theirs = codes(made / "twice.zarr")
    rows = trials(
        made / "twice.zarr", columns=["task", "status", "status_theirs", "disagree", "reference"]
    ).records()

    assert simulator_stats(served)["requests"] == before
    assert (theirs[:, 1] == Status.MISSING).all()
    assert ((theirs[:, 0] <= LAST_FINISHED) == (ours[:, 0] <= LAST_FINISHED)).all()
    right = [row for row in rows if row["task"] == "arithmetic" and row["status"] == "correct"]
    assert {int(row["reference"]) % 2 == 0 for row in right if row["status_theirs"] == "correct"} == {True}
    assert {row["disagree"] for row in right if int(row["reference"]) % 2} == {True}
    assert {row["status_theirs"] for row in rows if row["task"] == "boolean"} == {None}


def test_leaderboard__has_the_gap_as_the_paired_comparison_of_the_two_readers(made):
    board = leaderboard(made / "twice.zarr")
    (theirs,) = ({row.model_name: row for row in leaderboard(made / "twice.zarr", THEIRS).rows},)

    assert board.readers == {"arithmetic": "even"}
    for row in board.rows:
        assert row.gap is not None
        assert row.gap.difference.value == pytest.approx(row.gap.ours - row.gap.theirs)
        assert row.gap.difference.lower <= row.gap.difference.value <= row.gap.difference.upper
        assert theirs[row.model_name].accuracy.value == pytest.approx(row.gap.theirs)
        assert theirs[row.model_name].gap is None
    assert "even" in board.notes[-1] or any("even (arithmetic)" in one for one in board.remarks)


def test_open_part__as_theirs_leaves_out_what_was_not_read_twice_and_says_so(made):
    found = compare(made / "twice.zarr", part=THEIRS)

    assert [one.task for one in found.pairs[0].tasks] == ["arithmetic"]
    assert "read by even" in found.part.selection
    assert any("Left out" in one and "boolean" in one for one in found.part.warnings)


def test_open_part__refuses_a_second_reader_that_is_not_there(made):
    with pytest.raises(SweepError, match="second reader"):
        leaderboard(made / "cube.zarr", THEIRS)
    with pytest.raises(SweepError, match="second reader"):
        trials(made / "cube.zarr", where=["disagree"])
    with pytest.raises(SweepError, match="no 'thiers'"):
        Part(reader="thiers")


def test_trials__where_the_two_readers_disagree(made):
    ours, theirs = (one[:, 0] for one in codes(made / "twice.zarr"))
    differ = ((ours == Status.CORRECT) != (theirs == Status.CORRECT)) & (ours <= LAST_FINISHED)

    assert len(trials(made / "twice.zarr", where=["disagree"])) == differ.sum()
    assert (
        len(trials(made / "twice.zarr", where={"disagree": False}))
        == (~differ & (ours <= LAST_FINISHED)).sum()
    )
    right = trials(made / "twice.zarr", status=["correct"], reader="theirs")
    assert len(right) == (theirs == Status.CORRECT).sum()


def test_view__says_what_both_read(made):
    (first, *_) = trials(made / "twice.zarr", where=["task=arithmetic", "disagree", "model=alpha"]).records()
    reader = Reader(made / "twice.zarr")

    view = reader.view(0, 0, reader.point("arithmetic", first["params"])[1], first["trial"])

    assert view.theirs is not None
    assert (view.theirs.reader, view.theirs.status) == ("even", first["status_theirs"])
    assert view.theirs.parsed != view.parsed


def test_run__refuses_another_reader_than_the_cube_has_and_keeps_one_that_the_config_lacks(
    made, tmp_path, served
):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    twice = {"cube": str(tmp_path / "twice.zarr")}

    with pytest.raises(SweepError, match=r"reader of task arithmetic"):
        run({**config(tmp_path, served, EVEN | {"take": "first"}), **twice}, cluster=SHARED)
    run({**config(tmp_path, served), **twice}, cluster=SHARED)

    assert leaderboard(tmp_path / "twice.zarr").readers == {"arithmetic": "even"}


@pytest.mark.parametrize("order", [("cube.zarr", "twice.zarr"), ("twice.zarr", "cube.zarr")])
def test_merge__takes_the_second_outcomes_of_the_cube_that_has_them(made, tmp_path, order):
    done = merge_cubes(tmp_path / "merged.zarr", [made / name for name in order])

    assert done is not None
    assert leaderboard(tmp_path / "merged.zarr").rows[0].gap == leaderboard(made / "twice.zarr").rows[0].gap
    assert len(trials(tmp_path / "merged.zarr", where=["disagree"])) == len(
        trials(made / "twice.zarr", where=["disagree"])
    )


def test_report__shows_theirs_and_the_gap_where_there_are_any(made, tmp_path):
    heads = [
        '<th scope="col">gap</th>' in report(made / name, tmp_path / "report.html", samples=0).read_text()
        for name in ("twice.zarr", "cube.zarr")
    ]

    assert heads == [True, False]


def test_leaderboard__has_the_gap_of_several_cubes_too(made):
    both = [made / "cube.zarr", made / "twice.zarr"]

    assert [row.gap for row in leaderboard(both).rows] == [row.gap for row in leaderboard(both[1]).rows]


@pytest.mark.model
def test_leaderboard__has_the_gap_of_a_real_model_on_number_questions(tmp_path):
    questions = Path(__file__).parents[2] / "data" / "number_questions.jsonl"
    params = {"file": str(questions), "prompt": "question", "kind": "number", "id": "id"}
    params["instruction"] = "Give the answer in a line of the form\n#### <number>"
    strict = {"name": "strict-match", "pattern": r"#### (\-?[0-9\.\,]+)", "ignore": [","]}
    sweep = {
        "trials": 12,
        "cube": str(tmp_path / "cube.zarr"),
        "cache": str(tmp_path / "cache"),
        "models": [{"name": "smollm2", "endpoint": "local:smollm2", "limits": {"timeout": 200}}],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 80}},
        "tasks": {"numbers": {"task": "dataset", "params": params, "reader": strict}},
    }

    summary = run(sweep, workers=1)

    assert (summary.reason, summary.sent) == ("complete", 12)
    (row,) = leaderboard(sweep["cube"]).rows
    assert row.gap is not None
    assert row.gap.trials == 12
