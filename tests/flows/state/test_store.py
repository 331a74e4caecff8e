"""The state of a sweep's cube: what its counters hold of what is recorded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.growth import Contradiction
from evalcube.flows.state import store
from evalcube.flows.state.store import OtherSweepError, SweepStore, existing_store, open_store
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.regions import Region
from tests.flows.read.merged.generated import Recipe
from tests.flows.state.stores import RECIPE, plan_of, store_of, work_of


@pytest.mark.parametrize(("count", "more"), [(6, ""), (7, "; and 1 more"), (9, "; and 3 more")])
def test_other_sweep__names_six_contradictions_and_each_remedy_once(count: int, more: str) -> None:
    remedies = ("Run evalcube forget CUBE first", "Use another cube")
    found = [Contradiction(f"no {number}", remedies[number % 2]) for number in range(count)]

    error = store._other_sweep("my cube", found)

    assert error.message.endswith(f"no 0; no 1; no 2; no 3; no 4; no 5{more}")
    assert error.remedy == "Run evalcube forget 'my cube' first. Use another cube"


def spoil(opened: SweepStore, name: str, *, cut: bool) -> None:
    """Change the last byte of a chunk of the first region, or leave it out."""
    chunk = next(Path(opened.cube.url).glob(f"{name}/c.0.0.0.0.0"))
    data = chunk.read_bytes()
    chunk.write_bytes(data[:-1] if cut else data[:-1] + bytes([data[-1] ^ 1]))


def test_unfinished__is_nothing_of_a_cube_that_has_all(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    opened = store_of(tmp_path, recipe)

    assert [work_of(opened, model) for model in (0, 1)] == [{}, {}]
    assert list(opened.regions(1)) == [Region(1, 0, 0), Region(1, 1, 0)]
    assert [opened.is_recorded(Region(1, trial, 0)) for trial in (0, 1, 2)] == [True, True, False]
    assert opened.grown
    assert opened.transport_errors() == [0, 0]


def test_unfinished__is_what_ended_in_transport_errors_and_keeps_the_rest(tmp_path: Path) -> None:
    opened = store_of(tmp_path, RECIPE)

    for model in (0, 1):
        status = opened.cube.dataset()["status"].to_numpy()[model]
        work = work_of(opened, model)
        assert opened.transport_errors()[model] == (status == Status.TRANSPORT).sum() > 0
        assert set(work) == {(trial, 0) for trial in (0, 1)}
        for (trial, _), region in work.items():
            stored = status[:, :, 4 * trial : 4 * trial + 4]
            assert sorted(region.positions) == np.flatnonzero(stored == Status.TRANSPORT).tolist()
            assert (region.generation, region.kept, len(region.unrated)) == (1, (4, 2, 0), 0)
            assert region.grader is not None


def test_unfinished__asks_anew_for_a_region_that_is_not_as_recorded(tmp_path: Path) -> None:
    opened = store_of(tmp_path, Recipe(models=("alpha",)))
    everything = np.flatnonzero(opened.targets.mask(window(opened)))
    spoil(opened, "tokens", cut=False)

    (region,) = work_of(opened).values()

    assert sorted(region.positions) == everything.tolist()
    assert (region.kept, region.generation, region.grader) == (store.NOTHING_KEPT, 1, None)
    assert work_of(opened).keys() == {(0, 0)}
    again = SweepStore(opened.cube, opened.plan)
    again.trust(next(receipt for receipt in again.receipts if receipt.region == Region(0, 0, 0)))
    assert work_of(again) == {}


def window(opened: SweepStore) -> Any:
    return store.window_of(opened.plan.sizes, Region(0, 0, 0), opened.cube.chunks)


def test_unfinished__of_a_large_cube_looks_at_the_ends_of_chunks_alone(tmp_path: Path, monkeypatch) -> None:
    cells = 2 * 3 * 8 * 1
    opened = store_of(tmp_path, Recipe(models=("alpha",)))
    spoil(opened, "tokens", cut=False)

    for most, known in ((cells, True), (cells - 1, False)):
        monkeypatch.setattr(store, "_COMPARED_CELLS", most)
        assert bool(work_of(SweepStore(opened.cube, opened.plan))) == known
    spoil(opened, "tokens", cut=True)
    assert work_of(SweepStore(opened.cube, opened.plan)).keys() == {(0, 0)}


def test_unfinished__of_answers_that_a_new_judge_has_not_seen(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha",), judges=("strict",))
    opened = store_of(tmp_path, recipe)
    assert work_of(opened) == {}
    status = opened.cube.dataset()["status"].to_numpy()[0]
    more = store_of(tmp_path / "more", recipe)
    more.plan = replace(more.plan, judges=more.plan.judges * 2)

    work = work_of(more)

    assert {len(region.positions) for region in work.values()} == {0}
    for (trial, _), region in work.items():
        first = np.zeros((2, 3, 4, 1), bool)
        first[0] = status[0, :, 4 * trial : 4 * trial + 4] < Status.TRANSPORT
        assert region.unrated.tolist() == np.flatnonzero(first).tolist()
    assert set(work) == {(0, 0), (1, 0)}


def test_open_store__refuses_the_cube_of_another_sweep_that_holds_trials(tmp_path: Path) -> None:
    opened = store_of(tmp_path, RECIPE)
    other = plan_of(RECIPE, seed=7)

    for opening in (open_store, existing_store):
        with pytest.raises(OtherSweepError, match=r"contradicts the config: .*seed"):
            opening(other, opened.cube.url)
    assert existing_store(plan_of(RECIPE), opened.cube.url) is not None
    assert existing_store(other, str(tmp_path / "nowhere.zarr")) is None
    with pytest.raises(SweepError, match=re.escape("trials")):
        existing_store(replace(plan_of(RECIPE), trials=10**7, repeats=10**5), opened.cube.url)


def test_open_store__leaves_a_cube_whose_batch_is_under_way(tmp_path: Path) -> None:
    url = str(tmp_path / "c.zarr")
    BatchNotes(open_store(plan_of(RECIPE), url).cube.records).write("ab" * 16, b"{}")

    with pytest.raises(OtherSweepError):
        open_store(plan_of(RECIPE, seed=7), url)
    assert Cube.open(url).attrs["spec"]["seed"] != 7


def test_relabel__takes_over_prices_and_writes_damaged_labels_anew(tmp_path: Path) -> None:
    opened = store_of(tmp_path, RECIPE)
    names = opened.cube.read_label("model_name").tolist()
    for chunk in (*Path(opened.cube.url).glob("model_name/c*"), *Path(opened.cube.url).glob("trial/c*")):
        chunk.write_bytes(b"not a chunk")

    store.relabel(opened.cube, plan_of(replace(RECIPE, price=30.0)))

    cube = Cube.open(opened.cube.url)
    assert cube.read_label("price_completion").tolist() == [30.0, 30.0]
    assert cube.read_label("model_name").tolist() == names
    assert cube.dataset()["trial"].values.tolist() == list(range(8))
