"""ReasonScore, version 2: pessimistic point estimates, with a bootstrap interval.

Version 1 gives the benefit of the doubt: it scores upper bounds. Version 2 scores what was measured, the point
value of C_P, guesses taken out and truncated trials failed, and says with an interval how uncertain that is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.estimators import estimate
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.reasonscore import TierScores, combine_tasks
from evalcube.stages.reply.status import COUNTERS

LEAST = 10.0
"""Least score of a tier."""


def task_score(counters: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> Floats:
    """Point value of C_P of a task within a tier, from counters (..., counter) summed over its points.

    NaN without trials; see `evalcube.stages.analyze.formulas.estimators.estimate`.
    """
    return estimate(counters, labels=labels, mode="C_P")[0]


def tier_score(
    counters: ArrayLike, *, labels: Sequence[str] = COUNTERS, expected: ArrayLike | None = None
) -> TierScores:
    """Score of a tier: 1000 × the geometric mean of its tasks' C_P, but at least 10.

    The lower limit holds for the tier, not for each task: a tier in which one task was never solved scores 10.

    Parameters
    ----------
    counters
        Array (..., task, counter) of counters, summed over the cells of each task in the tier.
    labels
        Names of the counters along the last axis; default: those of a cube.
    expected
        Booleans that broadcast to (..., task): which tasks belong to the tier; None means all.

    Returns
    -------
    The scores of shape (...), from 10 to 1000, with the numbers of tasks that they rest on.

    Raises
    ------
    ValueError
        If a counter is absent from `labels`, these do not fit the last axis, or counters contradict each other.

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> float(reason_score_v2([[128, 112, 84, 16, 56], [100, 100, 64, 0, 0]], labels=names).score.round(3))
    529.15
    """
    tier = combine_tasks(task_score(counters, labels=labels), expected=expected)
    return TierScores(np.maximum(tier.score, LEAST), tier.tasks_present, tier.tasks_expected)
