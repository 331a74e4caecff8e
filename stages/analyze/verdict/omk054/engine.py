"""Runs the computations of omk 0.54 in its order: summaries, intervals, saturation, holdout, and the verdict on them.

The last run is the report; earlier runs only feed stability and saturation. Layer means use finished executions, the
composite mean and the intervals every row with a composite. Units keep the order they are given in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.analyze.verdict.gates import THRESHOLD
from evalcube.stages.analyze.verdict.holdout import Split, split_holdout
from evalcube.stages.analyze.verdict.inputs import Scores
from evalcube.stages.analyze.verdict.omk054.bootstrap import ALPHA, DRAWS, paired_difference
from evalcube.stages.analyze.verdict.omk054.mulberry import SEED
from evalcube.stages.analyze.verdict.omk054.rules import TRIVIAL, Curve, Outcome, Pair, Report, decide
from evalcube.stages.analyze.verdict.omk054.summary import (
    RunStats,
    VariantSummary,
    composites,
    holdout_part,
    over_runs,
    rounded_layers,
    saturation_of,
    summarise,
)
from evalcube.stages.analyze.verdict.saturation import MIN_RUNS, Saturation

MIN_UNITS = 2
"""Paired units that an interval needs; without any interval, that tool decides by the point estimate."""


@dataclass(frozen=True)
class Settings:
    """Choices of that tool."""

    threshold: float = THRESHOLD
    trivial: float = TRIVIAL
    alpha: float = ALPHA
    draws: int = DRAWS
    seed: int = SEED
    holdout_ratio: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """Everything that tool reports about a comparison."""

    summaries: Mapping[str, VariantSummary]
    report: Report
    outcome: Outcome
    run_stats: Mapping[str, Mapping[str, RunStats]]
    """By variant and metric (fact, behavior, judge, composite); empty with one run."""
    saturation: Mapping[str, Saturation]
    """Empty with fewer than five runs."""
    split: Split | None


def evaluate(scores: Scores, settings: Settings | None = None) -> Evaluation:
    """Report and verdict.

    Parameters
    ----------
    scores
        From `checked_scores`.
    settings
        That tool's defaults if None.
    """
    settings = Settings() if settings is None else settings
    layers = rounded_layers(scores)
    totals = composites(layers)
    runs, names = len(layers), scores.variants
    all_summaries = {
        name: [summarise(scores, layers, totals, run, place) for run in range(runs)]
        for place, name in enumerate(names)
    }
    summaries = {name: found[-1] for name, found in all_summaries.items()}
    stats = {name: _run_stats(found) for name, found in all_summaries.items()} if runs > 1 else {}
    curves = _curves(names, totals, settings) if runs >= MIN_RUNS else {}
    split = split_holdout(scores.units, settings.holdout_ratio)
    composite_stats = {name: found["composite"] for name, found in stats.items() if "composite" in found}
    report = Report(
        variants=names,
        samples=len(scores.units),
        means={name: summary.means for name, summary in summaries.items()},
        pairs=_pairs(names, totals[-1], settings),
        pearson={
            name: found.agreement.pearson for name, found in summaries.items() if found.agreement is not None
        },
        runs=runs,
        run_stats={name: (found.interval.mean, found.interval.sd) for name, found in composite_stats.items()},
        saturation={
            name: Curve(curve.saturated, curve.confidence, curve.at) for name, curve in curves.items()
        },
        holdout={}
        if split is None
        else {name: holdout_part(totals[-1, place], split) for place, name in enumerate(names)},
        threshold=settings.threshold,
        trivial=settings.trivial,
    )
    return Evaluation(
        summaries=summaries,
        report=report,
        outcome=decide(report),
        run_stats=stats,
        saturation=curves,
        split=split,
    )


def _run_stats(summaries: list[VariantSummary]) -> dict[str, RunStats]:
    found = {metric: over_runs(summaries, metric) for metric in (*LAYERS, "composite")}
    return {metric: stats for metric, stats in found.items() if stats is not None}


def _measured(totals: Floats) -> list[float]:
    return [float(value) for value in totals[~np.isnan(totals)]]


def _pairs(names: tuple[str, ...], totals: Floats, settings: Settings) -> list[Pair]:
    """Pairs with at least two complete units, tested at alpha / K of these K; that tool drops the others."""
    found = []
    for place in range(1, len(names)):
        both = ~np.isnan(totals[0]) & ~np.isnan(totals[place])
        if both.sum() >= MIN_UNITS:
            found.append((names[place], totals[0, both].tolist(), totals[place, both].tolist()))
    alpha = settings.alpha / max(len(found), 1)
    return [
        Pair(
            names[0],
            name,
            paired_difference(control, treatment, alpha=alpha, draws=settings.draws, seed=settings.seed),
            alpha,
        )
        for name, control, treatment in found
    ]


def _curves(names: tuple[str, ...], totals: Floats, settings: Settings) -> dict[str, Saturation]:
    return {
        name: saturation_of([_measured(run) for run in totals[:, place]], seed=settings.seed)
        for place, name in enumerate(names)
    }
