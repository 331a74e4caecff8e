"""A small cube whose outcomes are made up, so that each number is known, and commands called in this process."""

import json

import numpy as np
from typer.testing import CliRunner

from evalcube.flows.cli.app import app
from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import window_of
from evalcube.flows.state.recording import receipt_of
from evalcube.flows.state.store import open_store
from evalcube.stages.reply.status import Status
from evalcube.stages.score.counters import count_questions, count_trials
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region

TRIALS, REPEATS, LIMIT = 12, 4, 500
RATES = {"strong": 0.9, "middle": 0.6, "weak": 0.55}
CONFIG = {
    "name": "made up",
    "trials": TRIALS,
    "repeats": REPEATS,
    "models": [
        {
            "name": name,
            "endpoint": "sim:",
            "facets": {
                "family": "w" if name == "weak" else "other",
                "size": 8.0 if name == "strong" else 3.0,
            },
            "prices": {"prompt": 1.0, "completion": 2.0},
        }
        for name in RATES
    ],
    "samplers": {"greedy": {"temperature": 0, "max_tokens": LIMIT}},
    "tasks": {
        "arithmetic": {
            "manifold": [
                {"grid": {"length": [3, 4]}, "tiers": ["easy"]},
                {"grid": {"length": [8]}, "tiers": ["hard"]},
            ]
        },
        "sort": {"manifold": [{"points": [{"length": 3}, {"length": 5}], "tiers": ["easy", "hard"]}]},
    },
    "views": {
        "long": {"where": {"param_length": {"min": 5}}},
        "others": {"where": {"family": ["other"]}, "trials": 6},
        "unique": {"unique_only": True},
    },
}


def outcomes(shape, rate, rng):
    tokens = rng.integers(20, 2 * LIMIT, shape).astype(np.int32)
    status = np.where(rng.random(shape) < rate, Status.CORRECT, Status.INCORRECT).astype(np.uint8)
    status[tokens > LIMIT + 300] = Status.TRUNCATED
    return {
        "status": status,
        "tokens": np.minimum(tokens, LIMIT),
        "prompt_tokens": np.full(shape, 50, np.int32),
        "reasoning_bytes": 4 * np.minimum(tokens, LIMIT),
        "compressed_bytes": 2 * np.minimum(tokens, LIMIT),
        "latency": np.ones(shape, np.float32),
        "guess_chance": np.zeros(shape, np.float32),
    }


def make_cube(folder):
    config = from_mapping({**CONFIG, "cube": str(folder / "cube.zarr"), "cache": str(folder / "cache")})
    plan = build_plan(config)
    store = open_store(plan, config.cube)
    store.note({"name": config.name, "cache": config.cache, "config": config.model_dump(exclude_none=True)})
    valid = plan.valid()
    shape = (*valid.shape, TRIALS, REPEATS)
    for name, size in (("trial", TRIALS), ("repeat", REPEATS)):
        cells = np.broadcast_to(np.where(valid, size, 0), (len(RATES), *valid.shape)).astype(np.int32)
        store.cube.write_planned(name, cells)
    flags = np.zeros((*valid.shape, TRIALS), np.uint8)
    flags[1, 0, 9:] = 1  # sort, first point: a quarter of the questions is not new
    for task, row in enumerate(flags):
        store.cube.write_duplicates(task, row)
    counters = {}
    for model, rate in enumerate(RATES.values()):
        arrays = outcomes(shape, rate, np.random.default_rng(model))
        arrays["status"][~valid] = Status.MISSING
        region, planned = Region(model, 0, 0), np.broadcast_to(valid[..., None, None], shape)
        digest = store.cube.write_region(region, arrays)
        window = window_of(store.cube.sizes, region, store.cube.chunks)
        with Ledger(store.cube.records) as ledger:
            ledger.append(
                receipt_of(window, 1, planned, arrays["status"], digest, {}, store.cube.shape_number)
            )
        duplicate = np.broadcast_to(flags[..., None], shape)
        counted = count_trials({**arrays, "planned": planned, "duplicate": duplicate})
        counters[model] = np.concatenate([counted, count_questions(arrays["status"])], axis=-1)
    store.cube.write_counters(counters)
    return config.cube


def run(*arguments, width=200):
    result = CliRunner().invoke(app, [str(item) for item in arguments], env={"COLUMNS": str(width)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def document(*arguments):
    return json.loads(run(*arguments, "--json"))
