import numpy as np
import pytest

from stages.analyze.formulas.reasonscore_posterior import ENOUGH, posterior_scores


def scores(right, n, chance=0.0, tasks=12, **options):
    shape = (1, tasks)
    found = np.broadcast_to(right, shape) / n
    return posterior_scores(found, np.full(shape, float(n)), np.full(shape, chance), "a", seed=1, **options)


def geometric(rates):
    return 1000 * np.exp(np.log(np.maximum(rates, 0.01)).mean())


@pytest.mark.parametrize("n", [8, 32, 128, 480, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_posterior_scores__no_interval_has_zero_width(n, share):
    value, lower, upper = scores(share * n, n).mean

    assert 9.999 <= lower <= value <= upper <= 1000
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
