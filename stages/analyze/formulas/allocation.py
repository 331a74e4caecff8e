"""Where further trials go: those that a budget buys to where they help most, or as a wished precision needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.intervals import exact_bounds
from evalcube.stages.analyze.formulas.reasonscore import correct_guesses
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH
from evalcube.stages.analyze.formulas.stratified import effective_trials, moments
from evalcube.stages.reply.status import COUNTERS

Floats = npt.NDArray[np.float64]
Purpose = Literal["ranking", "intervals"]

_LEAST_RATE = 0.05
_BISECTIONS = 60
_STEPS = 12


def allocate(
    counters: npt.ArrayLike,
    planned: npt.ArrayLike,
    in_tier: npt.ArrayLike,
    *,
    budget: float,
    cost: npt.ArrayLike,
    purpose: Purpose,
    most: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """Trials of each cell once a budget is spent where it helps most.

    The score of a model is what a leaderboard leads with: from
    `evalcube.stages.analyze.formulas.reasonscore_posterior.ENOUGH` trials of each task and tier on, the mean over tiers
    of the geometric mean over tasks of the mean rate of the points; below that the mean rate over tasks. Its variance
    is, to first order, the sum over cells of g²·v/n, with g the derivative of the score after the cell's rate,
    v = p(1 − p) and n trials. With ``intervals`` the sum of all variances is made small: n grows to
    max(n, g·sqrt(v/cost)/λ), Neyman's allocation, with λ such that the budget is spent. With ``ranking`` each model's
    variance counts as much as it adds to the expected number of pairs in the wrong order.

    Parameters
    ----------
    counters
        Shape (model, task, params, counter).
    planned
        Trials so far, shape (model, task, params); a cell with 0 gets none.
    in_tier
        Membership, bool, shape (tier, task, params).
    budget
        What may be spent, in the unit of `cost`.
    cost
        Expected cost of one trial, > 0, shape (model, task, params).
    purpose
        ``ranking`` or ``intervals``.
    most
        The most trials that a cell may have, shape (model, task, params).
    weights
        Weight of each point in the mean of its task, the base design, shape (task, params); None weighs them alike.

    Returns
    -------
    ndarray of shape (model, task, params)
        Never fewer than planned; what is added costs at most `budget`.

    References
    ----------
    J. Neyman (1934), On the two different aspects of the representative method, Journal of the Royal Statistical
    Society 97, 558-625; C.-H. Chen et al. (2000), Simulation budget allocation for further enhancing the efficiency
    of ordinal optimization, Discrete Event Dynamic Systems 10, 251-270.
    """
    now = np.asarray(planned, dtype=np.float64)
    price = np.asarray(cost, dtype=np.float64)
    room = np.maximum(np.asarray(most, dtype=np.float64), now)
    rate, spread = _rates(counters)
    member = np.asarray(in_tier, dtype=bool)
    design = (now > 0) * (np.ones(now.shape[1:]) if weights is None else np.asarray(weights, dtype=float))
    score, slope = (_slopes if _enough(counters, member) else _rate_slopes)(rate, member, design)
    share = slope**2 * spread
    if purpose == "intervals":
        return _spend(now, room, price, np.sqrt(share / price), budget).astype(np.int64)
    planned_variance = _variance(share, now)
    trials = now
    for step in range(_STEPS):
        weight = _urgency(score, planned_variance, _variance(share, trials))
        pull = np.sqrt(share * weight[:, None, None] / price)
        left = budget - ((trials - now) * price).sum()
        trials = _spend(trials, room, price, pull, left / (_STEPS - step))
    return trials.astype(np.int64)


def _variance(share: Floats, trials: Floats) -> Floats:
    """Variance of each model's score, shape (model,)."""
    total: Floats = (share / np.maximum(trials, 1)).sum(axis=(1, 2))
    return total


