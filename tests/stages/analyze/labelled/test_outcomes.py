import dask
import numpy as np
import pytest
import xarray as xr

from evalcube import stats as outcomes
from evalcube.stages.analyze.labelled.outcomes import (
    cube_outcome_metrics,
    cube_outcomes,
    lost_sentences,
    outcome_metrics,
)
from evalcube.stages.reply.status import FINISHED, Status
from tests.stages.analyze.labelled.answered import SIZES, answered_questions, correct


@pytest.fixture
def ds():
    return answered_questions()


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


@pytest.mark.parametrize("prior", [[1], [0, 1, 1]])
def test_cube_outcome_metrics__own_worth_of_answers_and_answers_before_the_first(ds, prior):
    options = {"bayes_ci": {"w": [-1.0, 2.0], "R0": prior}}
    result = cube_outcome_metrics(ds, ["bayes_ci"], by=["model", "task"], options=options)

    answers = correct(ds, model=1, task=2).astype(int)
    before = np.tile(prior, (len(answers), 1))
    expected = outcomes.bayes_ci(answers, [-1.0, 2.0], before, bounds=(-1.0, 2.0))
    parts = [float(result[f"bayes_ci_{part}"][1, 2]) for part in ("mu", "sigma", "lo", "hi")]
    assert parts == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "fragment"),
    [({"w": [0, 1, 2]}, "give 2"), ({"R0": [[0], [1]]}, "one row"), ({"R0": [0, 2]}, "0..1, got 2")],
)
def test_cube_outcome_metrics__refuses_what_answers_of_a_cube_do_not_have(ds, options, fragment):
    with pytest.raises(ValueError, match=fragment):
        cube_outcome_metrics(ds, ["bayes"], by="model", options={"bayes": options})


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_cube_outcome_metrics__a_majority_is_more_than_half_of_k_right(ds, k):
    found = cube_outcome_metrics(
        ds, ["maj_at_k", "g_pass_at_k_tau"], k, options={"g_pass_at_k_tau": {"tau": (k // 2 + 1) / k}}
    )

    assert found["maj_at_k"].values == pytest.approx(found["g_pass_at_k_tau"].values)


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
