"""Files, folders and seconds of regions in a cube whose chunks have keys with slashes, and in one with points.

The two cubes take turns, region by region, on the disk of `--folder`, then with `--delay` milliseconds for each call of
the file system by name (and for each wait until something is on disk), and in a bucket that is counted. Cubes of
earlier versions have slashes.

    PYTHONPATH=. python benchmarks/folders.py [--regions 500 1000 2000] [--delay 5] [--folder DIR] [--history FILE]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import numpy as np
import obstore
from history import add_option, append
from obstore.store import MemoryStore

from evalcube.storage import object_stores
from evalcube.storage.cube.address import copy_cube, space_of
from evalcube.storage.cube.bucket import conditions
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.schema import SAID
from tests.storage.support.slashes import with_slashes
from tests.storage.support.storage_workers import make_cube, region_arrays

_MODELS = 10
_CELLS = {"task": 12, "params": 40, "repeat": 1}
_BY_NAME = (
    "stat",
    "lstat",
    "open",
    "mkdir",
    "replace",
    "rename",
    "unlink",
    "link",
    "utime",
    "scandir",
    "fsync",
)
_MANY = 69_444
_FEW = 20
"""Regions with a delay, and in the bucket, each of another model or of the next trials."""


def main() -> None:
    """Measure, print tables, and append the figures to the history."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--regions", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds of each call")
    parser.add_argument("--folder", type=Path, default=None)
    add_option(parser)
    options = parser.parse_args()
    rows = []
    print(
        f"{'keys':10}{'regions':>8}{'files':>8}{'folders':>9}{'ms/region':>11}{'CPU':>6}"
        f"{'look s':>8}{'list s':>8}{'remove s':>10}"
    )
    for regions in options.regions:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            for row in _on_disk(Path(scratch), regions):
                rows.append(row)
                print(
                    f"{row['keys']:10}{row['regions']:8,}{row['files']:8,}{row['folders']:9,}{row['ms']:11.1f}"
                    f"{row['cpu']:6.1f}{row['look']:8.2f}{row['list']:8.2f}{row['remove']:10.2f}",
                    flush=True,
                )
    print(f"\n{'keys':10}{'calls of a region':>19}{f's at {options.delay:g} ms':>12}")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        for row in _delayed(Path(scratch), options.delay / 1000):
            rows.append(row)
            print(f"{row['keys']:10}{row['calls']:19.0f}{row['seconds']:12.2f}")
    print(f"\n{'keys':10}{'puts':>8}{'other requests':>16}{'objects':>9} of a region in a bucket")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        for row in _in_bucket(Path(scratch)):
            rows.append(row)
            print(f"{row['keys']:10}{row['puts']:8.1f}{row['others']:16.1f}{row['objects']:9.1f}")
    print(f"\n{'keys':10}{'chunks':>8}{'list s':>8}{'CPU':>6} of one array")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        for row in _listed(Path(scratch)):
            rows.append(row)
            print(f"{row['keys']:10}{row['chunks']:8,}{row['list']:8.2f}{row['cpu']:6.2f}")
    append("folders", {"delay": options.delay}, rows, options.history)


