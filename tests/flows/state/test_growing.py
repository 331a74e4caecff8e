"""A cube is brought to what its sweep has become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.state import store
from evalcube.flows.state.records import SPENT
from evalcube.flows.state.store import SweepStore, existing_store, open_store
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe
from tests.flows.state.stores import RECIPE, plan_of, store_of, work_of


def test_grow__plans_what_is_new_and_keeps_what_is_there(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha",), repeats=1, chunks=(4, 2))
    opened = store_of(tmp_path, recipe, trials=9, repeats=2)
    url = opened.cube.url
    targets = store.SampleTargets.uniform(plan_of(recipe, trials=9, repeats=2), 9, 2)
    wider = SweepStore(opened.cube, opened.plan, targets)
    assert (opened.grown, wider.grown) == (True, False)

    wider.grow()

    assert wider.grown
    cube = Cube.open(url)
    assert (cube.sizes["trial"], cube.sizes["repeat"]) == (9, 2)
    trials, repeats = cube.read_targets()
    assert trials[0].tolist() == [[9, 9, 9], [9, 9, 0]]
    assert repeats[0].tolist() == [[2, 2, 2], [2, 2, 0]]
    again = open_store(plan_of(recipe, trials=9, repeats=2), url)
    assert again.grown
    work = work_of(again)
    assert set(work) == {(0, 0), (1, 0), (2, 0)}
    shape = (2, 3, 4, 2)
    for trial in (0, 1):  # of these the first repeats are there
        assert work[trial, 0].kept[:2] == (4, 1)
        assert {np.unravel_index(position, shape)[3] for position in work[trial, 0].positions} == {1}
    assert work[2, 0].kept == store.NOTHING_KEPT
    assert len(work[2, 0].positions) == 5 * 2


def test_behind__leaves_out_evaluations_without_the_questions_that_were_not_compared(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha",), trials=(0, 6))
    opened = store_of(tmp_path, recipe)
    targets = store.SampleTargets.uniform(plan_of(recipe, trials=9), 9, 1)

    wider = SweepStore(opened.cube, opened.plan, targets)
    wider.grow()

    assert wider.behind() == ([], [0, 1])


@pytest.mark.parametrize("spent", [None, b'{"requests": 3}'])
def test_open_store__replaces_a_cube_that_holds_nothing_and_keeps_what_was_spent(
    tmp_path: Path, spent: bytes | None
) -> None:
    url = str(tmp_path / "c.zarr")
    first = open_store(plan_of(RECIPE), url)
    if spent:
        first.cube.records.put(SPENT, spent)
    other = plan_of(RECIPE, seed=7)
    assert existing_store(other, url) is None

    replaced = open_store(other, url)

    assert replaced.cube.attrs["spec"]["seed"] == 7
    kept = replaced.cube.records.get(SPENT)
    assert (None if kept is None else kept.data) == spent
