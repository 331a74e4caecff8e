"""The verdict by the order of rules of oh-my-knowledge (omk) 0.54, from the summary numbers of a report.

What differs from the reference: gates count only if the composite is significantly better; a gain needs neither
20 pairs nor saturation; the sample count is that of the authored samples, not of complete pairs; a treatment
with fewer than two comparable units is dropped, unless all are; what is missing is not looked at; instability and
overfitting act on the whole report, not on a pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalcube.stages.analyze.verdict.composite import THRESHOLD
from evalcube.stages.analyze.verdict.result import ROLL_UP, Decision

MIN_SAMPLES, DISSENT, UNSTABLE, OVERFIT, TRIVIAL = 20, 0.4, 0.15, 0.5, 0.1
MIN_SCORABLE = 3

LAYERS = ("fact", "behavior", "judge")


@dataclass(frozen=True)
class Bootstrap:
    """A percentile interval of that tool."""

    low: float
    high: float
    estimate: float
    significant: bool
    """0 lies outside the interval."""


@dataclass(frozen=True)
class Pair:
    """A control and a treatment, with the interval of their difference if there is one."""

    control: str
    treatment: str
    interval: Bootstrap | None = None
    alpha: float = 0.05


@dataclass(frozen=True)
class Curve:
    """Saturation of one variant."""

    saturated: bool
    confidence: str
    at: int | None = None


@dataclass(frozen=True)
class Part:
    """Train and holdout composite of one variant, and how many samples each rests on."""

    train: float
    holdout: float
    train_scorable: int
    holdout_scorable: int


@dataclass(frozen=True)
class Report:
    """The numbers that the rules read."""

    variants: Sequence[str]
    samples: int
    """Authored samples."""
    means: Mapping[str, Mapping[str, float]]
    """Per variant the means of fact, behavior, judge and composite; absent ones are left out."""
    pairs: Sequence[Pair] = ()
    pearson: Mapping[str, float] = field(default_factory=dict)
    runs: int = 1
    run_stats: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """(mean, standard deviation) of the run composites per variant."""
    saturation: Mapping[str, Curve] = field(default_factory=dict)
    holdout: Mapping[str, Part] = field(default_factory=dict)
    threshold: float = THRESHOLD
    trivial: float = TRIVIAL


@dataclass(frozen=True)
class Dissent:
    """The variant on which judges disagree most."""

    variant: str
    pearson: float


@dataclass(frozen=True)
class Outcome:
    """Verdict of a report."""

    decision: Decision
    pairs: tuple[tuple[Pair, Decision, Dissent | None], ...]
    representative: tuple[str, str] | None
    gate_passed: bool
    median_cv: float
    overfitting: tuple[str, float] | None
    """Variant and its train − holdout."""


def gate_passes(means: Mapping[str, float], threshold: float) -> bool:
    """Whether at least one layer is measured and each measured layer reaches the threshold."""
    present = [means[name] for name in LAYERS if name in means]
    return bool(present) and all(mean >= threshold for mean in present)


def decide(report: Report) -> Outcome:
    """Verdict of a report, with what decided it."""
    cv, overfit = median_cv(report), overfitting(report)
    gates = {name: gate_passes(report.means.get(name, {}), report.threshold) for name in report.variants}
    passed = all(gates.values())
    if len(report.variants) < 2:
        decision = Decision("SOLO", "solo_gate_pass" if passed else "solo_gate_fail", ("a single variant",))
        return Outcome(decision, (), None, passed, cv, overfit)
    control = report.variants[0]
    pairs = list(report.pairs) or [Pair(control, name) for name in report.variants[1:]]
    decided = tuple((pair, *_decide_pair(pair, report)) for pair in pairs)
    worst = min(decided, key=lambda item: ROLL_UP.index(item[1].verdict))
    decision = worst[1]
    if decision.verdict == "PROGRESS":
        decision = _downgraded(decision, cv, overfit)
    return Outcome(decision, decided, (worst[0].control, worst[0].treatment), passed, cv, overfit)


def _downgraded(decision: Decision, cv: float, overfit: tuple[str, float] | None) -> Decision:
    causes, reasons = [], []
    if cv > UNSTABLE:
        causes.append("unstable")
        reasons.append(f"runs differ too much (CV {cv:.3f})")
    if overfit is not None:
        causes.append("overfit")
        reasons.append(f"{overfit[0]} does {overfit[1]:.2f} points worse on the holdout")
    if not causes:
        return decision
    return Decision("CAUTIOUS", f"downgraded_{'_and_'.join(causes)}", (*decision.reasons, *reasons))


def _decide_pair(pair: Pair, report: Report) -> tuple[Decision, Dissent | None]:
    interval = pair.interval
    if interval is None:
        return _without_interval(pair, report), None
    text = f"{interval.estimate:+g} [{interval.low:g}, {interval.high:g}]"
    if not interval.significant:
        curve = report.saturation.get(pair.treatment)
        waiting = curve is not None and not curve.saturated and curve.confidence != "high"
        if report.samples < MIN_SAMPLES or waiting:
            return Decision(
                "UNDERPOWERED", "not_significant_underpowered", (text, f"N={report.samples}")
            ), None
        return Decision("NOISE", "not_significant_noise", (text, "the interval contains 0")), None
    if interval.estimate < 0:
        return Decision("REGRESS", "significant_negative", (text,)), None
    return _positive(pair, interval.estimate, text, report)


def _positive(pair: Pair, estimate: float, text: str, report: Report) -> tuple[Decision, Dissent | None]:
    if not gate_passes(report.means.get(pair.treatment, {}), report.threshold):
        return Decision("CAUTIOUS", "positive_gate_broken", (text, "the treatment fails a layer gate")), None
    if estimate < report.trivial:
        return Decision("CAUTIOUS", "positive_trivially_small", (text, "too small to matter")), None
    dissent = _dissent(pair, report)
    if dissent is not None:
        words = f"the judges disagree on {dissent.variant} (Pearson {dissent.pearson:g})"
        return Decision("CAUTIOUS", "positive_judge_dissent", (text, words)), dissent
    if not gate_passes(report.means.get(pair.control, {}), report.threshold):
        words = "the control fails a gate that the treatment passes"
        return Decision("PROGRESS", "positive_recovers_broken_control", (text, words)), None
    return Decision("PROGRESS", "positive_clean", (text,)), None


def _without_interval(pair: Pair, report: Report) -> Decision:
    step = _composite(report.means.get(pair.treatment, {})) - _composite(report.means.get(pair.control, {}))
    text = f"{step:+.2f} without an interval"
    if abs(step) < report.trivial:
        return Decision("NOISE", "no_ci_trivial", (text,))
    if step > 0:
        return Decision("CAUTIOUS", "no_ci_positive", (text,))
    return Decision("REGRESS", "no_ci_negative", (text,))


def _composite(means: Mapping[str, float]) -> float:
    """Mean composite, or the mean of the layer means, or 0."""
    if "composite" in means:
        return means["composite"]
    present = [means[name] for name in LAYERS if name in means]
    return sum(present) / len(present) if present else 0.0


def _dissent(pair: Pair, report: Report) -> Dissent | None:
    """The lower of the two Pearson values if it is below the limit; the treatment's if they are equal."""
    found = [
        Dissent(name, report.pearson[name])
        for name in (pair.treatment, pair.control)
        if report.pearson.get(name, math.nan) < DISSENT
    ]
    return min(found, key=lambda item: item.pearson, default=None)


def median_cv(report: Report) -> float:
    """Median over variants of standard deviation / mean over runs; NaN with one run or without positive means."""
    ratios = sorted(sd / mean for mean, sd in report.run_stats.values() if mean > 0)
    if report.runs < 2 or not ratios:
        return math.nan
    middle = len(ratios) // 2
    return ratios[middle] if len(ratios) % 2 else (ratios[middle - 1] + ratios[middle]) / 2


def subjects(report: Report) -> Sequence[str]:
    """All treatments, or the only variant."""
    return report.variants[1:] if len(report.variants) >= 2 else report.variants


def overfitting(report: Report) -> tuple[str, float] | None:
    """The variant with the largest train − holdout above the limit, both resting on enough samples."""
    found = [
        (name, part.train - part.holdout)
        for name, part in (
            (name, report.holdout[name]) for name in subjects(report) if name in report.holdout
        )
        if min(part.train_scorable, part.holdout_scorable) >= MIN_SCORABLE
        and part.train - part.holdout > OVERFIT
    ]
    return max(found, key=lambda item: item[1], default=None)
