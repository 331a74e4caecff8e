"""The report of omk 0.54 as the same `Verdict` that the reference engine gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from evalcube.stages.analyze.verdict.agreement import Agreement
from evalcube.stages.analyze.verdict.composite import LAYERS, describe, layer_bits
from evalcube.stages.analyze.verdict.inputs import Scores
from evalcube.stages.analyze.verdict.missing import silent_judges
from evalcube.stages.analyze.verdict.omk054.bootstrap import Bootstrap
from evalcube.stages.analyze.verdict.omk054.engine import Evaluation, Settings, evaluate
from evalcube.stages.analyze.verdict.omk054.rules import DISSENT, Pair, gate_passes
from evalcube.stages.analyze.verdict.omk054.summary import composites, rounded_layers
from evalcube.stages.analyze.verdict.paired import Interval
from evalcube.stages.analyze.verdict.result import (
    NEXT_STEP,
    Arm,
    Badge,
    Badges,
    Decision,
    PairResult,
    Verdict,
)

STRONG_PEARSON = 0.7


def verdict(scores: Scores, settings: Settings | None = None) -> Verdict:
    """Verdict of omk 0.54; its intervals have no p values, and layers have no intervals.

    Parameters
    ----------
    scores
        From `checked_scores`; units in the order in which that tool would have them.
    settings
        That tool's defaults if None.
    """
    found = evaluate(scores, settings)
    layers = rounded_layers(scores)[-1]
    totals = composites(layers)
    outcome, decision = found.outcome, found.outcome.decision
    arms = tuple(
        _arm(found, layers[place], totals[place], name) for place, name in enumerate(scores.variants)
    )
    shown = {arm.name: arm.shown for arm in arms}
    places = {name: place for place, name in enumerate(scores.variants)}
    pairs = tuple(
        _pair(
            pair,
            own,
            shown,
            int((~np.isnan(totals[[places[pair.control], places[pair.treatment]]])).all(axis=0).sum()),
        )
        for pair, own, _ in outcome.pairs
    )
    return Verdict(
        verdict=decision.verdict,
        branch=decision.branch,
        reasons=decision.reasons,
        next_step=NEXT_STEP[decision.verdict],
        representative=outcome.representative,
        pairs=pairs,
        arms=arms,
        badges=_badges(found),
        gate_passed=outcome.gate_passed,
        engine="omk054",
        notes=(*silent_judges(scores), *_dropped(scores.variants, pairs)),
    )


def _dropped(variants: Sequence[str], pairs: Sequence[PairResult]) -> Iterator[str]:
    """What that tool does not say: which treatments take no part in its verdict."""
    compared = {pair.treatment for pair in pairs}
    for name in variants[1:]:
        if name not in compared:
            yield f"{name} takes no part in the verdict: it shares fewer than two measured units with {variants[0]}"


def _arm(found: Evaluation, layers: np.ndarray, totals: np.ndarray, name: str) -> Arm:
    summary, threshold = found.summaries[name], found.report.threshold
    means = {layer: summary.means[layer] for layer in LAYERS if layer in summary.means}
    mean = summary.means.get("composite", math.nan)
    bits = layer_bits(layers)
    stats = found.report.run_stats.get(name)
    part = found.report.holdout.get(name)
    agreement = summary.agreement
    return Arm(
        name=name,
        units=int((~np.isnan(totals)).sum()),
        composite=mean,
        shown=describe(mean, bits),
        bits=int(np.bitwise_or.reduce(bits, initial=0)),
        layers=means,
        gate_passed=gate_passes(means, threshold),
        failed_layers=tuple(layer for layer, value in means.items() if value < threshold),
        agreement=None
        if agreement is None
        else Agreement(agreement.pearson, agreement.mad, agreement.pairs, agreement.units),
        variation=math.nan if stats is None or stats[0] <= 0 else stats[1] / stats[0],
        saturation=found.saturation.get(name),
        overfit=math.nan if part is None else part.train - part.holdout,
    )


def _pair(pair: Pair, decision: Decision, shown: dict[str, str], complete: int) -> PairResult:
    return PairResult(
        control=pair.control,
        treatment=pair.treatment,
        decision=decision,
        complete_pairs=complete,
        shown=(shown[pair.control], shown[pair.treatment]),
        composite=None if pair.interval is None else _interval(pair.interval, pair.alpha, complete),
        layers={},
        simultaneous={},
    )


def _interval(interval: Bootstrap, alpha: float, pairs: int) -> Interval:
    return Interval(
        interval.estimate,
        interval.low,
        interval.high,
        math.nan,
        alpha,
        pairs,
        "percentile bootstrap (omk054)",
    )


def _badges(found: Evaluation) -> Badges:
    pearson = [value for value in found.report.pearson.values() if not math.isnan(value)]
    judges: Badge = "unknown"
    if pearson:
        weakest = min(pearson)
        judges = "yes" if weakest >= STRONG_PEARSON else "partly" if weakest >= DISSENT else "no"
    decided = found.outcome.representative
    curve = None if decided is None else found.saturation.get(decided[1])
    interval = next(
        (pair.interval for pair, _, _ in found.outcome.pairs if (pair.control, pair.treatment) == decided),
        None,
    )
    return Badges(
        judges_agree=judges,
        significant="unknown" if interval is None else "yes" if interval.significant else "no",
        saturated="unknown" if curve is None else "yes" if curve.saturated else "no",
    )
