"""What an A/B verdict can be relied on for: how often it sees a change that is not there, and one that is.

Two arms answer the same units. A unit has a difficulty; fact is the share of 5 passed assertions, behavior that of 3,
judge an integer from 1 to 5. "none": both arms are drawn alike. "small" and "large" shift the treatment. "skewed": a
mean difference of 0 made of many small gains and a few large losses, which no procedure handles with few units.

The composite is tested at 5 %, by a percentile bootstrap and by sign flips (the default);
"layers" is the rate at which max-t calls at least one layer, "T²" that of Hotelling.

The last table follows the advice: after each verdict without a call the arms get as many pairs as it says, until it
says that more are not needed. "One look each" takes each look for the only one.

    python benchmarks/verdict_operating.py [--simulations 2000] [--verdicts 300] [--follow 1000] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.analyze.verdict.composite import composite
from evalcube.stages.analyze.verdict.paired import paired_intervals, simultaneous_intervals
from evalcube.stages.analyze.verdict.sensitivity import hotelling

SIZES = (5, 10, 20, 50)
FROM, MOST = (12, 24, 50), 3000
SHIFT = {"none": 0.0, "small": 0.5, "large": 1.2}
LEVELS = ("PROGRESS", "CAUTIOUS", "NOISE", "UNDERPOWERED", "REGRESS")
CHUNK = 250
DRAWS = 1000


def main() -> None:
    options = _options()
    print(
        f"{options.simulations} simulations; standard error of 5 %: {_error(0.05, options.simulations):.1%}"
    )
    print(
        f"{'N':>3} {'effect':8} {'mean Δ':>7} {'percentile':>10} {'sign flip':>10}",
        end="",
    )
    print(f" {'layers':>7} {'T²':>7}")
    for size in SIZES:
        for effect in (*SHIFT, "skewed"):
            print_rates(size, effect, np.random.default_rng([options.seed, size]), options.simulations)
    print(f"\nverdicts of the reference engine, {options.verdicts} simulations")
    print(f"{'N':>3} {'effect':8} " + " ".join(f"{level:>12}" for level in LEVELS))
    for size in SIZES:
        for effect in SHIFT:
            print_verdicts(size, effect, np.random.default_rng([options.seed, size, 1]), options.verdicts)
    error = _error(0.05, options.follow)
    print(
        f"\nfollowing the advice, equal arms, {options.follow} simulations; standard error of 5 %: {error:.1%}"
    )
    print(
        f"{'from':>4} {'a call':>7} {'at first':>8} {'one look each':>13} {'looks':>6} {'pairs (median)':>14}"
    )
    for size in FROM:
        print_following(size, options.follow, options.seed)


def print_rates(size: int, effect: str, rng: np.random.Generator, simulations: int) -> None:
    """One line: how often each procedure calls a difference."""
    scores = (
        skewed(size, simulations, rng) if effect == "skewed" else draw(size, simulations, SHIFT[effect], rng)
    )
    totals = composite(scores)
    steps = totals[1] - totals[0]
    flips = [found.significant for found in in_chunks(steps)]
    tool = [percentile_excludes_0(own, rng) for own in steps]
    layers = scores[1] - scores[0]
    moved = [any(x.significant for x in simultaneous_intervals(own, draws=DRAWS)) for own in layers]
    joint = [hotelling(own, draws=DRAWS).p_value <= 0.05 for own in layers]
    rates = [float(np.mean(found)) for found in (tool, flips, moved, joint)]
    line = f"{size:3} {effect:8} {steps.mean():+7.2f} {rates[0]:10.1%} {rates[1]:10.1%}"
    print(f"{line} {rates[2]:7.1%} {rates[3]:7.1%}", flush=True)


def percentile_excludes_0(steps: Floats, rng: np.random.Generator) -> bool:
    """Whether the 95 % interval of resampled means leaves 0 out."""
    means = rng.choice(steps, (DRAWS, len(steps))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return not low <= 0 <= high


def in_chunks(steps: Floats):  # noqa: ANN201 - intervals of paired_intervals
    """Intervals of every simulation; sign flips are shared by the simulations of a chunk."""
    for start in range(0, len(steps), CHUNK):
        yield from paired_intervals(steps[start : start + CHUNK].T, draws=DRAWS, seed=start)


def print_verdicts(size: int, effect: str, rng: np.random.Generator, simulations: int) -> None:
    """One line: how often each verdict is given."""
    scores = draw(size, simulations, SHIFT[effect], rng)
    units = [f"u{place:03}" for place in range(size)]
    found = Counter(
        verdict(own, ["a", "b"], units, draws=DRAWS).verdict for own in scores.transpose(1, 0, 2, 3)
    )
    print(
        f"{size:3} {effect:8} " + " ".join(f"{found[level] / simulations:12.1%}" for level in LEVELS),
        flush=True,
    )


def print_following(size: int, simulations: int, seed: int) -> None:
    """One line: how often equal arms get a call, whoever follows the advice."""
    found = [follow(size, np.random.default_rng([seed, size, place])) for place in range(simulations)]
    calls, first, alone, looks, pairs = np.array(found).T
    rates = f"{calls.mean():7.1%} {first.mean():8.1%} {alone.mean():13.1%}"
    print(f"{size:4} {rates} {looks.mean():6.1f} {np.median(pairs):14.0f}", flush=True)


def follow(size: int, rng: np.random.Generator) -> tuple[bool, bool, bool, int, int]:
    """Whether there is a call, one at the first look, one where each look has the whole error; looks, and pairs."""
    scores = draw(MOST, 1, 0.0, rng)[:, 0]
    calls, each = ([*_looks(scores, size, split=split)] for split in (True, False))
    return calls[-1][0], calls[0][0], each[-1][0], len(calls), calls[-1][1]


def _looks(scores: Floats, size: int, *, split: bool) -> Iterator[tuple[bool, int]]:
    """Whether each look makes a call, and its pairs."""
    grown = False
    while True:
        units = [f"u{place:05}" for place in range(size)]
        method = None if split else "anytime" if grown else "sign-flip"
        found = verdict(scores[:, :size], ["a", "b"], units, draws=DRAWS, method=method, grown=grown)
        call = found.verdict not in ("NOISE", "UNDERPOWERED")
        yield call, size
        reach = found.pairs[0].reach
        if call or reach is None or "not needed" in found.next_step:
            return
        size, grown = max(20, reach.pairs_again, size + 1), True
        if size > MOST:
            return


def draw(size: int, simulations: int, shift: float, rng: np.random.Generator) -> Floats:
    """Layers (arm, simulation, unit, layer) of two arms; `shift` raises the second, in logits."""
    difficulty = rng.normal(0.0, 0.8, (simulations, size))
    arms = [_arm(difficulty, own, rng) for own in (0.0, shift)]
    return np.stack(arms)


def _arm(difficulty: Floats, shift: float, rng: np.random.Generator) -> Floats:
    fact = 1 + 4 * rng.binomial(5, _share(1.4 + shift + difficulty)) / 5
    behavior = 1 + 4 * rng.binomial(3, _share(2.0 + shift + 0.5 * difficulty)) / 3
    judge = np.clip(
        np.rint(4.0 + 0.4 * shift + 0.5 * difficulty + rng.normal(0.0, 0.6, difficulty.shape)), 1, 5
    )
    return np.stack([fact, behavior, judge], axis=-1)


def _share(logit: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-logit))


def skewed(size: int, simulations: int, rng: np.random.Generator) -> Floats:
    """As `draw`, but the treatment is the control plus 0.2 on most units and minus 1.8 on one in ten: mean 0."""
    control = np.full((simulations, size, 3), 4.0) + rng.normal(0.0, 0.2, (simulations, size, 3))
    change = np.where(rng.random((simulations, size, 1)) < 0.1, -1.8, 0.2)
    return np.stack([control, control + change + rng.normal(0.0, 0.2, control.shape)])


def _error(rate: float, simulations: int) -> float:
    return float(np.sqrt(rate * (1 - rate) / simulations))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=2000, help="per line of the first table")
    parser.add_argument("--verdicts", type=int, default=300, help="per line of the second table")
    parser.add_argument("--follow", type=int, default=1000, help="per line of the last table")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