def _made(folder: Path, regions: int) -> dict[str, Cube]:
    """Two empty cubes for so many regions."""
    sizes = {**_CELLS, "model": _MODELS, "trial": 32 * (regions // _MODELS)}
    chunks, cubes = {"trial": 32, "repeat": 1}, {}
    for keys in ("slashes", "points"):
        url = make_cube(folder / f"{keys}.zarr", sizes, chunks, layers=list(SAID)).url
        cubes[keys] = Cube.open(with_slashes(url) if keys == "slashes" else url, writable=True)
    return cubes


def _on_disk(folder: Path, regions: int) -> Iterator[dict[str, Any]]:
    cubes = _made(folder, regions)
    before = {keys: _counted(Path(cube.url)) for keys, cube in cubes.items()}
    seconds, cpu = Counter[str](), Counter[str]()
    for region in cubes["points"].regions():
        arrays = region_arrays(cubes["points"], region)
        for keys, cube in cubes.items():
            began, busy = time.perf_counter(), time.process_time()
            cube.write_region(region, arrays)
            seconds[keys] += time.perf_counter() - began
            cpu[keys] += time.process_time() - busy
    for keys, cube in cubes.items():
        files, folders = np.subtract(_counted(Path(cube.url)), before[keys]).tolist()
        yield {
            "keys": keys,
            "regions": regions,
            "files": files,
            "folders": folders,
            "ms": 1000 * seconds[keys] / regions,
            "cpu": 1000 * cpu[keys] / regions,
            "look": _timed(lambda cube=cube: [cube.chunk_problems(region) for region in cube.regions()]),
            "list": _timed(lambda cube=cube: list(cube.space.list())),
            "remove": _timed(lambda cube=cube: shutil.rmtree(cube.url)),
        }


def _counted(folder: Path) -> tuple[int, int]:
    """Files and folders below a folder."""
    every = [(len(files), len(folders)) for _, folders, files in os.walk(folder)]
    return sum(files for files, _ in every), sum(folders for _, folders in every)


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _delayed(folder: Path, delay: float) -> Iterator[dict[str, Any]]:
    for keys, cube in _made(folder, _FEW).items():
        regions = [(region, region_arrays(cube, region)) for region in cube.regions()]
        with _slow(os, _BY_NAME, delay) as counts:
            began = time.perf_counter()
            for region, arrays in regions:
                cube.write_region(region, arrays)
            seconds = time.perf_counter() - began
        yield {"keys": keys, "calls": counts.total() / len(regions), "seconds": seconds / len(regions)}


def _in_bucket(folder: Path) -> Iterator[dict[str, Any]]:
    stores: dict[str, MemoryStore] = {}
    connect = patch.object(
        object_stores, "_cached_connection", lambda address, *_: stores.setdefault(address, MemoryStore())
    )
    with connect, patch.object(conditions, "_TRUSTED", set()):
        for keys, made in _made(folder, _FEW).items():
            space = space_of(f"s3://bucket/{keys}.zarr")
            copy_cube(made.space, space, lambda _: True)
            cube, before = Cube.open(f"s3://bucket/{keys}.zarr", writable=True), len(list(space.list()))
            regions = list(cube.regions())
            with _slow(obstore, ("get", "put", "head", "delete"), 0.0) as counts:
                for region in regions:
                    cube.write_region(region, region_arrays(cube, region))
            objects = len(list(space.list())) - before
            puts, others = counts["put"], counts.total() - counts["put"]
            named = {"puts": puts, "others": others, "objects": objects}
            yield {"keys": keys, **{name: number / len(regions) for name, number in named.items()}}


def _listed(folder: Path) -> Iterator[dict[str, Any]]:
    """An array of as many chunks as 10⁹ trials of the suite m12 have."""
    for keys in ("slashes", "points"):
        space = space_of(folder / keys)
        for number in range(_MANY):
            path = folder / keys / f"c.{number // 5600}.0.0.{number % 5600}.0"
            if keys == "slashes":
                path = path.parent.joinpath(*path.name.split("."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(700))
        busy = time.process_time()
        seconds = _timed(lambda space=space: list(space.list()))
        yield {"keys": keys, "chunks": _MANY, "list": seconds, "cpu": time.process_time() - busy}


@contextmanager
def _slow(module: object, names: tuple[str, ...], delay: float) -> Iterator[Counter[str]]:
    """Have functions of a module wait before they do anything, and count their calls."""
    counts, lock = Counter[str](), Lock()

    def slow(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the function
            with lock:
                counts[name] += 1
            time.sleep(delay)
            return function(*args, **options)

        return call

    with patch.multiple(module, **{name: slow(name, getattr(module, name)) for name in names}):
        yield counts


if __name__ == "__main__":
    main()
