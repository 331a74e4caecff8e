"""How often each interval covers the truth: simulations with known rates, a table in Markdown.

    python benchmarks/coverage.py [--only NAME,...] [--repeats N] [--seed N]

`--only cubes` is what pages show of whole cubes, in minutes; `--only tokens,cost` are some of its designs.

Every row has a random stream of its own, so that a seed gives the same table, whatever rows are added. The error
of a simulated coverage near 95 % is 0.22/√N: 0.15 points at the default 20 000 repeats (rows that resample use a
fraction of them).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.coverage_boards import SECTIONS as BOARDS
from benchmarks.coverage_cubes import DESIGNS as CUBES
from benchmarks.coverage_forensics import SECTIONS as OTHERS
from benchmarks.coverage_rows import NOMINAL, Bench, Bounds, Row, Values, covered, share
from evalcube.stages.analyze.formulas import bootstrap, reasonscore, reasonscore_v2
from evalcube.stages.analyze.formulas.clustering import design_effect
from evalcube.stages.analyze.formulas.compare.paired import paired_difference
from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals
from evalcube.stages.analyze.formulas.estimators import estimate
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.analyze.formulas.sequential import confidence_sequence
from evalcube.stages.analyze.formulas.stratified import stratified

HOLDS = "holds at all looks together"
LABELS = ("trials", "completed", "correct", "truncated", "guess_sum", "tokens_sum")


def draw_counters(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    n: Values,
    solved: Values,
    cut: Values,
    guess: float,
) -> np.ndarray:
    """Counters of cells in which trials are cut with chance `cut` and else solved, or guessed right."""
    trials = np.broadcast_to(n, shape)
    truncated = rng.binomial(trials, cut)
    completed = trials - truncated
    correct = rng.binomial(completed, guess + (1 - guess) * np.asarray(solved), size=shape)
    parts = (trials, completed, correct, truncated, guess * completed, 100 * trials)
    return np.stack([np.asarray(part, dtype=float) for part in parts], axis=-1)


def truth_of(mode: str, solved: Values, cut: Values, guess: float) -> Values:
    """What an estimator estimates."""
    rate = solved if mode[0] == "C" else guess + (1 - guess) * solved
    if mode[2] == "I":
        return rate
    return rate * (1 - cut) + (cut if mode[2] == "O" else 0.0)


def wilson_rows(bench: Bench) -> Iterator[Row]:
    for n in (16, 128, 1024):
        for p in (0.01, 0.05, 0.3, 0.5, 0.9, 0.99):
            s = bench.rng("wilson", str(n), str(p)).binomial(n, p, bench.repeats)
            yield Row("Wilson", f"n={n}, p={p}", *covered(wilson_bounds(s, n), p), _discrete(n, p))


def _discrete(n: int, p: float) -> str:
    return "few successes or failures: the count is too coarse" if n * min(p, 1 - p) < 10 else ""


def estimator_rows(bench: Bench) -> Iterator[Row]:
    for cut, guess in ((0.0, 0.0), (0.15, 0.0), (0.15, 0.25), (0.15, 0.5), (0.0, 0.5)):
        for mode in ("E_I", "E_P", "E_O", "C_I", "C_P", "C_O"):
            for joint in ("none", "bonferroni") if mode in ("C_P", "C_O") else ("none",):
                rng = bench.rng("estimators", mode, str(cut), str(guess))
                counters = draw_counters(rng, (bench.repeats,), 256, 0.6, cut, guess)
                bounds = estimate(counters, labels=LABELS, mode=mode, joint=joint)
                name = mode if joint == "none" else f"{mode}, Bonferroni"
                case = f"n=256, p=0.6, truncated {cut:.0%}, guess {guess:g}"
                rate, error = covered(bounds, truth_of(mode, 0.6, cut, guess))
                why = (
                    "Wilson on n − g trials leaves out the noise of guessing"
                    if rate < NOMINAL
                    else "a product of two intervals"
                )
                yield Row(name, case, rate, error, why)


def stratified_rows(bench: Bench) -> Iterator[Row]:
    even = np.linspace(0.5, 0.95, 20)
    adaptive = np.round(16 + 400 * even * (1 - even) ** 1.5).astype(int)
    cases = {
        "20 points p=.5...95, n ∝ uncertainty": (even, adaptive),
        "20 points p=.98, n=32": (np.full(20, 0.98), np.full(20, 32)),
        "20 points p=.5, n=16": (np.full(20, 0.5), np.full(20, 16)),
        "2 points p=.95 and .5, n=20 and 92": (np.array([0.95, 0.5]), np.array([20, 92])),
    }
    for case, (solved, n) in cases.items():
        for mode, cut, guess in (
            ("E_I", 0.0, 0.0),
            ("C_I", 0.0, 0.5),
            ("C_P", 0.1, 0.25),
            ("C_O", 0.1, 0.25),
        ):
            rng = bench.rng("stratified", case, mode)
            counters = draw_counters(rng, (bench.few(2), len(n)), n, solved, cut, guess)
            truth = truth_of(mode, solved, cut, guess).mean()
            situation = f"{case}, truncated {cut:.0%}, guess {guess:g}"
            yield Row(
                f"stratified {mode}",
                situation,
                *covered(stratified(counters, labels=LABELS, mode=mode), truth),
                "few trials near 0 or 1",
            )
            if mode == "E_I" and len(set(n.tolist())) > 1:
                pooled = estimate(counters.sum(axis=1), labels=LABELS, mode=mode)
                why = "estimates the mean over trials, not over points"
                yield Row(f"pooled {mode}", situation, *covered(pooled, truth), why)


def adaptive_rows(bench: Bench) -> Iterator[Row]:
    """20 points, each sampled in rounds of 32 until its own interval is 2 × 0.1 wide, at most 256 trials."""
    solved, looks = np.linspace(0.5, 0.99, 20), 32 * np.arange(1, 9)
    rng = bench.rng("adaptive")
    s = np.cumsum(rng.binomial(32, solved[:, np.newaxis], size=(bench.few(2), 20, len(looks))), axis=-1)
    _, lower, upper = _looked(wilson_bounds, s, looks)
    narrow = (upper - lower <= 0.2) | (looks == looks[-1])
    at = narrow.argmax(axis=-1)
    right, n = np.take_along_axis(s, at[..., np.newaxis], axis=-1)[..., 0], looks[at]
    counters = np.stack([n, n, right, 0 * n, 0 * n, 0 * n], axis=-1).astype(float)
    case = "20 points p=.5...99, each until half-width 0.1"
    for name, bounds, why in (
        (
            "stratified E_I",
            stratified(counters, labels=LABELS, mode="E_I"),
            "each point's stopping biases it",
        ),
        (
            "pooled E_I",
            estimate(counters.sum(axis=1), labels=LABELS, mode="E_I"),
            "estimates the mean over trials, not over points",
        ),
    ):
        yield Row(name, case, *covered(bounds, solved.mean()), why)


def paired_rows(bench: Bench) -> Iterator[Row]:
    for points, n, first, second in (
        (1, 50, 0.24, 0.04),
        (1, 200, 0.1, 0.1),
        (24, 16, 0.1, 0.05),
        (24, 16, 0.02, 0.02),
    ):
        case = f"{points} points, n={n}, discordant {first:g} and {second:g}"
        rng = bench.rng("paired", case)
        chances = [first, second, 1 - first - second]
        why = "few discordant pairs"
        b, c, _ = np.moveaxis(rng.multinomial(n, chances, size=(bench.few(2), points)), -1, 0)
        yield Row("paired difference", case, *covered(paired_difference(b, c, n), first - second), why)


def repeated_rows(bench: Bench) -> Iterator[Row]:
    """Questions asked 4 times of two equal models, whose answers to one question are alike or not at all."""
    points, questions, asked = 6, 32, 4
    for name, alike in (("always the same", 1.0), ("alike", 0.5), ("independent", 0.0)):
        case = f"{points} points × {questions} questions × {asked} repeats, answers {name}"
        rng = bench.rng("repeated", name)
        held: dict[str, list[bool]] = {"by question": [], "by trial": []}
        for _ in range(bench.few(10)):
            shape = (2, points, questions, asked)
            same = rng.random((*shape[:-1], 1)) < alike
            right = np.where(same, rng.random((*shape[:-1], 1)), rng.random(shape)) < 0.7
            n = np.full(shape[1:-1], float(asked))
            b, c = ((right[i] & ~right[1 - i]).sum(axis=-1).astype(float) for i in (0, 1))
            effect = design_effect(b, c, n)
            for how, size in (("by question", effect), ("by trial", 1.0)):
                _, lower, upper = paired_difference(*(part.sum(axis=-1) / size for part in (b, c, n)))
                held[how].append(bool(lower <= 0.0 <= upper))
        why = "takes trials of a question as independent"
        for how, inside in held.items():
            yield Row(f"paired difference {how}", case, *share(np.array(inside)), why)


def score_rows(bench: Bench) -> Iterator[Row]:
    """Bootstrap intervals of scores of 12 tasks × 6 points; the truth of version 1 is the score of true rates."""
    draws, why = 500, "percentiles of few trials per cell: biased and too narrow"
    for n in (16, 64):
        rng = bench.rng("scores", str(n))
        solved, cut = rng.uniform(0.3, 0.97, (12, 6)), 0.05
        sweeps = bench.few(10)
        seen = draw_counters(rng, (sweeps, 12, 6), n, solved, cut, 0.0)
        member, names = np.ones((1, 12, 6), dtype=bool), [str(sweep) for sweep in range(sweeps)]
        rates = np.full((12, 6), float(n))
        exact = np.stack(
            [rates, rates * (1 - cut), rates * (1 - cut) * solved, rates * cut, 0 * rates, 100 * rates],
            axis=-1,
        )
        one = reasonscore.tier_score(exact.sum(axis=1), labels=LABELS).score
        two = 1000 * np.exp(np.log((solved * (1 - cut)).mean(axis=1)).mean())
        case = f"12 tasks × 6 points, n={n}, truncated 5%"
        for version, module, truth in (("1", reasonscore, one), ("2", reasonscore_v2, two)):

            def score(counters: Values, module: ModuleType = module) -> Values:
                return np.asarray(module.tier_score(counters, labels=bootstrap.DRAWN).score)

            drawn = [
                bootstrap.draw_tier_scores(
                    one, member, name, seed=bench.seed, labels=LABELS, score=score, draws=draws
                )
                for one, name in zip(seen, names, strict=True)
            ]
            lower, upper = np.quantile(reasonscore.mean_score(drawn), [0.025, 0.975], axis=1)
            yield Row(f"ReasonScore {version}, bootstrap", case, *covered((None, lower, upper), truth), why)
            # Each trial takes 100 tokens.
            bounds = None, lower / 100, upper / 100
            yield Row(f"score/token {version}, bootstrap", case, *covered(bounds, truth / 100), why)


def rank_rows(bench: Bench) -> Iterator[Row]:
    """Five models, one task: true ranks against the interval from a parametric draw of their rates."""
    for step in (0.05, 0.02, 0.005):
        rng = bench.rng("ranks", str(step))
        rates, n = 0.8 - step * np.arange(5), 512
        inside = []
        for _ in range(bench.few(20)):
            seen = rng.binomial(n, rates) / n
            ranks = rank_intervals(rng.binomial(n, seen[:, np.newaxis], size=(5, 400)) / n)
            place = np.arange(1, 6)
            inside.append((ranks.lower <= place) & (place <= ranks.upper))
        why = "ranks are whole numbers"
        yield Row("rank, bootstrap", f"5 models {step:g} apart, n={n}", *share(np.array(inside)), why)


def sequence_rows(bench: Bench) -> Iterator[Row]:
    """Looked at after every trial up to 2 000: one miss at any time is a miss."""
    last, paths = 2000, bench.few(10)
    n = np.arange(1, last + 1)
    for p, guess in ((0.01, 0.0), (0.3, 0.0), (0.5, 0.0), (0.95, 0.0), (0.6, 0.25)):
        rng = bench.rng("sequence", str(p), str(guess))
        hits = rng.random((paths, last)) < guess + (1 - guess) * p
        s = np.cumsum(hits, axis=1)
        case = f"every n ≤ {last}, p={p:g}, guess {guess:g}"
        for method in ("betabinomial", "hoeffding"):
            bounds = _looked(partial(_anytime, method=method, guess=guess), s, n)
            yield Row(f"anytime, {method}", case, *_always(bounds, p), HOLDS)
        if not guess:
            bounds = _looked(wilson_bounds, s, n)
            yield Row("Wilson", case, *_always(bounds, p), "made for one look")
    rng = bench.rng("sequence", "mixed")
    rates = 0.2 + 0.6 * (n % 7 < 3)
    s = np.cumsum(rng.random((paths, last)) < rates, axis=1)
    bounds = confidence_sequence(s, n, method="hoeffding")
    coverage = _always(bounds, np.cumsum(rates) / n)
    yield Row("anytime, hoeffding", f"every n ≤ {last}, rates mixed", *coverage, HOLDS)


def _anytime(s: Values, n: Values, *, method: str, guess: float) -> Bounds:
    return confidence_sequence(s, n, guess * n, method=method)


def _looked(function: Callable[[Values, Values], Bounds], s: np.ndarray, n: np.ndarray) -> Bounds:
    """Bounds of all (s, n), each different pair once."""
    pairs, place = np.unique(s.astype(np.int64) * (n[-1] + 1) + n, return_inverse=True)
    bounds = function(pairs // (n[-1] + 1), pairs % (n[-1] + 1))
    point, lower, upper = (np.asarray(part)[place.reshape(s.shape)] for part in bounds)
    return point, lower, upper


def _always(bounds: Bounds, truth: Values) -> tuple[float, float]:
    _, lower, upper = bounds
    return share(((lower <= truth + 1e-12) & (truth - 1e-12 <= upper)).all(axis=1))


def stopping_rows(bench: Bench) -> Iterator[Row]:
    """Rounds of 16 trials until the interval is at most 2 × 0.06 wide, or, as a foe would, excludes one half."""
    looks = 16 * np.arange(1, 126)
    for p in (0.5, 0.9):
        rng = bench.rng("stopping", str(p))
        s = np.cumsum(rng.binomial(16, p, size=(bench.few(2), len(looks))), axis=1)
        for name, function in (("Wilson", wilson_bounds), ("anytime, betabinomial", confidence_sequence)):
            bounds = _looked(function, s, looks)
            width = bounds[2] - bounds[1]
            why = "made for one look" if name == "Wilson" else HOLDS
            yield Row(name, f"stopped at half-width 0.06, p={p:g}", *_stopped(bounds, width <= 0.12, p), why)
        if p == 0.5:
            for name, function in (("Wilson", wilson_bounds), ("anytime, betabinomial", confidence_sequence)):
                bounds = _looked(function, s, looks)
                found = (bounds[1] > 0.5) | (bounds[2] < 0.5)
                why = "stops at the first significant look" if name == "Wilson" else HOLDS
                yield Row(name, "stopped when 0.5 is excluded, p=0.5", *_stopped(bounds, found, p), why)


def _stopped(bounds: Bounds, stop: np.ndarray, truth: float) -> tuple[float, float]:
    at = np.where(stop.any(axis=1), stop.argmax(axis=1), stop.shape[1] - 1)
    rows = np.arange(len(at))
    return covered(tuple(part[rows, at] for part in bounds), truth)


SECTIONS: tuple[Callable[[Bench], Iterator[Row]], ...] = (
    wilson_rows,
    estimator_rows,
    stratified_rows,
    adaptive_rows,
    paired_rows,
    repeated_rows,
    score_rows,
    rank_rows,
    sequence_rows,
    stopping_rows,
)


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cubes, or names of its designs; default: everything")
    options = parser.parse_args()
    bench = Bench(options.repeats, options.seed)
    print(f"Nominal {NOMINAL:.0%}; seed {bench.seed}, {bench.repeats:,} repeats.\n")
    print("| interval | situation | coverage | ± | | why |\n|---|---|---|---|---|---|")
    for section in _chosen(options.only):
        for row in section(bench):
            cells = (row.interval, row.case, f"{row.coverage:.1%}", f"{2 * row.error:.1%}", row.verdict)
            print(f"| {' | '.join(cells)} | {row.note} |", flush=True)


def _chosen(only: str) -> list[Callable[[Bench], Iterator[Row]]]:
    """All sections, or designs of cubes by their names, `cubes` being all of these."""
    names = [
        part for name in filter(None, only.split(",")) for part in (CUBES if name == "cubes" else [name])
    ]
    if unknown := [name for name in names if name not in CUBES]:
        raise SystemExit(f"--only: no design {unknown[0]!r}; there are cubes, {', '.join(CUBES)}")
    return [CUBES[name] for name in names] or [*CUBES.values(), *BOARDS, *SECTIONS, *OTHERS]


if __name__ == "__main__":
    main()
