"""Coverage of what a reader sees first: rates and leaderboards, for weak models, guessing, and the suites' sizes.

`coverage.py` prints these rows beside the others; alone they take a minute: `python benchmarks/coverage_boards.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.coverage_rows import Bench, Row, Values, share
from evalcube.flows.config.suites import load_suite
from evalcube.flows.plan.build import build_plan
from evalcube.stages.analyze.formulas.allocation import half_width
from evalcube.stages.analyze.formulas.clustering import cluster_effect, cluster_moments
from evalcube.stages.analyze.formulas.estimators import estimate
from evalcube.stages.analyze.formulas.stratified import exact_estimate
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.reply.status import COUNTERS

RATES = (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98)
SIZES = (8, 32, 128, 512)
GUESSES = (0.0, 0.125, 0.25, 0.5)
CUTS = (0.0, 0.1, 0.56)
PROFILES = ("0", ".1", ".5", ".95", "Beta(.6,.6)", "Beta(4,1.5)")


def counted(rng: np.random.Generator, trials: Values, rate: Values, cut: Values, guess: Values) -> np.ndarray:
    """Counters of cells in which trials are cut with chance `cut` and else solved, or guessed right."""
    n, p, t, g = np.broadcast_arrays(trials, rate, cut, guess)
    truncated = rng.binomial(n, t)
    completed = n - truncated
    values = np.zeros((*n.shape, len(COUNTERS)))
    for name, part in (
        ("trials", n),
        ("completed", completed),
        ("truncated", truncated),
        ("correct", rng.binomial(completed, g + (1 - g) * p)),
        ("guess_sum", g * completed),
        ("tokens_sum", 100 * n),
    ):
        values[..., COUNTERS.index(name)] = part
    return values


def rate_rows(bench: Bench) -> Iterator[Row]:
    """The least and the mean coverage over rates, guess chances and truncation, at each size."""
    for mode in ("C_I", "C_P"):
        for name, function in (("exact", exact_estimate), ("of the reference", estimate)):
            for n in SIZES:
                rng = bench.rng("rates", mode, str(n))
                rate, guess, cut = np.meshgrid(
                    RATES, GUESSES, CUTS if mode == "C_P" else CUTS[:1], indexing="ij"
                )
                cells = counted(rng, n, *(part[None].repeat(bench.few(5), 0) for part in (rate, cut, guess)))
                _, lower, upper = function(cells, mode=mode)
                truth = rate * (1 - cut)
                inside = ((lower <= truth + 1e-12) & (truth <= upper + 1e-12)).mean(axis=0)
                error = float(np.sqrt(0.05 * 0.95 / cells.shape[0]))
                case = f"n={n}, rates .02–.98, guess 0–½" + (", truncated 0–56 %" if mode == "C_P" else "")
                yield Row(f"{mode} {name}, mean", case, float(inside.mean()), error / inside.size**0.5)
                place = np.unravel_index(int(inside.argmin()), inside.shape)
                worst = f"rate {rate[place]:g}, guess {guess[place]:g}, truncated {cut[place]:g}"
                yield Row(f"{mode} {name}, least", case, float(inside.min()), error, worst)


def stopping_rows(bench: Bench) -> Iterator[Row]:
    """Cells sampled in rounds of 32 until the half-width of C_P is at most 0.09, at most 192 trials."""
    for guess in GUESSES:
        held = []
        for rate in RATES:
            rng = bench.rng("stopped", str(guess), str(rate))
            steps = np.cumsum(counted(rng, np.full((bench.few(10), 6), 32), rate, 0.05, guess), axis=1)
            done = half_width(steps) <= 0.09
            at = np.where(done.any(axis=1), done.argmax(axis=1), steps.shape[1] - 1)
            _, lower, upper = exact_estimate(steps[np.arange(len(at)), at])
            held.append(float(((lower <= rate * 0.95) & (rate * 0.95 <= upper)).mean()))
        case = f"stopped at ±9 %, rates .02–.98, guess {guess:g}"
        yield Row("C_P exact, least", case, min(held), float(np.sqrt(0.05 * 0.95 / bench.few(10))))


def repeat_rows(bench: Bench) -> Iterator[Row]:
    """32 questions asked 4 times, answers alike by half: by question and by answer."""
    held: dict[str, list[bool]] = {"by question": [], "by answer": []}
    rng = bench.rng("repeats")
    for _ in range(bench.few(10)):
        rate = rng.choice(RATES)
        shape = (6, 32, 4)
        same = rng.random((*shape[:-1], 1)) < 0.5
        right = np.where(same, rng.random((*shape[:-1], 1)), rng.random(shape)) < rate
        effect = float(cluster_effect(cluster_moments(right.astype(np.uint8))))
        cells = np.zeros(len(COUNTERS))
        for name, value in (("trials", right.size), ("completed", right.size), ("correct", right.sum())):
            cells[COUNTERS.index(name)] = value
        for how, worth in (("by question", effect), ("by answer", 1.0)):
            _, lower, upper = exact_estimate(cells, effect=worth)
            held[how].append(bool(lower <= rate <= upper))
    for how, inside in held.items():
        case = "6 points × 32 questions × 4 repeats, answers alike"
        yield Row(f"C_P exact {how}", case, *share(np.array(inside)), "takes answers as independent")


def designs() -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Name, membership (tier, task, params), guess chances (task, params) and trials of each cell."""
    mixed = np.array([0.5, 0.5, 0.25, 0.25, 0.2, 0.1, 0, 0, 0, 0, 0, 0])[:, None]
    for n in (8, 32, 128, 480):
        yield f"12 tasks, {n} trials", np.ones((1, 12, 1), bool), mixed, n
    for name in ("quick", "m12"):
        config = load_suite(name, ["sim:"])
        plan = build_plan(config)
        guess = np.zeros(plan.sources.shape)
        for row, task in enumerate(plan.tasks):
            for slot, planned in enumerate(task.cells):
                guess[row, slot] = planned.cell.trial(0).guess_chance
        yield f"suite {name}, {config.trials} trials a cell", plan.ranked, guess, config.trials


