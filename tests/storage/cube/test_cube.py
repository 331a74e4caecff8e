import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Coordinate, Cube, Region, region_digest
from evalcube.storage.cube.schema import COUNTER_LABELS, COUNTERS, SHARED, STATUS_CODES, VARIABLES
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeExistsError,
    CubeMismatchError,
    CubeNotFoundError,
    NotWritableError,
)

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


@pytest.fixture
def synced(monkeypatch):
    """Paths of what was put on disk, in the order in which that was asked for."""
    paths, fsync = [], os.fsync

    def spy(descriptor):
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    return paths


def assert_equal(left, right):
    assert set(left) == set(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not say which file is synced")
def test_write_region__has_every_chunk_and_its_name_on_disk_before_it_returns(cube, workers, synced):
    region = Region(1, 0, 0)

    cube.write_region(region, workers.region_arrays(cube, region))

    chunks = [Path(cube.url).resolve() / name / "c.1.0.0.0.0" for name in VARIABLES]
    assert all(chunk.is_file() for chunk in chunks)
    assert {*chunks, *(chunk.parent for chunk in chunks)} <= set(synced)


def test_write_region__makes_no_folder(cube, workers):
    folders = [path for path in Path(cube.url).rglob("*") if path.is_dir()]

    for region in cube.regions():
        cube.write_region(region, workers.region_arrays(cube, region))

    assert [path for path in Path(cube.url).rglob("*") if path.is_dir()] == folders


def test_schema__status_codes_are_those_of_the_stages():
    assert {name.lower(): int(code) for name, code in Status.__members__.items()} == dict(STATUS_CODES)
    assert list(VARIABLES)[-1] == "status"


@pytest.mark.cluster
def test_open_zarr__needs_no_evalcube_and_warns_of_nothing(tmp_path, workers):
    cube = workers.make_cube(tmp_path / "c.zarr")
    for region in cube.regions():
        cube.write_region(region, workers.region_arrays(cube, region))
    cube.grow(trial=40)
    cube.records.put("ledger.jsonl", b"not zarr")
    code = f"""
import sys, warnings
warnings.simplefilter("error")
sys.modules.update(dict.fromkeys(("storage", "stages", "flows", "deploy", "evalcube")))  # importing them fails
import xarray as xr
for options in ({{}}, {{"consolidated": False}}, {{"chunks": None}}):
    d = xr.open_zarr({str(tmp_path / "c.zarr")!r}, **options).load()
    assert dict(d.sizes) == dict(model=3, task=2, params=4, trial=40, repeat=2, counter=20, tier=2), d.sizes
    assert set(d.data_vars) == {set(VARIABLES) | {v.name for v in SHARED}!r}, d
    assert set(d.coords) == {{"model_name", "task", "tier", "params", "params_json", "in_tier",
        "param_length", "price_prompt", "trial", "repeat", "counter"}}
    assert list(d.trial.values) == list(range(40))
    assert list(d.model_name.values) == ["modèle 0", "modèle 1", "modèle 2"]
    assert d.latency.dtype == "float32" and d.in_tier.dtype == bool and d.status.dtype == "uint8"
    assert (d.status.sel(trial=slice(8, None)) == 255).all() and (d.status.sel(trial=slice(0, 7)) < 5).all()
    for v in d.data_vars.values():
        assert {{"long_name", "units", "comment"}} <= set(v.attrs), v
    assert d.status.attrs["flag_meanings"].split()[4] == "refused"
    assert d.attrs["name"] == "test"
"""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    subprocess.run([sys.executable, "-P", "-c", code], check=True, cwd=tmp_path, env=environment)


def test_dataset__is_lazy_and_equal_to_what_was_written(cube, workers):
    region = Region(1, 0, 0)
    arrays = workers.region_arrays(cube, region)
    cube.write_region(region, arrays)

    dataset = cube.dataset()

    assert dataset.status.chunks is not None
    for name, array in arrays.items():
        np.testing.assert_array_equal(dataset[name].values[1], array)


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


def test_write_region__round_trip_with_edge_chunks(tmp_path, workers):
    cube = workers.make_cube(tmp_path / "c.zarr", {"trial": 10, "repeat": 3}, {"trial": 4, "repeat": 2})
    written = {region: workers.region_arrays(cube, region) for region in cube.regions()}
    assert len(written) == 3 * 3 * 2
    assert cube.region_shape(Region(0, 2, 1)) == (2, 4, 2, 1)

    digests = {region: cube.write_region(region, arrays) for region, arrays in written.items()}

    for region, arrays in written.items():
        assert_equal(Cube.open(cube.url).read_region(region), arrays)
        assert digests[region] == region_digest(cube.read_region(region))
    assert list(cube.read_region(region, ["tokens"])) == ["tokens"]


def test_read_span__is_what_the_regions_hold(tmp_path, workers):
    cube = workers.make_cube(tmp_path / "c.zarr", {"trial": 10, "repeat": 3}, {"trial": 4, "repeat": 2})
    for region in cube.regions():
        cube.write_region(region, workers.region_arrays(cube, region))

    found = cube.read_span(1, slice(2, 10), slice(1, 3), ["status", "tokens"])

    assert list(found) == ["status", "tokens"]
    for name, values in found.items():
        regions = [[cube.read_region(Region(1, t, r))[name] for r in range(2)] for t in range(3)]
        whole = np.concatenate([np.concatenate(row, axis=3) for row in regions], axis=2)
        np.testing.assert_array_equal(values, whole[:, :, 2:10, 1:3])


def test_write_region__a_chunk_equal_to_the_fill_is_written(tmp_path, cube):
    region = Region(0, 0, 0)
    shape = cube.region_shape(region)
    reopened = Cube.open(cube.url, writable=True)

    reopened.write_region(region, {n: np.full(shape, v.fill, v.dtype) for n, v in VARIABLES.items()})

    for name in VARIABLES:
        assert (tmp_path / "c.zarr" / name / "c.0.0.0.0.0").exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda a: a.pop("tokens"), "missing .'tokens'"),
        (lambda a: a.update(extra=a["tokens"]), "unknown .'extra'"),
        (lambda a: a.update(tokens=a["tokens"].astype("int64")), "dtype int32"),
        (lambda a: a.update(tokens=a["tokens"][:, :, :4]), "shape"),
        (lambda a: a["status"].__setitem__((0, 0, 0, 0), 7), r"got \[7\]"),
    ],
    ids=["missing", "unknown", "dtype", "shape", "domain"],
)
def test_write_region__refuses_what_does_not_fit(cube, workers, change, text):
    region = Region(0, 0, 0)
    arrays = workers.region_arrays(cube, region)
    change(arrays)

    with pytest.raises(CubeMismatchError, match=text):
        cube.write_region(region, arrays)

    assert (cube.read_region(region)["status"] == 255).all()


