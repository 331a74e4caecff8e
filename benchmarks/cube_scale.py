"""Counting trials anew and ranking models, beside DuckDB on the same rows in the same run.

DuckDB is no dependency: install it into an environment of its own (`pip install duckdb pyarrow`); without it only
our side is measured.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dask
import numpy as np
import xarray as xr

from evalcube.stages.analyze.formulas import reasonscore
from evalcube.stages.analyze.labelled import counters
from evalcube.stages.reply.status import COUNTERS
from evalcube.stages.score.counters import VALUES
from evalcube.stages.score.recount import recount
from evalcube.storage.cube.cube import Coordinate, Cube

try:
    import duckdb
    import pyarrow
except ImportError:
    duckdb = pyarrow = None

DIMS = ("model", "task", "params", "trial", "repeat")
TIERS = 3
COUNT = """
select {group},
  count(*) filter (status <= 4) as trials,
  count(*) filter (status in (0, 1, 3, 4)) as completed,
  count(*) filter (status = 1) as correct,
  count(*) filter (status = 3) as invalid,
  count(*) filter (status = 4) as refused,
  count(*) filter (status = 2) as truncated,
  sum(guess_chance::double) filter (status in (0, 1, 3, 4)) as guess_sum,
  sum(tokens) filter (status <= 4 and tokens >= 0) as tokens_sum,
  sum(tokens::bigint * tokens) filter (status <= 4 and tokens >= 0) as tokens_sumsq,
  sum(prompt_tokens) filter (status <= 4 and prompt_tokens >= 0) as prompt_tokens_sum,
  sum(compressed_bytes) filter (status <= 4 and compressed_bytes >= 0) as compressed_sum,
  sum(latency::double) filter (status <= 4 and latency >= 0) as latency_sum,
  count(*) filter (status = 254) as transport,
  count(*) filter (status = 255) as missing
from {source} group by {group}
"""
RANK = """
with tasks as (
  select model, tier, task, sum(trials) as n, sum(completed) as done, sum(correct) as right_, sum(truncated) as cut,
    sum(guess_sum) as guess, sum(tokens_sum) as tokens
  from counters join points using (task, params) group by model, tier, task
), bounds as (
  select *, greatest(right_ - guess, 0) / (done - guess) as p, done - guess as m from tasks where n > 0
), scores as (
  select model, tier, n, tokens, greatest(0.01, (p + 1.9208 / m + 1.96 * sqrt(p * (1 - p) / m + 0.9604 / (m * m)))
    / (1 + 3.8416 / m) - cut / n) as score from bounds
), tiers as (
  select model, tier, 1000 * exp(avg(ln(score))) as score, sum(tokens) / sum(n) as tokens from scores group by all
)
select model, avg(score) as score, avg(score) / avg(tokens) as per_token from tiers group by model order by score desc
"""


def draw(sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Trial arrays of a finished sweep."""
    rng = np.random.default_rng(seed)
    shape = tuple(sizes[dim] for dim in DIMS)
    status = rng.choice(np.arange(5, dtype=np.uint8), size=shape, p=[0.35, 0.55, 0.06, 0.03, 0.01])
    tokens = np.minimum(rng.lognormal(6, 0.8, size=shape), 8192).astype(np.int32)
    guess = rng.choice(np.array([0, 0, 1 / 2, 1 / 4, 1 / 5], np.float32), size=(1, *shape[1:3], 1, 1))
    return {
        "status": status,
        "tokens": tokens,
        "prompt_tokens": rng.integers(50, 900, size=shape, dtype=np.int32),
        "reasoning_bytes": tokens * np.int32(4),
        "compressed_bytes": (tokens * 1.7).astype(np.int32),
        "latency": (tokens / 60).astype(np.float32),
        "guess_chance": np.ascontiguousarray(np.broadcast_to(guess, shape)),
    }


