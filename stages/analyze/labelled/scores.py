"""Scores and mean rates of every evaluation, with intervals, as arrays: what a leaderboard's rows are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas import bootstrap, reasonscore, reasonscore_v2, stratified
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.estimators import Mode, brought
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.reasonscore import Basis
from evalcube.stages.analyze.formulas.reasonscore_posterior import posterior_scores
from evalcube.stages.analyze.labelled.axes import names
from evalcube.stages.analyze.labelled.counters import mean_weights, point_factors, task_moments, tokens_error

Version = Literal["auto", "v1", "v2"]
VERSIONS: tuple[Version, ...] = get_args(Version)


@dataclass(frozen=True)
class How:
    """The options of a leaderboard."""

    version: Version
    mode: Mode
    basis: Basis
    seed: int
    draws: int
    confidence: float
    effects: Floats | None
    """Trials that are worth one independent trial, shape (model, task); None is 1."""
    token_effects: Floats | None = None
    """The same of their tokens."""
    plain: bool = False
    """Whether all trials weigh alike in rates, whatever their task."""

    @property
    def level(self) -> float | None:
        """For formulas: None is z = 1.96."""
        return None if self.confidence == 0.95 else self.confidence

    def effect(self, shape: tuple[int, int]) -> Floats:
        """The effects, shape (model, task)."""
        return np.ones(shape) if self.effects is None else self.effects


@dataclass(frozen=True)
class BoardScores:
    """Scores with bounds; arrays end in (value, lower, upper)."""

    tiers: Floats
    """Shape (model, tier, 3)."""
    mean: Floats
    """Shape (model, 3)."""
    draws: Floats
    """Draws of the score, shape (model, draw)."""
    ceiling: float = 1000.0
    """Score that a model which is always right has with as many trials."""


def posterior(ds: Dataset, how: How, member: NDArray[np.bool_]) -> BoardScores:
    """Scores of what the rates may be."""
    rate, trials, chance = stratified.effective_trials(task_moments(ds, member, "C_P", how.effects))
    overlaps = _overlaps(ds, member)
    tiers, mean = (np.empty((len(rate), *shape, 3)) for shape in ((len(member),), ()))
    draws = np.empty((len(rate), how.draws))
    for model, identity in enumerate(identities(ds)):
        scores = posterior_scores(
            rate[model],
            trials[model],
            chance[model],
            identity,
            seed=how.seed,
            overlap=overlaps[model],
            draws=how.draws,
            confidence=how.confidence,
        )
        tiers[model], mean[model] = scores.tiers, scores.mean
        draws[model] = reasonscore.mean_score(scores.draws)
    # Of rates that are all 1, with the most trials that a model has of each task in each tier.
    most, guess = (np.fmax.reduce(part, axis=0, initial=np.nan) for part in (trials, chance))
    right = np.where(np.isnan(most), np.nan, 1.0)
    options = {"seed": how.seed, "draws": how.draws}
    top = posterior_scores(right, most, guess, "always right", **options, confidence=how.confidence)
    return BoardScores(tiers, mean, draws, float(top.mean[0]))


def per_token(ds: Dataset, how: How, gain: Floats, tokens: Floats) -> Floats:
    """A gain (model, 3) with bounds by mean tokens per trial of models (model,), with bounds: shape (model, 3)."""
    error = tokens_error(ds, mean_weights(ds), how.token_effects)
    value, lower, upper = gain.T
    return np.stack(brought((value, lower, upper), tokens, error, confidence=how.level), axis=-1)


def _overlaps(ds: Dataset, member: NDArray[np.bool_]) -> Floats:
    """Correlation of a task's estimates in two tiers that share points, shape (model, task, tier, tier)."""
    inside = member.astype(np.float64)
    spread = column(ds.variables["counters"].values, "trials", names(ds, "counter")) * point_factors(ds) ** 2
    shared = np.einsum("gkp,hkp,mkp->mkgh", inside, inside, spread)
    own = np.sqrt(np.einsum("mkgg->mkg", shared))
    scale = own[..., :, np.newaxis] * own[..., np.newaxis, :]
    correlation = shared / np.where(scale > 0, scale, 1.0)
    return np.asarray(np.where(np.eye(len(member), dtype=bool), 1.0, correlation))


