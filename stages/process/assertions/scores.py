"""Layer scores from 1 to 5: what a trial's assertions and its judges come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalcube.stages.process.assertions.evaluate import Graded


@dataclass(frozen=True, slots=True)
class LayeredScores:
    """Layer scores of one trial, 1 to 5; None = layer absent."""

    fact: float | None = None
    behavior: float | None = None
    judge: float | None = None


def layered_scores(graded: Iterable[Graded], judge: float | None = None) -> LayeredScores:
    """Scores of one trial from its assertions and its judges.

    A layer of assertions scores 1 + 4 · weight passed / weight; it is absent without weight. The judge layer is
    absent for None, NaN and anything that is not above 0, which stands for a failed reading.

    Parameters
    ----------
    graded
        Those without a layer (mixed sets) count in neither.
    judge
        1 to 5.

    Examples
    --------
    >>> layered_scores([Graded("contains", "fact", 3.0, True), Graded("equals", "fact", 1.0, False)], 2.0)
    LayeredScores(fact=4.0, behavior=None, judge=2.0)
    """
    graded = list(graded)
    return LayeredScores(
        _score([one for one in graded if one.layer == "fact"]),
        _score([one for one in graded if one.layer == "behavior"]),
        judge if judge is not None and judge > 0 else None,
    )


def _score(graded: Sequence[Graded]) -> float | None:
    # Exactly rounded sums: a score does not depend on the order in which assertions are declared.
    weight = math.fsum(one.weight for one in graded)
    if not (weight > 0 and math.isfinite(weight)):
        return None
    passed = math.fsum(one.weight for one in graded if one.passed)
    return 1 + passed / weight * 4