@pytest.mark.parametrize(
    "region", [Region(3, 0, 0), Region(0, 1, 0), Region(0, 0, -1), Region(-1, 0, 0)], ids=str
)
def test_write_region__refuses_regions_outside(cube, workers, region):
    arrays = workers.region_arrays(cube, Region(0, 0, 0))

    with pytest.raises(CubeMismatchError, match="outside"):
        cube.write_region(region, arrays)
    with pytest.raises(CubeMismatchError, match="outside"):
        cube.read_region(region)


def test_write_region__follows_a_growth_elsewhere(cube, workers):
    region = Region(0, 0, 0)
    small = workers.region_arrays(cube, region)
    other = Cube.open(cube.url, writable=True)
    other.grow(trial=32)
    large = workers.region_arrays(other, region)
    other.write_region(region, large)

    with pytest.raises(CubeMismatchError, match="shape"):
        cube.write_region(region, small)

    assert_equal(cube.read_region(region), large)


def test_write_region__heals_a_damaged_chunk(tmp_path, cube, workers):
    region = Region(0, 0, 0)
    arrays = workers.region_arrays(cube, region)
    cube.write_region(region, arrays)
    (tmp_path / "c.zarr/tokens/c.0.0.0.0.0").write_bytes(b"junk")

    with pytest.raises(CubeDamagedError, match="tokens"):
        cube.read_region(region)
    cube.write_region(region, arrays)

    assert_equal(cube.read_region(region), arrays)