def measured(name: str, call: Callable[[], Any], *, runs: int) -> float:
    """The least wall time of some runs, printed with the CPU time of the last."""
    best, spent = float("inf"), 0.0
    for _ in range(runs):
        before, start = _cpu(), time.perf_counter()
        call()
        best, spent = min(best, time.perf_counter() - start), _cpu() - before
    print(f"| {name:46s} | {best:8.3f} | {spent:8.3f} |", flush=True)
    return best


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def write_cube(path: Path, arrays: Mapping[str, np.ndarray], chunks: Mapping[str, int]) -> xr.Dataset:
    sizes = dict(zip(DIMS, arrays["status"].shape, strict=True))
    prices = [
        Coordinate(f"price_{kind}", ("model",), np.ones(sizes["model"])) for kind in ("prompt", "completion")
    ]
    cube = Cube.create(
        path, sizes={**sizes, "tier": TIERS}, chunks=chunks, coordinates=prices, counters=COUNTERS, attrs={}
    )
    for region in cube.regions():
        trials = slice(region.trial * chunks["trial"], (region.trial + 1) * chunks["trial"])
        repeats = slice(region.repeat * chunks["repeat"], (region.repeat + 1) * chunks["repeat"])
        part = {
            name: np.ascontiguousarray(array[region.model, :, :, trials, repeats])
            for name, array in arrays.items()
        }
        cube.write_region(region, part)
    return cube.dataset().drop_vars(["duplicate", "planned_trials", "planned_repeats"])


def counting(arrays: Mapping[str, np.ndarray], folder: Path, options: argparse.Namespace) -> None:
    shape = arrays["status"].shape
    cells = int(np.prod(shape[:3]))
    print(f"\nCounting {arrays['status'].size:,} trials into {cells:,} cells, {options.threads} threads\n")
    print(f"| {'':46s} | {'wall s':>8s} | {'CPU s':>8s} |\n|---|---|---|")
    ds = xr.Dataset({name: (DIMS, array) for name, array in arrays.items() if name in {"status", *VALUES}})
    counted = recount(ds)["counters"]
    with dask.config.set(num_workers=options.threads):
        measured("numpy arrays in memory", lambda: recount(ds), runs=options.runs)
        measured("  the first 32 trials", lambda: recount(ds, trials=32), runs=options.runs)
        measured("  clipped to 1000 tokens", lambda: recount(ds, clip_tokens=1000), runs=options.runs)
        for trial, repeat in (tuple(map(int, text.split("x"))) for text in options.chunks):
            path = folder / f"cube-{trial}x{repeat}.zarr"
            lazy = write_cube(path, arrays, {"trial": trial, "repeat": repeat})
            name = f"cube on disk, chunks of {trial} trials x {repeat} repeats"
            measured(name, lambda lazy=lazy: recount(lazy)["counters"].compute(), runs=options.runs)
            shutil.rmtree(path)
    if duckdb is not None:
        count_with_duckdb(arrays, counted.values, folder, options)


def count_with_duckdb(
    arrays: Mapping[str, np.ndarray], counted: np.ndarray, folder: Path, options: argparse.Namespace
) -> None:
    shape = arrays["status"].shape
    index = {
        dim: np.broadcast_to(np.arange(size, dtype=np.uint8).reshape(-1, *[1] * (4 - axis)), shape).ravel()
        for axis, (dim, size) in enumerate(zip(DIMS[:3], shape, strict=False))
    }
    rows = pyarrow.table({**index, **{name: arrays[name].ravel() for name in ("status", *VALUES)}})
    con = duckdb.connect()
    con.execute(f"set threads = {options.threads}")
    con.register("given", rows)
    con.execute("create table trials as select * from given")
    file = folder / "trials.parquet"
    con.execute(f"copy trials to '{file}' (format parquet, compression zstd)")
    for name, source in (("DuckDB, table in memory", "trials"), ("DuckDB, Parquet", f"'{file}'")):
        query = COUNT.format(group="model, task, params", source=source)
        measured(
            name,
            lambda query=query: con.execute(f"create or replace table found as {query}"),
            runs=options.runs,
        )
        names = [name for name in COUNTERS if name not in {"cost_sum", "duplicates"}]
        found = con.execute("select * from found order by model, task, params").fetchnumpy()
        for label in names:
            ours = counted[..., COUNTERS.index(label)].ravel()
            np.testing.assert_allclose(
                np.ma.filled(found[label].astype(float), 0), ours, rtol=1e-12, err_msg=label
            )


