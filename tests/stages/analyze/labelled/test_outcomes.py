import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta

from evalcube import stats as outcomes
from evalcube.stages.analyze.labelled.outcomes import (
    cube_outcome_metrics,
    cube_outcomes,
    lost_sentences,
    outcome_metrics,
)
from evalcube.stages.reply.status import FINISHED, Status

SIZES = {"model": 2, "task": 3, "params": 4, "trial": 5, "repeat": 8}


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    status = rng.integers(0, 5, tuple(SIZES.values())).astype(np.uint8)
    member = rng.integers(0, 2, (2, 3, 4)).astype(bool)
    member[0] = True
    return xr.Dataset(
        {"status": (tuple(SIZES), status)},
        coords={
            "model_name": ("model", ["a", "b"]),
            "task": ["x", "y", "z"],
            "tier": ["easy", "hard"],
            "in_tier": (("tier", "task", "params"), member),
        },
    )


def correct(ds, **where):
    return (ds["status"].isel(where).values == Status.CORRECT).reshape(-1, SIZES["repeat"])


@pytest.mark.parametrize("chunks", [None, {"model": 1, "params": 2, "repeat": 4}], ids=["memory", "dask"])
def test_outcome_metrics__one_result_per_remaining_label(ds, chunks):
    outcome, finished = cube_outcomes(ds.chunk(chunks) if chunks else ds)
    assert dask.is_dask_collection(outcome) == (chunks is not None)

    result = outcome_metrics(
        outcome,
        ["pass_at_k", "bayes", "maj_at_k_ci"],
        [1, 3],
        questions=("params", "trial"),
        finished=finished,
    )

    assert result["pass_at_k"].dims == ("model", "task", "k")
    assert result["task"].values.tolist() == ["x", "y", "z"]
    assert result["model_name"].values.tolist() == ["a", "b"]
    one = correct(ds, model=1, task=2)
    assert float(result["pass_at_k"].sel(k=3)[1, 2]) == outcomes.pass_at_k(one, 3)
    both = float(result["bayes"][1, 2]), float(result["bayes_sigma"][1, 2])
    assert both == pytest.approx(outcomes.bayes(one), rel=1e-13)
    parts = [float(result[f"maj_at_k_ci_{part}"].sel(k=3)[1, 2]) for part in ("mu", "sigma", "lo", "hi")]
    assert tuple(parts) == pytest.approx(outcomes.maj_at_k_ci(one, 3), rel=1e-13)
    assert (result["questions"] == 20).all()


def test_lost_sentences__says_what_lost_answers_may_hide(ds):
    ds["status"].values[...] = Status.CORRECT
    assert lost_sentences(ds, "pass_at_k", 1, ["a", "b"], by=["model"]) == []

    ds["status"].values[1, :, :, 0] = Status.TRANSPORT

    (said,) = lost_sentences(ds, "pass_at_k", 1, ["a", "b"], by=["model"])
    assert said.endswith("pass_at_k (k = 1) with all of them wrong, and with all right: b 0.800–1.000.")


def test_cube_outcome_metrics__a_tier_is_the_mean_over_its_tasks(ds):
    result = cube_outcome_metrics(ds, ["pass_at_k"], 2)

    member = ds["in_tier"].values[1]
    rows = [ds["status"].values[0][task][member[task]].reshape(-1, 8) == Status.CORRECT for task in range(3)]
    mean = np.mean([outcomes.pass_at_k(part, 2) for part in rows if len(part)])
    assert result["pass_at_k"].dims == ("model", "tier", "k")
    assert float(result["pass_at_k"].sel(tier="hard", k=2)[0]) == pytest.approx(mean, rel=1e-13)
    assert result["questions"].sel(tier="hard", k=2).values.tolist() == [5 * member.sum()] * 2
    by_model = cube_outcome_metrics(ds, ["pass_at_k"], 2, by="model")
    assert by_model["pass_at_k"].values.tolist() == result["pass_at_k"].sel(tier="easy").values.tolist()
    assert (by_model["pass_at_k_lower"] < by_model["pass_at_k"]).all()
    assert (by_model["pass_at_k"] < by_model["pass_at_k_upper"]).all()


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