def test_codes_that_nobody_writes__are_read_as_the_fill(cube, workers):
    region = Region(0, 0, 0)
    cube.write_region(region, workers.region_arrays(cube, region))
    zarr.open_group(cube.url, mode="r+")["status"][0, 0, 0, :2, 0] = 77, 3

    found = [
        cube.read_region(region, ["status"])["status"],
        cube.read_span(0, slice(0, 8), slice(0, 2), ["status"])["status"],
        cube.dataset()["status"].isel(model=0).values,
    ]

    assert [status[0, 0, :2, 0].tolist() for status in found] == [[255, 3]] * 3
    assert cube.stored_arrays(region, ["status"])["status"][0, 0, 0, 0] == 77


def test_write_region__needs_a_writable_cube(cube, workers):
    reader = Cube.open(cube.url)
    with pytest.raises(NotWritableError, match="reading"):
        reader.write_region(Region(0, 0, 0), workers.region_arrays(cube, Region(0, 0, 0)))
    with pytest.raises(NotWritableError):
        reader.grow(trial=9)
    with pytest.raises(NotWritableError):
        reader.write_counters({})


def test_region_digest__depends_on_content_only(cube, workers):
    arrays = workers.region_arrays(cube, Region(0, 0, 0))
    digest = region_digest(arrays)
    layout = {
        name: np.asfortranarray(a.astype(a.dtype.newbyteorder(">"))) for name, a in reversed(arrays.items())
    }
    layout["latency"] = arrays["latency"] + 1

    assert region_digest(layout) == digest
    assert len(digest) == 32
    for name in set(arrays) - {"latency"}:
        changed = {**arrays, name: arrays[name].copy()}
        changed[name].flat[-1] += 1
        assert region_digest(changed) != digest, name


def test_write_counters__models_share_chunks(tmp_path, workers):
    cube = workers.make_cube(tmp_path / "c.zarr", {"model": 30})
    shape = tuple(cube.sizes[dim] for dim in COUNTERS.dims)
    expected = np.zeros(shape)
    rng = np.random.default_rng(1)

    for models in ([3], [24, 25], list(range(25)), [29]):
        values = {model: rng.integers(0, 2**53, shape[1:]).astype(float) for model in models}
        cube.write_counters(values)
        for model, array in values.items():
            expected[model] = array

    np.testing.assert_array_equal(Cube.open(cube.url).read_counters(), expected)
    assert list(cube.dataset().counter.values) == list(COUNTER_LABELS)


@pytest.mark.parametrize(
    ("model", "array", "text"),
    [
        (3, np.zeros((2, 4, 20)), "3 models"),
        (0, np.zeros((2, 4, 14)), "shape"),
        (0, np.zeros((2, 4, 20), "int64"), "float64"),
        (0, np.full((2, 4, 20), np.nan), "finite"),
    ],
)
def test_write_counters__refuses_what_does_not_fit(cube, model, array, text):
    with pytest.raises(CubeMismatchError, match=text):
        cube.write_counters({1: np.ones((2, 4, 20)), model: array})

    assert not cube.read_counters().any()


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


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_open__says_what_a_copy_by_xarray_is(cube, tmp_path, consolidated):
    cube.dataset().load().drop_encoding().to_zarr(tmp_path / "copy.zarr", consolidated=consolidated)

    with pytest.raises(CubeNotFoundError, match="copy by xarray"):
        Cube.open(tmp_path / "copy.zarr")


def test_write_label__replaces_a_coordinate_along_model_and_nothing_else(cube):
    names = cube.read_label("model_name")
    before = cube.dataset().load()

    cube.write_label("model_name", np.array([f"{name}!" for name in names], dtype=object))

    after = Cube.open(cube.url).dataset().load()
    assert after["model_name"].values.tolist() == [f"{name}!" for name in names]
    assert after.drop_vars("model_name").identical(before.drop_vars("model_name"))
    with pytest.raises(CubeMismatchError, match="no coordinate `price`"):
        cube.read_label("price")
    with pytest.raises(CubeMismatchError, match="has shape"):
        cube.write_label("model_name", np.array(["one", "too", "many", "of", "them"], dtype=object))


def test_labels__are_those_that_the_stages_count():
    from evalcube.stages.reply.status import COUNTERS as COUNTED
    from evalcube.stages.reply.status import QUESTION_COUNTERS

    assert tuple(COUNTER_LABELS) == (*COUNTED, *QUESTION_COUNTERS)
