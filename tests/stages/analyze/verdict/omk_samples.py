"""What oh-my-knowledge 0.54 (omk) reports on a set of samples, so that its numbers can be reproduced."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalcube.stages.analyze.verdict.rounding import whole

Severity = Literal["error", "warning", "info"]

_DEDUCTION: dict[Severity, int] = {"error": 8, "warning": 3, "info": 1}
FLAT, AMBIGUOUS, OUTLIER = 0.5, 1.0, 3.0
"""Spread below which variants are not told apart; standard deviation of repeated judgements; multiple of the median."""


@dataclass(frozen=True)
class Sample:
    """One sample over all variants."""

    name: str
    scores: tuple[float, ...]
    """Composite per variant; values <= 0 and NaN are unmeasured."""
    finished: tuple[bool, ...]
    """Execution per variant."""
    cost: float
    """Sum over variants."""
    latency: float
    judge_sd: float = 0.0
    """Largest standard deviation of a variant's repeated judgements."""


@dataclass(frozen=True)
class Issue:
    """One flaw of one sample."""

    sample: str
    severity: Severity
    kind: str


@dataclass(frozen=True)
class Health:
    """Quality of a sample set."""

    score: int
    """0 to 100; issues per sample weigh 8, 3 or 1 by severity."""
    issues: tuple[Issue, ...]
    """Severest first, then by sample."""


def sample_health(samples: Sequence[Sample]) -> Health:
    """Flat, trivial, impossible, unstable, failing and outlying samples, and the score of the set."""
    if not samples:
        return Health(100, ())
    issues = [issue for sample in samples for issue in _own(sample)]
    costs, latencies = _median([s.cost for s in samples]), _median([s.latency for s in samples])
    for sample in samples:
        if costs > 0 and sample.cost >= OUTLIER * costs:
            issues.append(Issue(sample.name, "info", "cost_outlier"))
        if latencies > 0 and sample.latency >= OUTLIER * latencies:
            issues.append(Issue(sample.name, "info", "latency_outlier"))
    order = list(_DEDUCTION)
    issues.sort(key=lambda issue: (order.index(issue.severity), issue.sample))
    deduction = sum(_DEDUCTION[issue.severity] for issue in issues) / len(samples)
    return Health(max(0, min(100, whole(100 - deduction * 20))), tuple(issues))


def _own(sample: Sample) -> Iterator[Issue]:
    scores = [score for score in sample.scores if score > 0]
    if len(scores) >= 2:
        if min(scores) == max(scores) == 5:
            yield Issue(sample.name, "info", "all_pass")
        elif min(scores) == max(scores) == 1:
            yield Issue(sample.name, "error", "all_fail")
        elif max(scores) - min(scores) < FLAT:
            yield Issue(sample.name, "warning", "flat_scores")
    failed = sample.finished.count(False)
    if failed:
        yield Issue(sample.name, "error" if failed == len(sample.finished) else "warning", "error_prone")
    if sample.judge_sd >= AMBIGUOUS:
        yield Issue(sample.name, "warning", "ambiguous_rubric")


def _median(values: Sequence[float]) -> float:
    """Upper median of the positive values; 0 without one."""
    positive = sorted(value for value in values if value > 0 and not math.isnan(value))
    return positive[len(positive) // 2] if positive else 0.0


@dataclass(frozen=True)
class PowerWarnings:
    """What a plan of n units and some repeats is too small for, known before it is run."""

    tiny: bool
    """Fewer than 5 units: nothing but the largest effects can show."""
    small: bool
    """5 to 19 units: below the band where a shift counts as powered."""
    single_run: bool
    """One repeat: run-to-run stability cannot be measured."""


def power_warnings(units: int, repeats: int = 1) -> PowerWarnings:
    """Warnings about the size of a comparison before it is run.

    Examples
    --------
    >>> power_warnings(12)
    PowerWarnings(tiny=False, small=True, single_run=True)
    """
    return PowerWarnings(tiny=units < 5, small=5 <= units < 20, single_run=repeats < 2)
