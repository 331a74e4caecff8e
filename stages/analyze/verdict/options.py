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
    threshold: float = THRESHOLD
    limits: Limits = field(default_factory=Limits)
    method: Method = "sign-flip"
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
