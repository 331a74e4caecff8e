"""Every interval and test of one treatment against the control, what is missing, and the verdict of that pair.

A pair that lacks one arm drops out of a paired test, which is right only if what is missing is like the rest. It seldom
is: hard questions are cut, refused and time out more often than easy ones. So nothing is assumed about it: bounds are
computed as if it had failed (Manski 1990, Nonparametric bounds on treatment effects, American Economic Review 80,
319-323), and a gain counts only if it survives them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import (
    HIGHEST,
    LAYERS,
    LOWEST,
    common,
    composite,
    describe,
    difference,
    judge_layer,
    layer_bits,
    layer_gate,
    layer_means,
    mean_present,
    weighted_mean,
    weighty,
)
from evalcube.stages.analyze.verdict.holdout import gain_gap, split_holdout
from evalcube.stages.analyze.verdict.inputs import JUDGE, Flags, Scores
from evalcube.stages.analyze.verdict.paired import (
    Interval,
    paired_intervals,
    simultaneous_intervals,
    units_drawn,
    weighed,
)
from evalcube.stages.analyze.verdict.people import corrected_pair
from evalcube.stages.analyze.verdict.reach import Reach, reach
from evalcube.stages.analyze.verdict.result import Arm, Gap, Missing, PairResult
from evalcube.stages.analyze.verdict.rules import Evidence, Options, decide_pair
from evalcube.stages.analyze.verdict.sensitivity import hotelling, sensitivity

SENSITIVITY_DRAWS = 2_000
"""Sign flips per point of the weight simplex: the share over all points averages their noise."""


def compare(
    scores: Scores,
    control: Arm,
    treatment: Arm,
    control_layers: Floats,
    treatment_layers: Floats,
    options: Options,
    missing: Missing | None = None,
) -> PairResult:
    """One treatment against the control.

    Parameters
    ----------
    scores
        Units, their shares and clusters.
    control, treatment
        What is known of each arm on its own.
    control_layers, treatment_layers
        Scores (unit, layer) of the same units, NaN where absent.
    options
        From `for_this_look`.
    missing
        What the pair lacks; None if nothing.
    """
    shares, clusters = scores.shares, scores.clusters
    shared = common(control_layers, treatment_layers)
    sides = shared if options.layer_set == "common" else (control_layers, treatment_layers)
    totals = [composite(side, options.weights) for side in sides]
    both = ~np.isnan(totals[0]) & ~np.isnan(totals[1])
    spread = [composite(side, options.weights) for side in standardised(*shared)]
    steps = difference(*shared)
    names = [name for place, name in enumerate(LAYERS) if not np.isnan(steps[:, place]).all()]
    moved = steps[:, [LAYERS.index(name) for name in names]]
    level, seed, weights = options.alpha, options.seed, options.weights
    gains = difference(*totals)
    main, scaled = _intervals(np.stack([gains, difference(*spread)], axis=1), scores, options)
    simultaneous = dict(zip(names, _together(moved, scores, options), strict=True))
    people = corrected_pair(scores, (control.name, treatment.name), sides, options, len(names))
    if people is not None:
        main, simultaneous["judge"] = people.difference, people.judge
    gain, weight = (part[:, 0] for part in units_drawn(gains[:, np.newaxis], shares, clusters))
    split = split_holdout(range(len(gain)), options.holdout_ratio)
    evidence = Evidence(
        composite=main,
        layers=simultaneous,
        control_gate=layer_gate(control.layers, options.threshold),
        treatment_gate=layer_gate(treatment.layers, options.threshold),
        saturation=treatment.saturation,
        agreement={arm.name: arm.agreement for arm in (control, treatment) if arm.agreement is not None},
        variation=_median(control.variation, treatment.variation),
        holdout=None if split is None else gain_gap(gain, split, alpha=level, shares=weight),
        missing=missing,
        reach=_reach(gain, weight, options),
    )
    means = [weighted_mean(np.where(both, side, np.nan), shares) for side in totals]
    means = means if people is None else list(people.means)
    fewer = min(options.draws, SENSITIVITY_DRAWS)
    rows = weighed(*units_drawn(steps, shares, clusters))
    return PairResult(
        control=control.name,
        treatment=treatment.name,
        decision=decide_pair(evidence, options.limits),
        complete_pairs=int(both.sum()),
        shown=(_shown(sides[0], means[0], both, weights), _shown(sides[1], means[1], both, weights)),
        composite=main,
        layers=dict(zip(names, _intervals(moved, scores, options), strict=True)),
        simultaneous=simultaneous,
        standardised=scaled,
        joint=hotelling(rows[:, ~np.isnan(rows).all(axis=0)], draws=options.draws, seed=seed),
        sensitivity=sensitivity(rows, weights=weights, alpha=level, draws=fewer, seed=seed),
        missing=missing,
        reach=evidence.reach,
        holdout=evidence.holdout,
    )


def for_this_look(
    scores: Scores, control_layers: Floats, treatment_layers: Floats, options: Options, treatments: int
) -> Options:
    """The choices for one pair: its method, and the part of the error that this look at it may spend.

    Which part depends on how many pairs there are and how much they vary, and not on who is better.

    Parameters
    ----------
    scores, control_layers, treatment_layers
        As of `compare`.
    treatments
        Number of treatments K; a pair is tested at alpha / K.
    """
    whole = replace(options, alpha=options.alpha / treatments, planned=options.alpha / treatments)
    if options.method is not None:
        return whole
    half = replace(whole, alpha=whole.alpha / 2.0)
    if options.grown:
        return replace(half, method="anytime")
    sides = control_layers, treatment_layers
    sides = common(*sides) if options.layer_set == "common" else sides
    gains = difference(*(composite(side, options.weights) for side in sides))
    gain, weight = (part[:, 0] for part in units_drawn(gains[:, np.newaxis], scores.shares, scores.clusters))
    needed = max(options.limits.min_pairs, _reach(gain, weight, half).pairs)
    enough = int((~np.isnan(gain)).sum()) >= needed
    return replace(whole if enough else half, method="sign-flip")


def _reach(gains: Floats, shares: Floats, options: Options) -> Reach:
    """What so many pairs, or clusters, could have seen, their differences varying as they do."""
    present = weighed(gains[:, np.newaxis], shares[:, np.newaxis])[~np.isnan(gains), 0]
    weights = shares[~np.isnan(gains)]
    mean = weights * (present.sum() / max(weights.sum(), 1e-300))
    spread = math.sqrt(((present - mean) ** 2).sum() / (len(present) - 1)) if len(present) > 1 else math.nan
    again = options.method == "anytime"
    return reach(
        spread,
        len(present),
        options.limits.trivial,
        alpha=options.alpha,
        again=again,
        planned=options.planned,
    )


def standardised(control: Floats, treatment: Floats) -> tuple[Floats, Floats]:
    """Both arms with each layer in units of its standard deviation over both, so that no layer dominates by its scale.

    Parameters
    ----------
    control, treatment
        Scores (unit, layer), NaN where absent. A layer without any variation stays as it is: its differences are 0.
    """
    pooled = np.concatenate([control, treatment])
    scale = np.ones(pooled.shape[1])
    for place, column in enumerate(pooled.T):
        present = column[~np.isnan(column)]
        if len(present) > 1 and np.ptp(present) > 0:
            scale[place] = present.std(ddof=1)
    return control / scale, treatment / scale


def _median(one: float, other: float) -> float:
    """Median of those of two values that are known."""
    known = [value for value in (one, other) if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _shown(layers: Floats, mean: float, both: np.ndarray, weights: tuple[float, ...] | None) -> str:
    return describe(mean, weighty(layer_bits(layers[both]), weights))


def _intervals(columns: Floats, scores: Scores, options: Options, looks: int = 1) -> list[Interval]:
    """An interval of each column by itself, at the level of one of so many."""
    how, alpha = options.method or "sign-flip", options.alpha / looks
    return paired_intervals(columns, method=how, alpha=alpha, **_drawn(scores, options))


def _together(columns: Floats, scores: Scores, options: Options) -> list[Interval]:
    """Intervals that hold for all columns at once."""
    if options.method == "anytime":
        return _intervals(columns, scores, options, max(columns.shape[1], 1))
    return simultaneous_intervals(columns, alpha=options.alpha, **_drawn(scores, options))


def _drawn(scores: Scores, options: Options) -> dict[str, Any]:
    return {
        "draws": options.draws,
        "seed": options.seed,
        "shares": scores.shares,
        "clusters": scores.clusters,
    }


COMPOSITE = "the composite"


@dataclass(frozen=True)
class _Side:
    """One arm: what it has, and what it should have."""

    layers: Floats
    """Scores (run, unit, layer)."""
    readings: Floats
    """Readings (run, unit, judge)."""
    expected: Flags
    """Executions (run, unit)."""


def missing_of_pair(scores: Scores, runs: Floats, place: int, options: Options) -> Missing | None:
    """What the control and the treatment at `place` lack; None if they lack nothing.

    A layer is expected of a unit if either arm has it there, a judge's reading if either arm has a judge layer there.
    A judge that never answered is not expected to.

    Parameters
    ----------
    scores
        From `checked_scores`.
    runs
        Layers (run, variant, unit, layer) of the finished executions.
    place
        Of the treatment among the variants.
    """
    sides = [_side(scores, runs, arm) for arm in (0, place)]
    layers = np.asarray(sum((~np.isnan(side.layers)).sum(axis=0) for side in sides) > 0)
    judges = np.asarray(sum((~np.isnan(side.readings)).sum(axis=(0, 1)) for side in sides) > 0)
    gaps = [gap for gap in _gaps(scores, sides, layers, judges) if gap.control or gap.treatment]
    if not gaps:
        return None
    lacks = [_lacks(side, layers, judges) for side in sides]
    # What both lack says nothing for either: it failed in both.
    lowest = [_filled(side, lack, lack) for side, lack in zip(sides, lacks, strict=True)]
    highest = _filled(sides[0], lacks[0], lacks[1])
    totals = [_totals(one, options) for one in (*lowest, highest)]
    steps = np.stack([difference(totals[0], totals[1]), difference(totals[2], totals[1])], axis=1)
    failed, worst = paired_intervals(
        steps,
        alpha=options.alpha,
        draws=options.draws,
        seed=options.seed,
        method=options.method or "sign-flip",
        shares=scores.shares,
        clusters=scores.clusters,
    )
    gate = layer_gate(layer_means(lowest[1], scores.shares), options.threshold)
    return Missing(tuple(gaps), failed, worst, gate.failed)


def missing_alone(scores: Scores, runs: Floats, place: int) -> tuple[int, int]:
    """How many executions of a variant have no composite, and how many there should be."""
    side = _side(scores, runs, place)
    return _count(side.expected, _unmeasured(side))


def silent_judges(scores: Scores) -> list[str]:
    """A sentence for each judge that gave no reading at all, or none of a variant that others rated."""
    if scores.judges is None:
        return []
    there = ~np.isnan(scores.judges) & (scores.ok & scores.entries)[..., np.newaxis]
    answered = np.asarray(there.sum(axis=(0, 2)) > 0)  # (variant, judge)
    found = []
    for judge, name in enumerate(scores.judge_names):
        if not answered[:, judge].any():
            found.append(f"{name} never gave a reading: it counts in nothing")
            continue
        silent = np.asarray(answered.any(axis=1)) & ~answered[:, judge]
        found += [
            f"{name} gave no reading of {variant}"
            for variant, none in zip(scores.variants, silent, strict=True)
            if none
        ]
    return found


def _side(scores: Scores, runs: Floats, place: int) -> _Side:
    entries = scores.entries[:, place]
    # An arm with no execution of a unit lacks them all; one with fewer runs than another was planned so.
    expected = entries | (entries.sum(axis=0) == 0)
    if scores.judges is None:
        readings = np.empty((*entries.shape, 0))
    else:
        there = (scores.ok[:, place] & entries)[..., np.newaxis]
        readings = np.where(there, scores.judges[:, place], np.nan)
    return _Side(runs[:, place], readings, expected)


def _lacks(side: _Side, layers: Flags, judges: Flags) -> tuple[Flags, Flags]:
    """Which layers (run, unit, layer) and readings (run, unit, judge) are expected and not there."""
    expected = side.expected[..., np.newaxis]
    judged = layers[:, JUDGE, np.newaxis] & judges
    return expected & layers & np.isnan(side.layers), expected & judged & np.isnan(side.readings)


def _gaps(scores: Scores, sides: list[_Side], layers: Flags, judges: Flags) -> Iterator[Gap]:
    counted = [[_count(side.expected, _unmeasured(side))] for side in sides]
    names = [COMPOSITE]
    for side, own in zip(sides, counted, strict=True):
        own += [
            _count(side.expected & layers[:, layer], np.isnan(side.layers[..., layer]))
            for layer in range(len(LAYERS))
        ]
        own += [
            _count(side.expected & layers[:, JUDGE], np.isnan(side.readings[..., judge]))
            for judge in np.flatnonzero(judges)
        ]
    names += [*LAYERS, *(f"readings of {scores.judge_names[judge]}" for judge in np.flatnonzero(judges))]
    for name, control, treatment in zip(names, *counted, strict=True):
        yield Gap(name, *control, *treatment)


def _unmeasured(side: _Side) -> Flags:
    """Which executions (run, unit) have no layer at all."""
    return np.asarray(np.isnan(side.layers).all(axis=2))


def _count(expected: Flags, absent: Flags) -> tuple[int, int]:
    return int((expected & absent).sum()), int(expected.sum())


def _filled(side: _Side, lacks: tuple[Flags, Flags], failed: tuple[Flags, Flags]) -> Floats:
    """Layers (unit, layer), averaged over runs, as if what an arm lacks were lowest where `failed`, else highest."""
    fills = [np.where(lowest, LOWEST, HIGHEST) for lowest in failed]
    layers = np.where(lacks[0], fills[0], side.layers)
    partly = np.asarray(lacks[1].any(axis=2)) & ~np.isnan(side.layers[..., JUDGE])
    if partly.any():
        readings = np.where(lacks[1], fills[1], side.readings)
        layers[..., JUDGE] = np.where(partly, judge_layer(readings), layers[..., JUDGE])
    return mean_present(layers, axis=0)


def _totals(layers: Floats, options: Options) -> NDArray[np.float64]:
    """Composites (unit,); a unit of which nobody knows a layer failed in both arms."""
    totals = composite(layers, options.weights)
    return np.where(np.isnan(totals), LOWEST, totals)