@pytest.mark.parametrize("prior", [[1], [0, 1, 1]])
def test_cube_outcome_metrics__own_worth_of_answers_and_answers_before_the_first(ds, prior):
    options = {"bayes_ci": {"w": [-1.0, 2.0], "R0": prior}}
    result = cube_outcome_metrics(ds, ["bayes_ci"], by=["model", "task"], options=options)

    answers = correct(ds, model=1, task=2).astype(int)
    before = np.tile(prior, (len(answers), 1))
    expected = outcomes.bayes_ci(answers, [-1.0, 2.0], before, bounds=(-1.0, 2.0))
    parts = [float(result[f"bayes_ci_{part}"][1, 2]) for part in ("mu", "sigma", "lo", "hi")]
    assert parts == pytest.approx(expected, rel=1e-12)


def test_cube_outcome_metrics__intervals_end_at_what_an_answer_can_be_worth(ds):
    ds["status"][:] = Status.CORRECT
    for options, most in (({}, 1.0), ({"w": [-1.0, 3.0]}, 3.0), ({"bounds": [0.0, 0.25]}, 0.25)):
        result = cube_outcome_metrics(ds, ["avg_ci"], by="model", options={"avg_ci": options})
        assert result["avg_ci_hi"].values.tolist() == [most, most]


@pytest.mark.parametrize(
    ("options", "fragment"),
    [({"w": [0, 1, 2]}, "give 2"), ({"R0": [[0], [1]]}, "one row"), ({"R0": [0, 2]}, "0..1, got 2")],
)
def test_cube_outcome_metrics__refuses_what_answers_of_a_cube_do_not_have(ds, options, fragment):
    with pytest.raises(ValueError, match=fragment):
        cube_outcome_metrics(ds, ["bayes"], by="model", options={"bayes": options})


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
        cube_outcome_metrics(_points(status, there), ["pass_at_k", "pass_at_k_ci"], [1], by="model")
        for there in ((first[..., None] & (np.arange(4) < 2))[None, None], asked)
    )

    assert float(after["pass_at_k"][0, 0]) == pytest.approx(float(before["pass_at_k"][0, 0]), rel=1e-12)