def _rates(counters: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Each cell's rate of C_P and the variance of one trial's contribution to it.

    Both are drawn towards one half by two trials: a cell of few trials is not taken for certain, and one that was lucky
    not for done, which would leave the luck in the estimate.
    """
    trials = column(counters, "trials")
    successes, total = correct_guesses(counters)
    part = np.maximum(total, 0) / np.maximum(column(counters, "completed"), 1)
    stretched = trials * np.where(column(counters, "completed") > 0, part, 1.0)
    rate = (np.clip(successes, 0, stretched) + 1.0) / (stretched + 2.0)
    # Guessing leaves fewer trials that tell anything: n·m/n_u of n.
    return rate, rate * (1 - rate) * np.maximum(trials, 1) / np.maximum(stretched, 1e-9 + 0.05 * trials)


def _enough(counters: npt.ArrayLike, in_tier: npt.NDArray[np.bool_]) -> bool:
    """Whether every task that was measured has trials enough in each tier for a score."""
    trials = np.einsum("gkp,mkp->mgk", in_tier.astype(np.float64), column(counters, "trials"))
    return bool(np.where(trials > 0, trials, np.inf).min(initial=np.inf) >= ENOUGH)


def _rate_slopes(rate: Floats, in_tier: npt.NDArray[np.bool_], design: Floats) -> tuple[Floats, Floats]:
    """Each model's mean rate over tasks, shape (model,), and its derivative after each cell's rate."""
    inside = design * in_tier.any(axis=0)
    total = inside.sum(axis=2, keepdims=True)
    share = inside / np.where(total > 0, total, 1.0)
    slope = share / np.maximum((total > 0).sum(axis=1, keepdims=True), 1)
    return (slope * rate).sum(axis=(1, 2)), slope


def _slopes(rate: Floats, in_tier: npt.NDArray[np.bool_], design: Floats) -> tuple[Floats, Floats]:
    """Each model's score, shape (model,), and its derivative after each cell's rate."""
    score, slope = np.zeros(rate.shape[0]), np.zeros_like(rate)
    for member in in_tier:
        inside = design * member
        points = inside.sum(axis=2)
        whole = np.where(points > 0, points, 1.0)
        mean = (rate * inside).sum(axis=2) / whole
        tasks = np.maximum((points > 0).sum(axis=1), 1)
        logs = np.where(points > 0, np.log(np.maximum(mean, _LEAST_RATE)), 0.0)
        tier_score = np.exp(logs.sum(axis=1) / tasks) / len(in_tier)
        score += tier_score
        each = tier_score[:, None] / tasks[:, None] / np.maximum(mean, _LEAST_RATE) / whole
        slope += each[:, :, None] * inside
    return score, slope


def _urgency(score: Floats, planned: Floats, variance: Floats) -> Floats:
    """How much each model's variance adds to the expected number of pairs in the wrong order, shape (model,).

    Parameters
    ----------
    score
        Estimates, shape (model,).
    known
        Their variances: a pair's distance δ is known to ±σ0 only, so that one that looks tied by chance is not
        given up, and one that is tied is.
    variance
        What the variances are going to be. The derivative of Φ(−|δ|/σ) after σ² is φ(δ/σ)·|δ|/2σ³; its mean over
        δ ~ N(d, σ0²) has a closed form, as the product of two normal densities is one.
    """
    before, after = (np.add.outer(v, v) for v in (planned, variance))
    distance = np.abs(np.subtract.outer(score, score))
    with np.errstate(divide="ignore", invalid="ignore"):
        both = before + after
        mean, deviation = distance * after / both, np.sqrt(before * after / both)
        ratio = mean / deviation
        folded = 2 * deviation * _density(ratio) + mean * (1 - 2 * scipy.special.ndtr(-ratio))
        gain = _density(distance / np.sqrt(both)) / np.sqrt(both) * folded / (2 * after)
    gain = np.nan_to_num(gain, nan=0.0, posinf=0.0)
    np.fill_diagonal(gain, 0.0)
    total: Floats = gain.sum(axis=1)
    return total


def _density(x: Floats) -> Floats:
    """Of the standard normal distribution."""
    density: Floats = np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)
    return density


def _spend(now: Floats, room: Floats, price: Floats, pull: Floats, budget: float) -> Floats:
    """Whole trials n = min(room, max(now, pull·x)) with the largest x that the budget allows."""
    pull = np.where(now > 0, pull, 0.0)
    if budget <= 0 or not (pull > 0).any():
        return now

    def grown(x: float) -> Floats:
        return np.floor(np.minimum(room, np.maximum(now, pull * x)))

    low, high = 0.0, float((room[pull > 0] / pull[pull > 0]).max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        within = ((grown(middle) - now) * price).sum() <= budget
        low, high = (middle, high) if within else (low, middle)
    return grown(low)


@dataclass(frozen=True)
class PrecisionTarget:
    """When a cell has been measured well enough."""

    base: int
    """Trials of the first round, and of each further one."""
    target: float
    """Half-width of the 95% interval to reach, as a fraction."""
    maximum: int
    """Trials after which a cell is left as it is."""


def half_width(
    counters: npt.ArrayLike, *, labels: Sequence[str] = COUNTERS, effect: npt.ArrayLike = 1.0
) -> npt.NDArray[np.float64]:
    """Half the width of each cell's 95% interval of C_P, its success rate with guesses taken out.

    That of `evalcube.stages.analyze.formulas.stratified.exact_estimate` before it is cut off at 0 and 1: a weak model's
    interval would look narrow where only half of it is shown. The noise of guesses counts, so that a task with options
    needs more trials.

    Parameters
    ----------
    counters
        Shape (..., counter).
    effect
        Trials that are worth one independent trial, broadcasts to (...).

    Returns
    -------
    ndarray of shape (...)
        Infinite where there is no trial, and where guessing leaves nothing to measure.

    Examples
    --------
    >>> names = ["trials", "completed", "correct", "truncated", "guess_sum"]
    >>> half_width([[32, 32, 16, 0, 0], [200, 200, 100, 0, 100]], labels=names).round(3).tolist()
    [0.181, 0.143]
    """
    worth = np.asarray(counters, dtype=float) / np.asarray(effect, dtype=float)[..., np.newaxis]
    rate, trials, chance = effective_trials(moments(worth, labels=labels, mode="C_P")[..., np.newaxis, :])
    _, lower, upper = exact_bounds(rate * trials, trials)
    with np.errstate(all="ignore"):
        width = (upper - lower) / 2.0 / (1.0 - chance)
    return np.asarray(np.where(np.isfinite(width), width, np.inf))


def next_trials(
    counters: npt.ArrayLike, planned: npt.ArrayLike, precision: PrecisionTarget, *, repeats: npt.ArrayLike = 1
) -> npt.NDArray[np.int64]:
    """How many trials each cell needs next. A function of counters: who resumes or repeats decides the same.

    Repeats of a question are taken to say the same: they are no trials of their own for the precision.

    A cell is examined when all its planned trials are finished, alone, after each `base` trials; so its final number
    does not depend on when it was examined, or on other cells.

    Parameters
    ----------
    counters
        Shape (..., counter); they may be older than the plan.
    planned
        Trials planned so far, shape (...); 0 is a cell that was never planned.
    repeats
        Times that each of them is asked.

    Returns
    -------
    ndarray of shape (...)
        Trials of the cell, never fewer than planned.
    """
    now = np.asarray(planned, dtype=np.int64)
    finished = column(counters, "trials") == now * np.asarray(repeats)
    width = half_width(counters, effect=np.maximum(repeats, 1))
    wide = finished & (width > precision.target) & (now < precision.maximum)
    more = np.minimum(now + precision.base, precision.maximum)
    return np.where(now == 0, precision.base, np.where(wide, more, now))
