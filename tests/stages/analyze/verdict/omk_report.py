"""What oh-my-knowledge 0.54 (omk) reports on scores beyond a verdict, so that its numbers can be reproduced."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict.agreement import (
    GoldAgreement,
    gold_agreement,
    krippendorff_alpha,
    pearson,
    weighted_kappa,
)
from evalcube.stages.analyze.verdict.inputs import Scores
from evalcube.stages.analyze.verdict.omk054.bootstrap import (
    ALPHA,
    DRAWS,
    EMPTY,
    Bootstrap,
    in_order,
    mean_interval,
    row_sums,
    tails,
)
from evalcube.stages.analyze.verdict.omk054.mulberry import SEED, drawn_places, uniform
from evalcube.stages.analyze.verdict.omk054.rules import Report, subjects
from evalcube.stages.analyze.verdict.omk054.summary import RunStats, composites, rounded_layers
from evalcube.stages.analyze.verdict.omk054.summary import checkpoints as growing_sample
from evalcube.stages.analyze.verdict.omk054.ttest import critical, moments
from evalcube.stages.analyze.verdict.rounding import half_away, round4
from evalcube.stages.analyze.verdict.saturation import METHOD, THRESHOLD, Saturation, saturation, settled

VENDORS = {
    "claude": "anthropic",
    "claude-sdk": "anthropic",
    "anthropic-api": "anthropic",
    "codex": "openai",
    "codex-sdk": "openai",
    "openai-api": "openai",
}
"""Who makes the models behind an executor; any other executor is unknown."""


GAP_BAND = 0.2
_LEVELS = ((0.001, "<0.001"), (0.01, "<0.01"), (0.05, "<0.05"))


def unpaired_difference(
    control: Sequence[float],
    treatment: Sequence[float],
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Interval of the difference of two means, each group resampled on its own, control first.

    Significance looks at the rounded bounds.
    """
    if len(control) == 0 or len(treatment) == 0:
        return EMPTY
    groups = [np.asarray(control, dtype=float), np.asarray(treatment, dtype=float)]
    share = len(control) + len(treatment)
    numbers = uniform(seed, 0, draws * share).reshape(draws, share)
    means, offset = [], 0
    for group in groups:
        places = np.floor(numbers[:, offset : offset + len(group)] * len(group)).astype(int)
        means.append(row_sums(group[places]) / len(group))
        offset += len(group)
    low, high = (round4(bound) for bound in tails(means[1] - means[0], alpha))
    estimate = in_order(treatment) / len(treatment) - in_order(control) / len(control)
    return Bootstrap(low, high, round4(estimate), draws, not low <= 0 <= high)


def metric_interval(
    values: Sequence[float],
    metric: Callable[[Floats], float],
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Interval of any metric of a sample; resamples on which it is undefined (NaN) are left out."""
    if len(values) == 0:
        return EMPTY
    sample = np.asarray(values, dtype=float)
    drawn = np.array([metric(sample[places]) for places in drawn_places(len(sample), draws, seed=seed)])
    low, high = tails(drawn[~np.isnan(drawn)], alpha)
    return Bootstrap(round4(low), round4(high), round4(metric(sample)), draws)


def level_label(alpha: float | None) -> str:
    """Level of an interval in words.

    Examples
    --------
    >>> level_label(None), level_label(0.0125), level_label(0.05 / 3)
    ('95%', '98.8%', '98.3%')
    """
    percent = half_away((1 - (ALPHA if alpha is None else alpha)) * 100, 1)
    return f"{percent:g}%"


def tool_gold_agreement(
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


@dataclass(frozen=True)
class Welch:
    """Welch's t test at 5 %."""

    t: float
    df: int
    significant: bool

    @property
    def bucket(self) -> str:
        """The p value as a range."""
        return p_bucket(self.t, self.df)


@dataclass(frozen=True)
class Effect:
    """Standardised difference of two groups."""

    cohens_d: float
    hedges_g: float
    primary: Literal["d", "g", "none"]
    """g for fewer than 20 observations in all."""
    magnitude: str
    pooled_sd: float


NO_EFFECT = Effect(0.0, 0.0, "none", "none", 0.0)


def welch(a: Sequence[float], b: Sequence[float]) -> Welch:
    """Welch's test of a − b; without any variance different constants count as significant."""
    if len(a) < 2 or len(b) < 2:
        return Welch(0.0, 0, False)
    (mean_a, variance_a), (mean_b, variance_b) = moments(a), moments(b)
    part_a, part_b = variance_a / len(a), variance_b / len(b)
    error = math.sqrt(part_a + part_b)
    if error == 0:
        return Welch(0.0, len(a) + len(b) - 2, mean_a != mean_b)
    t = (mean_a - mean_b) / error
    spread = part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1)
    df = max(1, math.floor((part_a + part_b) ** 2 / spread))
    return Welch(half_away(t, 4), df, abs(t) > critical(df))


