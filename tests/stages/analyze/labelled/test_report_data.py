"""What a report shows of a model in one task."""

import math

import numpy as np
import pytest

from evalcube.stages.analyze.labelled.report_data import TaskView, curve_views, outcome_shares, task_views
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.reply.status import OUTCOMES
from tests.stages.analyze.synthetic import PROFILES, dataset


@pytest.mark.parametrize(
    ("points", "trials", "partial"),
    [(0, 0, False), (1, 32, True), (2, 64, False), (2, 50, True)],
)
def test_task_view__is_partial_where_something_and_not_enough_is_there(points, trials, partial):
    nothing = Estimate(math.nan, math.nan, math.nan)

    view = TaskView(nothing, trials, 0.0, 9.0, points, points_planned=2, planned=64)

    assert view.partial is partial


@pytest.fixture(scope="module")
def ds():
    made = dataset(PROFILES[:3], tasks=3, points=6, trials=16, gaps=True)
    return made.assign_coords(difficulty=made["difficulty"])


def test_task_views__are_the_rows_of_the_table_in_the_order_that_is_given(ds):
    views = task_views(ds, [2, 0], mode="E_P")
    cells = ds["counters"].sum("params")

    assert len(views) == 2
    for row, model in zip(views, (2, 0), strict=True):
        for task, view in enumerate(row):
            counts = cells[model, task]
            trials = float(counts.sel(counter="trials"))
            assert view.trials == trials
            assert view.planned == trials + float(counts.sel(counter=["missing", "transport"]).sum())
            assert view.points == int((ds["counters"].sel(counter="trials")[model, task] > 0).sum())
            if trials:
                assert view.accuracy.lower <= view.accuracy.value <= view.accuracy.upper
                assert view.accuracy.value == pytest.approx(float(counts.sel(counter="correct")) / trials)
                assert view.tokens == pytest.approx(float(counts.sel(counter="tokens_sum")) / trials)
    assert views[0][2].points == 0
    assert not views[0][2].partial
    assert task_views(ds, []) == []


def test_task_views__of_tokens_that_nobody_counted_have_none(ds):
    silent = ds.copy(deep=True)
    silent["counters"].loc[{"counter": "tokens_sum"}] = 0.0

    assert math.isnan(task_views(silent, [0])[0][0].tokens)


def test_outcome_shares__add_up_to_one_and_are_none_of_a_model_without_trials(ds):
    first, nothing = outcome_shares(with_nothing(ds), [0, 2])

    assert sum(first.values()) == pytest.approx(1.0)
    assert list(first) == list(OUTCOMES)
    assert first["correct"] > 0 < first["incorrect"]
    assert nothing == {}


def with_nothing(ds):
    """The dataset whose last model has no trial."""
    empty = ds.copy(deep=True)
    empty["counters"][2] = 0.0
    return empty


def test_curve_views__have_each_difficulty_that_all_models_were_asked():
    whole = dataset(PROFILES[:3], tasks=3, points=6, trials=16)
    curves = curve_views(whole, [1, 0], mode="E_P")

    assert [curve.task for curve in curves] == whole["task"].values.tolist()
    for task, curve in enumerate(curves):
        known = whole["difficulty"].values[task, :6]
        assert list(curve.difficulty) == pytest.approx(sorted(known))
        rates = whole["counters"].sel(counter="correct") / whole["counters"].sel(counter="trials")
        for row, model in zip(curve.accuracy, (1, 0), strict=True):
            assert [estimate.value for estimate in row] == pytest.approx(rates.values[model, task, :6])
        assert all(0 <= share <= 1 for row in curve.truncated for share in row)
    assert curve_views(whole, []) == curve_views(whole.drop_vars("difficulty"), [0]) == []


@pytest.mark.parametrize(("levels", "shown"), [(12, 12), (13, 12), (24, 12)])
def test_curve_views__pool_neighbours_where_there_are_too_many(levels, shown):
    whole = dataset(PROFILES[:2], tasks=1, points=levels, trials=16)
    difficulty = np.append(2.0 ** np.linspace(1, 6, levels), np.nan)

    (curve,) = curve_views(whole.assign_coords(difficulty=(("task", "params"), difficulty[np.newaxis])), [0])

    assert len(curve.difficulty) == shown
    assert list(curve.difficulty) == sorted(curve.difficulty)
    assert curve.difficulty[0] >= 2.0
    assert curve.difficulty[-1] <= 64.0 + 1e-9
    if levels == 24:  # the middle of the first two
        assert curve.difficulty[0] == pytest.approx(2.0 ** np.log2(difficulty[:2]).mean())
