"""A made-up cube's dataset: models of given ability answer tasks of growing difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import xarray as xr

from evalcube.stages.reply.status import COUNTERS

TASKS = (
    "arithmetic boolean brackets cars dates letters movies objects sequence shapes shuffle sort tables mazes"
).split()
TIERS = ("easy", "medium", "hard")


@dataclass(frozen=True)
class Profile:
    """How a made-up model behaves."""

    name: str
    ability: float = 5.0
    tokens: float = 200.0
    invalid: float = 0.02
    refused: float = 0.0
    limit: float = 2000.0
    price: float = float("nan")


PROFILES = (
    Profile("orchid-70b-instruct", ability=7.6, tokens=420, price=0.9),
    Profile("orchid-8b-instruct", ability=5.6, tokens=310, invalid=0.03, price=0.1),
    Profile("heron-r1-32b-reasoning", ability=8.0, tokens=900, limit=4000, price=2.4),
    Profile("heron-mini-3b", ability=4.2, tokens=160, invalid=0.09, refused=0.04, price=0.05),
    Profile("smollm2-135m-instruct", ability=1.4, tokens=70, invalid=0.3, refused=0.01, price=0.0),
)


def dataset(
    profiles: Sequence[Profile | str] = PROFILES,
    *,
    tasks: int = 4,
    points: int = 9,
    trials: int = 64,
    seed: int = 1,
    gaps: bool = False,
) -> xr.Dataset:
    """Dataset of a sweep; with `gaps` the last model lacks a task and the one before lacks hard points."""
    people = tuple(item if isinstance(item, Profile) else Profile(item) for item in profiles)
    counters, difficulty, in_tier = (part.copy() for part in _measured(people, tasks, points, trials, seed))
    if gaps:
        _take_out(counters[-1, -1, :points], trials)
        _take_out(counters[-2, 0, points - 2 : points], trials)
        counters[0, 0, 0, COUNTERS.index("transport")] = 3
    return _label(people, TASKS[:tasks], counters, difficulty, in_tier)


@cache
def _measured(
    people: tuple[Profile, ...], tasks: int, points: int, trials: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counters, difficulties and tiers of points, for the many tests that want the same."""
    names = TASKS[:tasks]
    slots = points + 1  # one padding slot
    counters = np.zeros((len(people), tasks, slots, len(COUNTERS)))
    difficulty = np.full((tasks, slots), np.nan)
    in_tier = np.zeros((len(TIERS), tasks, slots), dtype=bool)
    for task in range(tasks):
        difficulty[task, :points] = 2.0 ** (2 + task % 3 + np.arange(points) * 6.0 / max(1, points - 1))
        for point in range(points):
            in_tier[point * len(TIERS) // points, task, point] = True
            for model, person in enumerate(people):
                rng = np.random.default_rng(
                    [seed, task, point, *person.name.encode("utf-8", "surrogatepass")]
                )
                counters[model, task, point] = _cell(
                    person,
                    difficulty[task, point],
                    trials,
                    rng,
                    guess=0.5 if names[task] == "boolean" else 0.0,
                )
    return counters, difficulty, in_tier


def _cell(
    person: Profile, difficulty: float, n: int, rng: np.random.Generator, *, guess: float
) -> np.ndarray:
    solved = 1 / (1 + np.exp(1.3 * (np.log2(difficulty) - person.ability)))
    tokens = rng.lognormal(np.log(person.tokens * (1 + 0.18 * np.log2(difficulty))), 0.5, n)
    cut = tokens > person.limit
    tokens = np.minimum(tokens, person.limit).round()
    refused = ~cut & (rng.random(n) < person.refused)
    invalid = ~cut & ~refused & (rng.random(n) < person.invalid)
    correct = ~cut & ~refused & ~invalid & (rng.random(n) < solved + (1 - solved) * guess)
    values = {
        "trials": n,
        "completed": (~cut).sum(),
        "correct": correct.sum(),
        "invalid": invalid.sum(),
        "refused": refused.sum(),
        "truncated": cut.sum(),
        "guess_sum": guess * (~cut).sum(),
        "tokens_sum": tokens.sum(),
        "tokens_sumsq": (tokens**2).sum(),
        "prompt_tokens_sum": 120.0 * n,
        "compressed_sum": tokens.sum(),
        "latency_sum": tokens.sum() / 60,
    }
    return np.array([values.get(label, 0.0) for label in COUNTERS])


def _take_out(cells: np.ndarray, trials: int) -> None:
    cells[...] = 0.0
    cells[:, COUNTERS.index("missing")] = trials


def _label(
    people: Sequence[Profile],
    names: list[str],
    counters: np.ndarray,
    difficulty: np.ndarray,
    in_tier: np.ndarray,
) -> xr.Dataset:
    count = len(people)
    prices = np.array([person.price for person in people])
    return xr.Dataset(
        {"counters": (("model", "task", "params", "counter"), counters)},
        coords={
            "model_name": ("model", np.array([person.name for person in people], dtype=object)),
            "template": ("model", np.array(["plain"] * count, dtype=object)),
            "sampler": ("model", np.array(["greedy"] * count, dtype=object)),
            "eval_id": ("model", np.array([f"id-{person.name}" for person in people], dtype=object)),
            "facets": ("model", np.array(['{"family": "made up"}'] * count, dtype=object)),
            "price_prompt": ("model", prices / 3),
            "price_completion": ("model", prices),
            "task": names,
            "tier": list(TIERS),
            "counter": list(COUNTERS),
            "in_tier": (("tier", "task", "params"), in_tier),
            "difficulty": (("task", "params"), difficulty),
        },
    )