def p_bucket(t: float, df: float) -> str:
    """Range of the two-sided p value.

    Examples
    --------
    >>> p_bucket(2.0, 30), p_bucket(1.96, 31)
    ('≥0.05', '<0.05')
    """
    if not math.isfinite(t) or df <= 0:
        return "≥0.05"
    return next((text for alpha, text in _LEVELS if abs(t) >= critical(df, alpha)), "≥0.05")


def effect(a: Sequence[float], b: Sequence[float]) -> Effect:
    """Cohen's d and Hedges' g of a − b."""
    if len(a) < 2 or len(b) < 2:
        return NO_EFFECT
    (mean_a, variance_a), (mean_b, variance_b) = moments(a), moments(b)
    total = len(a) + len(b)
    pooled = math.sqrt(((len(a) - 1) * variance_a + (len(b) - 1) * variance_b) / (total - 2))
    if pooled == 0:
        return NO_EFFECT
    d = (mean_a - mean_b) / pooled
    g = (1 - 3 / (4 * total - 9)) * d
    primary: Literal["d", "g"] = "g" if total < 20 else "d"
    size = abs(g if primary == "g" else d)
    names = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))
    magnitude = next((name for bound, name in names if size < bound), "large")
    return Effect(half_away(d, 4), half_away(g, 4), primary, magnitude, half_away(pooled, 4))


@dataclass(frozen=True)
class RunComparison:
    """Two variants over runs: a − b."""

    a: str
    b: str
    mean_difference: float
    test: Welch
    effect: Effect


def run_comparisons(stats: Mapping[str, RunStats]) -> list[RunComparison]:
    """Every variant against every later one."""
    found = []
    for a, b in combinations(stats, 2):
        one, other = stats[a], stats[b]
        step = half_away(one.interval.mean - other.interval.mean, 4)
        test, size = welch(one.run_means, other.run_means), effect(one.run_means, other.run_means)
        found.append(RunComparison(a, b, step, test, size))
    return found


@dataclass(frozen=True)
class Gap:
    """Knowledge gap of one variant; without a watermark of its test set it does not count."""

    rate: float
    watermarked: bool


def mean_intervals(scores: Scores) -> dict[str, Bootstrap]:
    """Interval of the mean composite of each variant in the last run; those without one are left out."""
    totals = composites(rounded_layers(scores))[-1]
    measured = {name: row[~np.isnan(row)].tolist() for name, row in zip(scores.variants, totals, strict=True)}
    return {name: mean_interval(values) for name, values in measured.items() if values}


def checkpoints(scores: Scores) -> list[int]:
    """Composites of the first variant after each run; empty with one run."""
    totals = composites(rounded_layers(scores))
    return np.cumsum((~np.isnan(totals[:, 0])).sum(axis=-1)).tolist() if len(totals) > 1 else []


THRESHOLDS = {METHOD: THRESHOLD, "slope": 0.005, "plateau-height": 0.1}
"""Relative change of the interval's width; change of the mean per sample; range of the last means."""


def tool_saturation(
    runs: Sequence[Sequence[float]],
    *,
    method: str,
    threshold: float | None,
    window: int,
    draws: int,
    seed: int,
) -> Saturation:
    """Saturation by any of the tool's three kinds of change; by the interval's width it is ours."""
    points = growing_sample(runs, draws=draws, seed=seed)
    limit = THRESHOLDS[method] if threshold is None else threshold
    if method == METHOD:
        return saturation(points, threshold=limit, window=window, rounded=round4)
    if method == "slope":
        trace = [
            (now.samples, abs(now.mean - before.mean) / max(1, now.samples - before.samples))
            for before, now in pairwise(points)
        ]
    else:
        means = [point.mean for point in points]
        ranges = [np.ptp(means[place - window : place + 1]) for place in range(window, len(means))]
        heights = [math.inf] * min(window, len(means)) + ranges
        trace = [(point.samples, float(height)) for point, height in zip(points, heights, strict=True)]
    rounded = [(samples, round4(change)) for samples, change in trace]
    return settled(points, rounded, method=method, threshold=limit, window=window)


def gap_signal(report: Report, gaps: Mapping[str, Gap]) -> tuple[str, int] | None:
    """The variant with the largest watermarked knowledge gap of at least 20 %."""
    found = [
        (name, gaps[name].rate)
        for name in subjects(report)
        if name in gaps and gaps[name].watermarked and gaps[name].rate >= GAP_BAND
    ]
    worst = max(found, key=lambda item: item[1], default=None)
    return None if worst is None else (worst[0], int(half_away(worst[1] * 100, 0)))


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
