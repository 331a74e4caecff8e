"""ReasonScore of the success rates themselves, with an interval from their posteriors.

Version 1 scores upper bounds, which few trials raise, and version 2 point values, whose geometric mean few trials
lower. Here the score is the median of what the rates may be. A task's C_P in a tier is worth Z·M successes in M trials
of a raw rate, of which guessing explains c (`evalcube.stages.analyze.formulas.stratified.effective_trials`); draws of
the raw rate θ from Beta(Z·M + ½, M − Z·M + ½) become (θ − c)/(1 − c), at least 0.01, their geometric mean × 1000 the
draw of a tier, and the mean over tiers that of the score.

The lower end is the quantile of draws from Beta(Z·M, M − Z·M + 1), the upper end that of draws from
Beta(Z·M + 1, M − Z·M): the two posteriors whose quantiles are the exact interval of Clopper and Pearson. A logarithm of
something near 0 needs more: where a task with guess chance does not differ from guessing, taken over all such tasks of
the tier, its lower draws are 0.01 and its upper ones are folded to |·|. The interval covers from 8 trials on, but is
wide below about `ENOUGH` trials, and the median low.

References
----------
C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the binomial,
Biometrika 26, 404-413. https://doi.org/10.1093/biomet/26.4.404
R. L. Iman, W. J. Conover (1982), A distribution-free approach to inducing rank correlation among input variables,
Communications in Statistics 11, 311-334. https://doi.org/10.1080/03610918208812265
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import confidence_level
from evalcube.stages.analyze.formulas.bootstrap import stream
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.reasonscore import FLOOR, SCALE, mean_score, scaled_geomean
from evalcube.stages.errors import ArgumentError

ENOUGH = 100
"""Trials of each task and tier from which this score leads a leaderboard."""


@dataclass(frozen=True)
class PosteriorScores:
    """Scores of one model; bounds are whole points, rounded outwards, so that none has zero width."""

    tiers: Floats
    """Shape (tier, 3): median, lower and upper; NaN without trials."""
    mean: Floats
    """Shape (3,): of the mean over the tiers present."""
    draws: Floats
    """Draws of the score, shape (draw, tier)."""


def posterior_scores(
    rate: ArrayLike,
    trials: ArrayLike,
    chance: ArrayLike,
    identity: str,
    *,
    seed: int,
    overlap: ArrayLike | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
) -> PosteriorScores:
    """Scores of one model's tiers and of their mean.

    Parameters
    ----------
    rate, trials, chance
        Z, M and c of each task in each tier, shape (tier, task); NaN without trials.
    identity
        The model's `eval_id`, which names its random stream.
    seed
        Seed of the analysis, >= 0.
    overlap
        Correlation of a task's estimates between tiers that share points, shape (task, tier, tier); None is none.
    draws
        Number of draws, >= 1.
    confidence
        Level of the interval, in (0, 1).

    Returns
    -------
    PosteriorScores
        From 10 to 1000; the floor of a task is 0.01.

    Raises
    ------
    ValueError
        If `draws` is less than 1 or `confidence` outside (0, 1).

    Examples
    --------
    >>> found = posterior_scores([[0.5] * 12], [[128.0] * 12], [[0.0] * 12], "a", seed=0)
    >>> found.mean.round().tolist()
    [498.0, 469.0, 527.0]
    """
    if draws < 1:
        raise ArgumentError(f"`draws` must be at least 1, got {draws}")
    tail = (1.0 - confidence_level(confidence)) / 2.0
    z, m, c = (np.asarray(part, dtype=float) for part in (rate, trials, chance))
    there = np.isfinite(z) & np.isfinite(m) & np.isfinite(c)
    z, m, c = (np.where(there, part, filler) for part, filler in ((z, 0.5), (m, 1.0), (c, 0.0)))
    rng = stream(seed, identity, 0)
    unclear = _like_guessing(z, m, c, there, tail)
    with np.errstate(all="ignore"):
        lower, middle, upper = (
            (part - c) / (1.0 - c) for part in _draw_rates(rng, z * m, m * (1.0 - z), draws)
        )
    corrected = [np.where(unclear, 0.0, lower), middle, np.where(unclear, np.abs(upper), upper)]
    if overlap is not None:
        _correlate(rng, corrected, np.asarray(overlap, dtype=float))
    scores = [scaled_geomean(np.maximum(part, FLOOR), there) for part in corrected]
    low, mid, high = (np.column_stack([part, mean_score(part)]) for part in scores)
    summaries = _summaries(low, mid, high, tail)
    return PosteriorScores(summaries[:-1], summaries[-1], scores[1])


def _draw_rates(
    rng: np.random.Generator, right: Floats, wrong: Floats, draws: int
) -> tuple[Floats, Floats, Floats]:
    """Draws (draw, tier, task) of three posteriors, from the same gammas so that they never change places."""
    ours, theirs = (rng.standard_gamma(part, (draws, *right.shape)) for part in (right, wrong))
    halves = rng.standard_gamma(0.5, (2, draws, *right.shape))
    more = halves.sum(axis=0)
    total = ours + theirs + more
    return ours / total, (ours + halves[0]) / total, (ours + more) / total


def _like_guessing(z: Floats, m: Floats, c: Floats, there: np.ndarray, tail: float) -> np.ndarray:
    """Tasks (..., tier, task) that are not significantly better than guessing, all that can be guessed together."""
    guessed = there & (c > 0.0)
    number = np.maximum(guessed.sum(axis=-1, keepdims=True), 1)
    right = z * m
    at_least = scipy.special.betainc(np.where(right > 0, right, 1.0), m - right + 1.0, np.clip(c, 0.0, 1.0))
    chance = np.where(right > 0, at_least, 1.0)
    return np.asarray(guessed & (chance > tail / number))


def _correlate(rng: np.random.Generator, parts: list[Floats], overlap: Floats) -> None:
    """Reorder draws so that tiers which share points rise and fall together; each tier's own draws stay the same."""
    draws, tiers, _ = parts[0].shape
    apart = np.eye(tiers, dtype=bool)
    tasks = np.flatnonzero(np.where(apart, 0.0, overlap).any(axis=(1, 2)))
    # A jitter on the diagonal: two tiers of the same points are correlated fully.
    factors = np.linalg.cholesky(overlap[tasks] + 1e-9 * apart)
    normals = rng.standard_normal((len(tasks), draws, tiers)) @ factors.swapaxes(1, 2)
    wanted = np.argsort(np.ascontiguousarray(normals.swapaxes(1, 2)))
    columns = [np.ascontiguousarray(part.T)[tasks] for part in parts]
    order = np.argsort(columns[1])
    ascending = np.take_along_axis(columns[1], order, axis=-1)
    if (ascending[..., 1:] == ascending[..., :-1]).any():  # of equal draws the first comes first
        order = np.argsort(columns[1], kind="stable")
    source = np.empty_like(order)
    np.put_along_axis(source, wanted, order, axis=-1)
    for part, column in zip(parts, columns, strict=True):
        part.T[tasks] = np.take_along_axis(column, source, axis=-1)


def _summaries(low: Floats, mid: Floats, high: Floats, tail: float) -> Floats:
    """Median, lower and upper of columns of draws (draw, column): (column, 3), NaN where a draw is."""
    least, most = np.floor(np.quantile(low, tail, axis=0)), np.ceil(np.quantile(high, 1.0 - tail, axis=0))
    lower = np.clip(least, SCALE * FLOOR, SCALE - 1.0)
    upper = np.clip(most, lower + 1.0, SCALE)
    intervals = np.stack([np.median(mid, axis=0), lower, upper], axis=-1)
    return np.where(np.isnan(mid.sum(axis=0))[:, np.newaxis], np.nan, intervals)
