"""What a budget does to an order of models that is close, against as many trials everywhere: simulated sweeps.

Run: python benchmarks/adaptive_ranking.py [REPLICATIONS]
Models answer four tasks of eight points, from easy to hard; sums are weighed by the base design and scored as the
leaderboard does. For each case the table says how often the better model leads after the base, after a budget that goes
where it settles the order most, and after as many trials in every cell; by the estimate that leads at that size. Of the
budget's intervals it says how often they cover the truth. Tied models must lead equally often.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalcube.stages.analyze.formulas import stratified
from evalcube.stages.analyze.formulas.allocation import PrecisionTarget, allocate, next_trials
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH, posterior_scores
from evalcube.stages.reply.status import COUNTERS

TASKS, POINTS, LONGEST, ROUNDS = 4, 8, 2048, 6
MEMBER = np.ones((1, TASKS, POINTS), dtype=bool)


def counters(correct: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Counters of a cube without guessing and truncation."""
    values = np.zeros((*correct.shape, len(COUNTERS)))
    for name in ("trials", "completed"):
        values[..., COUNTERS.index(name)] = trials
    values[..., COUNTERS.index("correct")] = correct
    return values


def lead(cells: np.ndarray, seed: int) -> tuple[np.ndarray, bool]:
    """(value, lower, upper) of what leads, shape (model, 3), and whether that is the score."""
    each, trials = stratified.moments(cells), column(cells, "trials")
    if trials.sum(axis=2).min() >= ENOUGH:
        parts = stratified.effective_trials(stratified.parts_of(each, trials)[:, np.newaxis])
        found = [
            posterior_scores(*(part[i] for part in parts), str(i), seed=seed, draws=400).mean
            for i in range(len(cells))
        ]
        return np.stack(found), True
    sums = stratified.parts_of(each.reshape(len(each), -1, each.shape[-1]), trials.reshape(len(each), -1))
    return np.stack(stratified.combine(sums, exact=True), axis=-1), False


def spend(sums: np.ndarray, base: int, average: int) -> np.ndarray:
    """Trials of each cell after a budget that brings the mean to `average`."""
    trials = np.full(sums.shape[:3], base)
    for number in range(ROUNDS):
        budget = (average * trials.size - trials.sum()) / (ROUNDS - number)
        trials = allocate(
            counters(after(sums, trials), trials),
            trials,
            MEMBER,
            budget=budget,
            cost=np.ones(trials.shape),
            purpose="ranking",
            most=np.full(trials.shape, LONGEST),
            weights=np.full(trials.shape[1:], base),
        )
    return trials


def precise(sums: np.ndarray, base: int) -> np.ndarray:
    """Trials of each cell after `precision`."""
    trials, wanted = np.full(sums.shape[:3], base), PrecisionTarget(base, 0.09, 192)
    while True:
        more = next_trials(counters(after(sums, trials), trials), trials, wanted)
        if (more == trials).all():
            return trials
        trials = more


def after(sums: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Right answers among the first trials of each cell."""
    return np.take_along_axis(sums, trials[..., None], axis=-1)[..., 0]


def rates(gap: float) -> np.ndarray:
    """True rates of two models (model, task, point): the first is better by `gap`, by as much at every hard point."""
    ladder = np.linspace(0.99, 0.6, POINTS)
    second = np.broadcast_to(ladder, (TASKS, POINTS))
    return np.stack([np.clip(second + gap * (ladder < 0.9) / (ladder < 0.9).mean(), 0, 1), second])


def main() -> None:
    """Simulate and print the table."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| gap | base | average | leads | base | budget | fixed | covered | precision |\n|" + "---|" * 9)
    for gap in (0.0, 0.02, 0.05):
        truth = rates(gap)
        for base, average in ((8, 12), (16, 64), (64, 128)):
            print(row(truth, gap, base, average, replications), flush=True)


def row(truth: np.ndarray, gap: float, base: int, average: int, replications: int) -> str:
    means = truth.mean(axis=2)
    exact = {False: means.mean(axis=1), True: 1000 * np.exp(np.log(means).mean(axis=1))}
    right, held, size = np.zeros(4), 0.0, "accuracy"
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        outcomes = rng.random((*truth.shape, LONGEST), dtype=np.float32) < truth[..., None]
        sums = np.concatenate([np.zeros((*truth.shape, 1), int), outcomes.cumsum(axis=-1)], axis=-1)
        plans = (
            np.full(truth.shape, base),
            spend(sums, base, average),
            np.full(truth.shape, average),
            precise(sums, base),
        )
        for place, trials in enumerate(plans):
            found, by_score = lead(counters(after(sums, trials), trials), seed)
            right[place] += np.sign(found[0, 0] - found[1, 0]) / 2 + 0.5
            if place == 1:
                inside = (found[:, 1] <= exact[by_score]) & (exact[by_score] <= found[:, 2])
                held, size = held + inside.mean(), "score" if by_score else "accuracy"
    shares = [f"{value / replications:.2f}" for value in right]
    cells = [f"{gap:g}", str(base), str(average), size, *shares[:3], f"{held / replications:.2f}", shares[3]]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
