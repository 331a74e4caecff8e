"""Judges' readings and names -> agreement, gold comparison and self-preference as omk 0.54 has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stages.analyze.formulas.intervals import Floats
from stages.analyze.verdict.agreement import GoldAgreement, krippendorff_alpha, pearson, weighted_kappa
from stages.analyze.verdict.omk054.bootstrap import DRAWS, in_order, metric_interval
from stages.analyze.verdict.omk054.mulberry import SEED
from stages.analyze.verdict.omk054.rounding import round4, to_fixed

VENDORS = {
    "claude": "anthropic",
    "claude-sdk": "anthropic",
    "anthropic-api": "anthropic",
    "codex": "openai",
    "codex-sdk": "openai",
    "openai-api": "openai",
}
"""Who makes the models behind an executor; any other executor is unknown."""


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
    mean = to_fixed(in_order(defined) / len(defined), 3) if defined else math.nan
    return JudgeAgreement(mean, to_fixed(in_order(apart) / len(couples), 3), len(couples), units)


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


def gold_agreement(
    gold: Sequence[float],
    judge: Sequence[float],
    *,
    scale: tuple[float, float] = (1.0, 5.0),
    level_alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = SEED,
) -> GoldAgreement:
    """Krippendorff's alpha with its bootstrap interval, weighted kappa and Pearson, four decimals."""
    both = np.stack([np.asarray(gold, dtype=float), np.asarray(judge, dtype=float)], axis=1)
    if len(both) == 0:
        return GoldAgreement(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    places = np.arange(len(both)).tolist()

    def alpha_of(drawn: Floats) -> float:
        return krippendorff_alpha(both[drawn.astype(int)])

    interval = metric_interval(places, alpha_of, alpha=level_alpha, draws=draws, seed=seed)
    kappa, correlation = weighted_kappa(both[:, 0], both[:, 1], scale), pearson(both[:, 0], both[:, 1])
    return GoldAgreement(
        interval.estimate, interval.low, interval.high, round4(kappa), round4(correlation), len(both)
    )


def self_preference(
    executors: Sequence[str], judges: Sequence[str], *, calibrated: bool = False, judged: bool = True
) -> bool:
    """Whether the judges may favour answers of their own vendor and no gold set speaks for them.

    Parameters
    ----------
    executors, judges
        Names of what produced and what judged the answers. One unknown vendor, and nothing can be said.
    calibrated
        A gold comparison is attached.
    judged
        False if the judges did not run.
    """
    outputs = {VENDORS.get(name) for name in executors}
    vendors = [VENDORS.get(name) for name in judges]
    if not judged or not vendors or not outputs or None in outputs or None in vendors:
        return False
    same = all(vendor in outputs for vendor in vendors)
    single = len(vendors) >= 2 and len(set(vendors)) == 1
    return (same or single) and not calibrated
