"""Arrays of a cube, read and written chunk by chunk."""

from pathlib import Path

import numpy as np
import pytest
import zarr
from storage_workers import make_cube, region_arrays

from evalcube.storage.cube.cube import Cube, Region, region_digest
from evalcube.storage.cube.group import CubeGroup
from evalcube.storage.cube.schema import SAID, VARIABLES
from evalcube.storage.errors import (
    CubeDamagedError,
)
from tests.storage.cube.arrays import assert_equal

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_write_region__makes_no_folder(cube, workers):
    folders = [path for path in Path(cube.url).rglob("*") if path.is_dir()]

    for region in cube.regions():
        cube.write_region(region, workers.region_arrays(cube, region))

    assert [path for path in Path(cube.url).rglob("*") if path.is_dir()] == folders


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


def test_write_region__what_no_endpoint_says_is_no_object(tmp_path):
    cube = make_cube(tmp_path / "c.zarr", layers=list(SAID))
    region = Region(0, 0, 0)
    arrays = region_arrays(cube, region)
    said = {"cached_tokens": np.full(cube.region_shape(region), 7, np.int32)}

    cube.write_region(region, arrays | said)
    first = {name: sorted(set(cube.space.list(f"{name}/")) - {f"{name}/zarr.json"}) for name in SAID}
    digest = cube.write_region(region, arrays)

    assert [name for name, keys in first.items() if keys] == ["cached_tokens"]
    assert not [key for name in SAID for key in cube.space.list(f"{name}/") if "zarr.json" not in key]
    assert cube.chunk_problems(region) == {}
    assert digest == region_digest(cube.read_region(region))
    assert (cube.dataset()["cached_tokens"].values == -1).all()


def test_write_region__chunks_of_a_form_that_zarr_codes_are_whole_too(tmp_path, monkeypatch):
    cube = make_cube(tmp_path / "c.zarr", layers=list(SAID))
    region = Region(0, 0, 0)
    arrays = region_arrays(cube, region)
    digest = cube.write_region(region, arrays)
    monkeypatch.setattr(CubeGroup, "_codes", lambda *_: False)

    assert cube.write_region(region, arrays) == digest == region_digest(cube.read_region(region))
    assert cube.chunk_problems(region) == {}


def test_shared_problems__name_each_array_that_is_damaged_in_whichever_chunk(tmp_path):
    cube = make_cube(tmp_path / "c.zarr", {"model": 60, "trial": 8})
    for name, place in (("counters", 0), ("duplicate", 1)):
        key = cube.group.chunk_key(name, (place, *[0] * (len(cube.group.chunks(name)) - 1)))
        cube.space.put(key, b"no chunk")

    problems = cube.group.shared_problems(["counters", "duplicate"])

    assert problems.keys() == {"counters", "duplicate"}
