"""A cube in a directory appears whole or not at all: kills, full names, and two creators at once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory.creation import temporary_beside
from evalcube.storage.errors import NotWritableError
from evalcube.storage.files import sync_tree

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_create__below_a_file(below_a_file, workers):
    with pytest.raises(NotWritableError, match="file"):
        workers.make_cube(below_a_file / "c.zarr")


def test_create__a_name_too_long(tmp_path, workers):
    with pytest.raises(NotWritableError, match="too long"):
        workers.make_cube(tmp_path / ("x" * 300))


def test_create__leaves_an_old_creation_of_a_living_process_alone(tmp_path, workers):
    living = temporary_beside(tmp_path / "c.zarr")
    strange = living.with_name(living.name.replace(f"-{os.getpid()}-", "-x-"))
    for path in (living, strange):
        path.mkdir()
        os.utime(path, (1, 1))

    workers.make_cube(tmp_path / "c.zarr")

    assert sorted(tmp_path.iterdir()) == sorted([living, tmp_path / "c.zarr"])


def test_kill__creation_leaves_all_or_nothing(tmp_path, workers, processes):
    rng = np.random.default_rng(2)
    for number in range(5):
        folder, acks = tmp_path / str(number), tmp_path / f"acks{number}"
        lines = processes.killed(workers.create_cubes, folder, acks, acks=acks, delay=rng.uniform(0, 0.2))
        assert lines
        for line in lines:
            verb, cube = line.split()
            path = folder / f"{cube}.zarr"
            if verb == "end" or path.exists():
                assert Cube.open(path).sizes["trial"] == 8
                assert xr.open_zarr(path).load().sizes["trial"] == 8
            elif len(lines) == 1 or verb == "begin":
                workers.make_cube(path)
        assert not list(folder.glob(f".{cube}.zarr*"))


def test_create__of_two_one_wins(tmp_path, workers, processes):
    for number in range(3):
        results = [tmp_path / f"{number}.{i}" for i in range(2)]
        start = tmp_path / f"start{number}"
        for result in results:
            processes.start(workers.race_create, tmp_path / f"{number}.zarr", start, result)
        for result in results:
            processes.wait_lines(f"{result}.ready")
        start.touch()

        outcomes = sorted(processes.wait_lines(result)[0] for result in results)

        assert outcomes == ["CubeExistsError", "created"]
        assert Cube.open(tmp_path / f"{number}.zarr").sizes["model"] == 3


@pytest.mark.cluster
def test_create__sweeps_what_a_dead_process_left(tmp_path, workers):
    code = "from evalcube.storage.cube.directory.creation import temporary_beside\n"
    code += "from pathlib import Path; import sys\n"
    code += "p = temporary_beside(Path(sys.argv[1])); p.mkdir(); (p / 'x').touch(); print(p)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    made = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "c.zarr")],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert Path(made.stdout.strip()).is_dir()

    workers.make_cube(tmp_path / "c.zarr")

    assert [path.name for path in tmp_path.iterdir()] == ["c.zarr"]


def test_sync_tree__has_each_file_and_folder_on_disk_once(tmp_path, monkeypatch):
    for number in range(9):
        (tmp_path / f"{number}/deep").mkdir(parents=True)
        (tmp_path / f"{number}/deep/file").write_text("x")
    synced = []
    monkeypatch.setattr(
        "os.fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )

    sync_tree(tmp_path)

    assert sorted(synced) == sorted(map(str, [tmp_path, *tmp_path.rglob("*")]))
