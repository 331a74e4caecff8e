"""What of a comparison is missing, and what the difference would be if all of that had failed.

A pair that lacks one arm drops out of a paired test, which is right only if what is missing is like the rest. It seldom
is: hard questions are cut, refused and time out more often than easy ones. So nothing is assumed about it: bounds are
computed as if it had failed (Manski 1990, Nonparametric bounds on treatment effects, American Economic Review 80,
319-323), and a gain counts only if it survives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.composite import (
    HIGHEST,
    LAYERS,
    LOWEST,
    composite,
    difference,
    judge_layer,
    layer_gate,
    layer_means,
    mean_present,
)
from evalcube.stages.analyze.verdict.inputs import JUDGE, Flags, Scores
from evalcube.stages.analyze.verdict.paired import paired_intervals
from evalcube.stages.analyze.verdict.result import Gap, Missing
from evalcube.stages.analyze.verdict.rules import Options

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
