"""Coverage of what pages show of whole cubes: boards, tables, costs and wins, on simulated sweeps.

`coverage.py` prints these rows beside the others; alone they take two minutes: `python benchmarks/coverage.py --only
cubes`. A design is a function in `DESIGNS` that yields rows; every sweep is simulated question by question, and all
sweeps of a design are models of one dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import xarray as xr
from scipy.special import betaincinv

from benchmarks.coverage_rows import Bench, Row, share
from evalcube.stages.analyze.formulas.clustering import cluster_moments
from evalcube.stages.analyze.formulas.sequential import mean_e_value
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.forensics import cost_table
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.outcomes import cube_outcome_metrics
from evalcube.stages.analyze.labelled.pairing import compare_evaluations
from evalcube.stages.analyze.labelled.ranking import rank_rows
from evalcube.stages.analyze.verdict.measures import gain_gap, split_holdout
from evalcube.stages.analyze.verdict.paired import paired_intervals
from evalcube.stages.reply.status import COUNTERS, QUESTION_MOMENTS, Status

TIERS = ("easy", "hard")


@dataclass(frozen=True)
class Sweep:
    """How trials of a simulated sweep come about."""

    rates: np.ndarray
    """Shape (task, point): chance to know the answer."""
    hard: int = 4
    """Points of each task that are in the hard tier: the last ones; the others are in the easy one."""
    base: int = 32
    """Questions of each point in the first plan."""
    grown: tuple[int, int] = (1, 1)
    """How many times as many each tier has now."""
    guess: float = 0.0
    repeats: int = 1
    alike: float = 0.5
    """Share of questions whose answers, by any model, depend on the question alone."""
    family: int = 1
    """Models that are asked the same questions."""
    spread: float = 0.6
    """Deviation of the logarithm of the tokens of an answer, half of whose variance is the question's."""
    longer: float = 1.0
    """Tokens of a wrong answer by those of a right one."""

    @property
    def easy(self) -> np.ndarray:
        """Which points are in the easy tier."""
        return np.arange(self.rates.shape[1]) < self.rates.shape[1] - self.hard

    @property
    def right(self) -> np.ndarray:
        """Chance of a right answer, guesses included."""
        return self.guess + (1 - self.guess) * self.rates

    @property
    def tokens(self) -> np.ndarray:
        """Mean tokens of an answer at each point."""
        mean = np.linspace(200, 800, self.rates.shape[1])
        return mean * (self.right + self.longer * (1 - self.right))

    def dataset(self, rng: np.random.Generator, sweeps: int, *, trials: bool = False) -> xr.Dataset:
        """A dataset of so many sweeps, with the outcomes of trials if they are asked for."""
        number = self.base * np.where(self.easy, *self.grown)
        shape = (sweeps, *self.rates.shape, int(number.max()))
        each = (sweeps, self.family, *shape[1:], self.repeats)
        question, own = rng.random((sweeps, 1, *shape[1:], 1)), rng.random(each)
        known = np.where(rng.random(question.shape) < self.alike, question, own)
        right = (known < self.rates[..., None, None]) | (rng.random(each) < self.guess)
        noise = np.sqrt(0.5) * (rng.standard_normal(question.shape) + rng.standard_normal(each))
        mean = np.linspace(200, 800, shape[2])[:, None, None] * np.where(right, 1.0, self.longer)
        spent = mean * np.exp(self.spread * noise - self.spread**2 / 2)
        asked = np.broadcast_to((np.arange(shape[-1]) < number[:, None])[..., None], each)
        status = np.where(asked, right, int(Status.MISSING)).astype(np.uint8)
        status, spent = (part.reshape(-1, *each[2:]) for part in (status, np.where(asked, spent, 0.0)))
        return self.labelled(status, spent, trials=trials)

    def labelled(self, status: np.ndarray, tokens: np.ndarray, *, trials: bool) -> xr.Dataset:
        """A dataset of outcomes and tokens (sweep, task, point, question, repeat)."""
        moments = cluster_moments(status)
        cells = np.zeros((*moments.shape[:-1], len(COUNTERS)))
        parts = {
            **dict.fromkeys(("trials", "completed"), moments[..., 1]),
            "correct": moments[..., 0],
            "guess_sum": self.guess * moments[..., 1],
            "tokens_sum": tokens.sum(axis=(-2, -1)),
            "tokens_sumsq": (tokens**2).sum(axis=(-2, -1)),
        }
        for name, part in parts.items():
            cells[..., COUNTERS.index(name)] = part
        models = [str(index) for index in range(len(cells))]
        member = np.broadcast_to(np.stack([self.easy, ~self.easy])[:, None], (2, *self.rates.shape))
        ds = xr.Dataset(
            {
                "counters": (("model", "task", "params", "counter"), cells),
                QUESTION_MOMENTS: (("model", "task", "params", "moment"), moments),
            },
            coords={
                **dict.fromkeys(("model_name", "eval_id"), ("model", models)),
                **{name: ("model", [""] * len(models)) for name in ("template", "sampler")},
                "facets": (
                    "model",
                    [f'{{"family": {index // self.family}}}' for index in range(len(models))],
                ),
                "price_prompt": ("model", np.zeros(len(models))),
                "price_completion": ("model", np.ones(len(models))),
                "task": [f"task {index}" for index in range(member.shape[1])],
                "tier": list(TIERS),
                "counter": list(COUNTERS),
                "in_tier": (("tier", "task", "params"), member),
                "base_trials": (("task", "params"), np.full(self.rates.shape, self.base * self.repeats)),
            },
        )
        if trials:
            ds["status"] = (("model", "task", "params", "trial", "repeat"), status)
        return ds


