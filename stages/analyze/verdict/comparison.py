"""Every interval and test of one treatment against the control, what is missing, and the verdict of that pair.

A pair that lacks one arm drops out of a paired test, which is right only if what is missing is like the rest. It seldom
is: hard questions are cut, refused and time out more often than easy ones. So nothing is assumed about it: bounds are
computed as if it had failed (Manski 1990, Nonparametric bounds on treatment effects, American Economic Review 80,
319-323), and a gain counts only if it survives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalcube.stages.analyze.formulas.arguments import mean_present
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import (
    HIGHEST,
    LAYERS,
    LOWEST,
    check_layers,
    common,
    composite,
    describe,
    difference,
    judge_layer,
    layer_bits,
    layer_means,
    weighted_mean,
    weighty,
)
from evalcube.stages.analyze.verdict.inputs import JUDGE, Flags, Scores
from evalcube.stages.analyze.verdict.measures import Holdout, Reach, gain_gap, reach, split_holdout
from evalcube.stages.analyze.verdict.paired import (
    Interval,
    paired_intervals,
    simultaneous_intervals,
    units_drawn,
    weigh,
)
from evalcube.stages.analyze.verdict.people import corrected_pair, judge_bias
from evalcube.stages.analyze.verdict.result import Arm, Gap, Missing, PairResult
from evalcube.stages.analyze.verdict.rules import Evidence, Options, decide_pair
from evalcube.stages.analyze.verdict.sensitivity import Hotelling, Sensitivity, hotelling, sensitivity

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
    """One treatment against the control."""
    shares, clusters = scores.shares, scores.clusters
    shared = common(control_layers, treatment_layers)
    sides = shared if options.layer_set == "common" else (control_layers, treatment_layers)
    totals = [composite(side, options.weights) for side in sides]
    both = ~np.isnan(totals[0]) & ~np.isnan(totals[1])
    spread = [composite(side, options.weights) for side in standardise(*shared)]
    steps = difference(*shared)
    names = [name for layer, name in enumerate(LAYERS) if not np.isnan(steps[:, layer]).all()]
    moved = steps[:, [LAYERS.index(name) for name in names]]
    gains = difference(*totals)
    main, scaled = _intervals(np.stack([gains, difference(*spread)], axis=1), scores, options)
    simultaneous = dict(zip(names, _together(moved, scores, options), strict=True))
    arms = control.name, treatment.name
    people = corrected_pair(scores, arms, sides, options, len(names))
    if people is not None:
        main, simultaneous["judge"] = people.difference, people.judge
    bias = None if people else judge_bias(scores, arms, sides, options, main)
    gain, weight = (part[:, 0] for part in units_drawn(gains[:, np.newaxis], shares, clusters))
    seen = _reach(gain, weight, options)
    evidence = Evidence(
        composite=main,
        layers=simultaneous,
        control_check=check_layers(control.layers, options.threshold),
        treatment_check=check_layers(treatment.layers, options.threshold),
        saturation=treatment.saturation,
        agreement={arm.name: arm.agreement for arm in (control, treatment) if arm.agreement is not None},
        variation=float(mean_present(np.array([control.variation, treatment.variation]), axis=0)),
        holdout=_holdout_gap(gain, weight, options),
        missing=missing,
        reach=seen,
        bias=bias,
    )
    means = people.means if people else _means_of_pairs(totals, both, shares)
    joint, other_weights = _without_weights(weigh(*units_drawn(steps, shares, clusters)), options)
    return PairResult(
        control=control.name,
        treatment=treatment.name,
        decision=decide_pair(evidence, options.limits),
        complete_pairs=int(both.sum()),
        shown=(_describe(sides[0], means[0], both, options), _describe(sides[1], means[1], both, options)),
        composite=main,
        layers=dict(zip(names, _intervals(moved, scores, options), strict=True)),
        simultaneous=simultaneous,
        standardised=scaled,
        joint=joint,
        sensitivity=other_weights,
        missing=missing,
        reach=seen,
        holdout=evidence.holdout,
        bias=bias,
    )


def _holdout_gap(gain: Floats, weight: Floats, options: Options) -> Holdout | None:
    """How much the gain of the units that were held out differs from the others'."""
    split = split_holdout(range(len(gain)), options.holdout_ratio)
    return None if split is None else gain_gap(gain, split, alpha=options.alpha, shares=weight)


