import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube, Region
from evalcube.storage.cube.schema import SHARED, STATUS_CODES, VARIABLES
from evalcube.storage.errors import (
    CubeMismatchError,
    CubeNotFoundError,
    NotWritableError,
)
from tests.storage.cube.arrays import assert_equal

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


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not say which file is synced")
def test_write_region__has_every_chunk_and_its_name_on_disk_before_it_returns(cube, workers, synced):
    region = Region(1, 0, 0)

    cube.write_region(region, workers.region_arrays(cube, region))

    chunks = [Path(cube.url).resolve() / name / "c.1.0.0.0.0" for name in VARIABLES]
    assert all(chunk.is_file() for chunk in chunks)
    assert {*chunks, *(chunk.parent for chunk in chunks)} <= set(synced)


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


def test_write_region__needs_a_writable_cube(cube, workers):
    reader = Cube.open(cube.url)
    with pytest.raises(NotWritableError, match="reading"):
        reader.write_region(Region(0, 0, 0), workers.region_arrays(cube, Region(0, 0, 0)))
    with pytest.raises(NotWritableError):
        reader.grow(trial=9)
    with pytest.raises(NotWritableError):
        reader.write_counters({})


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_open__says_what_a_copy_by_xarray_is(cube, tmp_path, consolidated):
    cube.dataset().load().drop_encoding().to_zarr(tmp_path / "copy.zarr", consolidated=consolidated)

    with pytest.raises(CubeNotFoundError, match="copy by xarray"):
        Cube.open(tmp_path / "copy.zarr")
