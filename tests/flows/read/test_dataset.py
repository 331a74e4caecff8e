"""A cube in the hands of xarray's users: what `open_cube` gives is plotted, merged, written and analysed."""

import json

import numpy as np
import pytest
import xarray as xr

import evalcube as ec
from tests.flows.support import sweep_config

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("simulated")]


@pytest.fixture(scope="module")
def cubes(tmp_path_factory):
    """Two cubes of a model each; what a run returned stands for its cube."""
    made = []
    for name in ("first", "second"):
        config = sweep_config(tmp_path_factory.mktemp(name), "sim:", trials=4, cells=2)
        config["models"] = [{"name": name, "endpoint": "sim:", "facets": {"size": "small"}}]
        made.append(ec.run(config).raise_for_status())
    return made


def test_open_cube__has_plain_labels_and_only_plain_attributes(cubes, tmp_path):
    opened = ec.open_cube(cubes[0])
    raw = xr.open_zarr(cubes[0].cube)

    texts = [
        name for name in raw.coords if raw[name].dtype.kind == "T" and name != "counter"
    ]  # it has further ones
    assert {opened[name].dtype.kind for name in texts} == {"U"}
    assert all(opened[name].values.tolist() == raw[name].values.tolist() for name in texts)
    assert set(opened.attrs) == {"title", "evalcube_format"}
    opened[["counters", "tokens"]].to_netcdf(tmp_path / "cube.nc")  # netCDF 3 has no bytes above 127
    assert str(xr.open_dataset(tmp_path / "cube.nc")["model"].values[0]) == "first"


def test_open_cube__is_merged_and_joined_by_labels(cubes):
    both = xr.concat([ec.open_cube(cube)["counters"].sum("params") for cube in cubes], dim="model")

    assert both["model"].values.tolist() == ["first", "second"]
    assert xr.merge(map(ec.open_cube, cubes), join="outer", compat="no_conflicts").sizes["model"] == 2
    assert both["model"].astype(str).dtype.kind == "U"


@pytest.fixture(scope="module")
def several(cubes, tmp_path_factory):
    """Cubes of two models: of one sweep with graded outputs and clusters, merged, and two joined."""
    folder = tmp_path_factory.mktemp("several")
    clustered = sweep_config(folder, "sim:", trials=8, cells=2, cube=str(folder / "rows.zarr"), repeats=2)
    clustered["models"] = [{"name": name, "endpoint": "sim:"} for name in ("first", "second")]
    rows = [{"question": f"{i} + 1?", "answer": str(i + 1), "passage": f"p{i // 2}"} for i in range(8)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = {
        "file": str(folder / "rows.jsonl"),
        "prompt": "question",
        "answer": "answer",
        "cluster": "passage",
    }
    clustered["tasks"] = {
        "rows": {"task": "dataset", "params": task, "assertions": [{"type": "contains", "value": "1"}]}
    }
    merged = str(folder / "merged.zarr")
    ec.merge(merged, [cube.cube for cube in cubes])
    return [ec.run(clustered).cube, merged, cubes]


@pytest.mark.filterwarnings("error")
def test_open_cube__keeps_the_contracts_of_xarray(several, tmp_path):
    for number, cube in enumerate(several):
        opened = ec.open_cube(cube)
        blocks = opened.map_blocks(lambda block: block)
        loaded = opened.compute()

        assert opened.chunksizes["model"] == (1, 1)
        assert opened.chunks["trial"] == opened["status"].chunks[3]
        assert blocks.compute().identical(loaded)
        opened.to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf")
        assert xr.open_dataset(tmp_path / f"{number}.nc").equals(loaded)
        opened.to_zarr(tmp_path / f"{number}.zarr", consolidated=False)
        assert xr.open_zarr(tmp_path / f"{number}.zarr", chunks=None, consolidated=False).equals(loaded)


def test_accessor__says_what_the_functions_say_also_of_a_part(cubes):
    cube = ec.open_cube(cubes[0])
    part = cube.isel(task=[0])

    assert cube.ec.leaderboard().to_dict() == ec.leaderboard(cubes[0]).to_dict()
    assert cube.ec.table(by=["task"]).records() == ec.table(cubes[0], by=["task"]).records()
    assert part.ec.table(by=["task"]).records() == cube.ec.table(by=["task"]).records()[:1]
    assert cube.ec.metrics(k=[1]).records() == ec.metrics(cubes[0], k=[1]).records()
    assert ec.compare(cubes).pairs[0].first == "first"
    with pytest.raises(ec.SweepError, match="at least two"):
        cube.ec.compare()


def test_rate__is_labelled_by_models_and_tasks(cubes):
    rates = ec.open_cube(cubes[0]).ec.rate(by=["model", "task"])

    assert rates["model"].values.tolist() == ["first"]
    assert rates.dims == ("model", "task")
    assert np.isfinite(rates).all()
    assert ec.table(cubes, by=["model"]).to_dataframe()["model"].tolist() == ["first", "second"]


def test_label__that_would_take_much_room_stays_pythons_text(cubes, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.dataset._MOST_BYTES", 100)

    opened = ec.open_cube(cubes[0])

    assert opened["params_json"].dtype == object
    assert opened["model"].dtype.kind == "U"
