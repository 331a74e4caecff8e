import contextlib
import os
import shutil
import subprocess

import numpy as np
import pytest
import xarray as xr
import zarr

from evalcube.storage.cube.cube import Cube, Region, region_digest
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.schema import VARIABLES
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeMismatchError,
    CubeNotFoundError,
    CubeVersionError,
    DiskFullError,
    NotWritableError,
)

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_grow__inside_one_chunk_keeps_old_cells(cube, workers):
    before = {}
    for region in cube.regions():
        cube.write_region(region, workers.region_arrays(cube, region))
        before[region] = cube.read_region(region)

    cube.grow(trial=32)
    cube.grow(trial=32)

    for region, arrays in before.items():
        after = cube.read_region(region)
        for name, old in arrays.items():
            assert after[name][:, :, :8].tobytes() == old.tobytes()
            assert np.array_equal(
                after[name][:, :, 8:], np.full((2, 4, 24, 2), VARIABLES[name].fill), equal_nan=name in _FLOATS
            )


_FLOATS = ("latency", "guess_chance")


def test_grow__both_dims_over_many_chunks(cube, workers):
    cube.write_region(Region(2, 0, 0), workers.region_arrays(cube, Region(2, 0, 0)))
    old = cube.read_region(Region(2, 0, 0))

    cube.grow(trial=9000, repeat=5)

    assert cube.sizes["trial"] == 9000
    dataset = cube.dataset()
    np.testing.assert_array_equal(dataset.trial, np.arange(9000))
    np.testing.assert_array_equal(dataset.repeat, np.arange(5))
    np.testing.assert_array_equal(dataset.tokens[2, :, :, :8, :2], old["tokens"])
    assert len(list(cube.regions())) == 3 * 282 * 3


def test_grow__never_shrinks(cube):
    with pytest.raises(CubeMismatchError, match="trial is 8, 7"):
        cube.grow(trial=7)


def test_grow__with_an_array_that_an_earlier_growth_left_longer(cube, workers):
    region = Region(0, 0, 0)
    cube.write_region(region, workers.region_arrays(cube, region))
    zarr.open_array(cube.url, path="tokens", mode="r+").resize((3, 2, 4, 20, 2))

    assert Cube.open(cube.url).sizes["trial"] == 8
    cube.grow(trial=16)

    assert cube.sizes["trial"] == 16
    assert xr.open_zarr(cube.url, consolidated=False).sizes["trial"] == 16
    np.testing.assert_array_equal(cube.dataset().trial, np.arange(16))


def test_grow__at_any_point_of_failure_readers_see_old_or_new(tmp_path, workers, monkeypatch):
    real, seen = Directory.put, set()
    for point in range(0, 2 + len(VARIABLES), 2):
        cube = workers.make_cube(tmp_path / f"{point}.zarr")
        calls = []

        def put(self, key, *args, calls=calls, point=point, **kwargs):
            calls.append(key)
            if len(calls) > point:
                raise OSError(28, "No space left on device")
            return real(self, key, *args, **kwargs)

        with monkeypatch.context() as full:
            full.setattr(Directory, "put", put)
            with pytest.raises(DiskFullError, match="grow"):
                cube.grow(trial=16)

        seen.add(xr.open_zarr(cube.url).load().sizes["trial"])
        cube.grow(trial=16)
        assert xr.open_zarr(cube.url).load().sizes["trial"] == 16
    assert seen == {8, 16}


def test_open__says_what_is_wrong(tmp_path, cube):
    with pytest.raises(CubeNotFoundError, match=r"nothing\.zarr"):
        Cube.open(tmp_path / "nothing.zarr")
    with pytest.raises(CubeNotFoundError, match=r"no zarr\.json"):
        Cube.open(tmp_path)
    metadata = tmp_path / "c.zarr/zarr.json"
    good = metadata.read_text()
    for text, error in [
        (good.replace('"evalcube_format": 1', '"evalcube_format": 2'), CubeVersionError),
        (good.replace('"evalcube_format": 1', '"other": 1'), CubeNotFoundError),
        (good[:-100], CubeDamagedError),
        ("[]", CubeDamagedError),
        ("", CubeDamagedError),
        (good.replace('"uint8"', '"uint16"', 1), CubeDamagedError),
        (good.replace('"node_type"', '"no_type"'), CubeDamagedError),
    ]:
        assert text != good
        metadata.write_text(text)
        with pytest.raises(error, match=r"c\.zarr"):
            Cube.open(cube.url)


def test_open__any_byte_flipped_in_the_metadata_gives_a_storage_error_or_a_cube(tmp_path, cube):
    metadata = tmp_path / "c.zarr/zarr.json"
    good = metadata.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(good), 60):
        metadata.write_bytes(good[:position] + bytes([good[position] ^ 4]) + good[position + 1 :])
        with contextlib.suppress(CubeDamagedError, CubeNotFoundError, CubeVersionError):
            Cube.open(cube.url)


