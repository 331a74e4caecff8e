"""CPU seconds and memory of commands that read a cube, by its number of models, beside those of another checkout.

    python benchmarks/reading.py [--models 100 300 1000] [--commands rank leaderboard] [--beside OTHER/.venv/bin/python]

Each command is a process of its own, in turns; the last line of each gives the exponents over the sizes.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from evalcube.flows.config.suites import load_suite
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.state.store import SweepStore, open_store
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.schema import VARIABLES


def fill(folder: Path, models: int) -> tuple[str, int]:
    """Make a cube as a finished run leaves it, its outcomes made up; returns its address and its number of trials."""
    plan = build_plan(load_suite("m12", [f"model-{i:03}=sim:" for i in range(models)]))
    url = str(folder / "m12.zarr")
    cube = open_store(plan, url).cube
    store = SweepStore(cube, plan, SampleTargets.uniform(plan, plan.trials, plan.repeats))
    store.grow()
    rng = np.random.default_rng(0)
    trials = cube.read_planned("trial").astype(np.int64)
    right = rng.binomial(trials, rng.uniform(0.2, 0.9, size=(len(trials), 1, 1)))
    cut = rng.binomial(trials - right, 0.1)
    counters = np.zeros((*trials.shape, cube.sizes["counter"]))
    sums = {
        "trials": trials,
        "completed": trials - cut,
        "correct": right,
        "truncated": cut,
        "tokens_sum": 90 * trials,
    }
    for name, values in {**sums, "prompt_tokens_sum": 50 * trials, "latency_sum": 2.5 * trials}.items():
        counters[..., COUNTERS.index(name)] = values
    cube.write_counters(dict(enumerate(counters)))
    for region in cube.regions():
        shape = cube.region_shape(region)
        arrays: dict[str, Any] = {
            name: np.zeros(shape, variable.dtype) for name, variable in VARIABLES.items()
        }
        arrays["status"] = rng.integers(0, 3, shape).astype(np.uint8)
        arrays["tokens"] = rng.integers(1, 400, shape).astype(np.int32)
        arrays["latency"] = rng.random(shape).astype(np.float32)
        done = int(trials[region.model].sum())
        digest = cube.write_region(region, arrays)
        store.ledger.append(Receipt(region, 1, *shape[2:], done, True, 0, 0, {}, digest))
    store.note({"name": "m12"})
    return url, int(trials.sum())


def spent(python: str, command: str, url: str) -> tuple[float, float]:
    """CPU seconds and most memory in MB of a command on a cube."""
    words = [python, "-m", "evalcube", command, url]
    if command == "report":
        words += ["--output", f"{url}.html"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, state, used = os.wait4(process.pid, 0)
    if state:
        sys.exit(f"benchmark: {' '.join(words)} ended with {os.waitstatus_to_exitcode(state)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Make the cubes and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--commands", nargs="+", default=["rank", "leaderboard"])
    parser.add_argument("--beside", help="the Python of another checkout's environment")
    options = parser.parse_args()
    sides = [side for side in (options.beside, sys.executable) if side]
    with tempfile.TemporaryDirectory() as name:
        urls = []
        for models in options.models:
            (folder := Path(name, str(models))).mkdir()
            urls.append(fill(folder, models)[0])
        print(f"{'command':14}{'models':>8}" + f"{'CPU s':>9}{'MB':>7}" * len(sides))
        for command in options.commands:
            rows = [[part for side in sides for part in spent(side, command, url)] for url in urls]
            for models, row in zip(options.models, rows, strict=True):
                print(f"{command:14}{models:8}" + "".join(f"{c:9.2f}{m:7.0f}" for c, m in _two(row)))
            if len(rows) > 1:
                growth = math.log(options.models[-1] / options.models[0])
                ends = [
                    math.log(last / first) / growth for first, last in zip(rows[0], rows[-1], strict=True)
                ]
                print(f"{command:14}{'exponent':>8}" + "".join(f"{c:9.2f}{m:7.2f}" for c, m in _two(ends)))


def _two(row: list[float]) -> list[tuple[float, float]]:
    return list(zip(row[::2], row[1::2], strict=True))


if __name__ == "__main__":
    main()