def resample_scores(ds: Dataset, how: How, grouped: Floats, member: NDArray[np.bool_]) -> BoardScores:
    """Scores of version 1 or 2, with bootstrap intervals."""
    cells, labels = ds.variables["counters"].values, names(ds, "counter")
    expected = np.asarray(member.any(axis=-1))

    def score(
        counters: Floats, labels: Sequence[str] = bootstrap.DRAWN, expected: ArrayLike | None = None
    ) -> Floats:
        if how.version == "v2":
            return reasonscore_v2.tier_score(counters, labels=labels, expected=expected).score
        return reasonscore.tier_score(counters, labels=labels, basis=how.basis, expected=expected).score

    scores = score(grouped, labels, expected)
    tails = [(1.0 - how.confidence) / 2.0, (1.0 + how.confidence) / 2.0]
    means = np.empty((len(cells), how.draws))
    tiers, mean = (np.empty((len(cells), *more, 2)) for more in ((len(member),), ()))
    weights = _cell_weights(ds, grouped, member)
    effect = how.effect((cells.shape[0], cells.shape[1]))
    for index, identity in enumerate(identities(ds)):
        drawn = bootstrap.draw_tier_scores(
            cells[index],
            weights[index],
            identity,
            seed=how.seed,
            labels=labels,
            score=score,
            draws=how.draws,
            effect=effect[index][:, np.newaxis],
        )
        means[index] = reasonscore.mean_score(drawn)
        tiers[index] = np.quantile(drawn, tails, axis=0).T
        mean[index] = np.quantile(means[index], tails)

    def with_bounds(value: Floats, bounds: Floats) -> Floats:
        return np.concatenate([value[..., np.newaxis], bounds], axis=-1)

    return BoardScores(with_bounds(scores, tiers), with_bounds(reasonscore.mean_score(scores), mean), means)


def _cell_weights(ds: Dataset, grouped: Floats, member: NDArray[np.bool_]) -> Floats:
    """Weight of each cell's counters in the effective counters of its task in a tier: (model, tier, task, params)."""
    labels, factors = names(ds, "counter"), point_factors(ds)
    inside = member * factors[:, np.newaxis]
    trials = column(ds.variables["counters"].values, "trials", labels)
    scaled = (inside * trials[:, np.newaxis]).sum(axis=-1)
    scale = column(grouped, "trials", labels) / np.where(scaled > 0, scaled, 1.0)
    return np.asarray(inside * np.where(scaled > 0, scale, 1.0)[..., np.newaxis])


def draw_means(ds: Dataset, how: How, moments: Floats) -> Floats:
    """Draws of the mean rate of each model from its posterior, shape (model, draw)."""
    rate, trials, chance = stratified.effective_trials(moments)
    means = np.full((len(rate), how.draws), np.nan)
    for index, identity in enumerate(identities(ds)):
        if np.isfinite(rate[index] + trials[index] + chance[index]):
            right, c = rate[index] * trials[index], chance[index]
            rng = bootstrap.stream(how.seed, identity, 0)
            theta = rng.beta(right + 0.5, trials[index] - right + 0.5, how.draws)
            means[index] = (theta - c) / (1.0 - c)
    return means


def identities(ds: Dataset) -> list[str]:
    """A stream name per model: its eval_id, or its names where the cube has none."""
    if "eval_id" in ds.coords:
        return names(ds, "eval_id")
    parts = zip(names(ds, "model_name"), names(ds, "template"), names(ds, "sampler"), strict=True)
    return ["\n".join(part) for part in parts]
