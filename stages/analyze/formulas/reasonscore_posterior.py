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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from evalcube.stages.analyze.formulas.bootstrap import stream
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.reasonscore import FLOOR, SCALE, mean_score
from evalcube.stages.errors import ArgumentError

ENOUGH = 100
"""Trials of each task and tier from which this score leads a leaderboard."""

_AT_ONCE = 4000
"""Draws of all models together that are worked on at once."""


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
    z, m, c = (np.asarray(part, dtype=float)[np.newaxis] for part in (rate, trials, chance))
    shared = None if overlap is None else np.asarray(overlap, dtype=float)[np.newaxis]
    found = scores_of_models(
        z, m, c, [identity], seed=seed, overlap=shared, draws=draws, confidence=confidence
    )
    return PosteriorScores(found.tiers[0], found.mean[0], found.draws[0])


def scores_of_models(
    rate: Floats,
    trials: Floats,
    chance: Floats,
    identities: Sequence[str],
    *,
    seed: int,
    overlap: Floats | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
) -> PosteriorScores:
    """`posterior_scores` of several models, each the same as alone.

    Some models at a time, as many as make `_AT_ONCE` draws together: of few draws most of the time would go into
    calling for them, and many do not fit into a processor's cache.

    Parameters
    ----------
    rate, trials, chance
        As for `posterior_scores`, shape (model, tier, task).
    identities
        The `eval_id` of each model.
    seed, draws, confidence
        As for `posterior_scores`.
    overlap
        As for `posterior_scores`, shape (model, task, tier, tier).

    Returns
    -------
    PosteriorScores
        Its arrays with a first axis more, model.

    Raises
    ------
    ValueError
        As `posterior_scores`.
    """
    if draws < 1:
        raise ArgumentError(f"`draws` must be at least 1, got {draws}")
    if not 0.0 < confidence < 1.0:
        raise ArgumentError(f"`confidence` must lie inside (0, 1), got {confidence!r}; 0.95 means 95 %")
    models, tiers = rate.shape[:2]
    found = PosteriorScores(
        np.empty((models, tiers, 3)), np.empty((models, 3)), np.empty((models, draws, tiers))
    )
    tail = (1.0 - confidence) / 2.0
    step = max(1, _AT_ONCE // draws)
    for start in range(0, models, step):
        some = slice(start, start + step)
        streams = [stream(seed, identity, 0) for identity in identities[some]]
        shared = None if overlap is None else overlap[some]
        summaries, found.draws[some] = _some_scores(
            rate[some], trials[some], chance[some], streams, shared, draws, tail
        )
        found.tiers[some], found.mean[some] = summaries[:, :-1], summaries[:, -1]
    return found


def _some_scores(
    z: Floats,
    m: Floats,
    c: Floats,
    streams: Sequence[np.random.Generator],
    overlap: Floats | None,
    draws: int,
    tail: float,
) -> tuple[Floats, Floats]:
    """Summaries (model, tier and mean, 3) and draws (model, draw, tier) of some models."""
    there = np.isfinite(z) & np.isfinite(m) & np.isfinite(c)
    z, m, c = (np.where(there, part, filler) for part, filler in ((z, 0.5), (m, 1.0), (c, 0.0)))
    lower, middle, upper = _draw_rates(streams, z * m, m * (1.0 - z), draws)
    unclear, chance = _like_guessing(z, m, c, there, tail)[:, np.newaxis], c[:, np.newaxis]
    with np.errstate(all="ignore"):
        corrected = [(part - chance) / (1.0 - chance) for part in (lower, middle, upper)]
    corrected[0] = np.where(unclear, 0.0, corrected[0])
    corrected[2] = np.where(unclear, np.abs(corrected[2]), corrected[2])
    if overlap is not None:
        _correlate(streams, corrected, overlap)
    scores = [_tier_scores(part, there[:, np.newaxis]) for part in corrected]
    # The mean as one more column: most of the time of a few draws goes into calling for quantiles.
    low, mid, high = (np.concatenate([part, mean_score(part)[..., np.newaxis]], axis=-1) for part in scores)
    return _summaries(low, mid, high, tail), scores[1]


def _draw_rates(
    streams: Sequence[np.random.Generator], right: Floats, wrong: Floats, draws: int
) -> tuple[Floats, Floats, Floats]:
    """Draws (model, draw, tier, task) of three posteriors, from the same gammas so that they never change places."""
    shape = (draws, *right.shape[1:])
    ours, theirs = np.empty((2, len(streams), *shape))
    halves = np.empty((len(streams), 2, *shape))
    for place, rng in enumerate(streams):
        rng.standard_gamma(right[place], out=ours[place])
        rng.standard_gamma(wrong[place], out=theirs[place])
        rng.standard_gamma(0.5, out=halves[place])
    more = halves.sum(axis=1)
    total = ours + theirs + more
    return ours / total, (ours + halves[:, 0]) / total, (ours + more) / total


def _like_guessing(z: Floats, m: Floats, c: Floats, there: np.ndarray, tail: float) -> np.ndarray:
    """Tasks (..., tier, task) that are not significantly better than guessing, all that can be guessed together."""
    guessed = there & (c > 0.0)
    number = np.maximum(guessed.sum(axis=-1, keepdims=True), 1)
    right = z * m
    at_least = betainc(np.where(right > 0, right, 1.0), m - right + 1.0, np.clip(c, 0.0, 1.0))
    chance = np.where(right > 0, at_least, 1.0)
    return np.asarray(guessed & (chance > tail / number))


def _correlate(streams: Sequence[np.random.Generator], parts: list[Floats], overlap: Floats) -> None:
    """Reorder draws so that tiers which share points rise and fall together; each tier's own draws stay the same."""
    _, draws, tiers, _ = parts[0].shape
    shared = np.any(np.where(np.eye(tiers, dtype=bool), 0.0, overlap), axis=(-2, -1))
    if not shared.any():
        return
    # In the order of tasks, model by model: a model's stream gives the same numbers whichever models stand beside it.
    normals = [
        rng.standard_normal((count, draws, tiers))
        for rng, count in zip(streams, shared.sum(axis=1).tolist(), strict=True)
    ]
    # A jitter on the diagonal: two tiers of the same points are correlated fully.
    factors = np.linalg.cholesky(overlap[shared] + 1e-9 * np.eye(tiers))
    wanted = np.argsort(np.concatenate(normals) @ np.swapaxes(factors, -1, -2), axis=1)
    model, task = np.nonzero(shared)
    order = np.argsort(parts[1][model, :, :, task], axis=1, kind="stable")
    for part in parts:
        old = part[model, :, :, task]
        new = np.empty_like(old)
        np.put_along_axis(new, wanted, np.take_along_axis(old, order, axis=1), axis=1)
        part[model, :, :, task] = new


def _tier_scores(rates: Floats, there: np.ndarray) -> Floats:
    """1000 × the geometric mean over the tasks present, shape (model, draw, tier)."""
    logs = np.where(there, np.log(np.maximum(rates, FLOOR)), 0.0).sum(axis=-1)
    present = there.sum(axis=-1)
    with np.errstate(all="ignore"):
        return np.asarray(SCALE * np.exp(logs / np.where(present > 0, present, np.nan)))


def _summaries(low: Floats, mid: Floats, high: Floats, tail: float) -> Floats:
    """Median, lower and upper of columns of draws (model, draw, column): (model, column, 3), NaN where a draw is."""
    low, mid, high = (np.moveaxis(part, 1, -1) for part in (low, mid, high))
    found = np.full((*mid.shape[:-1], 3), np.nan)
    known = ~np.isnan(mid).any(axis=-1)
    if known.any():
        least = np.floor(np.quantile(low[known], tail, axis=-1))
        most = np.ceil(np.quantile(high[known], 1.0 - tail, axis=-1))
        found[known] = np.stack([np.median(mid[known], axis=-1), *_rounded(least, most)], axis=-1)
    return found


def _rounded(least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Bounds that are whole numbers, apart, and within the scale."""
    # Logarithms and back: the floor's own geometric mean may be a last bit below it.
    floor = SCALE * FLOOR
    lower = np.where(least <= floor, floor * (1.0 - 1e-12), np.minimum(least, SCALE - 1.0))
    return lower, np.minimum(np.maximum(most, np.floor(lower + 1e-9) + 1.0), SCALE)
