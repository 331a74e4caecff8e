"""Rows of `coverage.py` on repeated answers, traces, and token counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.coverage_rows import Bench, Row, covered, share
from evalcube.stages.analyze.formulas.forensics import (
    aalen_johansen,
    compression,
    kaplan_meier,
    life_table,
    sum_traces,
)
from evalcube.stages.reply.status import Status
from evalcube.stats import bayes_ci, pass_at_k_ci


def repeats_rows(bench: Bench) -> Iterator[Row]:
    """Metrics of the questions asked; their rates are drawn once for each sweep."""
    samples, why = 8, "the prior takes every rate of a question as equally likely"
    for name, low, high, questions in (
        ("any", 1.0, 1.0, 100),
        ("nearly 0 or 1", 0.2, 0.2, 100),
        ("nearly 0 or 1", 0.2, 0.2, 1000),
    ):
        rng = bench.rng("repeats", name, str(questions))
        inside: dict[str, list[bool]] = {"bayes_ci": [], "pass_at_k_ci, k=4": []}
        for _ in range(bench.few(20)):
            rates = rng.beta(low, high, (questions, 1))
            answers = (rng.random((questions, samples)) < rates).astype(np.int64)
            _, _, *bounds = bayes_ci(answers)
            inside["bayes_ci"].append(bounds[0] <= rates.mean() <= bounds[1])
            _, _, *bounds = pass_at_k_ci(answers, 4)
            truth = (1 - (1 - rates) ** 4).mean()
            inside["pass_at_k_ci, k=4"].append(bounds[0] <= truth <= bounds[1])
        for metric, hits in inside.items():
            case = f"{questions} questions × {samples}, rates {name}"
            yield Row(metric, case, *share(np.array(hits)), why)


def hazard_rows(bench: Bench) -> Iterator[Row]:
    """Trials end right, wrong or cut with known chances in each of 8 bins; curves at bins 2 and 8."""
    right, wrong, cut = np.linspace(0.3, 0.05, 8), np.linspace(0.02, 0.15, 8), 0.1
    before = np.concatenate([[1.0], np.cumprod(1 - right - wrong)])
    for trials in (64, 512):
        rng = bench.rng("hazard", str(trials))
        ends = np.zeros((bench.few(4), 8, 3), dtype=np.int64)
        left = np.full(len(ends), trials)
        for place in range(8):
            chances = [right[place], wrong[place], 1 - right[place] - wrong[place]]
            ends[:, place] = rng.multinomial(left, chances)
            going = ends[:, place, 2].copy()
            ends[:, place, 2] = rng.binomial(going, cut) if place < 7 else going
            left = going - ends[:, place, 2]
        curves = {
            "hazard, Wilson": (life_table(ends).hazard, (..., 0), right),
            "incidence, Aalen–Johansen": (aalen_johansen(ends), (..., 0), np.cumsum(before[:-1] * right)),
            "survival, Kaplan–Meier": (kaplan_meier(ends), (...,), before[1:]),
        }
        for name, (curve, part, truth) in curves.items():
            for place in (1, 7):
                bounds = (curve.value[part], curve.lower[part], curve.upper[part])
                picked = tuple(item[:, place] for item in bounds)
                there = ~np.isnan(picked[0])
                held = covered(tuple(item[there] for item in picked), truth[place])
                yield Row(name, f"{trials} trials, bin {place + 1}", *held, "few trials are left at risk")


def ratio_rows(bench: Bench) -> Iterator[Row]:
    for traces in (16, 128):
        rng = bench.rng("ratio", str(traces))
        shape = (bench.few(4), traces)
        tokens = np.maximum(rng.lognormal(6, 0.6, shape), 1).round()
        size = 4 * tokens
        small = size * rng.uniform(0.3, 0.5, shape)
        found = compression(sum_traces(np.full(shape, int(Status.CORRECT)), tokens, size, small)).ratio
        bounds = tuple(part[:, 0] for part in (found.value, found.lower, found.upper))
        why = "the error is estimated from few traces"
        yield Row("compression ratio", f"{traces} traces", *covered(bounds, 0.4), why)


SECTIONS: tuple[Callable[[Bench], Iterator[Row]], ...] = (repeats_rows, hazard_rows, ratio_rows)
