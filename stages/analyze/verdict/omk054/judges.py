"""How well the judges of a variant agree, as omk 0.54 computes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.omk054.bootstrap import in_order
from evalcube.stages.analyze.verdict.rounding import half_away


@dataclass(frozen=True)
class JudgeAgreement:
    """Agreement among judges, three decimals."""

    pearson: float
    """NaN if undefined for every pair of judges."""
    mad: float
    pairs: int
    units: int


def judge_agreement(scores: Sequence[Sequence[float]]) -> JudgeAgreement:
    """Mean over pairs of judges of Pearson (where defined) and of the mean absolute difference.

    Parameters
    ----------
    scores
        One series per judge, over the same units.
    """
    couples = list(combinations([np.asarray(series, dtype=float) for series in scores], 2))
    units = len(scores[0]) if scores else 0
    if not couples:
        return JudgeAgreement(math.nan, 0.0, 0, units)
    apart = [in_order(np.abs(a - b)) / len(a) if len(a) else 0.0 for a, b in couples]
    defined = [value for value in (_pearson(a, b) for a, b in couples) if not math.isnan(value)]
    mean = half_away(in_order(defined) / len(defined), 3) if defined else math.nan
    return JudgeAgreement(mean, half_away(in_order(apart) / len(couples), 3), len(couples), units)


def _pearson(a: Floats, b: Floats) -> float:
    """Pearson with sums from left to right; a series has no variance only if its squares sum to exactly 0."""
    if len(a) < 2:
        return math.nan
    da, db = a - in_order(a) / len(a), b - in_order(b) / len(b)
    squares = in_order(da * da), in_order(db * db)
    if 0.0 in squares:
        return math.nan
    return in_order(da * db) / math.sqrt(squares[0] * squares[1])


def ensemble_agreement(readings: Floats) -> JudgeAgreement | None:
    """Agreement over the units on which every judge answered; None without two judges and two such units.

    Parameters
    ----------
    readings
        Array (unit, judge) of finished executions, NaN where a judge failed.
    """
    valid = ~np.isnan(readings)
    judges = valid.any(axis=0)
    aligned = readings[:, judges][valid[:, judges].all(axis=1)]
    if aligned.shape[1] < 2 or len(aligned) < 2:
        return None
    return judge_agreement(aligned.T.tolist())