def _rates(low: float, high: float) -> np.ndarray:
    """Three tasks of eight points, each harder than the one before, and each task a bit harder too."""
    return np.clip(np.linspace(high, low, 8) + np.array([[0.03], [0.0], [-0.03]]), 0.01, 0.99)


def _inside(lower: np.ndarray, upper: np.ndarray, truth: np.ndarray | float) -> tuple[float, float]:
    return share((np.asarray(lower) <= truth + 1e-9) & (truth <= np.asarray(upper) + 1e-9))


def upsampled_rows(bench: Bench) -> Iterator[Row]:
    """Accuracy and rate of a board, and a table's, after one tier got more questions."""
    profiles = {
        "rates .95–.2": (_rates(0.2, 0.95), 4),
        "rates .2–.02": (_rates(0.02, 0.2), 4),
        "rates .98, one hard point of .5": (np.array([[0.98] * 7 + [0.5]] * 3), 1),
        "rates .5, one easy point of .98": (np.array([[0.98] + [0.5] * 7] * 3), 7),
    }
    for (name, (rates, hard)), grown, guess in product(
        profiles.items(), ((1, 1), (8, 1), (1, 8)), (0.0, 0.5)
    ):
        sweep = Sweep(rates, hard, base=16, grown=grown, guess=guess)
        ds = sweep.dataset(bench.rng("upsampled", name, str(grown), str(guess)), bench.few(20))
        case = f"{name}, easy × {grown[0]}, hard × {grown[1]}, guess {guess:g}"
        board = leaderboard(ds, draws=2)
        for what, truth in (("accuracy", sweep.right.mean()), ("rate", rates.mean())):
            found = [getattr(row, what) for row in board.rows]
            ends = [[one.lower, one.upper] for one in found]
            width = f"width {np.mean(np.diff(ends)):.3f}"
            yield Row(f"board, {what}", case, *_inside(*np.transpose(ends), truth), width)
        large = replace(sweep, base=128).dataset(bench.rng("score", case), bench.few(100))
        board = leaderboard(large, draws=500)
        tiers = [rates[:, tier].mean(axis=1) for tier in (sweep.easy, ~sweep.easy)]
        truth = np.mean([1000 * np.exp(np.log(tier).mean()) for tier in tiers])
        found = [board.leading(row) for row in board.rows]
        ends = [[one.lower, one.upper] for one in found]
        width = f"width {np.mean(np.diff(ends)):.0f}"
        yield Row(f"board, {board.lead}, base 128", case, *_inside(*np.transpose(ends), truth), width)
        table = aggregate(ds, by="model")
        yield Row("table by model", case, *_inside(table["lower"], table["upper"], rates.mean()))