def board_rows(bench: Bench) -> Iterator[Row]:
    """What leads a leaderboard, against the same of the true rates; every sweep is a model of one dataset."""
    sweeps = max(20, min(400, bench.repeats // 50))
    for name, member, guess, n in designs():
        for profile in PROFILES:
            rng = bench.rng("boards", name, profile)
            rate = np.broadcast_to(
                _true_rates(rng, profile, sweeps, member.shape[1]), (sweeps, *member.shape[1:])
            )
            cells = counted(rng, n * member.any(axis=0), rate, 0.0, guess)
            board = leaderboard(_dataset(cells, member), draws=500)
            tasks = rate[..., 0]
            truth = tasks.mean(axis=1)
            if board.lead == "score":
                truth = 1000 * np.exp(np.log(np.maximum(tasks, 0.01)).mean(axis=1))
            found = {int(row.model_name): board.leading(row) for row in board.rows}
            inside = [
                one.lower <= truth[at] + 1e-9 and truth[at] <= one.upper + 1e-9 for at, one in found.items()
            ]
            flat = sum(one.lower >= one.upper for one in found.values())
            note = f"mean {np.mean([one.value for one in found.values()]):.3g} for {truth.mean():.3g}"
            case = f"{name}, rates {profile}" + (f", {flat} of zero width" if flat else "")
            yield Row(f"leaderboard, {board.lead}", case, *share(np.array(inside)), note)


def _true_rates(rng: np.random.Generator, profile: str, sweeps: int, tasks: int) -> np.ndarray:
    """Shape (sweep, task, 1)."""
    if profile.startswith("Beta"):
        a, b = (float(part) for part in profile[5:-1].split(","))
        return rng.beta(a, b, (sweeps, tasks, 1))
    return np.full((sweeps, tasks, 1), float(profile))


def _dataset(cells: np.ndarray, member: np.ndarray) -> xr.Dataset:
    models = [str(index) for index in range(len(cells))]
    return xr.Dataset(
        {"counters": (("model", "task", "params", "counter"), cells)},
        coords={
            **dict.fromkeys(("model_name", "eval_id"), ("model", models)),
            **{name: ("model", [""] * len(models)) for name in ("template", "sampler", "facets")},
            "task": [f"task {index}" for index in range(member.shape[1])],
            "tier": [f"tier {index}" for index in range(member.shape[0])],
            "counter": list(COUNTERS),
            "in_tier": (("tier", "task", "params"), member),
        },
    )


SECTIONS = (rate_rows, stopping_rows, repeat_rows, board_rows)


def main() -> None:
    """Print the rows."""
    for section in SECTIONS:
        for row in section(Bench(20_000, 0)):
            cells = (row.interval, row.case, f"{row.coverage:.1%}", f"±{2 * row.error:.1%}", row.note)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
