"""Every interval and test of one treatment against the control, and the verdict of that pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import (
    LAYERS,
    common,
    composite,
    describe,
    difference,
    layer_bits,
    layer_gate,
    weighted_mean,
    weighty,
)
from evalcube.stages.analyze.verdict.holdout import gain_gap, split_holdout
from evalcube.stages.analyze.verdict.inputs import Scores
from evalcube.stages.analyze.verdict.paired import (
    Interval,
    paired_intervals,
    simultaneous_intervals,
    units_drawn,
    weighed,
)
from evalcube.stages.analyze.verdict.people import corrected_pair
from evalcube.stages.analyze.verdict.reach import Reach, reach
from evalcube.stages.analyze.verdict.result import Arm, Missing, PairResult
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


def _intervals(
    columns: Floats, scores: Scores, options: Options, alpha: float | None = None
) -> list[Interval]:
    """An interval of each column by itself."""
    return paired_intervals(
        columns,
        method=options.method or "sign-flip",
        draws=options.draws,
        seed=options.seed,
        shares=scores.shares,
        clusters=scores.clusters,
        alpha=options.alpha if alpha is None else alpha,
    )


def _together(columns: Floats, scores: Scores, options: Options) -> list[Interval]:
    """Intervals that hold for all columns at once."""
    if options.method == "anytime":
        return _intervals(columns, scores, options, options.alpha / max(columns.shape[1], 1))
    return simultaneous_intervals(
        columns,
        draws=options.draws,
        seed=options.seed,
        shares=scores.shares,
        clusters=scores.clusters,
        alpha=options.alpha,
    )
