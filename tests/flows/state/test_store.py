"""The state of a sweep's cube: what its counters hold of what is recorded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.growth import Contradiction
from evalcube.flows.state import store
from evalcube.flows.state.records import SPENT
from evalcube.flows.state.store import OtherSweepError, SweepStore, existing_store, open_store
from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.regions import Region
from tests.flows.read.merged.generated import Recipe, config_of, make_cube


def test_stale__names_evaluations_whose_counters_are_behind_the_ledger(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    url = make_cube(tmp_path / "c.zarr", recipe).url
    plan = build_plan(from_mapping(config_of(recipe)))
    assert open_store(plan, url).stale() == []

    Cube.open(url, writable=True).write_counters({1: np.zeros_like(Cube.open(url).read_counters()[1])})

    assert open_store(plan, url).stale() == [1]


@pytest.mark.parametrize(("count", "more"), [(6, ""), (7, "; and 1 more"), (9, "; and 3 more")])
def test_other_sweep__names_six_contradictions_and_each_remedy_once(count: int, more: str) -> None:
    remedies = ("Run evalcube forget CUBE first", "Use another cube")
    found = [Contradiction(f"no {number}", remedies[number % 2]) for number in range(count)]

    error = store._other_sweep("my cube", found)

    assert error.message.endswith(f"no 0; no 1; no 2; no 3; no 4; no 5{more}")
    assert error.remedy == "Run evalcube forget 'my cube' first. Use another cube"


def plan_of(recipe: Recipe, **changes: Any) -> Any:
    return build_plan(from_mapping({**config_of(recipe), **changes}))


def store_of(folder: Path, recipe: Recipe, **changes: Any) -> SweepStore:
    """The cube of a recipe, opened with its own config or a changed one."""
    url = folder / "c.zarr"
    return open_store(plan_of(recipe, **changes), make_cube(url, recipe).url)


def work_of(opened: SweepStore, model: int = 0) -> dict[tuple[int, int], Any]:
    return {(work.window.region.trial, work.window.region.repeat): work for work in opened.unfinished(model)}


def spoil(opened: SweepStore, name: str, *, cut: bool) -> None:
    """Change the last byte of a chunk of the first region, or leave it out."""
    chunk = next(Path(opened.cube.url).glob(f"{name}/c.0.0.0.0.0"))
    data = chunk.read_bytes()
    chunk.write_bytes(data[:-1] if cut else data[:-1] + bytes([data[-1] ^ 1]))


RECIPE = Recipe(models=("alpha", "beta"), failed=0.3, repeats=2)


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


def test_counters__have_the_costs_of_todays_prices(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    dear = replace(recipe, price=30.0)
    opened = store_of(tmp_path, recipe)
    repriced = open_store(plan_of(dear), opened.cube.url)

    counters, labels = repriced.counters(), list(COUNTERS).index
    cost, tokens, prompt = (
        counters[..., labels(name)] for name in ("cost_sum", "tokens_sum", "prompt_tokens_sum")
    )

    np.testing.assert_allclose(cost, (prompt + 30 * tokens) / 1e6)
    assert (cost > opened.counters()[..., labels("cost_sum")]).any()
    assert (opened.stale(), repriced.stale()) == ([], [0, 1])
    assert repriced.behind() == ([0, 1], [])


def test_counters__that_cannot_be_read_are_counted_from_the_regions(tmp_path: Path) -> None:
    opened = store_of(tmp_path, RECIPE)
    expected = opened.counters()
    for chunk in Path(opened.cube.url).glob("counters/c*"):
        chunk.write_bytes(b"not a chunk")

    np.testing.assert_allclose(open_store(plan_of(RECIPE), opened.cube.url).counters(), expected)


def test_behind__names_tasks_and_evaluations_of_questions_that_were_not_compared(tmp_path: Path) -> None:
    opened = store_of(tmp_path, Recipe(models=("alpha", "beta")))
    assert opened.behind() == ([], [])
    flags = opened.cube.read_duplicates()
    flags[1, 0, 7] = 255

    opened.cube.write_duplicates(1, flags[1])
    assert opened.behind() == ([0, 1], [1])

    flags[1, 2] = 255  # there is no such point
    flags[1, 0, 7] = 0
    opened.cube.write_duplicates(1, flags[1])
    assert opened.behind() == ([], [])


def test_behind__leaves_out_evaluations_without_the_questions_that_were_not_compared(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha",), trials=(0, 6))
    opened = store_of(tmp_path, recipe)
    targets = store.SampleTargets.uniform(plan_of(recipe, trials=9), 9, 1)

    wider = SweepStore(opened.cube, opened.plan, targets)
    wider.grow()

    assert wider.behind() == ([], [0, 1])


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
