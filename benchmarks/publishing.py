"""Publishing and pulling cubes of many objects, by way of a simulated store that takes 10 ms for each request.

The cubes are made without asking: one region is written, and all others are links to its files, with receipts of their
own. The store is obstore's own in memory, whose requests are counted and wait. The exponent and the time of 10⁵ objects
are those of a line through the sizes. Each size is measured in a process of its own.

    python benchmarks/publishing.py [--regions 250 500 1000] [--delay 10] [--history FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import obstore
from history import add_option, append
from obstore.store import MemoryStore

from evalcube.flows.config.load import from_mapping
from evalcube.flows.events import Event
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.state.recording import count_arrays, sum_pairwise
from evalcube.flows.state.store import SweepStore, open_store
from evalcube.stages.score.counters import add_counters
from evalcube.storage import object_stores
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import VARIABLES

_MODELS = 10
_OBJECTS = 100_000


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--regions", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--delay", type=float, default=10.0, help="milliseconds of each request")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    add_option(parser)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(_measure(options.one, options.delay / 1000, options.folder)))
        return
    rows = []
    print(
        f"{'':10}{'objects':>9}{'requests':>10}{'seconds':>9}{'CPU s':>8}{'ms/object':>11}"
        f"{'CPU':>7}{'MB':>6}{'ticks':>7}"
    )
    for regions in options.regions:
        command = [sys.executable, __file__, "--one", str(regions), "--delay", str(options.delay)]
        command += ["--folder", str(options.folder)] if options.folder else []
        rows += json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        for row in rows[-2:]:
            each = 1000 / row["objects"]
            print(
                f"{row['what']:10}{row['objects']:9,}{row['requests']:10,}{row['seconds']:9.1f}{row['cpu']:8.1f}"
                f"{row['seconds'] * each:11.2f}{row['cpu'] * each:7.2f}{row['megabytes']:6.0f}{row['ticks']:7}",
                flush=True,
            )
    for what in ("publish", "pull"):
        for unit in ("seconds", "cpu"):
            own = [row for row in rows if row["what"] == what]
            objects, spent = (np.array([row[name] for row in own]) for name in ("objects", unit))
            slope, start = np.polyfit(objects, spent, 1)
            exponent = np.polyfit(np.log(objects), np.log(spent), 1)[0] if len(own) > 1 else float("nan")
            print(
                f"{what}, {unit}: exponent {exponent:.2f}, {_OBJECTS:,} objects in {start + slope * _OBJECTS:.0f} s"
            )
    append("publishing", {"delay": options.delay}, rows, options.history)


class _SlowStore:
    """Obstore's functions on stores in memory, each of which waits and is counted."""

    def __init__(self, delay: float) -> None:
        self.counts: Counter[str] = Counter()
        self._stores: dict[str, MemoryStore] = {}
        self._lock = Lock()
        vars(object_stores)["_cached_connection"] = self._connection
        for name in ("get", "put", "head", "delete"):
            setattr(obstore, name, self._slow(name, getattr(obstore, name), delay))

    def _connection(self, address: str, *_: object) -> MemoryStore:
        with self._lock:
            return self._stores.setdefault(address, MemoryStore())

    def _slow(self, name: str, function: Callable[..., Any], delay: float) -> Callable[..., Any]:
        def ask(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as obstore
            with self._lock:
                self.counts[name] += 1
            time.sleep(delay)
            return function(*args, **options)

        return ask


def _measure(regions: int, delay: float, folder: Path | None) -> list[dict[str, Any]]:
    store = _SlowStore(delay)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source = _build(Path(scratch), regions)
        rows = []
        copy = f"{scratch}/pulled.zarr"
        for what, act in (
            ("publish", partial(publish_cube, source, "s3://bucket/shared.zarr")),
            ("pull", partial(pull_cube, "s3://bucket/shared.zarr", copy)),
        ):
            ticks: list[Event] = []
            store.counts.clear()
            began, cpu = time.perf_counter(), time.process_time()
            done = act(subscribers=[ticks.append])
            rows.append(
                {
                    "what": what,
                    "objects": len(done.publication.objects),
                    "requests": store.counts.total(),
                    "seconds": time.perf_counter() - began,
                    "cpu": time.process_time() - cpu,
                    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "ticks": len(ticks),
                }
            )
    return rows


def _build(folder: Path, regions: int) -> str:
    """A cube of so many regions, all of which hold right answers."""
    points = {"task": "arithmetic", "manifold": [{"points": [{"length": n} for n in range(3, 7)]}]}
    config = {
        "cube": str(folder / "cube.zarr"),
        "cache": str(folder / "cache"),
        "seed": 1,
        "trials": 1024 * (regions // _MODELS),
        "models": [{"name": f"m{n}", "endpoint": "sim:", "model": f"org/m{n}"} for n in range(_MODELS)],
        "tasks": {"sums": points},
    }
    plan = build_plan(from_mapping(config))
    targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
    store = SweepStore(open_store(plan, str(config["cube"])).cube, plan, targets)
    store.grow()
    cube = Cube.open(str(config["cube"]), writable=True)
    for task in range(cube.sizes["task"]):
        cube.write_duplicates(task, np.zeros((cube.sizes["params"], cube.sizes["trial"]), np.uint8))
    flags = np.zeros((cube.sizes["task"], *cube.region_shape(Region(0, 0, 0))[1:]), np.uint8)
    known: tuple[Region, str, Any, int] | None = None
    counted: dict[int, list[Any]] = {}
    with Ledger(cube.records) as ledger:
        for region in cube.regions():
            shape = cube.region_shape(region)
            if known is None:
                arrays = {
                    name: np.full(
                        (*shape, *(cube.sizes[dim] for dim in variable.dims[5:])),
                        1 if name in VARIABLES else variable.fill,
                        variable.dtype,
                    )
                    for name, variable in cube.trial_arrays.items()
                }
                valid = np.broadcast_to(plan.valid()[..., None, None], shape)
                digest = cube.write_region(region, arrays)
                known = region, digest, count_arrays(arrays, flags, valid, plan.prices[0]), int(valid.sum())
            else:
                for name in cube.trial_arrays:
                    _link(cube, name, known[0], region)
            _, digest, counters, planned = known
            counted.setdefault(region.model, []).append(counters)
            ledger.append(Receipt(region, 1, shape[2], shape[3], planned, True, 0, 0, {}, digest))
    cube.write_counters({model: sum_pairwise(parts, add_counters) for model, parts in counted.items()})
    return str(config["cube"])


def _link(cube: Cube, name: str, source: Region, target: Region) -> None:
    """Give a region the chunk that an array has of another one."""
    indexes = [(one.model, 0, 0, one.trial, one.repeat) for one in (source, target)]
    files = [Path(cube.url, cube.group.chunk_key(name, index)) for index in indexes]
    if files[0].exists():
        os.link(*files)


if __name__ == "__main__":
    main()
