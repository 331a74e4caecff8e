"""The reference's order of rules: the verdict of one pair, which of several decides, and what a caller may choose.

1 fewer than two variants: SOLO (in `verdict.py`). 2 composite worse: REGRESS. 3 treatment below a threshold: CAUTIOUS
if the composite is better, REGRESS if control reached it, else CAUTIOUS. 4 nothing moved: UNDERPOWERED or NOISE.
5 a layer moved and the composite did not: CAUTIOUS. 6 composite better, with a reservation: CAUTIOUS. 7 PROGRESS.

Three rules go beyond the reference. A gain is overfitted if a test finds it smaller on held-out units, whatever the
levels are there. What is missing more in one arm than in the other, or more than a declared bound, makes UNDERPOWERED
of NOISE and CAUTIOUS of a gain. And judges dissent only if they neither order units alike (Pearson)
nor rate them closely (Gwet's AC2): near the top of the scale there is no order left to agree on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evalcube.stages.analyze.verdict.agreement import Agreement, JudgeBias
from evalcube.stages.analyze.verdict.composite import SLACK, THRESHOLD, LayerCheck, decimal
from evalcube.stages.analyze.verdict.measures import SPREAD, Holdout, Reach, Saturation
from evalcube.stages.analyze.verdict.paired import DRAWS, Interval, Method
from evalcube.stages.analyze.verdict.result import NEXT_STEP, ROLL_UP, Decision, Missing


@dataclass(frozen=True)
class Thresholds:
    """Where the rules draw their lines."""

    trivial: float = 0.1
    """A gain below this many points is too small to matter."""
    min_pairs: int = 20
    dissent: float = 0.4
    """Judges whose Pearson is below this order units differently ..."""
    apart: float = 0.6
    """... and those whose AC2 is below this are far apart, too; both make the judge layer unreliable."""
    missing: float = 0.1
    """Largest share that may be missing in an arm."""
    uneven: float = 0.05
    """Largest difference between the shares that are missing in two arms."""
    unstable: float = 0.15
    """Coefficient of variation over runs above this."""


@dataclass(frozen=True)
class Evidence:
    """All that the rules look at."""

    composite: Interval
    layers: Mapping[str, Interval]
    """Simultaneous intervals of the compared layers."""
    control_check: LayerCheck
    treatment_check: LayerCheck
    saturation: Saturation | None = None
    """Of the treatment; None if it was not measured."""
    agreement: Mapping[str, Agreement] | None = None
    """Agreement of judges by arm; left out where it was not measured."""
    variation: float = math.nan
    """Median coefficient of variation of the two arms over runs; NaN with a single run."""
    holdout: Holdout | None = None
    """The gain on both parts; None without a split."""
    missing: Missing | None = None
    """What the pair lacks; None if nothing."""
    reach: Reach | None = None
    """What the pair could have seen."""
    bias: JudgeBias | None = None
    """Which bias of the judge would make up a gain."""


def decide_pair(evidence: Evidence, limits: Thresholds | None = None) -> Decision:
    """Verdict of one pair: the first rule that applies."""
    limits = limits or Thresholds()
    gain = difference_text(evidence.composite)
    if evidence.composite.negative:
        return Decision("REGRESS", "significant_negative", (f"the composite fell: {gain}",))
    if not evidence.treatment_check.passes:
        return _gate_broken(evidence, gain)
    moved = {name: layer for name, layer in evidence.layers.items() if layer.significant}
    if not evidence.composite.positive and not moved:
        return _nothing_moved(evidence, limits, gain)
    if not evidence.composite.positive:
        names = ", ".join(f"{name} {'rose' if layer.positive else 'fell'}" for name, layer in moved.items())
        lacking = _lacking(evidence.missing, limits)
        return Decision("CAUTIOUS", "layer_moved", (f"the composite hides a change: {names}", gain, *lacking))
    reservations = _reservations(evidence, limits, moved)
    if reservations:
        return Decision("CAUTIOUS", reservations[0][0], (gain, *(text for _, text in reservations)))
    held = evidence.holdout
    unseen: list[str] = []
    if held is not None:
        gap = f"only a gap of {decimal(held.detectable)} is detected with 80% power"
        unseen.append(f"the gain on held-out questions is not smaller, but {gap}")
    if not evidence.control_check.passes:
        lifted = ", ".join(evidence.control_check.failed) or "which had no layer at all"
        text = f"the treatment reaches the threshold that the control missed ({lifted})"
        return Decision("PROGRESS", "positive_recovers_broken_control", (gain, text, *unseen))
    text = f"every layer reaches the threshold of {evidence.treatment_check.threshold:g}, none fell"
    return Decision("PROGRESS", "positive_clean", (gain, text, *unseen))


def _gate_broken(evidence: Evidence, gain: str) -> Decision:
    check, control = evidence.treatment_check, evidence.control_check
    if check.means:
        text = ", ".join(
            f"{name} {decimal(check.means[name])} < {check.threshold:g}" for name in check.failed
        )
        held = [name for name in check.failed if name in control.means and name not in control.failed]
    else:
        text = "the treatment has no measured layer"
        held = list(control.means) if control.passes else []
    reasons = (f"the treatment is below the threshold: {text}", gain)
    if evidence.composite.positive:
        return Decision("CAUTIOUS", "positive_gate_broken", reasons)
    if held:
        return Decision("REGRESS", "gate_dropped", (*reasons, f"the control reaches it: {', '.join(held)}"))
    return Decision("CAUTIOUS", "gate_broken_in_both", (*reasons, "the control is below it, too"))


def _nothing_moved(evidence: Evidence, limits: Thresholds, gain: str) -> Decision:
    curve, seen = evidence.saturation, _seen(evidence, limits)
    if evidence.composite.size < limits.min_pairs:
        few = _too_few(evidence.composite, limits)
        return Decision("UNDERPOWERED", "not_significant_underpowered", (gain, few, *seen))
    if curve is not None and (
        curve.confidence == "low" or (not curve.saturated and curve.confidence != "high")
    ):
        text = f"the saturation curve has {curve.confidence} confidence"
        return Decision("UNDERPOWERED", "not_significant_underpowered", (gain, text, *seen))
    lacking = _lacking(evidence.missing, limits)
    if lacking:
        return Decision("UNDERPOWERED", "not_significant_missing", (gain, *lacking, *seen))
    return Decision("NOISE", "not_significant_noise", (gain, "no layer moved either", *seen))


def _seen(evidence: Evidence, limits: Thresholds) -> list[str]:
    """Say which difference could have been detected, and which loss is not excluded."""
    low, seen = evidence.composite.low, evidence.composite
    texts = []
    if evidence.reach is not None and seen.pairs:
        texts.append(
            f"minimum detectable difference of {seen.amount}: {decimal(evidence.reach.detectable)} (80% power)"
        )
    if low > -limits.trivial:
        texts.append(f"a composite lower by {limits.trivial:g} or more is excluded for the complete pairs")
    else:
        loss = f"a loss of up to {decimal(-low)}" if math.isfinite(low) else "a loss of any size"
        texts.append(f"{loss} is not excluded: this does not show that there is no harm")
    return texts


def next_step(decision: Decision, reach: Reach, gain: Interval, limits: Thresholds) -> str:
    """Say what to do after a verdict; after no call, how many pairs would make one."""
    if decision.branch.endswith("_missing"):
        begin = "Do not ship yet" if decision.verdict == "CAUTIOUS" else "Not decided"
        return (
            f"{begin}: results are missing, and more questions do not help. `evalcube run CONFIG` asks again what "
            "failed; after a judge was repaired, `evalcube run CONFIG --fresh unrated` asks it again, and no model."
        )
    if decision.verdict in NEXT_STEP:
        return NEXT_STEP[decision.verdict]
    pairs, noun = gain.size, gain.noun
    new, more = (max(limits.min_pairs, number) for number in (reach.pairs, reach.pairs_again))
    if pairs >= (more if gain.method == "anytime" else new):
        return (
            f"No difference found; more questions are unlikely to change this: {pairs:,} {noun} detect a difference of "
            f"{reach.difference:g} with 80% power. To look for a smaller difference, state it before you measure."
        )
    return (
        f"Not decided. To detect a difference of {reach.difference:g} with 80% power, grow this cube to "
        f"{max(more, pairs + 1):,} {noun}, which allows for looking again, or plan {new:,} from the start with "
        "a single look. A larger difference needs fewer."
    )


def _reservations(
    evidence: Evidence, limits: Thresholds, moved: Mapping[str, Interval]
) -> list[tuple[str, str]]:
    """Return the reservations about a gain as (branch, words), in the order of the rules."""
    curve = evidence.saturation
    lacking = _lacking(evidence.missing, limits) or _bounds(evidence.missing)
    doubts = [("positive_missing", text) for text in lacking]
    doubts += [
        ("positive_layer_loss", f"{name} fell: {difference_text(layer)}")
        for name, layer in moved.items()
        if layer.negative
    ]
    if evidence.composite.size < limits.min_pairs:
        doubts.append(("positive_underpowered", _too_few(evidence.composite, limits)))
    if curve is not None and not curve.saturated:
        doubts.append(("positive_unsaturated", "the scores have not settled over the runs (unsaturated)"))
    doubts += [("positive_judge_dissent", text) for text in _dissent(evidence.agreement or {}, limits)]
    if evidence.bias is not None and evidence.bias.is_shown:
        doubts.append(("positive_judge_bias", evidence.bias.text))
    if evidence.composite.estimate < limits.trivial - SLACK:
        doubts.append(
            ("positive_trivially_small", f"a gain below {limits.trivial:g} points is too small to matter")
        )
    if evidence.variation > limits.unstable + SLACK:
        text = f"runs differ too much (CV {decimal(evidence.variation)} > {limits.unstable:g})"
        doubts.append(("positive_unstable", text))
    if evidence.holdout is not None and evidence.holdout.gap.positive:
        doubts.append(
            (
                "positive_overfit",
                f"the gain is smaller on held-out questions: {holdout_text(evidence.holdout)}",
            )
        )
    return doubts


def holdout_text(holdout: Holdout) -> str:
    """Both gains, and how they differ."""
    gap = holdout.gap
    ends = f"[{decimal(gap.low, sign=True)}, {decimal(gap.high, sign=True)}] at {100 * (1 - gap.alpha):.4g}%"
    return (
        f"{decimal(holdout.held_out, sign=True)} there, {decimal(holdout.train, sign=True)} on the others, a gap of "
        f"{decimal(gap.estimate, sign=True)} {ends}; the minimum detectable gap is {decimal(holdout.detectable)}"
    )


def dissents(agreement: Agreement, pearson: float, ac2: float) -> bool:
    """Whether judges neither order units alike nor rate them closely."""
    return not agreement.pearson >= pearson and agreement.ac2 < ac2


def _dissent(agreement: Mapping[str, Agreement], limits: Thresholds) -> list[str]:
    """The arms whose judges disagree, the worst first."""
    dissenting = sorted(
        (judges.ac2, name, "undefined" if math.isnan(judges.pearson) else decimal(judges.pearson))
        for name, judges in agreement.items()
        if dissents(judges, limits.dissent, limits.apart)
    )
    return [
        f"the judges disagree on {name} (AC2 {decimal(ac2)} < {limits.apart:g}, Pearson {pearson})"
        for ac2, name, pearson in dissenting
    ]


def _lacking(missing: Missing | None, limits: Thresholds) -> list[str]:
    """Say what is missing too often, or more in one arm than in the other, with the bounds; empty if nothing is."""
    if missing is None:
        return []
    uneven = [
        gap
        for gap in missing.gaps
        if max(gap.shares) > limits.missing + SLACK
        or abs(gap.shares[0] - gap.shares[1]) > limits.uneven + SLACK
    ]
    if not uneven:
        return []
    first = max(uneven, key=lambda gap: (abs(gap.shares[0] - gap.shares[1]), max(gap.shares)))
    lesser = [gap.what for gap in uneven if gap is not first]
    text = (
        f"the treatment lacks {first.what} in {first.treatment} of {first.treatment_expected} answers, the control in "
        f"{first.control} of {first.control_expected}: what is missing may not be like the rest"
    )
    return [text + (f" (also: {', '.join(lesser)})" if lesser else ""), bounds_text(missing)]


def _bounds(missing: Missing | None) -> list[str]:
    """Why a gain does not survive what is missing, little as it may be; empty if it does."""
    if missing is None:
        return []
    # The second is a bound that no real gap attains: its sign is asked for, and not that it is significant.
    if not missing.if_failed.positive or missing.worst.estimate <= 0:
        return ["the gain rests on what is missing", bounds_text(missing)]
    if missing.failed_layers:
        return [
            f"if what is missing failed, layers would miss the threshold: {', '.join(missing.failed_layers)}"
        ]
    return []


def bounds_text(missing: Missing) -> str:
    """Say what the difference would be with what is missing."""
    failed, worst = difference_text(missing.if_failed), difference_text(missing.worst)
    return f"if all that is missing failed, the difference would be {failed}; at worst {worst}"


def _too_few(gain: Interval, limits: Thresholds) -> str:
    few = f"only {gain.clusters} clusters of {gain.pairs}" if gain.clusters else f"only {gain.pairs}"
    return f"{few} complete pairs; below {limits.min_pairs} a shift does not count as powered"


def difference_text(interval: Interval) -> str:
    """A difference with its interval in words, such as "+0.40 [+0.20, +0.60] at 95%, 24 pairs"."""
    if interval.pairs == 0:
        return "no question has a composite of both variants"
    level = f"{100 * (1 - interval.alpha):.4g}%"
    if not math.isfinite(interval.low) or not math.isfinite(interval.high):
        few = f"too few {interval.noun} ({interval.size})"
        return f"{decimal(interval.estimate, sign=True)}, {few} for an interval at {level}"
    bounds = f"[{decimal(interval.low, sign=True)}, {decimal(interval.high, sign=True)}]"
    return f"{decimal(interval.estimate, sign=True)} {bounds} at {level}, {interval.amount}"


def worst(decisions: Sequence[Decision]) -> int:
    """Place of the decision that stands for all: the first with the worst verdict."""
    return min(range(len(decisions)), key=lambda place: ROLL_UP.index(decisions[place].verdict))


@dataclass(frozen=True)
class Options:
    """Choices of a verdict."""

    alpha: float = 0.05
    """Error of the whole comparison; each of K treatments is tested at alpha / K."""
    planned: float = 0.0
    """Of a pair: its error if it is looked at once, as planned; where `alpha` is less, the rest is for later looks."""
    threshold: float = THRESHOLD
    limits: Thresholds = field(default_factory=Thresholds)
    method: Method | None = "sign-flip"
    """None: as many looks need it, see `evalcube.stages.analyze.verdict.comparison.for_this_look`."""
    grown: bool = False
    """Whether the comparison was looked at before, with fewer units."""
    draws: int = DRAWS
    seed: int = 0
    weights: tuple[float, ...] | None = None
    """Declared weights of fact, behavior, judge; equal if None."""
    layer_set: Literal["common", "own"] = "common"
    """Composites over the layers that both arms have of a unit, or over each arm's own."""
    holdout_ratio: float = 0.0
    gold: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Ratings by people, by variant and unit."""
    gold_variant: str | None = None
    """The variant whose agreement is told; None: the first one that was rated."""


_FOUND = 1.96 + 0.84


@dataclass(frozen=True)
class Power:
    """The difference of composites that a number of questions detects."""

    units: int
    """Number of questions for each variant."""
    band: str
    """UNDERPOWERED if there are too few questions for PROGRESS, else which differences are detected."""
    found: float
    """Difference of composites, in points of the scale from 1 to 5, that is detected with 80% power."""

    @property
    def text(self) -> str:
        """The same in a sentence."""
        least = Thresholds().min_pairs
        if self.units < least:
            return f"composite: {self.units} questions per variant are UNDERPOWERED: PROGRESS takes {least} or more"
        size = f"{self.band} (about {self.found:.2g} or more on the scale from 1 to 5)"
        return f"composite: with {self.units} questions per variant, {size} are detected with 80% power"


def power(units: int) -> Power:
    """The power band of a number of questions.

    How much their differences will vary is not known before anything is measured: as in the simulations in
    docs/composite.md, whose shares of significant results it reproduces (20 pairs: +0.2 in 40%, +0.4 in 93%; 50
    pairs: +0.2 in 78%).

    Examples
    --------
    >>> power(12).band, power(24).band, power(80).band, power(400).band
    ('UNDERPOWERED', 'large differences', 'medium differences', 'small differences')
    """
    limits = Thresholds()
    detectable = _FOUND * SPREAD / math.sqrt(units)
    if units < limits.min_pairs:
        band = "UNDERPOWERED"
    elif detectable > 2 * limits.trivial + 0.01:
        band = "large differences"
    else:
        band = "medium differences" if detectable > limits.trivial + 0.005 else "small differences"
    return Power(units, band, detectable)
