"""Several cubes are read as the cube that a merge would make of them, without writing it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evalcube._arrays import PlainDataset, as_xarray
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.targets import window_of
from evalcube.flows.read.merged.dataset import MergedRegion, Tally, open_joined
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.statistics import compare, leaderboard, metrics
from evalcube.flows.read.statistics import table as estimate_groups
from evalcube.flows.share.merge import merge_cubes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.read.merged.two_teams import A
from tests.flows.support import evalcube

pytestmark = pytest.mark.long

THEIRS = replace(A, models=("beta",), salt="theirs")
PAIRS = {
    "models and tasks": (A, replace(A, models=("gamma",), lengths=(), depths=(3, 6))),
    "trials": (replace(A, trials=(0, 4), chunks=(3, 2)), replace(A, trials=(2, 8), failed=0.2)),
    "prices": (A, replace(A, models=("beta",), lengths=(), depths=(6,), price=7.0)),
    "repeats and conflicts": (
        A,
        replace(A, models=("beta", "gamma"), repeats=3, chunks=(32, 1), salt="theirs"),
    ),
}


@pytest.fixture(scope="module", params=PAIRS)
def cubes(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Addresses of two cubes, and of what they are merged."""
    tmp_path = tmp_path_factory.mktemp("cubes")
    urls = [str(tmp_path / f"{name}.zarr") for name in ("a", "b")]
    for url, recipe in zip(urls, PAIRS[request.param], strict=True):
        make_cube(url, recipe)
    merge_cubes(str(tmp_path / "merged.zarr"), urls, prefer="first")
    return urls, str(tmp_path / "merged.zarr")


@pytest.mark.parametrize("lazy", [False, True])
def test_open_joined__is_the_merged_cube(cubes: tuple[list[str], str], lazy: bool) -> None:
    urls, merged = cubes

    joined = open_joined(urls, trials=True, lazy=lazy).dataset
    found = as_xarray(joined)

    assert isinstance(joined, PlainDataset) is not lazy

    expected = Cube.open(merged).dataset()
    assert set(found.variables) == set(expected.variables)
    for name in expected.variables:
        stored, made = expected[name].load(), found[name].load()
        assert stored.dims == made.dims, name
        if name == "counters":  # of regions that a cube has not recorded, nothing is counted as missing
            stored, made = (one.drop_sel(counter="missing").round(9) for one in (stored, made))
        np.testing.assert_array_equal(stored.values, made.values, name)
    assert found.isel(model=0, trial=[2, 1], repeat=slice(1))["status"].values.shape[-2:] == (2, 1)


@pytest.mark.parametrize("cubes", ["trials"], indirect=True)
def test_boards__are_those_of_the_merged_cube(cubes: tuple[list[str], str]) -> None:
    urls, merged = cubes
    part = Part(("task=boolean",), unique_only=True)

    for trimmed in (None, part):
        one, other = (leaderboard(cube, trimmed).to_dict() for cube in (urls, merged))
        for board in (one, other):
            for row in board["rows"]:
                row.pop("missing"), row.pop("cost"), row.pop("cost_per_1000")
        assert json.dumps(one) == json.dumps(other)
        assert compare(urls, (), trimmed)[1] == compare(merged, (), trimmed)[1]
    assert estimate_groups(urls, by=("model", "task"))[1].equals(
        estimate_groups(merged, by=("model", "task"))[1]
    )
    assert metrics(urls)[1].equals(metrics(merged)[1])


def test_open_part__says_what_contradicts_and_what_does_not_fit(tmp_path: Path) -> None:
    urls = [str(tmp_path / f"{name}.zarr") for name in ("a", "b", "seed")]
    for url, recipe in zip(urls, (A, THEIRS, replace(A, changes={"seed": 5})), strict=True):
        make_cube(url, recipe)

    assert open_part(urls[:2]).warnings[0].startswith("36 trials have other")
    assert open_part([urls[0], urls[0]]).warnings == open_part(urls[0]).warnings
    with pytest.raises(SweepError, match="has seed 5"):
        open_part(urls)
    with pytest.raises(SweepError, match="no view 'hard'"):
        open_part(urls[:2], Part(view="hard"))


def test_commands__take_several_cubes_and_name_them(tmp_path: Path) -> None:
    for name, recipe in zip(("a.zarr", "b.zarr"), PAIRS["models and tasks"], strict=True):
        make_cube(tmp_path / name, recipe)

    for command in ("leaderboard", "table", "rank", "compare", "metrics"):
        code, out, _ = evalcube(command, "a.zarr", "b.zarr", "--json", cwd=tmp_path)
        assert code == 0
        assert json.loads(out)["cubes"] == ["a.zarr", "b.zarr"]
    code, out, _ = evalcube("compare", "a.zarr", "b.zarr", "gamma", "alpha", "--json", cwd=tmp_path)
    assert [(pair["first"], pair["second"]) for pair in json.loads(out)["pairs"]] == [("gamma", "alpha")]
    assert "cubes" not in json.loads(evalcube("leaderboard", "a.zarr", "--json", cwd=tmp_path)[1])


