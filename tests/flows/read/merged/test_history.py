"""A cube says where its trials come from, and when they were written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.flows.read.merged.provenance import cube_history
from evalcube.flows.share.merge import merge_cubes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.support import evalcube

pytestmark = pytest.mark.long

ONE = Recipe(models=("alpha", "beta"), depths=(), trials=(0, 4), at=1_000_000)


def test_cube_history__stretches_of_time_and_what_was_replaced(tmp_path: Path) -> None:
    url = str(tmp_path / "one.zarr")
    make_cube(url, ONE)
    with Ledger(Cube.open(url, writable=True).records) as ledger:
        first, second = sorted(ledger.newest().values(), key=lambda one: one.region)
        for at in (1_090_000, 1_091_000):
            ledger.append(replace(second, generation=2, at=at, grader="9"))

    found = cube_history(url)

    early, late = found.writings
    assert (early.first, early.last, early.regions, early.replaced) == (1_000_000, 1_000_000, 2, 1)
    assert early.models == ("alpha / plain / greedy", "beta / plain / greedy")
    assert (late.first, late.last, late.regions, late.replaced) == (1_090_000, 1_091_000, 2, 1)
    assert (late.models, late.graders, late.trials) == (("beta / plain / greedy",), ("9",), 24)
    assert found.sources == ()
    assert first.grader in early.graders


def test_log__names_sources_and_times(tmp_path: Path) -> None:
    make_cube(tmp_path / "one.zarr", ONE)
    make_cube(tmp_path / "two\x1b[2J.zarr", replace(ONE, models=("gamma",), at=0))
    merge_cubes(str(tmp_path / "both.zarr"), [str(tmp_path / "one.zarr"), str(tmp_path / "two\x1b[2J.zarr")])

    code, out, _ = evalcube("log", "both.zarr", cwd=tmp_path)
    document = json.loads(evalcube("log", "both.zarr", "--json", cwd=tmp_path)[1])

    assert code == 0
    assert "\x1b" not in out
    assert "one.zarr" in out
    assert [source["name"] for source in document["sources"]] == ["one.zarr", "two\x1b[2J.zarr"]
    assert [(one["first"], one["regions"]) for one in document["writings"]] == [(0, 1), (1_000_000, 2)]
