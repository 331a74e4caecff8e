"""Seconds until a large cube has grown by what a config adds, up to the moment at which a first request could be sent.

The cube is made without asking: one region is written, and all others are links to its files, with receipts of their
own. Each growth is measured in a process of its own: comparing config and cube, making room, and finding out what is to
be asked. A config that names only the new model is measured beside one that names all of them, which looks at every
recorded region.

    python benchmarks/growing.py [--models 12] [--trials 7200] [--history FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from history import add_option, append

from evalcube.flows.config.load import from_mapping
from evalcube.flows.config.suites import load_sweep
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import as_configured
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.state.growing import extend
from evalcube.flows.state.store import SweepStore, open_store, sweep_cube
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import VARIABLES

ADDITIONS = ("nothing", "a model, named alone", "a model, beside all others", "a task", "ten points")


@dataclass(frozen=True)
class Grown:
    """One growth."""

    what: str
    compare: float
    """Seconds to open the cube and compare it with the config."""
    make_room: float
    """Seconds to write what is new of the cube's metadata, labels, counters and plans."""
    find_work: float
    """Seconds to find out what is to be asked."""
    cpu: float
    """CPU seconds of all three."""
    pending: int
    """Trials to be asked."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compare + self.make_room + self.find_work


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    options = _options()
    if options.grow:
        print(json.dumps(asdict(_grow(options.grow[0], json.loads(options.grow[1])))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        config = _config(Path(scratch), options.models, options.trials)
        trials = _build(config)
        found = [_measured(what, config) for what in ADDITIONS]
    print(f"{trials:,} trials recorded, {options.models} models")
    print(f"{'added':28}{'compare':>9}{'room':>9}{'work':>9}{'all':>9}{'CPU':>9}{'pending':>12}")
    for row in found:
        numbers = (
            f"{row.compare:9.2f}{row.make_room:9.2f}{row.find_work:9.2f}{row.seconds:9.2f}{row.cpu:9.2f}"
        )
        print(f"{row.what:28}{numbers}{row.pending:12,}")
    append(
        "growing",
        {"models": options.models, "trials": trials},
        [{**asdict(row), "seconds": row.seconds} for row in found],
        options.history,
    )


def _config(folder: Path, models: int, trials: int) -> dict[str, Any]:
    """The suite m12 with some models, as a mapping."""
    suite = load_sweep("m12", ["m0=http://127.0.0.1:1/v1#org/m0"], ())
    config = suite.model_dump(mode="json", exclude_unset=True)
    config |= {"cube": str(folder / "cube.zarr"), "cache": str(folder / "cache"), "trials": trials}
    config.pop("precision", None)
    config["models"] = [_model(place) for place in range(models)]
    return config


def _model(place: int) -> dict[str, Any]:
    return {"name": f"m{place}", "endpoint": "http://127.0.0.1:1/v1", "model": f"org/m{place}"}


def _build(config: dict[str, Any]) -> int:
    """Make the cube with all of its trials recorded; returns their number."""
    plan = build_plan(from_mapping(config))
    store = SweepStore(
        open_store(plan, config["cube"]).cube, plan, SampleTargets.uniform(plan, plan.trials, plan.repeats)
    )
    store.grow()
    cube, planned = Cube.open(config["cube"], writable=True), store.planned
    written: dict[tuple[int, ...], tuple[Region, str, int]] = {}
    with Ledger(cube.records) as ledger:
        for region in cube.regions():
            shape = cube.region_shape(region)
            known = written.get(shape)
            if known is None:
                arrays = _arrays(shape, plan)
                digest = cube.write_region(region, arrays)
                known = written[shape] = region, digest, int((arrays["status"] == 1).sum())
            else:
                _link(cube, known[0], region)
            _, digest, count = known
            ledger.append(Receipt(region, 1, shape[2], shape[3], count, True, 0, 0, {}, digest))
    trials = (planned.trials.astype(np.int64) * planned.repeats)[..., None]
    counters = np.zeros((*trials.shape[:3], cube.sizes["counter"]))
    for name in ("trials", "completed", "correct"):
        counters[..., [list(cube.read_label("counter")).index(name)]] = trials
    cube.write_counters(dict(enumerate(counters)))
    for task in range(cube.sizes["task"]):
        cube.write_duplicates(task, np.zeros((cube.sizes["params"], cube.sizes["trial"]), np.uint8))
    return int(trials.sum())


def _arrays(shape: tuple[int, ...], plan: Plan) -> dict[str, Any]:
    """A region of right answers; slots without a point are missing."""
    there = np.broadcast_to(plan.valid()[..., None, None], shape)
    return {
        name: np.where(there, 1, variable.fill).astype(variable.dtype) for name, variable in VARIABLES.items()
    }


def _link(cube: Cube, source: Region, target: Region) -> None:
    """Give a region the chunks of another one."""
    for name in VARIABLES:
        indexes = [(one.model, 0, 0, one.trial, one.repeat) for one in (source, target)]
        os.link(*(Path(cube.url, cube.group.chunk_key(name, index)) for index in indexes))


def _measured(what: str, config: dict[str, Any]) -> Grown:
    """One growth, in a process of its own."""
    command = [sys.executable, __file__, "--grow", what, json.dumps(config)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Grown(**json.loads(done.stdout))


def _grow(what: str, config: dict[str, Any]) -> Grown:
    settings = from_mapping(_added(what, config))
    plan = build_plan(settings)
    began, cpu = time.perf_counter(), time.process_time()
    cube, plan = sweep_cube(plan, settings.cube)
    compared = time.perf_counter()
    extend(cube, plan)
    made = time.perf_counter()
    store = SweepStore(cube, plan)
    targets = as_configured(settings).targets(store.plan, store.planned, store.counters())
    store = SweepStore(cube, plan, targets)
    store.grow()
    pending = sum(
        len(work.positions) for model in range(len(plan.evaluations)) for work in store.unfinished(model)
    )
    store.stale()
    return Grown(
        what,
        compared - began,
        made - compared,
        time.perf_counter() - made,
        time.process_time() - cpu,
        pending,
    )


def _added(what: str, config: dict[str, Any]) -> dict[str, Any]:
    if what.startswith("a model"):
        new = _model(100 if "alone" in what else 200)
        models = [new] if "alone" in what else [*config["models"], new]
        return {**config, "trials": 32, "models": models}
    if what == "a task":
        extra = {"task": "arithmetic", "params": {"length": 3}}
        return {**config, "trials": 32, "tasks": {**config["tasks"], "extra": extra}}
    if what == "ten points":
        points = {"task": "arithmetic", "manifold": [{"points": [{"length": n} for n in range(3, 13)]}]}
        return {**config, "trials": 32, "tasks": {"extra": points}}
    return config


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--trials", type=int, default=7200)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--grow", nargs=2, help=argparse.SUPPRESS)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