def numbers(cubes: list[str], part: Part | None) -> dict[str, tuple[float, ...]]:
    """What each page says of a model: interval of the table, accuracy of the board, pass@1."""
    board = {row.model_name: row.accuracy.value for row in leaderboard(cubes, part, draws=2).rows}
    table = {
        row["model"]: (row["point"], row["lower"], row["upper"])
        for row in estimate_groups(cubes, part, mode="E_P").records()
    }
    first = {
        row["model"]: row["pass_at_k"] for row in metrics(cubes, part, names=["pass_at_k"], k=[1]).records()
    }
    return {name: (*table[name], board[name], first[name]) for name in board}


WHOLE = Recipe(models=("alpha", "beta"), trials=(0, 6))
OTHER = replace(WHOLE, models=("gamma",), trials=(0, 8), chunks=(3, 1))


def assert_stays(alone: dict[str, tuple[float, ...]], beside: list[str], part: Part | None = None) -> None:
    """Each page says the same of a model, to the last bit, whatever lies beside it."""
    found = numbers(beside, part)

    assert {name: found[name] for name in alone} == alone


def test_estimand__of_untouched_models_stays_whatever_lies_beside_them(tmp_path: Path) -> None:
    """Merged and grown, or split and side by side."""
    recipes = {
        "whole": WHOLE,
        "other": OTHER,
        "short": replace(WHOLE, depths=()),
        "deep": replace(WHOLE, lengths=()),
    }
    urls = {name: str(tmp_path / f"{name}.zarr") for name in recipes}
    for name, recipe in recipes.items():
        make_cube(urls[name], recipe)
    merge_cubes(str(tmp_path / "merged.zarr"), [urls["other"], urls["whole"]])

    alone = numbers([urls["whole"]], None)

    assert_stays(alone, [str(tmp_path / "merged.zarr")])
    assert_stays(alone, [urls["other"], urls["deep"], urls["short"]])
    for point, _, _, accuracy, first in alone.values():
        assert (accuracy, first) == pytest.approx((point, point))


def test_estimand__of_a_view_where_trials_failed_stays_too(tmp_path: Path) -> None:
    urls = [str(tmp_path / f"{name}.zarr") for name in ("whole", "other")]
    for url, recipe in zip(urls, (WHOLE, OTHER), strict=True):
        make_cube(url, replace(recipe, repeats=2, failed=0.3))
    part = Part(trials=3, unique_only=True)

    alone = numbers(urls[:1], part)

    assert_stays(alone, urls, part)
    # A question counts once in both, however often it was answered.
    assert [row[3] for row in alone.values()] == pytest.approx([row[0] for row in alone.values()])


def test_tally__shows_of_contradictions_a_trial_that_ended_differently() -> None:
    sides = {"upper": 0, "lower": 1, "kept": [1, 1, 0], "hidden": [1, 0, 1]}
    tally = Tally(1)
    tally.add(
        0, (1, 3, 1), (4, 0), pd.DataFrame({**sides, "where": range(3), "undecided": [True, False, False]})
    )

    (conflict,) = tally.conflicts(["ours", "theirs"], ["alpha"], ["sums"], [[{"length": 3}]], [False])

    assert (conflict.kept, conflict.hidden, tally.trials, tally.unclear) == ("ours", "theirs", 3, 1)
    assert (conflict.trials, conflict.status_changes) == (3, 2)
    ends = {"kept": "correct", "hidden": "incorrect"}
    assert conflict.example == {"params": {"length": 3}, "trial": 5, "repeat": 0, **ends}


def test_receipt__sums_the_causes_of_its_parts_and_counts_copies_once(tmp_path: Path) -> None:
    cube = make_cube(tmp_path / "a.zarr", replace(A, failed=0.5))
    region, receipt = next(iter(Ledger(cube.records).newest().items()))
    window, arrays = window_of(cube.sizes, region, cube.chunks), cube.read_region(region)
    first = replace(receipt, causes={"timeout": 2, "refused": 1})
    later = replace(first, digest="another", generation=5, at=first.at + 9)

    merged = MergedRegion(window, arrays, [first, replace(first), later])
    found = merged.receipt(np.ones(window.shape, bool), "digest")

    assert found.transport > 0
    assert found.causes == {"timeout": 4, "refused": 2}
    assert (found.generation, found.at) == (5, first.at + 9)
