"""Bytes and requests that readers of a large cube need over http, through a server that counts both.

The cube has all that a finished sweep's has but for the trial arrays, of which two models' are there: what reads
others fails. It is written to a folder, served from there and read by the command line in processes of its own.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.state.store import SweepStore, open_store
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.schema import VARIABLES

WRITTEN = 2
"""Models whose trial arrays are there."""


def config(models: int, cells: int, trials: int, folder: Path) -> dict[str, Any]:
    """A sweep of two tasks, of so many points together."""
    lengths, depths = list(range(3, 3 + cells // 40)), [0, 1, 2, 3]
    tasks = {
        name: {
            "manifold": [{"grid": {"length": lengths, "max_depth": depths, key: values}, "tiers": ["easy"]}]
        }
        for name, key, values in (
            ("arithmetic", "max_number", [9, 19, 29, 39, 49]),
            ("boolean", "prob_not", [0.1, 0.2, 0.3, 0.4, 0.5]),
        )
    }
    return {
        "name": "large",
        "trials": trials,
        "cube": str(folder / "large.zarr"),
        "cache": str(folder / "cache"),
        "models": [{"name": f"model-{i:03}", "endpoint": "sim:", "simulate": {}} for i in range(models)],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 64}},
        "tasks": tasks,
    }


def fill(plan: Plan, url: str) -> Cube:
    """Make the cube as a finished run leaves it, but for most trial arrays."""
    cube = open_store(plan, url).cube
    store = SweepStore(cube, plan, SampleTargets.uniform(plan, plan.trials, plan.repeats))
    store.grow()
    rng = np.random.default_rng(0)
    trials = cube.read_planned("trial")
    counters = np.zeros((*trials.shape, len(COUNTERS)))
    right = rng.binomial(trials, rng.uniform(0.2, 0.9, size=(len(trials), 1, 1)))
    for name, values in (
        ("trials", trials),
        ("completed", trials),
        ("correct", right),
        ("tokens_sum", trials * 9),
    ):
        counters[..., COUNTERS.index(name)] = values
    cube.write_counters(dict(enumerate(counters)))
    for task in range(cube.sizes["task"]):
        flags = rng.integers(0, 2, (cube.sizes["params"], cube.sizes["trial"])) < 1
        cube.write_duplicates(task, (flags * rng.integers(0, 2, flags.shape)).astype(np.uint8))
    for region in cube.regions():
        shape = cube.region_shape(region)
        digest = cube.write_region(region, drawn(rng, shape)) if region.model < WRITTEN else "0" * 16
        done = int(np.prod(shape))
        store.ledger.append(Receipt(region, 1, *shape[2:], done, True, 0, 0, {}, digest))
    store.note({"name": "large"})
    return cube


def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, Any]:
    """The arrays of a region."""
    arrays = {name: np.zeros(shape, variable.dtype) for name, variable in VARIABLES.items()}
    arrays["status"] = rng.integers(0, 2, shape).astype(np.uint8)
    arrays["tokens"] = rng.integers(1, 400, shape).astype(np.int32)
    arrays["latency"] = rng.random(shape).astype(np.float32)
    return arrays


class Counted(http.server.SimpleHTTPRequestHandler):
    """Files, with the bytes of their contents counted."""

    protocol_version = "HTTP/1.1"
    requests = 0
    sent = 0

    def copyfile(self, source: Any, outputfile: Any) -> None:  # noqa: ANN401
        """Send a file."""
        data = source.read()
        Counted.sent += len(data)
        outputfile.write(data)

    def log_message(self, *_: object) -> None:
        """Count instead of writing."""
        Counted.requests += 1


def measured(*words: str) -> None:
    """Print what one command needs."""
    Counted.requests = Counted.sent = 0
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "evalcube", *words], capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - began
    said = "" if done.returncode == 0 else done.stderr.strip()[-200:]
    print(
        f"| {words[0]:12s} | {Counted.requests:8d} | {Counted.sent / 1e6:8.2f} | {took:6.1f} | {said}",
        flush=True,
    )


def main() -> None:
    """Make the cube, serve it and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=392)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = build_plan(from_mapping(config(options.models, options.points, options.trials, folder)))
        cube = fill(plan, str(folder / "large.zarr"))
        print(f"{int(cube.read_planned('trial').sum()):,} trials, sizes {cube.sizes}, chunks {cube.chunks}")
        serve = functools.partial(Counted, directory=name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/large.zarr"
        print("| command      | requests |       MB |      s |\n|---|---|---|---|")
        measured("leaderboard", url)
        measured("status", url)
        measured("table", url)
        measured("compare", url, "model-000", "model-001")
        server.shutdown()


if __name__ == "__main__":
    main()
