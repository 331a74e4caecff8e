"""What a caller may choose about a verdict, with the reference's values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evalcube.stages.analyze.verdict.gates import THRESHOLD
from evalcube.stages.analyze.verdict.paired import DRAWS, Method
from evalcube.stages.analyze.verdict.rules import Limits


@dataclass(frozen=True)
class Options:
    """Choices of a verdict."""

    alpha: float = 0.05
    """Error of the whole comparison; each of K treatments is tested at alpha / K."""
    planned: float = 0.0
    """Of a pair: its error if it is looked at once, as planned; where `alpha` is less, the rest is for later looks."""
    threshold: float = THRESHOLD
    limits: Limits = field(default_factory=Limits)
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
    gold: Mapping[str, float] | None = None
    """Gold rating by unit id."""
    gold_variant: str | None = None
    """Variant whose answers were rated; the control if None."""
