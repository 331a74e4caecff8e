"""Graded assertions and a judge's score in; layer scores from 1 to 5, and their mean with its layers, out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntFlag

from stages.process.assertions.evaluate import Graded
from stages.process.assertions.profile import Profile, presented, total


class Layers(IntFlag):
    """Which layers a composite was taken over: two with different masks do not compare."""

    FACT = 1
    BEHAVIOR = 2
    JUDGE = 4


@dataclass(frozen=True, slots=True)
class LayeredScores:
    """Layer scores of one unit, 1 to 5; None = layer absent."""

    fact: float | None = None
    behavior: float | None = None
    judge: float | None = None
    composite: float | None = None
    """Mean of the layers present; None if there is none."""

    @property
    def layers(self) -> Layers:
        """The layers present."""
        present = [
            layer
            for layer, score in zip(Layers, (self.fact, self.behavior, self.judge), strict=True)
            if score is not None
        ]
        return Layers(sum(present))

    def __str__(self) -> str:
        """The composite with its layers, such as ``4.33 (3/3)`` or ``4.33 (judge only)``."""
        names = [str(layer.name).lower() for layer in self.layers]
        if self.composite is None:
            return "missing (no layer)"
        kinds = {1: f"{names[0]} only", 2: f"2/3: {' and '.join(names)}"}
        return f"{presented(self.composite, 'omk054'):.2f} ({kinds.get(len(names), '3/3')})"


def layered_scores(
    graded: Iterable[Graded], judge: float | None = None, *, profile: Profile = "reference"
) -> LayeredScores:
    """Scores of one unit from its assertions and its judge reading.

    A layer of assertions scores 1 + 4 · weight passed / weight; it is absent without weight. The judge layer is
    absent for None, NaN and anything that is not above 0, which stands for a failed reading.

    Parameters
    ----------
    graded
        Those without a layer (mixed sets) count in neither.
    judge
        1 to 5.
    profile
        ``omk054`` rounds each layer, then their mean, to two decimals.
    """
    graded = list(graded)
    fact = _score([one for one in graded if one.layer == "fact"], profile)
    behavior = _score([one for one in graded if one.layer == "behavior"], profile)
    return _composed(fact, behavior, judge if judge is not None and judge > 0 else None, profile)


def with_fact_check(
    scores: LayeredScores, verified_rate: float, claims: int, *, profile: Profile = "reference"
) -> LayeredScores:
    """The scores after claims of the output were checked one by one.

    The fact layer becomes the mean of what it was and 1 + 4 · `verified_rate`, or the latter where it was absent.

    Parameters
    ----------
    verified_rate
        Share of the claims that were confirmed, 0 to 1.
    claims
        How many were checked; without any nothing changes.
    """
    if claims <= 0 or not 0 <= verified_rate <= 1:
        return scores
    checked = presented(1 + 4 * verified_rate, profile)
    fact = checked if scores.fact is None else presented((scores.fact + checked) / 2, profile)
    return _composed(fact, scores.behavior, scores.judge, profile)


def flat_score(graded: Sequence[Graded], *, profile: Profile = "reference") -> float | None:
    """Score over all assertions, whatever their layer; None (1 in ``omk054``) without weight."""
    score = _score(graded, profile)
    return 1.0 if score is None and profile == "omk054" else score


def _score(graded: Sequence[Graded], profile: Profile) -> float | None:
    weight = total((one.weight for one in graded), profile)
    if not (weight > 0 and math.isfinite(weight)):
        return None
    passed = total((one.weight for one in graded if one.passed), profile)
    return presented(1 + passed / weight * 4, profile)


def _composed(
    fact: float | None, behavior: float | None, judge: float | None, profile: Profile
) -> LayeredScores:
    present = [score for score in (fact, behavior, judge) if score is not None]
    mean = presented(total(present, profile) / len(present), profile) if present else None
    return LayeredScores(fact, behavior, judge, mean)
