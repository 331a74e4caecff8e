"""How much answers to one question, of one cluster or of several models, are alike."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.clustering import cluster_effect, cluster_moments
from evalcube.stages.analyze.labelled.clustering import (
    CLUSTER,
    all_clusters,
    answered_unevenly,
    answers_to_questions,
    family_effects,
    pair_units,
    question_clusters,
    question_effects,
    questions_once,
    token_effects,
    with_question_moments,
)
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS, QUESTION_MOMENTS, Status

TRIAL = ("model", "task", "params", "trial", "repeat")
SHAPE = (2, 2, 3, 16, 4)
WRONG, RIGHT, CUT, LOST = map(int, (Status.INCORRECT, Status.CORRECT, Status.TRUNCATED, Status.MISSING))


def dataset(status, *, moments=False, clusters=None, tokens=None, **others):
    """A dataset of outcomes with the counters that follow from them."""
    status = np.asarray(status, np.uint8)
    counts = {
        "trials": status <= 4,
        "completed": (status <= 4) & (status != CUT),
        "correct": status == RIGHT,
        "truncated": status == CUT,
        "guess_sum": 0.25 * ((status <= 4) & (status != CUT)),
        "tokens_sum": 10.0 * (status <= 4),
    }
    none = np.zeros(status.shape)
    cells = np.stack([counts.get(label, none).sum(axis=(-1, -2)) for label in COUNTERS], axis=-1)
    labels = list(COUNTERS)
    if moments:
        cells = np.concatenate([cells, cluster_moments(status)[..., 2:]], axis=-1)
        labels += QUESTION_COUNTERS
    arrays = {"counters": (("model", "task", "params", "counter"), cells)}
    arrays |= {"status": (TRIAL, status)} if not moments else {}
    arrays |= {} if clusters is None else {CLUSTER: (TRIAL, np.broadcast_to(clusters, status.shape))}
    arrays |= {} if tokens is None else {"tokens": (TRIAL, tokens)}
    arrays |= others
    names = {"model_name": ("model", ["a", "b"][: status.shape[0]])}
    return xr.Dataset(arrays, coords={**names, "counter": labels, "repeat": range(status.shape[-1])})


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def alike(rng, shape=SHAPE):
    """Outcomes that all repeats of a question have."""
    return np.broadcast_to(rng.integers(0, 2, (*shape[:-1], 1)), shape).astype(np.uint8)


def test_question_effects__are_the_answers_of_a_question_that_all_say_the_same_and_one_of_independent_ones(
    rng,
):
    assert question_effects(dataset(alike(rng))) == pytest.approx(np.full((2, 2), 4.0), rel=0.15)
    assert question_effects(dataset(rng.integers(0, 2, SHAPE))) == pytest.approx(np.ones((2, 2)), abs=0.3)


def test_question_effects__are_the_same_of_outcomes_and_of_what_a_cube_counts(rng):
    status = alike(rng)
    status[0, :, :, ::2, 1:] = LOST
    status[1, 0] = rng.integers(0, 2, SHAPE[2:])
    counted = with_question_moments(dataset(status, moments=True))

    assert question_effects(counted) == pytest.approx(question_effects(dataset(status)))
    by_point = question_effects(counted, by_point=True)
    assert by_point == pytest.approx(question_effects(dataset(status), by_point=True))
    assert by_point.shape == SHAPE[:3]
    assert (by_point >= question_effects(counted)[..., np.newaxis] - 1e-12).all()
    assert (by_point == np.maximum(
        question_effects(counted)[..., np.newaxis], cluster_effect(cluster_moments(status)[..., np.newaxis, :])
    )).all()  # fmt: skip


def test_question_effects__are_unknown_where_only_trials_of_repeats_were_counted_and_one_without_repeats(rng):
    status = alike(rng)
    nothing = {"planned_repeats": (TRIAL[:3], np.full(SHAPE[:3], 4))}

    assert question_effects(dataset(status, **nothing).drop_vars("status")) is None
    assert question_effects(dataset(status[..., :1]).drop_vars("status")).tolist() == [[1.0, 1.0]] * 2
    assert question_effects(dataset(status[..., :1])).tolist() == [[1.0, 1.0]] * 2
    assert question_effects(dataset(status[..., :1]), by_point=True).shape == SHAPE[:3]


def test_with_question_moments__takes_them_out_of_the_counters_of_trials(rng):
    status = rng.integers(0, 3, SHAPE)
    ds = dataset(status, moments=True)

    found = with_question_moments(ds)

    assert found["counter"].values.tolist() == list(COUNTERS)
    assert (found["counters"].values == ds["counters"].values[..., : len(COUNTERS)]).all()
    assert (found[QUESTION_MOMENTS].values == cluster_moments(status.astype(np.uint8))).all()
    for without in (dataset(status), ds.drop_vars("counters"), ds.drop_vars("counter")):
        assert with_question_moments(without) is without


def test_answered_unevenly__are_points_of_which_some_questions_have_more_answers():
    status = np.full(SHAPE, RIGHT, np.uint8)
    status[0, 1, 2, 3, 0] = LOST  # one answer fewer
    status[1, 0, 1, 5] = LOST  # none at all
    status[1, 1, 0, :, 2:] = LOST  # two of each
    expected = np.zeros(SHAPE[:3], bool)
    expected[0, 1, 2] = True

    assert (answered_unevenly(dataset(status)) == expected).all()
    assert (answered_unevenly(with_question_moments(dataset(status, moments=True))) == expected).all()
    assert not answered_unevenly(dataset(status).drop_vars("status")).any()
    assert not answered_unevenly(dataset(status[..., :1])).any()


def test_questions_once__weighs_a_question_that_was_answered_more_often_like_another():
    status = np.full((1, 1, 2, 4, 4), LOST, np.uint8)
    status[0, 0, 0, 0] = RIGHT
    status[0, 0, 0, 1, 0] = WRONG
    status[0, 0, 0, 2, :2] = CUT, RIGHT
    status[0, 0, 1, :, 0] = RIGHT  # as often each
    ds = dataset(status)

    found = questions_once(ds)

    counts = dict(zip(COUNTERS, found["counters"].values[0, 0, 0], strict=True))
    assert counts["trials"] == 7
    assert counts["correct"] == pytest.approx(7 / 3 * (1 + 0 + 0.5))
    assert counts["truncated"] == pytest.approx(7 / 3 * 0.5)
    assert counts["completed"] == pytest.approx(7 - 7 / 3 * 0.5)
    assert counts["guess_sum"] == pytest.approx(0.25 * counts["completed"])
    assert counts["tokens_sum"] == 70.0
    assert (found["counters"].values[0, 0, 1] == ds["counters"].values[0, 0, 1]).all()
    right, answers, questions, squares, products, sizes = found[QUESTION_MOMENTS].values[0, 0, 0]
    each = np.array([7 / 3, 0, 7 / 6])
    assert (right, answers, questions) == (pytest.approx(each.sum()), 7, 3)
    assert (squares, products, sizes) == pytest.approx(((each**2).sum(), 7 / 3 * each.sum(), 49 / 3))


def test_questions_once__leaves_what_is_even_or_unknown_as_it_is(rng):
    even = dataset(rng.integers(0, 3, SHAPE))

    assert questions_once(even) is even
    uneven = np.full(SHAPE, RIGHT, np.uint8)
    uneven[0, 0, 0, 0, 0] = LOST
    unknown = with_question_moments(dataset(uneven, moments=True))
    assert questions_once(unknown) is unknown


def test_answers_to_questions__are_those_of_a_question_on_average():
    status = np.full(SHAPE, RIGHT, np.uint8)
    status[0, 0, 0, ::2, 2:] = LOST
    status[1] = LOST
    planned = {"planned_repeats": (TRIAL[:3], np.full(SHAPE[:3], 3))}

    counted = answers_to_questions(with_question_moments(dataset(status, moments=True)))

    assert counted[0, 0].tolist() == [3.0, 4.0, 4.0]
    assert (counted[1] == 1.0).all()
    assert answers_to_questions(dataset(status)).tolist() == np.full(SHAPE[:3], 4.0).tolist()
    assert (answers_to_questions(dataset(status, **planned)) == 3.0).all()


CLUSTERS = np.repeat(np.arange(1, 5), 4)[:, np.newaxis]
"""Four questions to a cluster."""


def test_question_effects__of_clusters_that_are_alike_are_larger_than_those_of_their_questions(rng):
    same = np.broadcast_to(rng.integers(0, 2, (2, 2, 3, 4, 1, 1)), (2, 2, 3, 4, 4, 4)).reshape(SHAPE)
    free = rng.integers(0, 2, SHAPE)

    assert (question_effects(dataset(same, clusters=CLUSTERS)) > 1.5 * question_effects(dataset(same))).all()
    assert (question_effects(dataset(free, clusters=CLUSTERS)) >= question_effects(dataset(free))).all()
    assert (
        question_effects(dataset(same, clusters=0 * CLUSTERS)).tolist()
        == question_effects(dataset(same)).tolist()
    )
    one = np.where(np.arange(2)[:, np.newaxis, np.newaxis, np.newaxis] == 1, CLUSTERS, 0)
    part = question_effects(dataset(same, clusters=one))
    second = np.zeros(SHAPE, int)
    second[1] = CLUSTERS
    of_second = question_effects(dataset(same, clusters=second))
    assert of_second[0].tolist() == question_effects(dataset(same))[0].tolist()
    assert of_second[1].tolist() == question_effects(dataset(same, clusters=CLUSTERS))[1].tolist()
    assert (part[:, 0] == question_effects(dataset(same))[:, 0]).all()
    assert (part[:, 1] == question_effects(dataset(same, clusters=CLUSTERS))[:, 1]).all()


def test_token_effects__are_those_of_clusters_and_none_without(rng):
    length = np.broadcast_to(rng.integers(10, 500, (2, 2, 3, 16, 1, 1)), (2, 2, 3, 16, 4, 2)).reshape(
        2, 2, 3, 64, 2
    )
    status, clusters = np.full(length.shape, WRONG), np.repeat(np.arange(1, 17), 4)[:, np.newaxis]
    long = dataset(status, clusters=clusters, tokens=length)
    free = dataset(status, clusters=clusters, tokens=rng.integers(10, 500, length.shape))
    unknown = dataset(status, clusters=clusters, tokens=np.full(length.shape, -1))

    assert (token_effects(long) > 5.0).all()
    assert (token_effects(free) < 5.0).all()
    assert np.isfinite(token_effects(unknown)).all()
    assert token_effects(long.drop_vars(CLUSTER)) is token_effects(long.drop_vars("tokens")) is None
    assert token_effects(dataset(status, clusters=0 * clusters, tokens=length)).tolist() == [[1.0, 1.0]] * 2


def test_clusters__are_those_that_any_of_the_models_tells(rng):
    status = rng.integers(0, 2, SHAPE)
    clusters = np.zeros(SHAPE, int)
    clusters[1, :, :, :, 2] = CLUSTERS[:, 0]
    ds = dataset(status, clusters=clusters)

    assert (question_clusters(ds, 1) == CLUSTERS[:, 0]).all()
    assert not question_clusters(ds, 0).any()
    assert (all_clusters(ds) == CLUSTERS[:, 0]).all()
    assert all_clusters(ds).shape == (6, 16)
    assert all_clusters(ds, [0]) is pair_units(ds, 0) is all_clusters(dataset(status)) is None
    units = pair_units(ds, 0, 1)
    assert units.shape == (2, 3, 16)
    assert (units == CLUSTERS[:, 0]).all()


def test_family_effects__are_the_models_that_are_alike_and_one_of_those_that_are_not(rng):
    same = np.broadcast_to(rng.integers(0, 2, (1, *SHAPE[1:])), SHAPE)
    both, apart = [np.array([0, 1])], [np.array([0]), np.array([1])]

    assert family_effects(dataset(same), both) == pytest.approx(np.full((2, 2), 2.0))
    assert family_effects(dataset(rng.integers(0, 2, SHAPE)), both) == pytest.approx(
        np.ones((2, 2)), abs=0.35
    )
    assert family_effects(dataset(same), apart) == pytest.approx(np.ones((2, 2)))
    assert family_effects(dataset(same), []).tolist() == [[1.0, 1.0]] * 2
    assert family_effects(dataset(np.full(SHAPE, RIGHT)), both).tolist() == [[2.0, 2.0]] * 2
    assert family_effects(dataset(same).drop_vars("status"), both).tolist() == [[2.0, 2.0]] * 2
    opposed = np.stack([same[0], 1 - same[0]])
    assert family_effects(dataset(opposed), both) == pytest.approx(np.ones((2, 2)))


@given(st.lists(st.sampled_from([WRONG, RIGHT, CUT, 3, LOST]), min_size=12, max_size=12))
def test_questions_once__keeps_the_number_of_answers_and_the_mean_of_the_questions_shares(outcomes):
    status = np.array(outcomes, np.uint8).reshape(1, 1, 1, 4, 3)
    found = questions_once(dataset(status))

    counts = dict(zip(COUNTERS, found["counters"].values[0, 0, 0], strict=True))
    done = (status <= 4).sum(axis=-1)[0, 0, 0]
    right = (status == RIGHT).sum(axis=-1)[0, 0, 0]
    assert counts["trials"] == done.sum()
    if done.any():
        shares = right[done > 0] / done[done > 0]
        assert counts["correct"] / counts["trials"] == pytest.approx(shares.mean())
    assert counts["completed"] + counts["truncated"] == pytest.approx(counts["trials"])