def token_rows(bench: Bench) -> Iterator[Row]:
    """What a token brings: score per token, and where trials are few right answers per token."""
    cases = {
        "rates .95–.2": Sweep(_rates(0.2, 0.95), base=64),
        "rates .95–.2, tokens vary much": Sweep(_rates(0.2, 0.95), base=64, spread=1.2),
        "rates near 1": Sweep(_rates(0.97, 0.99), base=64),
        "rates .95–.2, wrong answers 3 times as long": Sweep(_rates(0.2, 0.95), base=64, longer=3.0),
        "rates .95–.2, wrong answers a third as long": Sweep(_rates(0.2, 0.95), base=64, longer=1 / 3),
        "rates .95–.2, 4 repeats": Sweep(_rates(0.2, 0.95), base=64, repeats=4),
        "rates .95–.2, easy × 4": Sweep(_rates(0.2, 0.95), base=64, grown=(4, 1)),
        "rates .95–.2, hard × 4": Sweep(_rates(0.2, 0.95), base=64, grown=(1, 4)),
    }
    for case, sweep in cases.items():
        for base, version in ((sweep.base, "auto"), (sweep.base, "v2"), (8, "auto")):
            one = Sweep(**{**sweep.__dict__, "base": base})
            ds = one.dataset(
                bench.rng("tokens", case, str(base), version), bench.few(100 if version == "v2" else 50)
            )
            board = leaderboard(ds, draws=500, version=version)
            tiers = (one.easy, ~one.easy)
            if board.lead == "score":
                scores = [1000 * np.exp(np.log(one.rates[:, tier].mean(axis=1)).mean()) for tier in tiers]
                truth = np.mean(scores) / np.mean([one.tokens[:, tier].mean() for tier in tiers])
            else:
                truth = 1000 * one.right.mean() / one.tokens.mean()
            ends = [[board.by_token(row).lower, board.by_token(row).upper] for row in board.rows]
            name = f"{board.heads[1]}, {version}"
            width = f"relative width {np.mean(np.diff(ends)) / truth:.3f}"
            yield Row(name, f"{case}, base {base}", *_inside(*np.transpose(ends), truth), width)


def cost_rows(bench: Bench) -> Iterator[Row]:
    """USD per right answer."""
    cases = {
        "rates .95–.2": Sweep(_rates(0.2, 0.95)),
        "rates near 1": Sweep(_rates(0.97, 0.99)),
        "rates .95–.2, 4 repeats": Sweep(_rates(0.2, 0.95), repeats=4),
        "rates .95–.2, 4 repeats, all alike": Sweep(_rates(0.2, 0.95), repeats=4, alike=1.0),
        "rates .95–.2, tokens vary much, wrong ones longer": Sweep(_rates(0.2, 0.95), spread=1.2, longer=3.0),
        "rates .95–.2, easy × 8": Sweep(_rates(0.2, 0.95), grown=(8, 1)),
    }
    for case, sweep in cases.items():
        ds = sweep.dataset(bench.rng("cost", case), bench.few(20))
        found = cost_table(ds)
        truth = sweep.tokens.mean() / sweep.right.mean() / 1e6
        bounds = found["per_correct_lower"], found["per_correct_upper"]
        yield Row("cost per right answer", case, *_inside(*bounds, truth))


def family_rows(bench: Bench) -> Iterator[Row]:
    """Groups of models that were asked the same questions."""
    for alike, repeats, grown in product((0.0, 0.5, 1.0), (1, 4), ((1, 1), (1, 4))):
        sweep = Sweep(_rates(0.2, 0.95), base=16, repeats=repeats, alike=alike, family=4, grown=grown)
        name = str((alike, repeats, grown))
        ds = sweep.dataset(bench.rng("families", name), bench.few(100), trials=True)
        case = f"4 models, {repeats} repeats, {alike:.0%} of the questions answered alike, hard × {grown[1]}"
        for by, truth in (("family", sweep.rates.mean()), ("family, task", sweep.rates.mean(axis=1))):
            found = aggregate(ds, by=["facet_family", *by.split(", ")[1:]])
            yield Row(f"table by {by}", case, *_inside(found["lower"], found["upper"], truth))


