"""The summary numbers that omk 0.54 reports and decides on, from the scores of one run or of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.analyze.verdict.holdout import Split
from evalcube.stages.analyze.verdict.inputs import JUDGE, Scores
from evalcube.stages.analyze.verdict.omk054.bootstrap import DRAWS, in_order
from evalcube.stages.analyze.verdict.omk054.bootstrap import mean_interval as bootstrap_mean
from evalcube.stages.analyze.verdict.omk054.judges import JudgeAgreement, ensemble_agreement
from evalcube.stages.analyze.verdict.omk054.rules import Part
from evalcube.stages.analyze.verdict.omk054.ttest import MeanInterval, mean_interval
from evalcube.stages.analyze.verdict.rounding import half_away, round4
from evalcube.stages.analyze.verdict.saturation import Checkpoint, Saturation, saturation


@dataclass(frozen=True)
class VariantSummary:
    """One variant in one run; means with two decimals, NaN where nothing was measured."""

    entries: int
    finished: int
    means: Mapping[str, float]
    """Means of fact, behavior, judge over finished executions and of composite over all; absent ones are left out."""
    lowest: float
    highest: float
    between_sd: float
    """Population standard deviation of the composites; NaN with fewer than two."""
    agreement: JudgeAgreement | None


@dataclass(frozen=True)
class RunStats:
    """A metric over runs."""

    run_means: tuple[float, ...]
    interval: MeanInterval


def rounded_layers(scores: Scores) -> Floats:
    """Layers (run, variant, unit, layer) with two decimals; the judge layer filled in from the ensemble."""
    layers = scores.layers.copy()
    if scores.judges is not None:
        for place in np.ndindex(*layers.shape[:-1]):
            if np.isnan(layers[place][JUDGE]):
                layers[place][JUDGE] = consensus(scores.judges[place])
    return _each(layers)


def consensus(readings: Floats) -> float:
    """Mean of the valid readings of one answer, two decimals each; NaN without one."""
    valid = [half_away(float(value), 2) for value in readings if value > 0]
    return half_away(in_order(valid) / len(valid), 2) if valid else math.nan


def composites(layers: Floats) -> Floats:
    """Mean of the present layers with two decimals, summed in order; NaN where there is none."""
    flat = layers.reshape(-1, layers.shape[-1])
    totals = np.full(len(flat), np.nan)
    for place, row in enumerate(flat):
        present = row[~np.isnan(row)]
        if present.size:
            totals[place] = half_away(in_order(present) / present.size, 2)
    totals[~(totals > 0)] = np.nan
    return totals.reshape(layers.shape[:-1])


def _each(values: Floats) -> Floats:
    return np.array([half_away(float(value), 2) for value in values.ravel()]).reshape(values.shape)


def mean2(values: Floats) -> float:
    """Mean of the values that are there, two decimals; NaN without one."""
    present = values[~np.isnan(values)]
    return half_away(in_order(present) / present.size, 2) if present.size else math.nan


def summarise(scores: Scores, layers: Floats, totals: Floats, run: int, variant: int) -> VariantSummary:
    """Summary of one variant in one run.

    Parameters
    ----------
    scores
        For flags and readings.
    layers, totals
        `rounded_layers` and `composites` of all runs.
    run, variant
        Places.
    """
    ok, here = scores.ok[run, variant] & scores.entries[run, variant], totals[run, variant]
    parts = {name: mean2(layers[run, variant, ok, place]) for place, name in enumerate(LAYERS)}
    parts["composite"] = mean2(here)
    present = here[~np.isnan(here)]
    mean = in_order(present) / present.size if present.size else math.nan
    spread = math.sqrt(in_order((present - mean) ** 2) / present.size) if present.size >= 2 else math.nan
    return VariantSummary(
        entries=int(scores.entries[run, variant].sum()),
        finished=int(ok.sum()),
        means={name: value for name, value in parts.items() if not math.isnan(value)},
        lowest=half_away(float(present.min()), 2) if present.size else math.nan,
        highest=half_away(float(present.max()), 2) if present.size else math.nan,
        between_sd=half_away(spread, 2),
        agreement=None if scores.judges is None else ensemble_agreement(scores.judges[run, variant, ok]),
    )


def over_runs(summaries: Sequence[VariantSummary], metric: str) -> RunStats | None:
    """A metric of one variant over its runs; None if no run has it."""
    means = tuple(summary.means[metric] for summary in summaries if metric in summary.means)
    return RunStats(means, mean_interval(means)) if means else None


def saturation_of(runs: Sequence[Sequence[float]], *, seed: int) -> Saturation:
    """Saturation over growing samples, each change rounded to four decimals.

    Parameters
    ----------
    runs
        Composites of each run; the samples of run k are those of runs 0..k.
    seed
        Bootstrap of each checkpoint's interval.
    """
    return saturation(checkpoints(runs, seed=seed), rounded=round4)


def checkpoints(runs: Sequence[Sequence[float]], *, draws: int = DRAWS, seed: int) -> list[Checkpoint]:
    """Mean and width of its bootstrap interval after each run that has samples, or comes after one that has.

    Parameters
    ----------
    runs
        As for `saturation_of`.
    draws, seed
        Bootstrap of each interval.
    """
    seen: list[float] = []
    points = []
    for run in runs:
        seen.extend(run)
        if seen:
            interval = bootstrap_mean(seen, draws=draws, seed=seed)
            points.append(Checkpoint(len(seen), interval.estimate, interval.high - interval.low))
    return points


def holdout_part(totals: Floats, split: Split) -> Part:
    """Train and holdout composite of one variant.

    Parameters
    ----------
    totals
        Composites (unit,) in the authored order.
    split
        From `split_holdout` of the same order.
    """
    train, held = totals[list(split.train)], totals[list(split.holdout)]
    counts = [int((~np.isnan(part)).sum()) for part in (train, held)]
    means = [0.0 if math.isnan(mean) else mean for mean in (mean2(train), mean2(held))]
    return Part(means[0], means[1], counts[0], counts[1])
