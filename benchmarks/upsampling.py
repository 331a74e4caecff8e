"""How many trials a budget planner saves against the same number for every cell, on simulated models.

Run: python benchmarks/upsampling.py [REPLICATIONS]
Sixteen models answer twelve tasks of eight points each; a model's chance at a point is logistic in ability minus
difficulty, with ability and difficulty of its own for each task. The planner sees outcomes only, in rounds; how sure
the result is follows from the true rates and the trials of each cell:

* ranking: expected number of pairs of models in the wrong order;
* intervals: mean over models of 1.96 standard errors of the score.

For each the table says how many trials per cell a fixed sample needs for the certainty that the planner reaches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from evalcube.stages.analyze.formulas.allocation import allocate
from evalcube.stages.reply.status import COUNTERS

MODELS, TASKS, POINTS = 16, 12, 8
BASE, LONGEST = 16, 4096
GRID = np.unique(np.geomspace(BASE, 4096, 60).astype(int))
ROUNDS = 8
BUDGETS = (48, 64, 96, 128)


def world(rng: np.random.Generator) -> np.ndarray:
    """True rates, shape (model, task, params)."""
    ability = rng.normal(0, 0.8, MODELS)[:, None] + rng.normal(0, 0.5, (MODELS, TASKS))
    difficulty = np.linspace(-4, 4, POINTS) + rng.normal(0, 0.5, (TASKS, POINTS))
    return 1 / (1 + np.exp(-1.7 * (ability[:, :, None] - difficulty)))


def score(rate: np.ndarray) -> np.ndarray:
    """Geometric mean over tasks of the mean rate of the points."""
    return np.exp(np.log(np.maximum(rate.mean(axis=2), 0.01)).mean(axis=1))


def counters(correct: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Counters of a cube without guessing and truncation."""
    values = np.zeros((*correct.shape, len(COUNTERS)))
    for name in ("trials", "completed"):
        values[..., COUNTERS.index(name)] = trials
    values[..., COUNTERS.index("correct")] = correct
    return values


def correct_after(sums: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Correct answers among the first trials of each cell."""
    return np.take_along_axis(sums, trials[..., None], axis=-1)[..., 0]


def plan(sums: np.ndarray, average: int, purpose: str) -> np.ndarray:
    """Trials of each cell when the planner spends `average` trials per cell, the base included, in rounds."""
    trials = np.full(sums.shape[:3], BASE)
    total = average * trials.size
    member = np.ones((1, *trials.shape[1:]), dtype=bool)
    for number in range(ROUNDS):
        budget = (total - trials.sum()) / (ROUNDS - number)
        trials = allocate(
            counters(correct_after(sums, trials), trials),
            trials,
            member,
            budget=budget,
            cost=np.ones(trials.shape),
            purpose=purpose,  # type: ignore[arg-type]
            most=np.full(trials.shape, LONGEST),
        )
    return trials


def variance(rate: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Variance of each model's score, to first order, from the true rates."""
    means = rate.mean(axis=2)
    slope = score(rate)[:, None] / TASKS / np.maximum(means, 0.01) / POINTS
    each: np.ndarray = (slope[..., None] ** 2 * rate * (1 - rate) / trials).sum(axis=(1, 2))
    return each


def wrong_pairs(rate: np.ndarray, trials: np.ndarray) -> float:
    """Expected number of pairs of models in the wrong order."""
    truth, spread = score(rate), variance(rate, trials)
    above = np.triu_indices(MODELS, 1)
    distance = np.abs(np.subtract.outer(truth, truth))[above]
    return float(norm.cdf(-distance / np.sqrt(np.add.outer(spread, spread)[above])).sum())


def half_width(rate: np.ndarray, trials: np.ndarray) -> float:
    """Mean over models of 1.96 standard errors of the score."""
    return float(np.mean(1.96 * np.sqrt(variance(rate, trials))))


def ideal(rate: np.ndarray, average: int) -> np.ndarray:
    """Neyman's allocation from the true rates: no planner can make the intervals narrower on average."""
    slope = score(rate)[:, None] / TASKS / np.maximum(rate.mean(axis=2), 0.01) / POINTS
    pull = slope[..., None] * np.sqrt(rate * (1 - rate))
    best: np.ndarray = pull / pull.mean() * average
    return best


def measure(purpose: str, uncertainty: Callable[..., float], replications: int) -> None:
    fixed, planned, best = np.zeros(len(GRID)), np.zeros(len(BUDGETS)), np.zeros(len(BUDGETS))
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        rate = world(rng)
        outcomes = rng.random((*rate.shape, LONGEST), dtype=np.float32) < rate[..., None]
        sums = np.concatenate(
            [np.zeros((*rate.shape, 1), int), outcomes.cumsum(axis=-1, dtype=np.int32)], axis=-1
        )
        fixed += [uncertainty(rate, np.full(rate.shape, n)) / replications for n in GRID]
        planned += [uncertainty(rate, plan(sums, average, purpose)) / replications for average in BUDGETS]
        best += [uncertainty(rate, ideal(rate, average)) / replications for average in BUDGETS]
    print(f"\n{purpose}: {(uncertainty.__doc__ or '').splitlines()[0]}")
    print("trials/cell  planner   fixed  fixed needs  saved  saved by Neyman's allocation from the truth")
    for average, value, bound in zip(BUDGETS, planned, best, strict=True):
        same = np.interp(average, GRID, fixed)
        needs, most = np.interp([value, bound], fixed[::-1], GRID[::-1])
        saved = f"{1 - average / needs:5.0%}  {1 - average / most:5.0%}"
        print(f"{average:11d}  {value:7.4f} {same:7.4f}  {needs:11.0f}  {saved}")


def main() -> None:
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print(f"{MODELS} models, {TASKS} tasks, {POINTS} points, {replications} replications, base {BASE}")
    measure("ranking", wrong_pairs, replications)
    measure("intervals", half_width, replications)


if __name__ == "__main__":
    main()
