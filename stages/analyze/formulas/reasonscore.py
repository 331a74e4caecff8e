"""ReasonScore, version 1: scores of points, tasks and tiers, and the score per token.

Counters add, so every function takes counters that are already summed over the group that it scores: a point
is one cell, a task is the sum of its cells within a tier. Clipping, intervals and ratios happen here, after
the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import broadcast, column, mean_present, one_of, reals
from evalcube.stages.analyze.formulas.intervals import Floats, wilson
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS

Basis = Literal["completed", "all"]

FLOOR = 0.01
"""Least score of a task, so that one failed task lowers a tier's geometric mean without making it zero."""

SCALE = 1000.0
"""Score of a perfect tier."""

_GUESSES = 41


def correct_guesses(
    counters: ArrayLike, *, labels: Sequence[str] = COUNTERS, basis: Basis = "completed"
) -> tuple[Floats, Floats]:
    """Guess-corrected successes and trials: n_e − g, and n_u − g ("completed") or n − g ("all").

    g is the counter ``guess_sum``: a truncated trial made no guess and adds nothing to it. Neither result is
    clipped: clipping belongs after pooling.

    Parameters
    ----------
    counters
        Array (..., counter) of summed counters.
    labels
        Names along the last axis.
    basis
        Trials in the denominator: completed ones, or all finished ones, truncated included.

    Raises
    ------
    ValueError
        If `basis` is neither of the two.
    """
    one_of(basis, "basis", get_args(Basis))
    guesses = column(counters, "guess_sum", labels)
    total = column(counters, "completed" if basis == "completed" else "trials", labels)
    return column(counters, "correct", labels) - guesses, total - guesses


def point_score(
    counters: ArrayLike, *, labels: Sequence[str] = COUNTERS, basis: Basis = "completed"
) -> Floats:
    """Upper Wilson bound of the guess-corrected accuracy, less the share of truncated trials.

    Parameters
    ----------
    counters
        Array (..., counter) of summed counters.
    labels
        Names along the last axis.
    basis
        See `correct_guesses`.

    Returns
    -------
    Array (...) in [−1, 1]; NaN without trials and where guessing leaves nothing to measure.

    Examples
    --------
    >>> counts = [128, 126, 120, 2, 1.5]
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> round(float(point_score(counts, labels=names, basis="all")), 6)
    0.951985
    """
    successes, total = correct_guesses(counters, labels=labels, basis=basis)
    centre, margin = wilson(successes, total)
    trials = column(counters, "trials", labels)
    with np.errstate(all="ignore"):
        ratio = column(counters, "truncated", labels) / np.where(trials > 0, trials, np.nan)
    return np.asarray(centre + margin - ratio)


def task_score(
    counters: ArrayLike, *, labels: Sequence[str] = COUNTERS, basis: Basis = "completed"
) -> Floats:
    """Score of a task within a tier: `point_score` of the summed counters, at least 0.01.

    Where every trial was truncated the accuracy is undefined but the score is not: an upper bound is at most
    1, so that less a truncation of 1 the score is at most 0, and so 0.01.

    Parameters
    ----------
    counters
        Array (..., counter), summed over the task's cells in the tier.
    labels
        Names along the last axis.
    basis
        See `correct_guesses`.

    Returns
    -------
    Array (...) in [0.01, 1]; NaN without trials.
    """
    trials = column(counters, "trials", labels)
    lost = (trials > 0) & (column(counters, "truncated", labels) >= trials)
    score = point_score(counters, labels=labels, basis=basis)
    return np.where(lost, FLOOR, np.maximum(score, FLOOR))


@dataclass(frozen=True)
class TierScores:
    """Scores of tiers, with what they rest on; all arrays of one shape (...)."""

    score: Floats
    """1000 × the geometric mean over the tasks present; NaN without any."""
    tasks_present: NDArray[np.int64]
    """Tasks with a score."""
    tasks_expected: NDArray[np.int64]
    """Tasks that belong to the tier."""

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """True where a task that belongs to the tier has no score."""
        return self.tasks_present < self.tasks_expected


def combine_tasks(task_scores: ArrayLike, *, expected: ArrayLike | None = None) -> TierScores:
    """Geometric mean of task scores, × 1000.

    Parameters
    ----------
    task_scores
        Array (..., task), NaN where a task has no score.
    expected
        Booleans that broadcast to (..., task): the tasks that belong to the tier; None means all. A score of
        a task outside the tier is not used.

    Examples
    --------
    >>> round(float(combine_tasks([0.95] * 11 + [0.05]).score), 1)
    743.3
    """
    scores = reals(task_scores, "task_scores")
    if scores.ndim == 0:
        raise ArgumentError(
            "tiers need tasks: `counters` must be (..., task, counter), and scores (..., task)"
        )
    member = broadcast(True if expected is None else expected, "expected", scores.shape).astype(bool)
    there = member & ~np.isnan(scores)
    present, planned = (np.asarray(part.sum(axis=-1)) for part in (there, member))
    return TierScores(scaled_geomean(scores, there), present, planned)


def scaled_geomean(scores: Floats, there: NDArray[np.bool_]) -> Floats:
    """1000 × the geometric mean of scores (..., task) over the tasks that are there; NaN without any.

    Exactly the score of all, where these are alike: so a model at the floor of every task has 10.
    """
    present = there.sum(axis=-1)
    with np.errstate(all="ignore"):
        logs = np.where(there, np.log(np.where(there, scores, 1.0)), 0.0).sum(axis=-1)
        mean = SCALE * np.exp(logs / np.where(present > 0, present, np.nan))
    least = np.min(scores, axis=-1, where=there, initial=np.inf)
    most = np.max(scores, axis=-1, where=there, initial=-np.inf)
    return np.asarray(np.clip(mean, SCALE * least, SCALE * most))


