import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from evalcube.stages.analyze.formulas.bootstrap import stream
from evalcube.stages.analyze.formulas.reasonscore_posterior import ENOUGH, posterior_scores


def scores(right, n, chance=0.0, tasks=12, **options):
    shape = (1, tasks)
    found = np.broadcast_to(right, shape) / n
    return posterior_scores(found, np.full(shape, float(n)), np.full(shape, chance), "a", seed=1, **options)


def geometric(rates):
    return max(1000 * np.exp(np.log(np.maximum(rates, 0.01)).mean()), 10)


@pytest.mark.parametrize("n", [8, 32, 128, 480, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_posterior_scores__no_interval_has_zero_width(n, share):
    value, lower, upper = scores(share * n, n).mean

    assert 10 <= lower <= value <= upper <= 1000
    assert upper >= lower + 1


@pytest.mark.parametrize("n", [8, 32, 128, 480])
@pytest.mark.parametrize(
    "rates", [np.zeros(12), np.full(12, 0.1), np.full(12, 0.95), np.linspace(0, 1, 12)], ids=str
)
def test_posterior_scores__cover_the_score_of_the_true_rates(n, rates):
    rng = np.random.default_rng([n, int(1000 * rates.sum())])
    found = [scores(rng.binomial(n, rates), n, draws=300).mean for _ in range(60)]

    truth = geometric(rates)
    assert np.mean([low <= truth <= high for _, low, high in found]) >= 0.9


@pytest.mark.parametrize("chance", [0.25, 0.5])
def test_posterior_scores__a_guesser_is_near_the_floor_and_covered(chance):
    n = 2 * ENOUGH
    rng = np.random.default_rng(5)
    found = np.array([scores(rng.binomial(n, chance, 12), n, chance, draws=300).mean for _ in range(60)])

    assert found[:, 0].max() < 60
    assert (found[:, 1] <= 10).mean() >= 0.9


def test_posterior_scores__tiers_of_the_same_points_move_together():
    options = {"seed": 1, "draws": 2000}
    parts = [np.full((2, 12), value) for value in (0.5, 64.0, 0.0)]
    apart = posterior_scores(*parts, "a", **options).draws
    same = posterior_scores(*parts, "a", overlap=np.ones((12, 2, 2)), **options).draws

    assert abs(np.corrcoef(apart.T)[0, 1]) < 0.1
    assert np.corrcoef(same.T)[0, 1] > 0.99
    np.testing.assert_allclose(np.quantile(same, 0.9), np.quantile(apart, 0.9), rtol=0.01)


def test_posterior_scores__a_task_without_trials_is_left_out():
    rate = np.array([[0.5, np.nan], [np.nan, np.nan]])

    found = posterior_scores(rate, rate * 256, rate * 0, "a", seed=0)

    assert found.tiers[0, 0] == pytest.approx(500, rel=0.02)
    assert np.isnan(found.tiers[1]).all()
    assert np.isfinite(found.mean).all()


def plain_scores(z, m, c, identity, *, seed, overlap, draws):
    """One model's summaries (tier and mean, 3) and draws (draw, tier), task by task and column by column."""
    rng = stream(seed, identity, 0)
    there = np.isfinite(z)
    z, m, c = (np.where(there, part, filler) for part, filler in ((z, 0.5), (m, 1.0), (c, 0.0)))
    shape = (draws, *z.shape)
    ours, theirs = rng.standard_gamma(z * m, shape), rng.standard_gamma(m * (1 - z), shape)
    first, second = rng.standard_gamma(0.5, (2, *shape))
    total = ours + theirs + (first + second)
    parts = [(part / total - c) / (1 - c) for part in (ours, ours + first, ours + (first + second))]
    guessed = there & (c > 0)
    for tier, task in zip(*np.nonzero(guessed), strict=True):
        right, n = (z * m)[tier, task], m[tier, task]
        chance = betainc(right, n - right + 1, c[tier, task]) if right > 0 else 1.0
        if chance > 0.025 / guessed[tier].sum():
            parts[0][:, tier, task] = 0.0
            parts[2][:, tier, task] = np.abs(parts[2][:, tier, task])
    for task, matrix in enumerate(overlap):
        if not np.any(matrix - np.diag(np.diag(matrix))):
            continue
        factor = np.linalg.cholesky(matrix + 1e-9 * np.eye(len(matrix)))
        place = (rng.standard_normal((draws, len(matrix))) @ factor.T).argsort(axis=0).argsort(axis=0)
        for tier in range(len(matrix)):
            order = parts[1][:, tier, task].argsort(kind="stable")[place[:, tier]]
            for part in parts:
                part[:, tier, task] = part[order, tier, task]
    low, mid, high = ([column(part, tier, there) for tier in range(len(z))] for part in parts)
    columns = [[*part, np.nanmean(part, axis=0)] for part in (low, mid, high)]
    return np.array([summary(*each) for each in zip(*columns, strict=True)]), np.array(mid).T


def column(rates, tier, there):
    if not there[tier].any():
        return np.full(len(rates), np.nan)
    return 1000 * np.exp(np.log(np.maximum(rates[:, tier, there[tier]], 0.01)).mean(axis=1))


def summary(low, mid, high):
    if np.isnan(mid).any():
        return [np.nan] * 3
    least, most = np.floor(np.quantile(low, 0.025) + 1e-9), np.ceil(np.quantile(high, 0.975) - 1e-9)
    lower = min(max(least, 10), 999)
    return [np.median(mid), lower, min(max(most, lower + 1), 1000)]


@settings(max_examples=40, derandomize=True)
@given(
    tiers=st.integers(1, 3),
    tasks=st.integers(1, 4),
    draws=st.sampled_from([1, 2, 7, 60]),
    seed=st.integers(0, 1000),
)
def test_posterior_scores__are_those_of_plain_loops(tiers, tasks, draws, seed):
    rng = np.random.default_rng(seed)
    shape = (tiers, tasks)
    z = rng.choice([0.0, 0.3, 0.9, 1.0, np.nan], shape, p=[0.1, 0.4, 0.3, 0.1, 0.1])
    m, c = rng.integers(1, 300, shape).astype(float), rng.choice([0.0, 0.25, 0.5], shape)
    overlap = np.where(np.eye(tiers, dtype=bool), 1.0, rng.choice([0.0, 0.4, 1.0], (tasks, 1, 1)))

    found = posterior_scores(z, m, c, "a", seed=seed, overlap=overlap, draws=draws)

    with warnings.catch_warnings(action="ignore"):
        summaries, drawn = plain_scores(z, m, c, "a", seed=seed, overlap=overlap, draws=draws)
    np.testing.assert_allclose(found.draws, drawn, rtol=1e-12)
    bounds = np.array([*found.tiers, found.mean])
    np.testing.assert_allclose(bounds[:, 0], summaries[:, 0], rtol=1e-12)
    # A bound that is a whole number but for its last bit is rounded outwards to the next one.
    np.testing.assert_allclose(bounds[:, 1:], summaries[:, 1:], atol=1.0, rtol=1e-12)
