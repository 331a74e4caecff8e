"""Scores and mean rates of evaluations: their intervals are those of their draws, whatever else is on the board."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from evalcube.stages.analyze.formulas import reasonscore, reasonscore_v2
from evalcube.stages.analyze.labelled import scores
from evalcube.stages.analyze.labelled.counters import members, task_moments, tier_counters
from evalcube.stages.analyze.labelled.scores import (
    How,
    draw_means,
    identities,
    per_token,
    posterior,
    resample_scores,
)
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import Profile, dataset

HOW = How("v1", "C_P", "completed", seed=3, draws=400, confidence=0.9, effects=None)
MODELS = (Profile("low", ability=3.5), Profile("high", ability=6.5))


@pytest.fixture(scope="module")
def ds():
    """Two models; one task has no easy points, and points weigh as the first plan says."""
    made = dataset(MODELS, tasks=3)
    made["in_tier"].values[0, 1] = False
    base = np.broadcast_to(np.arange(1.0, 11.0), made["counters"].shape[:3])
    return made.assign_coords(base_trials=(("model", "task", "params"), base))


def scores_of(ds, how=HOW):
    if how.version == "auto":
        return posterior(ds, how, members(ds))
    return resample_scores(ds, how, tier_counters(ds), members(ds))


@pytest.mark.parametrize("version", ["auto", "v1", "v2"])
def test_scores__have_the_bounds_that_their_draws_have(ds, version):
    found = scores_of(ds, replace(HOW, version=version))

    for bounds, draws in zip(found.mean, found.draws, strict=True):
        if version != "auto":  # whose bounds are those of the posterior, kept off its edges
            assert bounds[1:] == pytest.approx(np.quantile(draws, [0.05, 0.95]))
        assert bounds[1] < bounds[0] < bounds[2]
    assert (found.tiers[..., 1] <= found.tiers[..., 0]).all()
    assert (found.tiers[..., 0] <= found.tiers[..., 2]).all()
    assert found.mean[0, 2] < found.mean[1, 1]
    if version == "auto":
        assert found.mean.max() < found.ceiling < 1000.0
    else:
        formula = {"v1": partial(reasonscore.tier_score, basis="completed"), "v2": reasonscore_v2.tier_score}[
            version
        ]
        score = formula(tier_counters(ds), labels=COUNTERS, expected=members(ds).any(axis=-1)).score
        assert found.tiers[..., 0] == pytest.approx(score)
        assert found.mean[:, 0] == pytest.approx(reasonscore.mean_score(score))


def test_posterior__has_the_ceiling_that_a_model_which_is_always_right_reaches(ds):
    right = ds.assign(counters=ds["counters"].copy())
    labels = list(COUNTERS)
    cells = right["counters"].values[1]
    for label in ("invalid", "refused", "truncated"):
        cells[..., labels.index(label)] = 0.0
    for label in ("correct", "completed"):
        cells[..., labels.index(label)] = cells[..., labels.index("trials")]

    found = scores_of(right, replace(HOW, version="auto", draws=2000))

    assert found.mean[1, 0] == pytest.approx(found.ceiling, rel=0.01)
    assert found.mean[1, 1] < found.ceiling - 5
    moments = task_moments(right, members(right).any(axis=0), "E_P", together=True)
    means = draw_means(right, HOW, moments)
    assert 0.99 < means[1].mean() < 1.0
    assert means.max() < 1.0


@pytest.mark.parametrize("version", ["auto", "v1", "v2"])
def test_scores__of_a_model_do_not_depend_on_the_others_nor_on_their_order(ds, version):
    how = replace(HOW, version=version, effects=np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 1.0]]))
    other = scores_of(ds.isel(model=[1, 0]), replace(how, effects=how.effects[::-1]))

    assert other.mean[::-1] == pytest.approx(scores_of(ds, how).mean)
    assert other.draws[::-1] == pytest.approx(scores_of(ds, how).draws)


@pytest.mark.parametrize("version", ["auto", "v1"])
def test_scores__are_less_certain_where_trials_are_worth_less_or_more_is_asked_of_bounds(ds, version):
    how = replace(HOW, version=version)

    def width(**options):
        bounds = scores_of(ds, replace(how, **options)).mean
        return bounds[:, 2] - bounds[:, 1]

    assert (width(effects=np.full((2, 3), 4.0)) > 1.5 * width()).all()
    assert (width(confidence=0.99) > 1.2 * width()).all()
    assert how.level == 0.9
    assert replace(how, confidence=0.95).level is None
    assert how.effect((2, 3)).tolist() == np.ones((2, 3)).tolist()


def test_overlaps__of_a_tier_without_points_of_a_task_are_none(ds):
    found = scores._overlaps(ds, members(ds))

    assert np.allclose(found, np.eye(3))
    weights = scores._cell_weights(ds, tier_counters(ds), members(ds))
    assert (weights[:, 0, 1] == 0.0).all()
    shared = members(ds).copy()
    shared[1] = shared[0] | shared[2]
    assert np.isfinite(scores._overlaps(ds, shared)).all()


def test_overlaps__are_the_shares_of_points_that_tiers_have_in_common():
    ds = dataset(MODELS, tasks=3)
    apart = scores._overlaps(ds, members(ds))
    inside = members(ds).copy()
    inside[1] = inside[0]
    same = scores._overlaps(ds, inside)

    assert np.allclose(apart, np.eye(3))
    assert np.allclose(same[..., 0, 1], 1.0)
    assert np.allclose(same[..., 0, 2], 0.0)
    inside[1] = inside[0] | inside[2]
    part = scores._overlaps(ds, inside)
    base = np.where(np.arange(10) < 3, 3.0, 1.0)  # easy points have three times the weight of others
    weighed = ds.assign_coords(base_trials=(("model", "task", "params"), np.broadcast_to(base, (2, 3, 10))))
    assert np.allclose(scores._overlaps(weighed, inside)[..., 0, 1], (9 / (9 + 1)) ** 0.5)
    assert np.allclose(part[..., 0, 1], 0.5**0.5)
    assert np.allclose(part[..., 0, 0], 1.0)


def test_cell_weights__add_up_to_the_counters_of_a_task(ds):
    cells = ds["counters"].values
    for number, factor in enumerate((1.0, 2.0, 5.0)):
        cells[:, :, number] *= factor
    weights = scores._cell_weights(ds, tier_counters(ds), members(ds))

    sums = np.einsum("mgkp,mkpc->mgkc", weights, cells)
    assert sums[..., COUNTERS.index("trials")] == pytest.approx(
        tier_counters(ds)[..., COUNTERS.index("trials")]
    )
    assert (weights[..., -1] == 0.0).all()  # of padding


def test_draw_means__are_of_the_rate_above_chance_and_none_without_trials():
    ds = dataset((Profile("a", ability=5.0, invalid=0.0), Profile("b")), tasks=1)
    chance = ds["counters"].values[..., COUNTERS.index("completed")] * 0.25
    ds["counters"].values[..., COUNTERS.index("guess_sum")] = chance
    ds["counters"].values[1] = 0.0
    sums = ds["counters"].values[0, 0].sum(axis=0)
    rate = sums[COUNTERS.index("correct")] / sums[COUNTERS.index("trials")]
    how = replace(HOW, draws=4000)
    moments = task_moments(ds, members(ds).any(axis=0), "C_P", together=True)

    means = draw_means(ds, how, moments)

    assert means.shape == (2, 4000)
    assert means[0].mean() == pytest.approx((rate - 0.25) / 0.75, abs=0.01)
    trials, right = (ds["counters"].values[0, 0, :9, COUNTERS.index(name)] for name in ("trials", "correct"))
    spread = (right * (trials - right) / trials).sum() ** 0.5 / trials.sum() / 0.75
    assert means[0].std() == pytest.approx(spread, rel=0.1)
    assert np.isnan(means[1]).all()


def test_per_token__divides_gains_and_is_less_certain_where_tokens_vary(ds):
    gain = np.array([[100.0, 90.0, 110.0], [100.0, 90.0, 110.0]])
    steady = ds.assign(counters=ds["counters"].copy())
    labels = list(COUNTERS)
    cells = steady["counters"].values
    trials = cells[1][..., labels.index("trials")]
    cells[1][..., labels.index("tokens_sum")] = 50.0 * trials
    cells[1][..., labels.index("tokens_sumsq")] = 2500.0 * trials

    found = per_token(steady, HOW, gain, np.array([20.0, 50.0]))

    assert found[:, 0] == pytest.approx([5.0, 2.0])
    assert found[1] == pytest.approx([2.0, 1.8, 2.2], rel=1e-3)
    assert found[0, 2] - found[0, 0] > 0.5
    assert found[0, 1] < 4.5


def test_identities__are_ids_or_else_names():
    ds = dataset(MODELS, tasks=1)

    assert identities(ds) == ["id-low", "id-high"]
    assert len(set(identities(ds.drop_vars("eval_id")))) == 2
    other = ds.drop_vars("eval_id").assign_coords(sampler=("model", ["hot", "greedy"]))
    assert identities(other)[0] != identities(ds.drop_vars("eval_id"))[0]
    assert identities(other)[1] == identities(ds.drop_vars("eval_id"))[1]