def _means_of_pairs(totals: Sequence[Floats], both: Flags, shares: Floats) -> tuple[float, float]:
    """Mean of each side over the units that both sides have."""
    control, treatment = (weighted_mean(np.where(both, side, np.nan), shares) for side in totals)
    return control, treatment


def _without_weights(rows: Floats, options: Options) -> tuple[Hotelling, Sensitivity]:
    """Whether the layers moved together, and what other weights would say; `rows` are differences (unit, layer)."""
    alpha, seed, fewer = options.alpha, options.seed, min(options.draws, SENSITIVITY_DRAWS)
    joint = hotelling(rows[:, ~np.isnan(rows).all(axis=0)], draws=options.draws, seed=seed)
    return joint, sensitivity(rows, weights=options.weights, alpha=alpha, draws=fewer, seed=seed)


def for_this_look(
    scores: Scores, control_layers: Floats, treatment_layers: Floats, options: Options, treatments: int
) -> Options:
    """The choices for one pair: its method, and the part of the error that this look at it may spend.

    Which part depends on how many pairs there are and how much they vary, and not on who is better.
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
    """Return the minimum detectable difference of these pairs, or clusters."""
    present = weigh(gains[:, np.newaxis], shares[:, np.newaxis])[~np.isnan(gains), 0]
    weights = shares[~np.isnan(gains)]
    mean = weights * (present.sum() / max(weights.sum(), 1e-300))
    spread = math.sqrt(((present - mean) ** 2).sum() / (len(present) - 1)) if len(present) > 1 else math.nan
    again, matters = options.method == "anytime", options.limits.trivial
    return reach(spread, len(present), matters, alpha=options.alpha, again=again, planned=options.planned)


def standardise(control: Floats, treatment: Floats) -> tuple[Floats, Floats]:
    """Return both arms with each layer in units of its standard deviation over both: none dominates by its scale."""
    scale = np.ones(control.shape[1])
    for layer, column in enumerate(np.concatenate([control, treatment]).T):
        present = column[~np.isnan(column)]
        if len(present) > 1 and np.ptp(present) > 0:
            scale[layer] = present.std(ddof=1)
    return control / scale, treatment / scale


def _describe(layers: Floats, mean: float, both: np.ndarray, options: Options) -> str:
    return describe(mean, weighty(layer_bits(layers[both]), options.weights))


def _intervals(columns: Floats, scores: Scores, options: Options, looks: int = 1) -> list[Interval]:
    """An interval of each column by itself, at the level of one of so many."""
    how, alpha = options.method or "sign-flip", options.alpha / looks
    return paired_intervals(columns, method=how, **_test_options(scores, options) | {"alpha": alpha})


def _together(columns: Floats, scores: Scores, options: Options) -> list[Interval]:
    """Intervals that hold for all columns at once."""
    if options.method == "anytime":
        return _intervals(columns, scores, options, max(columns.shape[1], 1))
    return simultaneous_intervals(columns, **_test_options(scores, options))


def _test_options(scores: Scores, options: Options) -> dict[str, Any]:
    of_options = {name: getattr(options, name) for name in ("alpha", "draws", "seed")}
    return of_options | {"shares": scores.shares, "clusters": scores.clusters}


COMPOSITE = "the composite"
_LAYERS = len(LAYERS)


def missing_of_pair(scores: Scores, runs: Floats, variant: int, options: Options) -> Missing | None:
    """Count the missing scores of the control and of a treatment; None if none are missing.

    A layer is expected of a unit that is to have it, or if either arm has it there, and with the judge layer a reading
    of each judge. A judge that never answered is not expected to.
    """
    sides = [(_kinds(scores, runs, arm), _expected_runs(scores, arm)) for arm in (0, variant)]
    due, lacks = _lacking(scores, sides)
    alone = [_count_unmeasured(*side) for side in sides]
    gaps = [Gap(COMPOSITE, *alone[0], *alone[1])]
    for kind, name in enumerate(_kind_names(scores)):
        pairs = zip(lacks, due, strict=True)
        gaps.append(Gap(name, *(int(part[..., kind].sum()) for pair in pairs for part in pair)))
    gaps = [gap for gap in gaps if gap.control or gap.treatment]
    if not gaps:
        return None
    lowest = [_fill_missing(runs, lack, LOWEST) for (runs, _), lack in zip(sides, lacks, strict=True)]
    control, treatment = (_totals(layers, LOWEST, options) for layers in lowest)
    best = _totals(_fill_missing(sides[0][0], lacks[0], HIGHEST), HIGHEST, options)
    steps = np.stack([difference(control, treatment), difference(best, treatment)], axis=1)
    failed, worst = _intervals(steps, scores, options)
    check = check_layers(layer_means(lowest[1], scores.shares), options.threshold)
    return Missing(tuple(gaps), failed, worst, check.failed)


def missing_alone(scores: Scores, runs: Floats, variant: int) -> tuple[str, int, int]:
    """Return the kind of score that a variant lacks most of, how many it lacks, and how many it should have."""
    side = _kinds(scores, runs, variant), _expected_runs(scores, variant)
    (due,), (lacks,) = _lacking(scores, [side])
    counts = [(COMPOSITE, *_count_unmeasured(*side))]
    for kind, name in enumerate(_kind_names(scores)):
        counts.append((name, int(lacks[..., kind].sum()), int(due[..., kind].sum())))
    return max(counts, key=lambda count: count[1] / max(count[2], 1))


def _lacking(scores: Scores, sides: Sequence[tuple[Floats, Flags]]) -> tuple[list[Flags], list[Flags]]:
    """Return which scores are due on each side (run, unit, kind), and which of these are missing."""
    kinds = np.any([(~np.isnan(values)).any(axis=0) for values, _ in sides], axis=0)  # (unit, kind)
    if scores.due is not None:
        kinds[:, :_LAYERS] |= scores.due
    kinds[:, _LAYERS:] = kinds[:, JUDGE, np.newaxis] & kinds[:, _LAYERS:].any(axis=0)
    due = [expected[..., np.newaxis] & kinds for _, expected in sides]
    return due, [part & np.isnan(values) for part, (values, _) in zip(due, sides, strict=True)]


def _kind_names(scores: Scores) -> list[str]:
    return [*LAYERS, *(f"readings of {name}" for name in scores.judge_names)]


def _kinds(scores: Scores, runs: Floats, variant: int) -> Floats:
    """Return the scores of a variant (run, unit, kind): its layers, and the readings of each judge."""
    there = (scores.ok[:, variant] & scores.entries[:, variant])[..., np.newaxis]
    return np.concatenate([runs[:, variant], np.where(there, scores.judges[:, variant], np.nan)], axis=-1)


def _expected_runs(scores: Scores, variant: int) -> Flags:
    """Executions (run, unit) that a variant should have."""
    entries = scores.entries[:, variant]
    # An arm with no execution of a unit lacks them all; one with fewer runs than another was planned so.
    return np.asarray(entries | ~entries.any(axis=0))


def _count_unmeasured(values: Floats, expected: Flags) -> tuple[int, int]:
    """How many executions have no layer at all, of those that are expected."""
    return int((expected & np.isnan(values[..., :_LAYERS]).all(axis=2)).sum()), int(expected.sum())


def _fill_missing(values: Floats, lacks: Flags, score: float) -> Floats:
    """Fill in missing scores; average layers over runs (unit, layer).

    Bounds of one mean are asked for here, so that single trials cannot be filled in as in a paired comparison.
    """
    filled = np.where(lacks, score, values)
    layers = filled[..., :_LAYERS]
    partly = lacks[..., _LAYERS:].any(axis=2) & ~np.isnan(values[..., JUDGE])
    layers[..., JUDGE] = np.where(partly, judge_layer(filled[..., _LAYERS:]), layers[..., JUDGE])
    return mean_present(layers, axis=0)


def _totals(layers: Floats, score: float, options: Options) -> Floats:
    """Composites (unit,), with a score for a unit of which nobody knows a layer."""
    totals = composite(layers, options.weights)
    return np.where(np.isnan(totals), score, totals)