def win_rows(bench: Bench) -> Iterator[Row]:
    """Pairs of equals in one task: how often neither looks better with a chance of more than 97.5 %."""
    for guess, rate, repeats in product((0.0, 0.25, 0.5), (0.1, 0.6), (1, 4)):
        sweep = Sweep(np.full((1, 4), rate), base=128 // repeats, guess=guess, repeats=repeats)
        inside = []
        for number in range(bench.few(400)):
            ds = sweep.dataset(bench.rng("wins", str((guess, rate, repeats)), str(number)), 16)
            found = rank_rows(ds, leaderboard(ds, draws=2))
            place = np.argsort([int(item.row.model_name) for item in found.rows])
            inside += [0.025 <= found.rates[a, b] <= 0.975 for a, b in place.reshape(-1, 2)]
        case = f"one task, 512 trials, rate {rate:g}, guess {guess:g}, {repeats} repeats"
        yield Row("wins, equal pairs undecided", case, *share(np.array(inside)))


def metric_rows(bench: Bench) -> Iterator[Row]:
    """Pass@k and pass^k, whose questions have rates of their own: the least over k = 1, 2, 4."""
    sizes = {
        "8 questions × 4": (1, 1, 8, 1),
        "8 points × 5 questions × 4": (2, 4, 5, 1),
        "8 points × 15 questions × 4, half of them × 4 now": (2, 4, 15, 4),
        "3 points × 100 questions × 4": (1, 3, 100, 1),
    }
    large = bench.rng("metrics").random(200_000)
    shapes = ((1, 1), (0.2, 0.2), (0.1, 1.5), (20, 1), (50, 50))
    levels = {rates: betaincinv(*rates, large) for rates in shapes}
    for (case, (tasks, each, base, grown)), (rates, alone) in product(sizes.items(), levels.items()):
        rng = bench.rng("metrics", case, str(rates))
        sweep = Sweep(np.zeros((tasks, each)), each // 2, base, (1, grown), repeats=4)
        asked = np.arange(base * grown) < base * np.where(sweep.easy, 1, grown)[:, None]
        own = rng.beta(*rates, (bench.few(20), tasks, *asked.shape, 1))
        right = np.where(asked[..., None], rng.random((*own.shape[:-1], 4)) < own, int(Status.MISSING))
        ds = sweep.labelled(right.astype(np.uint8), np.zeros(right.shape), trials=True)
        found = cube_outcome_metrics(ds, ["pass_at_k", "pass_hat_k"], [1, 2, 4], by="model")
        for name in ("pass_at_k", "pass_hat_k"):
            held = []
            for k in (1, 2, 4):
                truth = (1 - (1 - alone) ** k if name == "pass_at_k" else alone**k).mean()
                one = found.sel(k=k)
                held.append(_inside(one[f"{name}_lower"], one[f"{name}_upper"], truth))
            yield Row(name, f"{case}, rates Beta{rates}", *min(held))


def cluster_rows(bench: Bench) -> Iterator[Row]:
    """Boards, costs and pairs of equals, where each model finds passages easy or hard, which have questions everywhere.

    What a passage's answers have in common is also their length; the verdict is on 1 for wrong and 5 for right.
    """
    for passages, each, alike, guess in product((12, 40), (4, 10), (0.3, 0.8), (0.0, 0.5)):
        rng = bench.rng("clusters", str((passages, each, alike, guess)))
        sweep = Sweep(_rates(0.2, 0.95), base=passages * each // 8, guess=guess)
        shape = (2 * bench.few(50), *sweep.rates.shape, sweep.base)
        whose = np.stack([rng.permutation(np.arange(passages * each) % passages) for _ in sweep.rates])
        drawn = np.take_along_axis(rng.random((*shape[:2], passages)), whose[np.newaxis], axis=-1)
        level = np.where(rng.random(shape) < alike, drawn.reshape(shape), rng.random(shape))
        right = (level < sweep.rates[..., None]) | (rng.random(shape) < guess)
        shared = np.take_along_axis(rng.normal(size=(*shape[:2], passages)), whose[np.newaxis], axis=-1)
        noise = np.sqrt(alike) * shared.reshape(shape) + np.sqrt(1 - alike) * rng.normal(size=shape)
        tokens = (np.linspace(200, 800, 8)[:, None] * np.exp(0.6 * noise - 0.18))[..., None]
        ds = sweep.labelled(right[..., None].astype(np.uint8), tokens, trials=True)
        ds["tokens"] = (ds["status"].dims, tokens)
        places = np.broadcast_to(1 + whose.reshape(shape[1:]), shape)[..., None]
        ds["cluster"] = (("model", "task", "params", "trial", "repeat"), places)
        case = f"{passages} passages, {each} questions each, {alike:.0%} of them alike, guess {guess:g}"
        rows, rate, spent = leaderboard(ds, draws=2).rows, sweep.right.mean(), cost_table(ds)
        gaps = [compare_evaluations(ds, [a, a + 1])[0].overall.difference for a in range(0, shape[0], 2)]
        steps = 4.0 * (right[1::2].astype(float) - right[::2]).reshape(len(gaps), -1, 1)
        calls = [paired_intervals(one, draws=1000, clusters=places[0].ravel())[0] for one in steps]
        for name, ends, truth in (
            ("board, accuracy", [(row.accuracy.lower, row.accuracy.upper) for row in rows], rate),
            (
                "board, right per 1000 tokens",
                [(row.correct_per_1000_tokens.lower, row.correct_per_1000_tokens.upper) for row in rows],
                rate / 0.5,
            ),
            (
                "cost per right answer",
                np.transpose([spent["per_correct_lower"], spent["per_correct_upper"]]),
                500e-6 / rate,
            ),
            ("compare", [(one.lower, one.upper) for one in gaps], 0.0),
            ("verdict", [(one.low, one.high) for one in calls], 0.0),
        ):
            yield Row(f"{name}, clusters", case, *_inside(*np.transpose(ends), truth))


def decision_rows(bench: Bench) -> Iterator[Row]:
    """Arms without a difference, looked at as questions are added; and gains that a holdout shows, too."""
    rng, looks = bench.rng("decisions"), range(20, 201, 20)
    gaps = {"equal": (0.0, 0.0, 0.0), "one task better, one worse by as much": (0.1, 0.0, -0.1)}
    for name, gap in gaps.items():
        kept = []
        for _ in range(bench.few(40)):
            first, second = (rng.random((200, 3)) < 0.6 + sign * np.array(gap) for sign in (1, -1))
            steps = first.astype(float) - second
            kept.append(all(mean_e_value(steps[:look], np.array([1.0, 0.5, 1.0])) < 20 for look in looks))
        note = "holds at all looks together"
        yield Row(
            "e of compare below 20", f"3 tasks, {len(looks)} looks, {name}", *share(np.array(kept)), note
        )
    for name, spread in (("normal", 0.0), ("two-humped", 0.5)):
        steps = rng.normal(0, 0.5, (bench.few(40), 200)) + spread * rng.choice([-1, 1], (bench.few(40), 200))
        inside = []
        for row in steps:
            found = (paired_intervals(row[:look, np.newaxis], method="anytime")[0] for look in looks)
            inside.append(all(one.low <= 0 <= one.high for one in found))
        yield Row("verdict, anytime", f"{len(looks)} looks, {name}", *share(np.array(inside)), note)
    for units in (24, 80):
        split = split_holdout([f"{place:03}" for place in range(units)], 0.3)
        gains = rng.choice([-0.67, 0.0, 0.33, 1.0], (bench.few(10), units))
        kept = [not gain_gap(row, split).gap.positive for row in gains]
        yield Row(
            "holdout: no false alarm", f"{units} pairs, 30 % held out", *share(np.array(kept)), "one-sided"
        )


def strata_rows(bench: Bench) -> Iterator[Row]:
    """Accuracy and rate over points of unequal size, which weigh alike, and over difficulty cliffs."""
    cases = {
        "30 beside 1 000": ([[30], [1000]], [[0.95], [0.5]]),
        "8 beside 512": ([[8], [512], [512], [512]], [[0.9], [0.6], [0.5], [0.7]]),
        **{f"cliff of {n}": ([[n]] * 7, [[1.0]] * 3 + [[1 - 2 / n]] + [[0.0]] * 3) for n in (8, 32, 128)},
        "twelve alike": ([[32]] * 12, [[0.98]] * 12),
        "one point asked 8 times as often": ([[16, 16, 128]] * 2, [[0.98, 0.9, 0.4]] * 2),
    }
    for (name, (sizes, rates)), guess in product(cases.items(), (0.0, 0.25)):
        number, sweep = np.array(sizes), Sweep(np.array(rates), hard=0, guess=guess)
        shape = (bench.few(2), *number.shape, int(number.max()), 1)
        rng = bench.rng("strata", name, str(guess))
        right = rng.random(shape) < sweep.right[..., None, None]
        asked = (np.arange(shape[-2]) < number[..., None])[..., None]
        status = np.where(asked, right, int(Status.MISSING)).astype(np.uint8)
        rows = leaderboard(
            sweep.labelled(status, np.where(asked, 1.0, 0.0) + 0.0 * right, trials=False), draws=2
        ).rows
        for what, truth in (("accuracy", sweep.right.mean()), ("rate", sweep.rates.mean())):
            ends = np.transpose([[getattr(row, what).lower, getattr(row, what).upper] for row in rows])
            yield Row(f"strata, {what}", f"{name}, guess {guess:g}", *_inside(*ends, truth))


DESIGNS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "upsampled": upsampled_rows,
    "strata": strata_rows,
    "tokens": token_rows,
    "cost": cost_rows,
    "families": family_rows,
    "wins": win_rows,
    "metrics": metric_rows,
    "clusters": cluster_rows,
    "decisions": decision_rows,
}
"""Designs of simulated cubes by name: `--only` picks some, and another is one function more."""
