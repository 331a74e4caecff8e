"""What a new cube consists of, and what is refused before there is one."""

import json
import warnings

import numpy as np
import pytest
from storage_workers import make_cube

from evalcube.storage.cube.cube import Coordinate, Cube
from evalcube.storage.cube.schema import LAYERS, VARIABLES
from evalcube.storage.errors import (
    CubeExistsError,
    CubeMismatchError,
)

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_create__attrs_sizes_chunks_survive_opening(tmp_path, cube):
    again = Cube.open(f"file://{tmp_path}/c.zarr")

    assert again.attrs == {"name": "test"}
    assert again.sizes == cube.sizes == {**again.sizes, "model": 3, "trial": 8, "counter": 20, "tier": 2}
    assert again.chunks == {"trial": 32, "repeat": 2}
    assert again.records.address == str(tmp_path / "c.zarr" / "_evalcube")


def test_create__refuses_a_taken_place_and_keeps_it(tmp_path, cube, workers):
    with pytest.raises(CubeExistsError, match="already there"):
        workers.make_cube(tmp_path / "c.zarr")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CubeExistsError):
        workers.make_cube(tmp_path / "file")

    assert Cube.open(tmp_path / "c.zarr").sizes == cube.sizes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.zarr", "file"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sizes": {"trial": 0}}, "no cells along trial"),
        ({"chunks": {"repeat": 0}}, "no cells along repeat in a region"),
        ({"attrs": {"x": float("nan")}}, "attributes are no JSON"),
        ({"coordinates": [Coordinate("x", ("model",), np.arange(3), {"x": {1}})]}, "that are no JSON"),
        ({"coordinates": [Coordinate("x", ("model",), np.arange(4), {})]}, "shape"),
        ({"coordinates": [Coordinate("x", ("nowhere",), np.arange(4), {})]}, "must have shape"),
        (
            {"coordinates": [Coordinate("x", ("model",), np.array(["a", None, "b"]), {})]},
            "than valid text: None",
        ),
        (
            {"coordinates": [Coordinate("x", ("model",), np.array(["a", "\ud800", "b"]), {})]},
            "than valid text",
        ),
    ],
)
def test_create__refuses_what_does_not_fit(tmp_path, workers, change, text):
    with pytest.raises(CubeMismatchError, match=text):
        workers.make_cube(tmp_path / "c.zarr", **change)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("cube")
def test_metadata__has_no_fill_value_attribute_and_a_checksum(tmp_path):
    metadata = json.loads((tmp_path / "c.zarr/status/zarr.json").read_text())

    assert "_FillValue" not in metadata["attributes"]
    assert metadata["fill_value"] == 255
    assert [codec["name"] for codec in metadata["codecs"]] == ["bytes", "blosc", "crc32c"]
    assert metadata["codecs"][1]["configuration"]["shuffle"] == "bitshuffle"
    assert metadata["chunk_grid"]["configuration"]["chunk_shape"] == [1, 2, 4, 32, 2]


def test_create_and_grow__emit_no_warning(tmp_path, workers):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cube = workers.make_cube(tmp_path / "c.zarr")
        cube.records.put("ledger.jsonl", b"")
        cube.grow(trial=9)
    assert caught == []


def test_create__without_layers_has_none(tmp_path):
    cube = make_cube(tmp_path / "c.zarr")

    assert set(cube.trial_arrays) == set(VARIABLES)
    assert set(LAYERS).isdisjoint(cube.dataset().variables)


@pytest.mark.parametrize("models", [2, 60])
def test_create__counters_of_so_many_models_are_one_chunk(tmp_path, models):
    cube = make_cube(tmp_path / "c.zarr", {"model": models, "trial": 8})

    assert cube.chunks_of_counters == min(models, 25)
