"""Commands that tests of storage run in processes of their own, to kill, stop or race them."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import numpy as np

from evalcube.storage.cache import writer
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.cube.cube import Coordinate, Cube, Region
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.schema import COUNTER_LABELS, VARIABLES
from evalcube.storage.errors import LeaseHeldError, LeaseLostError, StorageError

SIZES = {"model": 3, "task": 2, "params": 4, "trial": 8, "repeat": 2}
CHUNKS = {"trial": 32, "repeat": 2}


def make_cube(path, sizes=None, chunks=None, **more):
    sizes = {**SIZES, **(sizes or {})}
    models, tasks, params = (sizes[dim] for dim in ("model", "task", "params"))
    cells = (tasks, params)
    coordinates = [
        Coordinate("model_name", ("model",), np.array([f"modèle {i}" for i in range(models)]), {}),
        Coordinate("task", ("task",), np.array([f"t{i}" for i in range(tasks)], dtype=object), {}),
        Coordinate("tier", ("tier",), np.array(["easy", "hard"]), {}),
        Coordinate("params_json", ("task", "params"), np.full(cells, "{}", dtype=object), {}),
        Coordinate("in_tier", ("tier", "task", "params"), np.ones((2, *cells), dtype=bool), {}),
        Coordinate("param_length", ("task", "params"), np.full(cells, np.nan), {"units": "1"}),
        Coordinate("price_prompt", ("model",), np.linspace(0, 1, models), {"units": "USD per 1e6 tokens"}),
    ]
    options = {
        "coordinates": coordinates,
        "counters": list(COUNTER_LABELS),
        "attrs": {"name": "test"},
        **more,
    }
    return Cube.create(path, sizes=sizes, chunks={**CHUNKS, **(chunks or {})}, **options)


def region_arrays(cube, region, generation=0):
    """Content of a region as a function of the region and a generation."""
    shape = cube.region_shape(region)
    rng = np.random.default_rng([region.model, region.trial, region.repeat, generation])
    arrays = {}
    for name, variable in VARIABLES.items():
        values = rng.integers(0, 5, size=shape) if name == "status" else rng.integers(0, 1000, size=shape)
        arrays[name] = values.astype(variable.dtype)
    arrays["tokens"][...] = generation
    return arrays


def make_receipt(generation, region=None):
    causes = {"HTTP 503": generation, "timeout": 1}
    region = region or Region(generation % 3, 0, 0)
    return Receipt(region, generation, 8, 2, 160, True, 0, 0, causes, f"{generation:032x}")


def entry(seed, number):
    """Key and value of a cache entry."""
    key = hashlib.sha256(f"{seed}/{number}".encode()).hexdigest()
    return key, f"{seed}/{number}/".encode() * 100


def acknowledge(path, text):
    with Path(path).open("a") as file:
        file.write(f"{text}\n")


def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.001)


def write_regions(cube_path, acks):
    cube = Cube.open(cube_path, writable=True)
    for generation in range(100_000):
        for region in cube.regions():
            digest = cube.write_region(region, region_arrays(cube, region, generation))
            acknowledge(acks, f"{region.model} {region.trial} {region.repeat} {generation} {digest}")


def put_entries(cache_path, seed, acks):
    cache = DirectoryCache(cache_path)
    for batch in range(100_000):
        items = [entry(seed, batch * 16 + i) for i in range(16)]
        cache.put_many(items)
        acknowledge(acks, batch)


def put_singly(cache_path, seed, acks):
    """Put one at a time, commit now and then, seal often."""
    writer.SEAL_BYTES = 3_000
    cache = DirectoryCache(cache_path)
    for number in range(100_000):
        cache.put(*entry(seed, number))
        acknowledge(acks, number)
        if number % 7 == 6:
            cache.commit()


def rewrite_packs(cache_path, seed, acks):
    """Put a few, remove them and merge what is left, over and over."""
    for number in range(100_000):
        cache = DirectoryCache(cache_path)
        extra = [entry(f"extra {seed}", number * 8 + i) for i in range(8)]
        cache.put_many(extra)
        cache.remove([key for key, _ in extra[:6]])
        cache.sweep(delete=True)
        acknowledge(acks, number)


def read_after_open(cache_path, seed, count, start, result):
    """Open a cache at the same moment as others and report how many entries are there."""
    acknowledge(f"{result}.ready", "ready")
    wait_for(start)
    cache = DirectoryCache(cache_path)
    entries = [entry(seed, number) for number in range(count)]
    acknowledge(result, sum(cache.get(key) == value for key, value in entries))


def put_on_both_sides_of_a_fork(cache_path, result):
    cache = DirectoryCache(cache_path)
    cache.put_many([entry("fork", 0)])
    cache.put(*entry("fork", 1))
    child = os.fork()
    if child == 0:
        cache.put_many([entry("fork", 2)])
        cache.close()
        os._exit(0)
    os.waitpid(child, 0)
    cache.put_many([entry("fork", 3)])
    acknowledge(result, "done")
    signal.pause()  # until it is killed


def append_receipts(folder, start, acks):
    ledger = Ledger(Directory(folder))
    for generation in range(start, start + 100_000):
        ledger.append(make_receipt(generation))
        acknowledge(acks, generation)


def create_cubes(folder, acks):
    for number in range(100_000):
        acknowledge(acks, f"begin {number}")
        make_cube(Path(folder) / f"{number}.zarr")
        acknowledge(acks, f"end {number}")


def grow_cube(cube_path, acks):
    cube = Cube.open(cube_path, writable=True)
    while True:
        sizes = cube.sizes
        cube.grow(trial=sizes["trial"] + 5, repeat=sizes["repeat"] + 1)
        acknowledge(acks, f"{cube.sizes['trial']} {cube.sizes['repeat']}")


def race_create(cube_path, start, result):
    acknowledge(f"{result}.ready", "ready")
    wait_for(start)
    try:
        make_cube(cube_path)
    except StorageError as error:
        acknowledge(result, type(error).__name__)
    else:
        acknowledge(result, "created")


def race_lease(records, start, stop, result):
    acknowledge(f"{result}.ready", "ready")
    wait_for(start)
    try:
        with Lease.acquire(records, ttl=30):
            acknowledge(result, "won")
            wait_for(stop)
    except LeaseHeldError:
        acknowledge(result, "held")


def hold_lease(records, ttl, result):
    """Hold a lease for ever and report once it is lost."""
    lease = Lease.acquire(records, ttl=ttl)
    acknowledge(result, "held")
    while True:
        lease.lost.wait(0.01)
        try:
            lease.check()
        except LeaseLostError:
            acknowledge(result, f"lost {lease.lost.is_set()}")
            return
