"""Trial arrays for tests, and a slow count that is plainly right."""

import numpy as np

from evalcube.stages.reply.status import COMPLETED, COUNTERS, Status

DTYPES = {
    "status": np.uint8,
    "tokens": np.int32,
    "prompt_tokens": np.int32,
    "compressed_bytes": np.int32,
    "latency": np.float32,
    "guess_chance": np.float32,
}


def draw_trials(rng, shape):
    """Trials as a sweep may leave them: any status anywhere, values missing here and there."""

    def holes(name, values, missing):
        return np.where(rng.random(shape) < 0.1, missing, values).astype(DTYPES[name])

    return {
        "status": rng.choice([int(s) for s in Status], size=shape).astype(np.uint8),
        "tokens": holes("tokens", rng.integers(0, 100_000, size=shape), -1),
        "prompt_tokens": holes("prompt_tokens", rng.integers(0, 10_000, size=shape), -1),
        "compressed_bytes": holes("compressed_bytes", rng.integers(0, 10_000, size=shape), -1),
        "latency": holes("latency", rng.exponential(3.0, size=shape), np.nan),
        "guess_chance": holes("guess_chance", rng.choice([0.0, 1 / 2, 1 / 3, 1 / 7], size=shape), np.nan),
    }


def plain_count(arrays, *, price_prompt=0.0, price_completion=0.0):
    """Counters by masks and float64 sums over whole arrays, with no thought of speed."""
    status = arrays["status"]
    completed = np.isin(status, COMPLETED)
    finished = completed | (status == Status.TRUNCATED)

    def known(name, where):
        floats = arrays[name].astype(np.float64)
        return np.where(where & (floats >= 0), floats, 0.0)

    tokens, prompt_tokens = known("tokens", finished), known("prompt_tokens", finished)
    columns = {
        "trials": finished,
        "completed": completed,
        "correct": status == Status.CORRECT,
        "invalid": status == Status.INVALID,
        "refused": status == Status.REFUSED,
        "truncated": status == Status.TRUNCATED,
        "guess_sum": known("guess_chance", completed),
        "tokens_sum": tokens,
        "tokens_sumsq": tokens * tokens,
        "prompt_tokens_sum": prompt_tokens,
        "compressed_sum": known("compressed_bytes", finished),
        "latency_sum": known("latency", finished),
        "duplicates": finished & (arrays.get("duplicate", np.zeros_like(status)) == 1),
        "transport": status == Status.TRANSPORT,
        "missing": status == Status.MISSING,
    }
    sums = {name: column.sum(axis=(-2, -1), dtype=np.float64) for name, column in columns.items()}
    sums["cost_sum"] = (
        sums["prompt_tokens_sum"] * price_prompt + sums["tokens_sum"] * price_completion
    ) / 1e6
    return np.stack([sums[name] for name in COUNTERS], axis=-1)
