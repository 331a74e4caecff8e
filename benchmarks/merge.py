"""Merging cubes of millions of trials: trials a minute, memory, and where the time goes.

The cubes are drawn, not measured: realistic tokens, latencies and outcomes of one task at many points.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.coordinates import coordinates
from evalcube.flows.plan.targets import SampleTargets, window_of
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.recording import receipt_of
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger


def config_of(models: list[str], points: int, trials: int) -> dict[str, Any]:
    """A config of one sampler and two tasks."""
    grid = {"length": list(range(3, 3 + min(points, 32))), "max_depth": list(range(-(-points // 32)))}
    return {
        "name": "drawn",
        "trials": trials,
        "models": [{"name": name, "endpoint": "http://127.0.0.1:9/v1", "model": name} for name in models],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 4096}},
        "tasks": {
            task: {"manifold": [{"grid": grid, "tiers": ["easy"]}]} for task in ("arithmetic", "boolean")
        },
    }


def draw_cube(path: Path, models: list[str], points: int, trials: int, half: int | None = None) -> int:
    """Write a cube; of each region all trials, or the even or odd ones. Returns the trials that it holds."""
    plan = build_plan(from_mapping(config_of(models, points, trials)))
    targets = SampleTargets.uniform(plan, plan.trials, plan.repeats)
    held = 0

    def fill(cube: Cube) -> None:
        nonlocal held
        cube.write_planned("trial", targets.trials)
        cube.write_planned("repeat", targets.repeats)
        flags = np.zeros((plan.slots, plan.trials), dtype=np.uint8)
        for task in range(len(plan.tasks)):
            cube.write_duplicates(task, flags)
        with Ledger(cube.records) as ledger:
            for region in cube.regions():
                window = window_of(cube.sizes, region, cube.chunks)
                rng = np.random.default_rng([region.model, region.trial])
                shape = window.shape
                arrays: dict[str, Any] = {
                    "status": rng.choice([0, 1, 2, 3], shape, p=[0.3, 0.6, 0.05, 0.05]).astype(np.uint8),
                    "tokens": rng.lognormal(6, 0.6, shape).astype(np.int32),
                    "prompt_tokens": rng.integers(80, 120, shape, dtype=np.int32),
                    "reasoning_bytes": rng.lognormal(7, 0.6, shape).astype(np.int32),
                    "compressed_bytes": rng.lognormal(6.3, 0.6, shape).astype(np.int32),
                    "latency": rng.lognormal(1, 0.5, shape).astype(np.float32),
                    "guess_chance": np.full(shape, 0.25, np.float32),
                }
                if half is not None:
                    for name, values in arrays.items():
                        values[:, :, half::2] = cube.trial_arrays[name].fill
                held += int((arrays["status"] <= 4).sum())
                digest = cube.write_region(region, arrays)
                ledger.append(receipt_of(window, 1, targets.mask(window), arrays["status"], digest, {}))

    Cube.create(
        path,
        sizes=plan.sizes,
        chunks=plan.chunks,
        coordinates=coordinates(plan),
        counters=(*COUNTERS, *QUESTION_COUNTERS),
        attrs={"title": "evalcube sweep", "spec": plan.spec()},
        fill=fill,
    )
    return held


def measure(folder: Path, name: str, cubes: list[Path]) -> dict[str, Any]:
    """Merge some cubes; what it took."""
    output = folder / f"{name}.zarr"
    start, cpu = time.perf_counter(), time.process_time()
    done = merge_cubes(str(output), [str(path) for path in cubes])
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    shutil.rmtree(output)
    return {
        "merge": name,
        "trials": done.trials,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "million_trials_per_minute": round(done.trials / seconds * 60 / 1e6, 1),
        "bytes_per_trial": round(size / done.trials, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8, help="In each of two cubes.")
    parser.add_argument("--points", type=int, default=160, help="Of each task; a multiple of 32 from 32 on.")
    parser.add_argument("--trials", type=int, default=1024)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        first, second = ([f"model-{side}{n}" for n in range(options.models)] for side in "ab")
        size = (options.points, options.trials)
        draw_cube(folder / "a.zarr", first, *size)
        draw_cube(folder / "b.zarr", second, *size)
        for half in (0, 1):
            draw_cube(folder / f"half{half}.zarr", first, *size, half=half)
        rows = [
            measure(folder, "other models", [folder / "a.zarr", folder / "b.zarr"]),
            measure(
                folder, "other trials of the same regions", [folder / "half0.zarr", folder / "half1.zarr"]
            ),
            measure(folder, "the same twice", [folder / "a.zarr", folder / "a.zarr"]),
        ]
        print(json.dumps(rows, indent=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
