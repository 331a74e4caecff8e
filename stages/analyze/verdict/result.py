"""The parts of a verdict; `to_dict` turns it into plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from evalcube import known_as
from evalcube.stages.analyze.verdict.agreement import Agreement, GoldAgreement, JudgeBias
from evalcube.stages.analyze.verdict.measures import Holdout, Reach, Saturation
from evalcube.stages.analyze.verdict.paired import Interval
from evalcube.stages.analyze.verdict.sensitivity import Hotelling, Sensitivity

Level = Literal["PROGRESS", "CAUTIOUS", "REGRESS", "NOISE", "UNDERPOWERED", "SOLO"]
Badge = Literal["yes", "partly", "no", "unknown"]

ROLL_UP: tuple[Level, ...] = ("REGRESS", "CAUTIOUS", "UNDERPOWERED", "NOISE", "PROGRESS")
"""Worst first: one treatment that regresses decides, however good the others are."""

NEXT_STEP: Mapping[str, str] = {
    "PROGRESS": "Ship it, and keep this report as the evidence.",
    "CAUTIOUS": "Do not ship yet: look into the reasons, then compare in a new run with another seed.",
    "REGRESS": "Do not ship: find the weakest layer and the units that lost, fix them, then measure that.",
    "SOLO": "Name another variant to compare with: a single one has an absolute score only.",
}


@dataclass(frozen=True)
class Decision:
    """What one pair, or one report, comes to."""

    verdict: Level
    branch: str
    """Stable code of the rule that decided."""
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Arm:
    """One variant on its own."""

    name: str
    units: int
    """Units with a composite."""
    composite: float
    """Mean over these units; NaN if nothing was measured."""
    shown: str
    """The composite with the layers behind it, such as "4.33 (3/3)"."""
    bits: int
    """Layers that occur, as a bitmask in the order fact, behavior, judge."""
    layers: Mapping[str, float]
    gate_passed: bool
    failed_layers: tuple[str, ...]
    agreement: Agreement | None = None
    variation: float = math.nan
    """Standard deviation of the run means over their mean; NaN with fewer than two runs."""
    saturation: Saturation | None = None
    by_people: tuple[float, float] | None = None
    """Interval of the composite where ratings by people correct it and the judge layer; None without enough of them."""


@dataclass(frozen=True)
class Gap:
    """How much of one kind is missing in both arms of a pair."""

    what: str
    """``the composite``, a layer, or ``readings of`` a judge."""
    control: int
    """Missing in the control, of `control_expected`."""
    control_expected: int
    treatment: int
    """Missing in the treatment, of `treatment_expected`."""
    treatment_expected: int

    @property
    def shares(self) -> tuple[float, float]:
        """Missing shares of control and treatment; 0 where nothing was expected."""
        return (
            self.control / max(self.control_expected, 1),
            self.treatment / max(self.treatment_expected, 1),
        )


@dataclass(frozen=True)
class Missing:
    """What a pair lacks, and bounds on the difference of its composites."""

    gaps: tuple[Gap, ...]
    """Of each kind that lacks something."""
    if_failed: Interval
    """Had everything that is missing got the lowest score, in both arms."""
    worst: Interval
    """Had what the treatment lacks got the lowest score, and what the control lacks the highest."""
    failed_layers: tuple[str, ...]
    """Layers of the treatment that would miss the threshold, had what is missing of it got the lowest score."""


@dataclass(frozen=True)
class PairResult:
    """One treatment against the control."""

    control: str
    treatment: str
    decision: Decision
    complete_pairs: int
    """Units with a composite in both arms."""
    shown: tuple[str, str]
    """Both composites over the complete pairs and the compared layers, control first."""
    composite: Interval
    """Difference treatment − control."""
    layers: Mapping[str, Interval]
    """Each layer at the pair's own level."""
    simultaneous: Mapping[str, Interval]
    """All layers together at the pair's level (max-t); these decide whether a layer moved."""
    reach: Reach
    """What the pair could have seen."""
    standardised: Interval | None = None
    """Composite difference with every layer in units of its own standard deviation."""
    joint: Hotelling | None = None
    sensitivity: Sensitivity | None = None
    missing: Missing | None = None
    """What the pair lacks; None if nothing."""
    holdout: Holdout | None = None
    """Gains on both parts; None without a split."""
    bias: JudgeBias | None = None
    """Which bias of the judge would make up the gain; None without a gain, or where people's ratings decide."""

    @property
    def verdict(self) -> Level:
        """Verdict of this pair alone."""
        return self.decision.verdict

    @property
    def branch(self) -> str:
        """Code of the rule that decided this pair."""
        return self.decision.branch


@dataclass(frozen=True)
class Badges:
    """The four questions of the methodology audit."""

    judges_agree: Badge = "unknown"
    significant: Badge = "unknown"
    saturated: Badge = "unknown"
    human_aligned: Badge = "unknown"


@known_as("evalcube.results")
@dataclass(frozen=True)
class Verdict:
    """The verdict on all treatments together, with its reasons."""

    verdict: Level
    branch: str
    reasons: tuple[str, ...]
    next_step: str
    representative: tuple[str, str] | None
    """The pair that decided: (control, treatment)."""
    pairs: tuple[PairResult, ...]
    arms: tuple[Arm, ...]
    badges: Badges
    gate_passed: bool
    """Whether each layer of every variant reaches the threshold; decides the exit code of SOLO."""
    notes: tuple[str, ...] = ()
    """Caveats that do not change the verdict."""
    gold: GoldAgreement | None = None
    to_rate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Units that people may rate next, by variant, those first by which most is learnt; of rated variants only."""

    @property
    def exit_code(self) -> int:
        """0 if it may ship (PROGRESS, or SOLO with all layers at the threshold), else 1."""
        return exit_code(self.verdict, gate_passed=self.gate_passed)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; NaN and infinities become None."""
        values = {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        return values | {"exit_code": self.exit_code}


def exit_code(verdict: Level, *, gate_passed: bool) -> int:
    """Exit code of a verdict: 0 for PROGRESS, for SOLO with all layers at the threshold, else 1.

    Examples
    --------
    >>> exit_code("PROGRESS", gate_passed=True), exit_code("SOLO", gate_passed=False)
    (0, 1)
    """
    return 0 if verdict == "PROGRESS" or (verdict == "SOLO" and gate_passed) else 1


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
