"""Ids of a data set's rows are a coordinate of its cube, and of no other; they grow with it and are healed."""

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan import coordinates as row_ids_module
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.state.store import SweepStore, open_store, relabel
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.generate.errors import TaskError
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.support import sweep_config

pytestmark = pytest.mark.long

ROWS = 10


@pytest.fixture
def config(tmp_path):
    """A sweep of a data set of ten rows with ids, of another without, and of a task."""
    rows = [{"q": f"What is {n} and {n}?", "a": 2 * n, "key": f"row {n}"} for n in range(ROWS)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {"file": str(tmp_path / "q.jsonl"), "prompt": "q", "answer": "a", "kind": "number"}
    config = sweep_config(tmp_path, "http://127.0.0.1:1/v1", trials=4, cells=2)
    config["tasks"]["plain"] = {"task": "dataset", "params": {**fields, "order": "file"}}
    config["tasks"]["named"] = {"task": "dataset", "params": {**fields, "id": "key"}}
    return config


def made(config, trials=4):
    """The store of a sweep, grown to its size."""
    plan = build_plan(from_mapping(config))
    store = SweepStore(open_store(plan, config["cube"]).cube, plan, SampleTargets.uniform(plan, trials, 1))
    store.grow()
    return store


def shown(config):
    """The ids as a reader without evalcube's code sees them."""
    return xr.open_zarr(config["cube"])["row_id"]


def asked(store, trials):
    """The ids as the questions themselves have them."""
    cell = store.plan.tasks[list(store.plan.task_names).index("named")].cells[0].cell
    return [[cell.trial(i).extras["id"] for i in range(trials)]]


def test_row_ids__are_a_coordinate_that_plain_xarray_reads(config):
    store = made(config)

    ids = shown(config)
    assert ids.dims == ("dataset", "trial")
    assert ids.values.tolist() == asked(store, 4)
    assert (ids.dataset_task.values.tolist(), ids.dataset_params.values.tolist()) == (["named"], [0])
    assert leaderboard(config["cube"]).rows
    cube = xr.open_zarr(config["cube"])  # as docs/cube.md does
    named = cube.row_id.isel(dataset=(cube.dataset_task == "named").values)[0]
    one = cube.status.sel(task="named", params=0).isel(trial=(named == asked(store, 4)[0][2]).values)
    assert one.trial.values.tolist() == [2]


def test_row_ids__are_no_part_of_a_cube_without_any(config):
    del config["tasks"]["named"]

    cube = made(config).cube

    assert not {"row_id", "dataset_task", "dataset_params"} & set(cube.dataset().coords)
    assert "dataset" not in cube.sizes


def test_row_ids__grow_with_the_cube_and_end_with_the_rows(config, monkeypatch):
    made(config)

    monkeypatch.setattr(
        "evalcube.flows.state.store.label_rows", lambda *_: None
    )  # killed between growth and labels
    store = made(config, 8)
    assert shown(config).values.tolist() == [asked(store, 4)[0] + [""] * 4]
    monkeypatch.undo()
    relabel(store.cube, store.plan)

    assert shown(config).values.tolist() == asked(store, 8)
    monkeypatch.setattr(row_ids_module, "row_ids", None)  # nothing is to be read again
    relabel(store.cube, store.plan)


def test_row_ids__are_empty_beyond_the_rows(config):
    plan = replace(build_plan(from_mapping(config)), trials=16)
    store = SweepStore(open_store(plan, config["cube"]).cube, plan)
    ids = shown(config).values[0]
    assert sorted(ids[:ROWS].tolist()) == sorted(f"row {n}" for n in range(ROWS))
    assert set(ids[ROWS:].tolist()) == {""}
    assert not row_ids_module.lacks_row_ids(store.cube, store.plan)


def test_verify__heals_damaged_ids(config, tmp_path):
    store = made(config)
    good = shown(config).values.tolist()
    open_cache(str(tmp_path / "cache"))

    def spell_otherwise(_):
        store.cube.write_label("row_id", np.array([["x", *good[0][1:]]], dtype=object))

    for spoil in (lambda path: path.write_bytes(b"damaged"), Path.unlink, spell_otherwise):
        spoil(next((tmp_path / "cube.zarr" / "row_id").glob("c.*")))

        assert [damage.array for damage in verify_cube(config["cube"]).damages] == ["row_id"]
        assert verify_cube(config["cube"], heal=True, cache=tmp_path / "cache").damages[0].healed
        assert shown(config).values.tolist() == good


def test_run__mends_damaged_ids(config, tmp_path):
    store = made(config)
    good = shown(config).values.tolist()
    next((tmp_path / "cube.zarr" / "row_id").glob("c.*")).unlink()

    relabel(store.cube, store.plan)

    assert shown(config).values.tolist() == good


def test_verify__of_ids_whose_file_is_gone_says_so(config, tmp_path, monkeypatch):
    made(config)
    gone = TaskError("q.jsonl is not there")
    monkeypatch.setattr(row_ids_module.Cell, "row_id", Mock(side_effect=gone))
    assert not verify_cube(config["cube"]).damages
    next((tmp_path / "cube.zarr" / "row_id").glob("c.*")).unlink()

    (damage,) = verify_cube(config["cube"]).damages

    assert "q.jsonl" in damage.problem
    assert Cube.open(config["cube"]).has_label("row_id")