@pytest.mark.cluster
def test_open__a_read_only_file_system(tmp_path, cube, small_disk, workers):
    disk = small_disk("20m")
    shutil.copytree(tmp_path / "c.zarr", disk / "c.zarr")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    assert Cube.open(disk / "c.zarr").sizes == cube.sizes
    with pytest.raises(NotWritableError, match="read-only"):
        Cube.open(disk / "c.zarr", writable=True)
    with pytest.raises(NotWritableError, match="read-only"):
        workers.make_cube(disk / "d.zarr")


@pytest.mark.cluster
def test_disk_full__old_regions_stay_whole(small_disk, workers):
    disk = small_disk("1200k")
    cube = workers.make_cube(disk / "c.zarr", {"trial": 512, "model": 2}, {"trial": 256})
    region = Region(0, 0, 0)
    first = workers.region_arrays(cube, region)
    digest = cube.write_region(region, first)
    fill(disk)

    with pytest.raises(DiskFullError):
        cube.write_region(Region(1, 1, 0), workers.region_arrays(cube, Region(1, 1, 0)))
    with pytest.raises(DiskFullError):
        workers.make_cube(disk / "d.zarr")

    assert region_digest(Cube.open(cube.url).read_region(region)) == digest
    assert not (disk / "d.zarr").exists()
    assert not [path for path in disk.iterdir() if path.name.endswith(".creating")]
    (disk / "ballast").unlink()
    cube.write_region(Region(1, 1, 0), workers.region_arrays(cube, Region(1, 1, 0)))


def fill(disk):
    with (disk / "ballast").open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                return


def test_sweep__removes_old_temporaries_only(tmp_path, cube, workers):
    cube.write_region(Region(0, 0, 0), workers.region_arrays(cube, Region(0, 0, 0)))
    names = ("zarr.1.partial", "tokens/c.0.0.0.0.0.2.partial", "_evalcube/.lease.json.1.partial")
    stray = [tmp_path / "c.zarr" / name for name in names]
    young = tmp_path / "c.zarr/status/c.0.0.0.0.0.3.partial"
    for path in (*stray, young):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    for path in stray:
        os.utime(path, (1, 1))

    assert [cube.sweep(delete=delete) for delete in (False, True, True)] == [3, 3, 0]
    assert young.exists()
    assert cube.sweep(older_than=-60) == 1


def test_kill__regions_acknowledged_are_there_and_none_is_torn(tmp_path, cube, workers, processes):
    rng = np.random.default_rng(1)
    acks = tmp_path / "acks"
    for _ in range(5):
        acks.unlink(missing_ok=True)
        lines = processes.killed(workers.write_regions, cube.url, acks, acks=acks, delay=rng.uniform(0, 0.15))
        newest = {Region(*map(int, line.split()[:3])): int(line.split()[3]) for line in lines}
        reader = Cube.open(cube.url)
        for region, generation in newest.items():
            arrays = reader.read_region(region)
            # An array is of the acknowledged generation, or of the next, which the kill cut short.
            possible = [workers.region_arrays(reader, region, generation + more) for more in (0, 1)]
            for name, array in arrays.items():
                assert any(np.array_equal(array, whole[name]) for whole in possible), (region, name)


# What a killed put leaves has a name of its own; zarr tells of it where consolidated metadata are not used.
@pytest.mark.filterwarnings("ignore:Object at .*partial is not recognized")
def test_kill__growth_is_all_or_nothing_and_can_be_finished(tmp_path, cube, workers, processes):
    region = Region(0, 0, 0)
    cube.write_region(region, workers.region_arrays(cube, region))
    old = cube.read_region(region)
    rng = np.random.default_rng(3)
    acks = tmp_path / "acks"
    for _ in range(5):
        lines = processes.killed(workers.grow_cube, cube.url, acks, acks=acks, delay=rng.uniform(0, 0.2))
        trial, repeat = map(int, lines[-1].split())
        plain = xr.open_zarr(cube.url)
        assert (plain.sizes["trial"], plain.sizes["repeat"]) in ((trial, repeat), (trial + 5, repeat + 1))
        reader = Cube.open(cube.url, writable=True)
        assert reader.sizes["trial"] == plain.sizes["trial"]
        reader.restore_metadata()
        full = xr.open_zarr(cube.url, consolidated=False)
        np.testing.assert_array_equal(full.trial, np.arange(full.sizes["trial"]))
        np.testing.assert_array_equal(full.repeat, np.arange(full.sizes["repeat"]))
        for name, array in old.items():
            np.testing.assert_array_equal(full[name][0, :, :, :8, :2], array)