def ranking(sizes: Mapping[str, int], seed: int, options: argparse.Namespace) -> None:
    small = draw({**sizes, "trial": 8}, seed)
    ds = recount(xr.Dataset({name: (DIMS, array) for name, array in small.items()}))
    cells = ds["counters"].values
    tier = np.arange(sizes["params"]) * TIERS // sizes["params"]
    member = np.broadcast_to(
        (tier == np.arange(TIERS)[:, None])[:, None], (TIERS, sizes["task"], sizes["params"])
    )
    names = [f"model-{index}" for index in range(sizes["model"])]
    tasks = [f"task-{index}" for index in range(sizes["task"])]
    ds = ds[["counters"]].assign_coords(
        model_name=("model", names),
        task=tasks,
        tier=["easy", "medium", "hard"],
        in_tier=(("tier", "task", "params"), member),
    )
    print(f"\nRanking {sizes['model']} models from {cells[..., 0].size:,} cells of counters, no bootstrap\n")
    print(f"| {'':46s} | {'wall s':>8s} | {'CPU s':>8s} |\n|---|---|---|")
    measured("sums, scores, score per token", lambda: scores(ds), runs=9)
    measured("  of this the sums per tier", lambda: counters.tier_counters(ds), runs=9)
    grouped = counters.tier_counters(ds)
    measured("  of this the scores", lambda: tier_scores(ds, grouped), runs=9)
    measured("  of this the totals", lambda: counters.counter_cells(ds).values.sum(axis=(1, 2)), runs=9)
    if duckdb is not None:
        rank_with_duckdb(cells, member, scores(ds), options)


def scores(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Mean score and score per token of each model, and what else the leaderboard sums."""
    counters.counter_cells(ds).values.sum(axis=(1, 2))
    return tier_scores(ds, counters.tier_counters(ds))


def tier_scores(ds: xr.Dataset, grouped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = reasonscore.tier_score(grouped, expected=ds["in_tier"].values.any(axis=-1)).score
    return reasonscore.mean_score(found), reasonscore.per_token(found, reasonscore.tier_tokens(grouped))


def rank_with_duckdb(
    cells: np.ndarray, member: np.ndarray, ours: tuple[np.ndarray, np.ndarray], options: argparse.Namespace
) -> None:
    con = duckdb.connect()
    con.execute(f"set threads = {options.threads}")
    grid = np.indices(cells.shape[:3]).reshape(3, -1).astype(np.uint8)
    columns = {label: cells[..., index].ravel() for index, label in enumerate(COUNTERS)}
    con.register("given", pyarrow.table({**dict(zip(DIMS[:3], grid, strict=True)), **columns}))
    tier, task, params = (part.astype(np.uint8) for part in np.nonzero(member))
    con.register("tiers", pyarrow.table({"tier": tier, "task": task, "params": params}))
    con.execute("create table counters as select * from given; create table points as select * from tiers")
    measured("DuckDB, table in memory", lambda: con.execute(RANK).fetchnumpy(), runs=9)
    found = con.execute(RANK).fetchnumpy()
    order = found["model"]
    np.testing.assert_allclose(found["score"], ours[0][order], rtol=1e-9)
    np.testing.assert_allclose(found["per_token"], ours[1][order], rtol=1e-9)


def sizes_of(options: argparse.Namespace) -> dict[str, int]:
    return dict(zip(DIMS, (options.models, options.tasks, options.points, options.trials, 1), strict=True))


def arguments() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, size in (("models", 200), ("tasks", 12), ("points", 128), ("trials", 128)):
        yield f"--{name}", {"type": int, "default": size}
    yield "--threads", {"type": int, "default": 2}
    yield "--runs", {"type": int, "default": 3}
    yield "--seed", {"type": int, "default": 1}
    yield (
        "--chunks",
        {"nargs": "*", "default": ["32x8", "128x1"], "help": "trials x repeats of the cubes on disk"},
    )
    yield (
        "--folder",
        {"type": Path, "default": None, "help": "where cubes are written; default a temporary folder"},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, settings in arguments():
        parser.add_argument(name, **settings)
    options = parser.parse_args()
    sizes = sizes_of(options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ranking(sizes, options.seed, options)
        counting(draw(sizes, options.seed), Path(folder), options)


if __name__ == "__main__":
    main()
