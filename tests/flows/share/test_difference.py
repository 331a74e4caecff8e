"""Two cubes are compared by identity: what they ask, how far they are planned, and how each trial ended."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.spec import parse_spec
from evalcube.flows.share.difference import SideCounts, diff_cubes, identity_differences
from evalcube.flows.share.merge import merge_cubes
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from tests.flows.read.merged.generated import Recipe, config_of, make_cube
from tests.flows.support import evalcube

pytestmark = pytest.mark.long

ONE = Recipe(models=("alpha", "beta"), lengths=(3, 4), depths=(3,), trials=(0, 6))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cube of two models at three points, which tests only read."""
    path = tmp_path_factory.mktemp("one") / "one.zarr"
    make_cube(path, ONE)
    return str(path)


def other(tmp_path: Path, **changes: Any) -> str:
    make_cube(tmp_path / "other.zarr", replace(ONE, **changes))
    return str(tmp_path / "other.zarr")


def test_diff_cubes__chunks_and_the_order_of_axes_are_no_difference(one: str, tmp_path: Path) -> None:
    second = other(tmp_path, models=("beta", "alpha"), lengths=(4, 3), chunks=(3, 1))
    merge_cubes(str(tmp_path / "merged.zarr"), [one, second])

    for cube in (second, str(tmp_path / "merged.zarr")):
        found = diff_cubes(one, cube)
        assert found.equal
        assert (found.cells, found.trials) == (SideCounts(equal=6), SideCounts(equal=36))


def test_diff_cubes__says_what_only_one_asks(one: str, tmp_path: Path) -> None:
    found = diff_cubes(
        one, other(tmp_path, models=("beta", "gamma"), lengths=(3, 5), tiers=("medium",), trials=(2, 8))
    )

    assert not found.equal
    said = sorted(re.sub(r', "max_depth".*}', "}", text) for text in found.identity)
    assert said == [
        "evaluation alpha / plain / greedy is only in the first",
        "evaluation gamma / plain / greedy is only in the second",
        'point {"length": 3} of task arithmetic is in tiers easy in the first and in tiers medium in the second',
        'point {"length": 4} of task arithmetic is only in the first',
        'point {"length": 5} of task arithmetic is only in the second',
    ]
    # What both ask is beta at two points; of its trials the first has 0 to 5, and the second 2 to 7.
    assert found.plan == {"cells": 2, "first": 36, "second": 48}
    assert found.cells == SideCounts(only_first=4, only_second=4, differing=2)
    assert found.trials == SideCounts(only_first=36 - 8, only_second=36 - 8, equal=8)


def test_diff_cubes__compares_what_things_are_and_not_how_they_are_shown() -> None:
    first = parse_spec(build_plan(from_mapping(config_of(ONE))).spec())
    task, evaluation = first.tasks[0], first.evaluations[0]
    moved = [
        point.model_copy(update={"params": {**point.params, "file": "/theirs"}}) for point in task.points
    ]
    same = first.model_copy(update={"tasks": [task.model_copy(update={"points": moved}), *first.tasks[1:]]})
    # Another evaluation by the name of one that both have.
    twin = first.evaluations[1].model_copy(update={"model": evaluation.model})
    both = first.model_copy(update={"evaluations": [evaluation, twin]})

    assert identity_differences(first, same) == []
    assert identity_differences(both, first.model_copy(update={"evaluations": [evaluation]})) == [
        f"evaluation {evaluation.label} is only in the first"
    ]


def test_diff_cubes__counts_how_trials_ended_otherwise(one: str, tmp_path: Path) -> None:
    second = other(tmp_path)
    cube, region = Cube.open(second, writable=True), Region(1, 0, 0)
    arrays = cube.read_region(region)
    before = arrays["status"][0, :2].copy()
    arrays["status"][0, :2] = Status.CORRECT
    arrays["tokens"][1, 0, 0] += 1
    with Ledger(cube.records) as ledger:
        receipt = ledger.newest()[region]
        digest = cube.write_region(region, arrays)
        ledger.append(replace(receipt, generation=2, digest=digest))

    found = diff_cubes(one, second)

    moved = before[before != Status.CORRECT]
    assert found.trials == SideCounts(equal=36 - len(moved) - 1, differing=len(moved) + 1)
    assert found.cells == SideCounts(equal=3, differing=3)
    changes = {(change.first, change.second): change.trials for change in found.status_changes}
    assert changes == {
        (Status(code).name.lower(), "correct"): int((moved == code).sum()) for code in set(moved.tolist())
    }


def test_diff__exit_codes_tell_equal_different_and_refused(one: str, tmp_path: Path) -> None:
    second = other(tmp_path, salt="theirs")

    equal = evalcube("diff", one, one, "--json", cwd=tmp_path)
    different = evalcube("diff", one, second, cwd=tmp_path)
    refused = evalcube("diff", one, tmp_path / "none.zarr", cwd=tmp_path)

    assert [equal[0], different[0], refused[0]] == [0, 1, 2]
    assert json.loads(equal[1])["equal"] is True
    assert "36 differ" in different[1]
    assert different[1].endswith("different\n")
    document = json.loads(evalcube("diff", one, second, "--json", cwd=tmp_path)[1])
    assert document["trials"]["differing"] == 36


def test_diff_cubes__of_the_same_models_without_a_question_in_common(one: str, tmp_path: Path) -> None:
    found = diff_cubes(one, other(tmp_path, lengths=(5,), depths=()))

    assert not found.equal
    assert (found.cells, found.trials) == (SideCounts(6, 2), SideCounts(36, 12))