def _points(status, asked):
    return xr.Dataset(
        {"status": (tuple(SIZES), np.where(asked, status, np.uint8(Status.MISSING)))},
        coords={
            "model_name": ("model", ["a"]),
            "task": ["x", "y"],
            "tier": ["easy"],
            "in_tier": (("tier", "task", "params"), np.ones((1, 2, 4), bool)),
            "base_trials": (("task", "params"), np.full((2, 4), 10)),
        },
    )


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_cube_outcome_metrics__a_majority_is_more_than_half_of_k_right(ds, k):
    found = cube_outcome_metrics(
        ds, ["maj_at_k", "g_pass_at_k_tau"], k, options={"g_pass_at_k_tau": {"tau": (k // 2 + 1) / k}}
    )

    assert found["maj_at_k"].values == pytest.approx(found["g_pass_at_k_tau"].values)


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
        found = cube_outcome_metrics(_points(status, np.True_), ["pass_at_k"], k, by="model")
        inside.append((float(found["pass_at_k_lower"][0, 0]), float(found["pass_at_k_upper"][0, 0])))
    mean = 1 - beta(shape, shape + k) / beta(shape, shape)

    # 2.6 standard errors of 100 below 0.95
    assert np.mean([low <= mean <= high for low, high in inside]) >= 0.89


def test_cube_outcome_metrics__lazy_chunks_give_the_same(ds):
    eager = cube_outcome_metrics(ds, ["auc_at_k", "max_at_k"], [2, 5])

    with dask.config.set(scheduler="synchronous"):
        lazy = cube_outcome_metrics(
            ds.chunk({"model": 1, "trial": 2, "repeat": 3}), ["auc_at_k", "max_at_k"], [2, 5]
        )

    xr.testing.assert_identical(
        eager.drop_vars("in_tier", errors="ignore"), lazy.drop_vars("in_tier", errors="ignore")
    )


def test_cube_outcome_metrics__groups_of_models_and_points_pool_their_questions(ds):
    ds = ds.assign_coords(
        facets=("model", ['{"family": "q"}', '{"family": "q"}']),
        param_length=(
            ("task", "params"),
            np.where(np.arange(ds.sizes["task"])[:, None] == 0, 4.0, np.nan) + 0 * ds["params"].values,
        ),
    )

    result = cube_outcome_metrics(ds, ["pass_at_k"], 2, by=["facet_family", "param_length"])

    rows = np.concatenate([correct(ds, model=0, task=0), correct(ds, model=1, task=0)])
    assert result["pass_at_k"].dims == ("facet_family", "param_length", "k")
    assert result["questions"].values.tolist() == [[[len(rows)]]]
    assert result["pass_at_k"].values.ravel().tolist() == [
        pytest.approx(outcomes.pass_at_k(rows, 2), rel=1e-13)
    ]


def test_cube_outcomes__truncated_is_finished_and_transport_is_not(ds):
    codes = [Status.CORRECT, Status.TRUNCATED, Status.REFUSED, Status.TRANSPORT, Status.MISSING]
    ds["status"][0, 0, 0, 0, :5] = codes

    outcome, finished = cube_outcomes(ds)

    assert outcome.values[0, 0, 0, 0, :5].tolist() == [1, 0, 0, 0, 0]
    assert finished.values[0, 0, 0, 0, :5].tolist() == [True, True, True, False, False]


def test_outcome_metrics__categories_and_nan():
    values = np.random.default_rng(3).integers(0, 3, (2, 30, 6)).astype(float)
    values[1, 4, 2] = np.nan
    array = xr.DataArray(values, dims=("judge", "question", "sample"))
    w = [0.0, 0.5, 1.0]

    result = outcome_metrics(array, k=2, questions=["question"], sample="sample", w=w)

    rows = [row[~np.isnan(row)] for row in values[1]]
    mean = np.mean([outcomes.max_at_k(row, 2, w) for row in rows])
    assert float(result["max_at_k"][1, 0]) == pytest.approx(mean, rel=1e-13)
    assert result["questions_incomplete"].values.tolist() == [[0], [0]]
    with pytest.raises(ValueError, match=r"must be integers in 0\.\.1, got 2\.0"):
        outcome_metrics(array, ["avg"], questions=["question"], sample="sample")
    with pytest.raises(ValueError, match="pass_at_k"):
        outcome_metrics(array, ["pass_at_k"], questions=["question"], sample="sample", w=w)


def test_outcome_metrics__members_are_a_label_of_their_own(ds):
    outcome, finished = cube_outcomes(ds)

    result = outcome_metrics(
        outcome, ["avg"], questions=("task", "params", "trial"), finished=finished, member=ds["in_tier"]
    )

    assert result["avg"].dims == ("model", "tier")
    assert result["tier"].values.tolist() == ["easy", "hard"]
    status = ds["status"].values[1][ds["in_tier"].values[1]].reshape(-1, SIZES["repeat"])
    rows = np.where(status <= max(FINISHED), status == Status.CORRECT, np.nan)
    means = np.nanmean(rows[(status <= max(FINISHED)).any(axis=1)], axis=1)
    assert float(result["avg"].sel(tier="hard")[1]) == pytest.approx(means.mean(), rel=1e-13)


def test_outcome_metrics__finished_must_have_the_labels_of_the_outcomes(ds):
    outcome, finished = cube_outcomes(ds)

    with pytest.raises(ValueError, match="exact"):
        outcome_metrics(outcome, questions=["trial"], finished=finished.isel(task=[1, 0, 2]))


def test_outcome_metrics__names_an_absent_dim(ds):
    with pytest.raises(ValueError, match="must name dims of R"):
        outcome_metrics(cube_outcomes(ds)[0], questions=("prompt",))
    with pytest.raises(ValueError, match="no array `status`"):
        cube_outcomes(ds.drop_vars("status"))
    with pytest.raises(ValueError, match="`by` has no 'prompt'"):
        cube_outcome_metrics(ds, by="prompt")
