"""Estimates and intervals of groups of questions, each with its weight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta

from evalcube.stages.analyze.labelled.outcomes import (
    cube_outcome_metrics,
)
from evalcube.stages.reply.status import Status
from tests.stages.analyze.labelled.answered import SIZES, answered_points, answered_questions


@pytest.fixture
def ds():
    return answered_questions()


def test_cube_outcome_metrics__questions_of_a_cluster_are_one(ds):
    def estimated(clusters):
        dims = ("model", "task", "params", "trial", "repeat")
        more = (
            {}
            if clusters is None
            else {"cluster": (dims, np.broadcast_to(clusters, ds["status"].shape).copy())}
        )
        result = cube_outcome_metrics(ds.assign(more), ["pass_at_k"], 1, by="model")
        return result["pass_at_k"].values, result["pass_at_k_upper"].values - result["pass_at_k_lower"].values

    ds["status"].values[:, :, :, 1:] = ds["status"].values[:, :, :, :1]  # all of a point are answered alike
    together, apart = (
        estimated(np.arange(1, count + 1).reshape(1, 3, 4, -1, 1)) for count in (12, 12 * SIZES["trial"])
    )

    assert (together[1] > 2 * apart[1]).all()
    for values, _ in (together, apart, estimated(None)):
        np.testing.assert_allclose(values, together[0])
    np.testing.assert_array_equal(estimated(np.zeros((1, 1, 1, 1, 1), int)), estimated(None))


def test_cube_outcome_metrics__intervals_end_at_what_an_answer_can_be_worth(ds):
    ds["status"][:] = Status.CORRECT
    for options, most in (({}, 1.0), ({"w": [-1.0, 3.0]}, 3.0), ({"bounds": [0.0, 0.25]}, 0.25)):
        result = cube_outcome_metrics(ds, ["avg_ci"], by="model", options={"avg_ci": options})
        assert result["avg_ci_hi"].values.tolist() == [most, most]


def test_cube_outcome_metrics__any_question_with_k_answers_counts(ds):
    ds["status"][0, 0, 0, 0, 3] = Status.TRANSPORT
    ds["status"][0, 0, 1, 2, 1:] = Status.MISSING
    ds["status"][0, 1] = Status.MISSING
    ds["status"][1, :, :, :, :] = Status.MISSING

    names = ["pass_at_k", "geo_spectrum_at_k", "pass_at_k_ci", "avg"]
    result = cube_outcome_metrics(ds, names, [1, 2], by=["model", "task"])

    assert result["questions"].values.tolist() == [[[20, 19], [0, 0], [20, 20]], [[0, 0]] * 3]
    assert result["questions_incomplete"].values[0].tolist() == [[0, 1], [0, 0], [0, 0]]
    rows = ds["status"].values[0, 0]
    rates = [np.mean([(row[row < 5] == 1).mean() for row in point]) for point in rows]
    assert float(result["pass_at_k"][0, 0, 0]) == pytest.approx(np.mean(rates), rel=1e-13)
    assert float(result["avg"][0, 0]) == pytest.approx(np.mean(rates), rel=1e-13)
    assert float(result["geo_spectrum_at_k"][0, 0, 1]) < float(result["pass_at_k"][0, 0, 1])
    assert (result["pass_at_k_ci_lo"].values[0, 0] < result["pass_at_k_ci_hi"].values[0, 0]).all()
    assert np.isnan(result["pass_at_k"].values[1]).all()


@given(grown=st.lists(st.integers(1, 4), min_size=4, max_size=4), repeats=st.integers(1, 2))
def test_cube_outcome_metrics__do_not_depend_on_where_questions_were_added(grown, repeats):
    status = np.tile(np.random.default_rng(0).integers(0, 2, (1, 2, 4, 5, 2)), (1, 1, 1, 4, 2))
    status = status.astype(np.uint8)
    first = np.arange(20) < 5 * np.ones(4)[:, None]
    more = np.arange(20) < 5 * np.array(grown)[:, None]
    asked = np.zeros(status.shape, dtype=bool)
    asked[:, 0] = (more[..., None] & (np.arange(4) < 2 * repeats))[None]
    asked[:, 1] = (first[..., None] & (np.arange(4) < 2))[None]

    before, after = (
        cube_outcome_metrics(answered_points(status, there), ["pass_at_k", "pass_at_k_ci"], [1], by="model")
        for there in ((first[..., None] & (np.arange(4) < 2))[None, None], asked)
    )

    assert float(after["pass_at_k"][0, 0]) == pytest.approx(float(before["pass_at_k"][0, 0]), rel=1e-12)


def test_cube_outcome_metrics__intervals_of_means_stay_within_what_a_trial_can_give(ds):
    ds["status"].values[...] = Status.CORRECT
    ds["status"].values[:, :, :, 0] = Status.INCORRECT
    ds = ds.isel(params=[0, 1], trial=[0, 1, 2], repeat=[0])
    ds["in_tier"].values[...] = True

    found, free = (
        cube_outcome_metrics(ds, ["avg_ci"], 1, options={"avg_ci": {"confidence": 0.9999, **bounds}})
        for bounds in ({}, {"bounds": None})
    )

    assert (found["avg_ci_hi"].values <= 1.0).all()
    assert (free["avg_ci_hi"].values > 1.0).any()


@pytest.mark.long
@pytest.mark.parametrize(("shape", "k"), [(1.0, 1), (0.2, 4)])
def test_cube_outcome_metrics__intervals_cover(shape, k):
    rng = np.random.default_rng([23, k])
    inside = []
    for _ in range(100):
        p = rng.beta(shape, shape, (1, 2, 4, 10, 1))
        status = (rng.random((*p.shape[:-1], 4)) < p).astype(np.uint8)
        found = cube_outcome_metrics(answered_points(status, np.True_), ["pass_at_k"], k, by="model")
        inside.append((float(found["pass_at_k_lower"][0, 0]), float(found["pass_at_k_upper"][0, 0])))
    mean = 1 - beta(shape, shape + k) / beta(shape, shape)

    # 2.6 standard errors of 100 below 0.95
    assert np.mean([low <= mean <= high for low, high in inside]) >= 0.89
