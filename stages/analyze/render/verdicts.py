"""A verdict as the report and the explorer show it: its pill, its reasons and the four badges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.text import ABSENT
from evalcube.stages.analyze.verdict.composite import HIGHEST, LOWEST, decimal
from evalcube.stages.analyze.verdict.result import PairResult, Verdict

MEANINGS: Mapping[str, str] = {
    "PROGRESS": "the composite rose, every layer reaches the threshold, none fell",
    "CAUTIOUS": "the composite rose with a reservation, or only a layer changed",
    "REGRESS": "the composite fell; or it did not rise, and the treatment misses a threshold that the control reaches",
    "NOISE": "no difference was found, which does not show that there is no harm",
    "UNDERPOWERED": "too few answers to detect a difference",
    "SOLO": "nothing to compare with",
}

BADGES: Mapping[str, tuple[str, str]] = {
    "judges_agree": (
        "judges agree",
        "Judges order answers in the same way, or rate them closely; unknown with fewer than two judges.",
    ),
    "significant": ("difference significant", "The interval of the composite's difference excludes 0."),
    "saturated": ("saturated", "More repeats would not change the composite; unknown below five repeats."),
    "human_aligned": (
        "human-aligned",
        "Judges rate as people do; unknown without enough ratings by people (evalcube verdict --gold).",
    ),
}
"""What each badge is called, and what it says."""

_WIDEST = HIGHEST - LOWEST


@dataclass(frozen=True)
class ShownPair:
    """One treatment beside the control."""

    verdict: str
    difference: Estimate
    """Treatment − control of the composites, within what the scale allows."""
    reasons: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, str]:
        """The difference and its interval, with signs."""
        if math.isnan(self.difference.value):
            return ABSENT, ""
        parts = self.difference.value, self.difference.lower, self.difference.upper
        value, low, high = (decimal(part, sign=True) for part in parts)
        return value, f"{low} to {high}"


@dataclass(frozen=True)
class ShownVerdict:
    """A verdict for people."""

    verdict: str
    words: str
    """Who is compared with whom."""
    meaning: str
    reasons: tuple[str, ...]
    next_step: str
    badges: tuple[tuple[str, str, str], ...]
    """Name, value and meaning of each."""
    notes: tuple[str, ...]
    control: str
    """`eval_id` of the variant in use; empty where there is one only."""
    pairs: Mapping[str, ShownPair]
    """By the treatment's `eval_id`."""
    level: str
    """Of the differences' intervals, such as "97.5%": several treatments share the error of one."""


@dataclass(frozen=True)
class ShownDecision:
    """What a policy says of one treatment, for people."""

    decision: str
    """GO, NO-GO or INCONCLUSIVE."""
    control: str
    treatment: str
    reason: str
    unsettled: tuple[str, ...]
    """Of each line that is not shown: why, and what it would take."""
    next_step: str
    heads: tuple[str, ...]
    """Of the columns of `rows`, the policy's lines."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def shown_verdict(verdict: Verdict, ids: Mapping[str, str]) -> ShownVerdict:
    """Return a verdict as it is shown; `ids` has the `eval_id` of each variant by its name there."""
    control = verdict.arms[0].name
    several = len(verdict.arms) > 1
    who = " against ".join(reversed(verdict.representative or ()))
    worst = f", the worst of {len(verdict.pairs)} treatments" if len(verdict.pairs) > 1 else ""
    levels = [f"{100 * (1 - pair.composite.alpha):.4g}%" for pair in verdict.pairs]
    return ShownVerdict(
        verdict=verdict.verdict,
        words=f"{who}{worst}" if who else control,
        meaning=MEANINGS[verdict.verdict],
        reasons=verdict.reasons,
        next_step=verdict.next_step,
        badges=tuple(
            (name, getattr(verdict.badges, field), words) for field, (name, words) in BADGES.items()
        ),
        notes=tuple(verdict.notes),
        control=ids[control] if several else "",
        pairs={ids[pair.treatment]: _pair(pair) for pair in verdict.pairs},
        level=levels[0] if levels else "",
    )


def _pair(pair: PairResult) -> ShownPair:
    gap = pair.composite
    bounds = Estimate(gap.estimate, max(gap.low, -_WIDEST), min(gap.high, _WIDEST))
    return ShownPair(pair.verdict, bounds, pair.decision.reasons)
