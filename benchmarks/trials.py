"""Reading the trials of a cube as a table: 10^5 rows with all their texts, and filters over 10^6 trials without any."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import prepare_trials
from evalcube.flows.plan.targets import Block, SampleTargets, Window, window_of
from evalcube.flows.read.trials.forms import csv_lines, write_parquet
from evalcube.flows.read.trials.read import trials
from evalcube.flows.state.recording import receipt_of
from evalcube.flows.state.store import open_store
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache

HARDER = {
    "arithmetic": "length",
    "boolean": "length",
    "brackets": "length",
    "letters": "target_words",
    "objects": "target_items",
    "sequence": "terms",
    "shuffle": "length",
    "sort": "length",
}
"""Tasks, with the parameter that their points differ in."""
POINTS = (3, 4, 6, 8)
_WORDS = "so we take the first of them and carry on with what is left until nothing is".split()


def make_cube(folder: Path, number: int, models: int, *, texts: bool) -> str:
    """A finished sweep with about so many trials, as a run would leave it; its replies are made up."""
    each = -(-number // (models * len(HARDER) * len(POINTS)))
    cube = str(folder / f"cube-{number}.zarr")
    names = [f"model-{number}" for number in range(models)]
    config = from_mapping(
        {
            "name": "benchmark",
            "trials": each,
            "cube": cube,
            "cache": str(folder / "cache"),
            "models": [{"name": name, "endpoint": "http://127.0.0.1:9/v1"} for name in names],
            "samplers": {"greedy": {"temperature": 0, "max_tokens": 2048}},
            "tasks": {
                task: {"manifold": [{"grid": {name: list(POINTS)}, "tiers": ["easy"]}]}
                for task, name in HARDER.items()
            },
        }
    )
    plan = build_plan(config)
    store = open_store(plan, cube)
    store.targets = store.planned = SampleTargets.uniform(plan, each, 1)
    store.cube.write_planned("trial", store.planned.trials)
    store.cube.write_planned("repeat", store.planned.repeats)
    cache = open_cache(folder / "cache") if texts else None
    rng = np.random.default_rng(1)
    for region in store.cube.regions():
        window = window_of(store.cube.sizes, region, store.cube.chunks)
        mask = store.planned.mask(window)
        arrays = _arrays(window, mask, rng)
        if cache is not None:
            cache.put_many(list(_replies(plan, window, mask, arrays, rng)))
        digest = store.cube.write_region(region, arrays)
        store.ledger.append(receipt_of(window, 1, mask, arrays["status"], digest, {}))
    if cache is not None:
        cache.close()
    store.note({"name": "benchmark", "cache": str(folder / "cache")})
    return cube


def _arrays(window: Window, planned: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    status = rng.choice(np.arange(5, dtype=np.uint8), size=window.shape, p=[0.35, 0.55, 0.06, 0.03, 0.01])
    tokens = np.minimum(rng.lognormal(5, 0.8, size=window.shape), 2048).astype(np.int32)
    arrays = {
        "tokens": tokens,
        "prompt_tokens": rng.integers(50, 900, size=window.shape, dtype=np.int32),
        "reasoning_bytes": tokens * np.int32(4),
        "compressed_bytes": (tokens * 1.7).astype(np.int32),
        "latency": (tokens / 60 + rng.random(window.shape)).astype(np.float32),
        "guess_chance": np.zeros(window.shape, np.float32),
        "status": status,
    }
    fills = {"latency": np.nan, "guess_chance": np.nan, "status": Status.MISSING}
    return {
        name: np.where(planned, array, fills.get(name, -1)).astype(array.dtype)
        for name, array in arrays.items()
    }


def _replies(
    plan: Plan, window: Window, planned: np.ndarray, arrays: dict[str, np.ndarray], rng: np.random.Generator
) -> Iterator[tuple[str, bytes]]:
    """Every trial's reply by its key: 300 characters of thought, and an answer that is right where the cube says so."""
    positions = np.flatnonzero(planned)
    flat = {name: array.reshape(-1) for name, array in arrays.items()}
    for place, item in zip(positions, prepare_trials(plan, Block(window, 1, 0, positions)), strict=True):
        right = flat["status"][place] == Status.CORRECT
        thought = " ".join(rng.choice(_WORDS, 60))
        message = {
            "role": "assistant",
            "reasoning_content": thought,
            "content": f"It follows.\nAnswer: {item.trial.answer if right else 7}",
        }
        body = {
            "id": f"chatcmpl-{place}",
            "object": "chat.completion",
            "model": "benchmark",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": int(flat["prompt_tokens"][place]),
                "completion_tokens": int(flat["tokens"][place]),
            },
        }
        record = Record(200, float(flat["latency"][place]), json.dumps(body).encode())
        yield item.request.digest, record.encode()


def measured(name: str, rows: int, call: Callable[[], object]) -> None:
    """Seconds of wall and CPU time, with the peak of memory so far."""
    before, start = time.process_time(), time.perf_counter()
    call()
    wall, spent = time.perf_counter() - start, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"| {name:52s} | {rows:9,} | {wall:6.2f} | {spent:6.2f} | {peak:5} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=100_000, help="Trials that are read with their texts.")
    parser.add_argument(
        "--numbers", type=int, default=1_000_000, help="Trials that are filtered without them."
    )
    parser.add_argument("--models", type=int, default=2)
    sizes = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="trials-"))
    try:
        large = make_cube(folder, sizes.numbers, sizes.models, texts=False)
        written = make_cube(folder, sizes.texts, sizes.models, texts=True)
        trials(large, columns=["model"], limit=1).to_arrow()  # imports
        print(f"| {'':52s} | {'trials':>9s} | {'wall s':>6s} | {'CPU s':>6s} | {'peak':>8s} |")
        brief = ["model", "task", "params", "trial", "status", "tokens", "latency"]
        queries: dict[str, dict[str, Any]] = {
            "two outcomes": {"status": ["incorrect", "invalid"]},
            "a task, and more than 1000 tokens": {"where": ["task=sort", "tokens=1000.."]},
            "the ten slowest": {"sort": "-latency", "limit": 10},
            "all": {},
        }
        for name, query in queries.items():
            measured(
                name, sizes.numbers, lambda query=query: trials(large, columns=brief, **query).to_arrow()
            )
        everything = trials(written)
        measured(
            "with all texts, batch by batch", sizes.texts, lambda: sum(one.num_rows for one in everything)
        )
        measured("with a word in prompt or reply", sizes.texts, trials(written, grep="carry on").count)
        lines = (len(line) for line in csv_lines(trials(written)))
        measured("as CSV", sizes.texts, lambda: sum(lines))
        measured("as Parquet", sizes.texts, lambda: write_parquet(trials(written), folder / "table.parquet"))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
