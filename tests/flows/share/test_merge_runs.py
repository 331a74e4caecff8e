"""What runs measured and a merge joined is what one run of all would have measured, and runs go on with it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.sweep import run
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.errors import CubeDamagedError
from tests.flows.read.merged.generated import content
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, reset, simulator_stats, sweep_config
from tests.storage.support import buckets

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, _served: Any) -> Path:
    """A folder with two teams' cubes, and one of all models and tasks together."""
    reset(_served)
    folder = tmp_path_factory.mktemp("measured")
    for name, models, cells in (("a", ("alpha",), 4), ("b", ("beta",), 4)):
        run(config_of(folder, _served, name, models=models, cells=cells), cluster=SHARED)
    run(config_of(folder, _served, "whole", models=("alpha", "beta")), cluster=SHARED)
    return folder


def config_of(folder: Path, served: Any, name: str, **changes: Any) -> dict[str, Any]:
    return sweep_config(folder, served.base_url, cube=f"{name}.zarr", **changes)


def addresses(folder: Path, *names: str) -> list[str]:
    return [str(folder / f"{name}.zarr") for name in names]


def test_merge_cubes__of_two_runs_is_the_run_of_all(measured: Path, tmp_path: Path, simulator: Any) -> None:
    output = str(tmp_path / "m.zarr")

    merge_cubes(output, addresses(measured, "b", "a"))

    assert content(output, timed=False) == content(measured / "whole.zarr", timed=False)
    assert verify_cube(output).whole
    status = cube_status(output)
    assert (status["complete"], status["done"]) == (True, 80)
    whole = config_of(measured, simulator, "whole", models=("alpha", "beta"))
    summary = run({**whole, "cube": output, "cache": str(tmp_path / "empty")}, cluster=SHARED)
    assert (summary.reason, summary.sent) == ("complete", 0)
    assert simulator_stats(simulator)["requests"] == 0
    more = run({**whole, "cube": output, "cache": str(tmp_path / "empty"), "trials": 10}, cluster=SHARED)
    assert (more.reason, more.sent) == ("complete", 20)


def test_merge_cubes__of_halves_of_the_trials_within_one_chunk_is_the_run_of_all(
    measured: Path, tmp_path: Path, simulator: Any
) -> None:
    halves = []
    for name, trials in (("low", "0:3"), ("high", "3:8")):
        config = config_of(tmp_path, simulator, name)
        assert run(config, cluster=SHARED, trials=trials).reason == "complete"
        halves.append(config["cube"])

    merge_cubes(str(tmp_path / "m.zarr"), halves)

    assert content(tmp_path / "m.zarr", timed=False) == content(measured / "a.zarr", timed=False)


def test_run__goes_on_with_a_merged_cube_from_either_config(
    measured: Path, tmp_path: Path, simulator: Any
) -> None:
    output = str(tmp_path / "m.zarr")
    merge_cubes(output, addresses(measured, "a", "b"))

    for name, sent in (("alpha", 0), ("beta", 0), ("gamma", 40)):
        config = config_of(measured, simulator, "any", models=(name,))
        summary = run({**config, "cube": output, "cache": str(tmp_path / "empty")}, cluster=SHARED)
        assert (summary.reason, summary.sent) == ("complete", sent)

    assert cube_status(output)["done"] == 120
    assert verify_cube(output).whole
    merge_cubes(str(tmp_path / "again.zarr"), [output, *addresses(measured, "whole")])
    assert cube_status(str(tmp_path / "again.zarr"))["done"] == 120


def test_merge_cubes__into_a_bucket_and_out_of_it(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.in_memory(monkeypatch)

    merge_cubes("s3://bucket/both.zarr", addresses(measured, "a", "b"))
    merge_cubes(str(tmp_path / "back.zarr"), ["s3://bucket/both.zarr", *addresses(measured, "a")])

    assert content("s3://bucket/both.zarr") == content(tmp_path / "back.zarr")
    assert verify_cube("s3://bucket/both.zarr").whole


def test_merge_cubes__a_merged_cube_is_a_cube_to_every_command(measured: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "m.zarr")
    code, out, errors = evalcube("merge", output, *addresses(measured, "a", "b"), cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert "2 evaluations, 2 tasks, 80 trials" in out

    cache = str(measured / "cache")
    shown = (
        "show",
        output,
        "--task",
        "arithmetic",
        "--params",
        "length=3",
        "--model",
        "beta",
        "--cache",
        cache,
    )
    for arguments in (("status", output), ("cube", "verify", output), ("leaderboard", output), shown):
        assert evalcube(*arguments, cwd=tmp_path)[0] == 0
    assert rescore_cube(output, cache=cache).changed == 0


def test_merge_cubes__killed_in_the_middle_leaves_nothing(measured: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.zarr"
    code = f"""
import os, signal
from evalcube.flows.read.merged import dataset
from evalcube.flows.share import merge
whole = dataset.MergedRegion.receipt
dataset.MergedRegion.receipt = lambda *given: (os.kill(os.getpid(), signal.SIGKILL), whole(*given))[1]
merge.merge_cubes({str(output)!r}, {addresses(measured, "a", "b")!r})
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL

    left = [path.name for path in tmp_path.iterdir()]
    assert not output.exists()
    assert len(left) == 1
    merge_cubes(str(output), addresses(measured, "a", "b"))

    assert [path.name for path in tmp_path.iterdir()] == ["m.zarr"]


def test_merge_cubes__refuses_a_cube_whose_ledger_is_lost(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured / "b.zarr", tmp_path / "b.zarr")
    (tmp_path / "b.zarr" / "_evalcube" / "ledger.jsonl").unlink()
    cubes = [str(measured / "a.zarr"), str(tmp_path / "b.zarr")]

    with pytest.raises(CubeDamagedError, match=r"b\.zarr: its counters count \d+ trials of which its ledger"):
        merge_cubes(str(tmp_path / "m.zarr"), cubes)

    assert not (tmp_path / "m.zarr").exists()
