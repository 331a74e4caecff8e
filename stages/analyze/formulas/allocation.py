"""Where the trials that a budget buys narrow the intervals or settle the ranking most."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr  # `scipy.stats` takes half a second to import

from evalcube.stages.analyze.formulas.columns import column
from evalcube.stages.analyze.formulas.reasonscore import adjusted
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH

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
    known = _variance(share, now)
    trials = now
    for step in range(_STEPS):
        weight = _urgency(score, known, _variance(share, trials))
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
    successes, total = adjusted(counters)
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


def _urgency(score: Floats, known: Floats, variance: Floats) -> Floats:
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
    before, after = (np.add.outer(v, v) for v in (known, variance))
    distance = np.abs(np.subtract.outer(score, score))
    with np.errstate(divide="ignore", invalid="ignore"):
        both = before + after
        mean, deviation = distance * after / both, np.sqrt(before * after / both)
        ratio = mean / deviation
        folded = 2 * deviation * _density(ratio) + mean * (1 - 2 * ndtr(-ratio))
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
