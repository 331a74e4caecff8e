"""Corrections by people's ratings, of one variant and of a pair, and the bias of a judge for one of two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalcube.stages.analyze.formulas.clustering import cluster_units
from evalcube.stages.analyze.formulas.corrected import (
    LEAST_SCORES,
    Corrected,
    corrected_mean,
    next_to_label,
    unseen,
)
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.agreement import LEAST_RATED, JudgeBias
from evalcube.stages.analyze.verdict.composite import LAYERS, composite, weighted_mean
from evalcube.stages.analyze.verdict.inputs import JUDGE, Scores
from evalcube.stages.analyze.verdict.paired import Interval
from evalcube.stages.analyze.verdict.rules import Options
from evalcube.stages.errors import ArgumentError

_SUGGESTED = 100

ByVariant = Mapping[str, Mapping[str, float]]


def by_variant(
    gold: Mapping[str, float] | ByVariant | None, variants: Sequence[str], rated: str | None
) -> dict[str, dict[str, float]]:
    """Ratings by variant and unit; those that name no variant are of `rated`, or of the control."""
    plain = {unit: float(score) for unit, score in (gold or {}).items() if not isinstance(score, Mapping)}
    ratings = {name: dict(scores) for name, scores in (gold or {}).items() if isinstance(scores, Mapping)}
    if plain:
        ratings[variants[0] if rated is None else rated] = plain
    for name in (*ratings, *(() if rated is None else (rated,))):
        if name not in variants:
            raise ArgumentError(f"`gold_variant` must be one of {', '.join(variants)}, got {name!r}")
    return ratings


def corrected_scores(
    layers: Floats, people: Floats, shares: Floats, weights: Sequence[float] | None
) -> dict[str, Corrected]:
    """The composite and the judge layer of one variant; empty with fewer than `LEAST_SCORES` ratings of it."""
    judge = layers[:, JUDGE]
    rated = np.where(np.isnan(judge), np.nan, people)
    if int((~np.isnan(rated)).sum()) < LEAST_SCORES:
        return {}
    truth = layers.copy()
    truth[:, JUDGE] = rated
    totals = composite(layers, weights)
    by_people = np.where(np.isnan(rated), np.nan, composite(truth, weights))
    return {
        "composite": corrected_mean(totals, by_people, judge, shares),
        "judge": corrected_mean(judge, rated, judge, shares),
    }


def corrected_arm(scores: Scores, variant: str, layers: Floats, options: Options) -> dict[str, Corrected]:
    """`corrected_scores` of a variant by its name."""
    people = _people(scores, options.gold.get(variant, {}))
    return corrected_scores(layers, people, scores.shares, options.weights)


def _people(scores: Scores, rated: Mapping[str, float]) -> Floats:
    return np.array([rated.get(unit, math.nan) for unit in scores.units], dtype=float)


@dataclass(frozen=True)
class PairByPeople:
    """A pair whose variants have both been rated by people often enough."""

    difference: Interval
    """Of the composite, treatment − control."""
    judge: Interval
    """Of the judge layer; at the level that all layers together have."""
    means: tuple[float, float]
    """Composites of control and treatment."""


def corrected_pair(
    scores: Scores, names: tuple[str, str], sides: Sequence[Floats], options: Options, layers: int
) -> PairByPeople | None:
    """Differences as people's ratings correct them; None unless both variants have `LEAST_SCORES`."""
    there = np.asarray(~np.isnan(sides[0]).all(axis=1) & ~np.isnan(sides[1]).all(axis=1))
    both = [np.where(there[:, np.newaxis], side, np.nan) for side in sides]
    arms = [corrected_arm(scores, name, side, options) for name, side in zip(names, both, strict=True)]
    if not all(arms):
        return None
    control, treatment = arms

    def interval(name: str, alpha: float) -> Interval:
        gain = treatment[name].minus(control[name])
        low, high = gain.interval(alpha, scores.clusters)
        drawn = 0 if scores.clusters is None else len(np.unique(cluster_units(scores.clusters[there])))
        p = gain.p_value(scores.clusters)
        return Interval(gain.estimate, low, high, p, alpha, int(there.sum()), "people", clusters=drawn)

    return PairByPeople(
        interval("composite", options.alpha),
        interval("judge", options.alpha / max(layers, 1)),
        (control["composite"].estimate, treatment["composite"].estimate),
    )


def to_rate(scores: Scores, layers: Floats, options: Options) -> dict[str, tuple[str, ...]]:
    """Units of each variant that people may rate next, those first by which most is learnt; of rated variants only."""
    suggested = {}
    for name, own in zip(scores.variants, layers, strict=True):
        if rated := options.gold.get(name):
            people = _people(scores, rated)
            places = next_to_label(own[:, JUDGE], people, own[:, JUDGE], _SUGGESTED, seed=options.seed)
            suggested[name] = tuple(scores.units[index] for index in places)
    return suggested


def judge_bias(
    scores: Scores, names: Sequence[str], sides: Sequence[Floats], options: Options, gain: Interval
) -> JudgeBias | None:
    """How much bias of the judge between control and treatment would make up a gain; None without both of these.

    Errors of the judge, its layer less what people say, are compared over the units that were rated of each; those that
    share a unit, or its cluster, are one draw.
    """
    there = ~np.isnan(sides[0]).all(axis=1) & ~np.isnan(sides[1]).all(axis=1)
    parts = composite(np.where(np.isnan(sides[1]), np.nan, np.eye(len(LAYERS))[JUDGE]), options.weights)
    weight = weighted_mean(np.where(there, parts, np.nan), scores.shares)
    if not gain.positive or not weight > 0.0:
        return None
    bias = JudgeBias(weight, float(gain.low / weight), float(gain.estimate / weight))
    errors = []
    for name, side in zip(names, sides, strict=True):
        error = np.where(there, side[:, JUDGE] - _people(scores, options.gold.get(name, {})), np.nan)
        number = int((~np.isnan(error)).sum())
        if number < LEAST_RATED:
            return bias
        mean = weighted_mean(error, scores.shares)
        share = np.where(np.isnan(error), 0.0, scores.shares)
        moved = share / share.sum() * np.nan_to_num(error - mean) * math.sqrt(number / (number - 1))
        errors.append(Corrected(mean, moved, unseen(error, number), number, 1))
    low, high = errors[1].minus(errors[0]).interval(options.alpha, scores.clusters)
    return replace(bias, low=low, high=high)
