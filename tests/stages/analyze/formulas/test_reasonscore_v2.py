import math

import numpy as np
import pytest

from evalcube.stages.analyze.formulas import bootstrap
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.analyze.formulas.reasonscore_v2 import (
    bootstrap_scores,
    draw_tier_scores,
    task_score,
    tier_score,
)
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import dataset

LABELS = ("trials", "completed", "correct", "truncated", "guess_sum")


@pytest.fixture(scope="module")
def cube():
    ds = dataset(tasks=3, points=6)
    return ds["counters"].values, ds["in_tier"].values, ds["eval_id"].values.tolist()


def test_task_score__is_the_pessimistic_point_value():
    found = task_score([[128, 112, 84, 16, 56], [0, 0, 0, 0, 0], [8, 0, 0, 8, 0]], labels=LABELS)

    assert found == pytest.approx([0.4375, math.nan, 0.0], nan_ok=True)


def test_tier_score__geometric_mean_with_the_floor_of_the_tier():
    good, failed = [100, 100, 64, 0, 0], [100, 100, 0, 0, 0]

    assert tier_score([good, [100, 100, 36, 0, 0]], labels=LABELS).score == pytest.approx(480.0)
    assert tier_score([good, failed], labels=LABELS).score == 10.0
    assert np.isnan(tier_score([[0] * 5], labels=LABELS).score)


def test_tier_score__a_missing_task_is_flagged_and_not_averaged_away():
    found = tier_score(
        [[100, 100, 64, 0, 0], [0] * 5, [100, 100, 0, 0, 0]], labels=LABELS, expected=[1, 1, 0]
    )

    assert found.score == pytest.approx(640.0)
    assert (found.tasks_present, found.tasks_expected, found.incomplete) == (1, 2, True)


def test_bootstrap_scores__depends_on_seed_and_own_counters_only(cube):
    counters, in_tier, names = cube
    every = bootstrap_scores(counters, in_tier, names, seed=7, draws=130)

    part = bootstrap_scores(counters[1:3], in_tier, names[1:3], seed=7, draws=130)
    other = bootstrap_scores(counters, in_tier, names, seed=8, draws=130)

    assert np.array_equal(part.mean, every.mean[1:3])
    assert not np.array_equal(other.mean, every.mean)


def test_draw_tier_scores__rests_on_the_draws_of_version_one():
    counters = np.array([[[40, 40, 26, 0, 0], [60, 60, 24, 0, 0]]], dtype=float)
    member = np.ones((1, 1, 2), dtype=bool)

    one, two = (
        draw(counters, member, "a", seed=3, labels=LABELS, draws=300)[:, 0]
        for draw in (bootstrap.draw_tier_scores, draw_tier_scores)
    )

    # one task, nothing truncated: both versions are functions of the number of correct trials alone
    upper = wilson_bounds(np.round(two / 10), 100)[2]
    assert np.array_equal(
        draw_tier_scores(counters, member, "a", seed=3, labels=LABELS, draws=60)[:, 0], two[:60]
    )
    assert one == pytest.approx(1000 * upper)


def test_bootstrap_scores__brackets_the_score(cube):
    counters, in_tier, names = cube
    grouped = np.einsum("gkp,mkpc->mgkc", in_tier.astype(float), counters)
    score = tier_score(grouped).score

    found = bootstrap_scores(counters, in_tier, names, seed=1, draws=300)

    assert (found.tiers[..., 0] <= score).all()
    assert (score <= found.tiers[..., 1]).all()
    assert found.tiers.shape == (5, 3, 2)


def test_bootstrap_scores__certain_outcomes_have_no_width():
    counters = np.zeros((1, 1, 2, len(COUNTERS)))
    for label, value in {"trials": 20, "completed": 20, "correct": 20, "tokens_sum": 100}.items():
        counters[..., COUNTERS.index(label)] = value

    found = bootstrap_scores(counters, np.ones((1, 1, 2), dtype=bool), ["a"], seed=0, draws=50)

    assert found.mean[0] == pytest.approx([1000, 1000])
    assert found.per_token[0] == pytest.approx([200, 200])


def test_bootstrap_scores__covers_the_score_of_the_true_rates():
    rng = np.random.default_rng(0)
    rates, n, sweeps = np.array([[0.8, 0.7, 0.6], [0.5, 0.6, 0.55]]), 100, 200
    seen = np.zeros((sweeps, 2, 3, 6))
    seen[..., :2] = n
    seen[..., 2] = rng.binomial(n, rates, size=(sweeps, 2, 3))
    labels = (*LABELS, "tokens_sum")
    target = 1000 * math.sqrt(rates[0].mean() * rates[1].mean())

    found = bootstrap_scores(
        seen, np.ones((1, 2, 3), dtype=bool), list(map(str, range(sweeps))), seed=1, labels=labels, draws=250
    )

    assert 0.90 <= np.mean((found.mean[:, 0] <= target) & (target <= found.mean[:, 1])) <= 0.99


def test_bootstrap_scores__refuses_what_does_not_fit(cube):
    counters, in_tier, names = cube
    with pytest.raises(ValueError, match="one identity per model"):
        bootstrap_scores(counters, in_tier, names[:-1], seed=0)
    with pytest.raises(ValueError, match="`draws`"):
        bootstrap_scores(counters, in_tier, names, seed=0, draws=0)
    with pytest.raises(ValueError, match="`confidence`"):
        bootstrap_scores(counters, in_tier, names, seed=0, confidence=1.0)
