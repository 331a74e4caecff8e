"""Gold ratings and a judge's readings by unit id -> agreement, and which ratings could not be used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.analyze.verdict.agreement import GoldAgreement, gold_agreement


@dataclass(frozen=True)
class GoldComparison:
    """A judge beside gold ratings."""

    agreement: GoldAgreement
    missing: tuple[str, ...]
    """Rated units that the report does not have."""
    unscored: tuple[str, ...]
    """Rated units without a judge reading."""
    contaminated: bool
    """Whether the annotator seems to be one of the judges: the agreement is then an upper bound only."""


def compare_gold(
    gold: Mapping[str, float],
    judged: Mapping[str, float],
    *,
    annotator: str = "",
    judges: Sequence[str] = (),
    scale: tuple[float, float] = (1.0, 5.0),
    draws: int = 2000,
    seed: int = 0,
) -> GoldComparison:
    """Agreement over the units that both have.

    Parameters
    ----------
    gold
        Rating by unit id.
    judged
        Judge layer by unit id, NaN where unscored.
    annotator, judges
        Names; case and spaces around do not matter, and one containing the other counts as the same.
    scale
        Lowest and highest rating.
    draws, seed
        Bootstrap of the interval.
    """
    missing = tuple(name for name in gold if name not in judged)
    unscored = tuple(name for name in gold if name in judged and math.isnan(judged[name]))
    both = [name for name in gold if name in judged and not math.isnan(judged[name])]
    agreement = gold_agreement(
        [gold[name] for name in both], [judged[name] for name in both], scale=scale, draws=draws, seed=seed
    )
    return GoldComparison(agreement, missing, unscored, same_source(annotator, judges))


def same_source(annotator: str, judges: Sequence[str]) -> bool:
    """Whether the annotator's name contains a judge's name or is contained in one.

    Examples
    --------
    >>> same_source("GPT-4o", ["openai-api:gpt-4o"]), same_source("alice", ["openai-api:gpt-4o"])
    (True, False)
    """
    name = annotator.strip().lower()
    others = [judge.strip().lower() for judge in judges]
    return bool(name) and any(name in other or other in name for other in others if other)