def tier_score(
    counters: ArrayLike,
    *,
    labels: Sequence[str] = COUNTERS,
    basis: Basis = "completed",
    expected: ArrayLike | None = None,
) -> TierScores:
    """Score of a tier: 1000 × the geometric mean of its tasks' scores, each at least 0.01.

    A task scores U − n_t/n, but at least 0.01, where U is the upper end of Wilson's interval of n_e − g successes
    in n_u − g trials: n_e correct, n_u completed, n_t truncated of n trials, g the summed guess chances.

    Parameters
    ----------
    counters
        Array (..., task, counter) of counters, summed over the cells of each task in the tier.
    labels
        Names of the counters along the last axis; default: those of a cube.
    basis
        Number of trials that is the denominator: "completed" trials, or "all" finished ones, truncated included.
    expected
        Booleans that broadcast to (..., task): which tasks belong to the tier; None means all.

    Returns
    -------
    The scores of shape (...), from 10 to 1000, with the numbers of tasks that they rest on.

    Raises
    ------
    ValueError
        If a counter is absent from `labels`, these do not fit the last axis, or `basis` is unknown.
    """
    return combine_tasks(task_score(counters, labels=labels, basis=basis), expected=expected)


def guesser_score(
    counters: ArrayLike,
    *,
    labels: Sequence[str] = COUNTERS,
    basis: Basis = "completed",
    expected: ArrayLike | None = None,
) -> TierScores:
    """Version 1 scores that guessing alone reaches with as many trials: what upper bounds give away for nothing.

    The right answers of each task are replaced by quantiles of what a guesser gets, in a normal approximation, and the
    task's score is the geometric mean over them. A guesser is never truncated.

    Returns
    -------
    TierScores
        Of the guesser; NaN where there are no trials.

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> guesser_score([[8, 8, 7, 0, 0]] * 12, labels=names).score.round().tolist()
    324.0
    """
    names = list(labels)
    values = np.asarray(counters, dtype=np.float64)
    trials, completed = column(values, "trials", names), column(values, "completed", names)
    chance = column(values, "guess_sum", names) / np.maximum(completed, 1e-9)
    guesses = trials * chance
    scores = []
    for level in (np.arange(_GUESSES) + 0.5) / _GUESSES:
        drawn = values.copy()
        lucky = guesses + scipy.special.ndtri(level) * np.sqrt(guesses * np.maximum(1.0 - chance, 0.0))
        for label, count in (
            ("completed", trials),
            ("truncated", 0.0),
            ("guess_sum", guesses),
            ("correct", np.clip(lucky, 0.0, trials)),
        ):
            drawn[..., names.index(label)] = count
        scores.append(task_score(drawn, labels=names, basis=basis))
    # Tasks are lucky on their own: so the mean of logarithms, task by task.
    with np.errstate(all="ignore"):
        mean = np.exp(np.mean(np.log(scores), axis=0))
    return combine_tasks(mean, expected=expected)


def mean_score(tier_scores: ArrayLike) -> Floats:
    """Arithmetic mean over the tiers present, array (..., tier) -> (...); NaN where there is none.

    Examples
    --------
    >>> float(mean_score([850.0, 720.0, 580.0, float("nan")])).__round__(2)
    716.67
    """
    return mean_present(np.asarray(tier_scores, dtype=float))


def tier_tokens(counters: ArrayLike, *, labels: Sequence[str] = COUNTERS) -> Floats:
    """Completion tokens per finished trial, mean over the tasks of a tier; truncated trials included.

    Parameters
    ----------
    counters
        Array (..., task, counter).
    labels
        Names along the last axis.

    Returns
    -------
    Array (...); NaN without trials.
    """
    trials = column(counters, "trials", labels)
    return mean_present(column(counters, "tokens_sum", labels) / np.where(trials > 0, trials, np.nan))


def score_per_token(
    counters: ArrayLike,
    *,
    labels: Sequence[str] = COUNTERS,
    basis: Basis = "completed",
    expected: ArrayLike | None = None,
) -> Floats:
    """Mean of the tier scores divided by the mean of the tiers' tokens per trial.

    Parameters
    ----------
    counters
        Array (..., tier, task, counter) of counters, summed over the cells of each task in each tier.
    labels
        Names of the counters along the last axis; default: those of a cube.
    basis
        Number of trials that is the denominator: "completed" trials, or "all" finished ones, truncated included.
    expected
        Booleans that broadcast to (..., tier, task): which tasks belong to which tier; None means all.

    Returns
    -------
    Array (...), scores per token, over the tiers that have a score; NaN where no token was counted.

    Raises
    ------
    ValueError
        As `tier_score`.
    """
    scores = tier_score(counters, labels=labels, basis=basis, expected=expected).score
    return per_token(scores, tier_tokens(counters, labels=labels))


def per_token(tier_scores: ArrayLike, tokens: ArrayLike) -> Floats:
    """Ratio of the mean tier score to the mean of tokens per trial, over the tiers that have a score.

    Parameters
    ----------
    tier_scores
        Array (..., tier), NaN for a tier without trials.
    tokens
        Completion tokens per trial, broadcasts with `tier_scores`.

    Examples
    --------
    >>> round(float(per_token([850, 720, 580], [1180, 1250, 1380])), 3)
    0.564
    """
    scores, spent = np.broadcast_arrays(np.asarray(tier_scores, dtype=float), np.asarray(tokens, dtype=float))
    mean = mean_present(np.where(np.isnan(scores), np.nan, spent))
    with np.errstate(all="ignore"):
        return np.asarray(mean_present(scores) / np.where(mean > 0, mean, np.nan))
