"""Counters of points as they were planned, and their means over points, tasks and trials."""

import numpy as np
import pytest

from evalcube.stages.analyze.labelled import counters
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import Profile, dataset


def planned(questions, repeats, **counts):
    """Two evaluations of two points of which so much is planned, and counters of each point."""
    ds = dataset([Profile("a"), Profile("b")], tasks=1, points=2).isel(params=slice(2))
    ds["counters"][:] = 0
    for name, values in counts.items():
        ds["counters"][..., COUNTERS.index(name)] = np.reshape(values, (2, 1, 2))
    arrays = {"planned_trials": questions, "planned_repeats": repeats}
    return ds.assign(
        {
            name: (
                ("model", "task", "params"),
                np.broadcast_to(np.reshape(values, (-1, 1, 2)), (2, 1, 2)).copy(),
            )
            for name, values in arrays.items()
            if values is not None
        }
    )


def test_with_unasked__counts_as_missing_what_has_neither_answer_nor_error():
    ds = planned(
        [10, 20], [2, 1], trials=[[12, 20], [0, 5]], transport=[[3, 0], [0, 1]], missing=[[1, 0], [20, 15]]
    )

    filled = counters.with_unasked(ds)

    missing = filled["counters"].values[..., 0, :, COUNTERS.index("missing")]
    assert missing.tolist() == [[5, 0], [20, 15]]  # what a run counted is no less
    assert ds["counters"].values[0, 0, 0, COUNTERS.index("missing")] == 1
    assert counters.with_unasked(filled) is filled
    assert (
        counters.with_unasked(ds.drop_vars("planned_repeats"))
        .drop_vars("planned_trials")
        .identical(ds.drop_vars(["planned_repeats", "planned_trials"]))
    )


def test_planned_mask__is_of_questions_and_repeats_that_are_planned_and_selected():
    ds = planned([[2, 1], [1, 0]], [[1, 2], [3, 1]]).assign_coords(trial=range(2), repeat=range(3))

    mask = counters.planned_mask(ds)
    selected = counters.planned_mask(
        ds.assign(asked=(("task", "params", "trial"), [[[True, False], [False, True]]]))
    )

    assert mask[0, 0].tolist() == [[[True, False, False]] * 2, [[True, True, False], [False] * 3]]
    assert mask[1, 0].tolist() == [[[True] * 3, [False] * 3], [[False] * 3] * 2]
    assert selected[0, 0].tolist() == [[[True, False, False], [False] * 3], [[False] * 3] * 2]


def test_planned_questions__are_trials_over_repeats_as_far_as_they_are_known():
    counted = planned(
        [10, 20], [2, 1], trials=[[12, 20], [0, 5]], transport=[[4, 0], [0, 1]], missing=[[4, 0], [20, 14]]
    )
    by_point = counters.planned_questions(counted)
    of_most = counters.planned_questions(counted.drop_vars("planned_repeats").assign_coords(repeat=range(4)))
    uncounted = counters.planned_questions(counted.drop_vars("counters"))

    assert by_point[:, 0].tolist() == uncounted[:, 0].tolist() == [[10, 20], [10, 20]]
    assert of_most[:, 0].tolist() == [[5, 5], [5, 5]]


def test_planned_questions__without_counters_are_those_that_any_evaluation_has():
    ds = planned(None, None).drop_vars("counters")
    status = np.full((2, 1, 2, 3, 2), 255, np.uint8)
    status[0, 0, 0, :2, 0] = status[1, 0, 0, 1:, 1] = status[1, 0, 1, 2] = 3

    asked = counters.planned_questions(
        ds.assign(status=(("model", "task", "params", "trial", "repeat"), status))
    )

    assert asked[:, 0].tolist() == [[3, 1]] * 2


@pytest.mark.parametrize("together", [True, False])
def test_task_moments__of_many_evaluations_are_those_of_each(monkeypatch, together):
    ds = dataset(tasks=3, gaps=True)
    ds["counters"][1, 1] *= 3  # points of several ratios are in several parts
    ds["counters"][4, 0, :4] *= np.array([1, 2, 5, 40]).reshape(-1, 1)
    ds = ds.assign_coords(base_trials=(("task", "params"), np.full((3, ds.sizes["params"]), 64)))
    member = counters.members(ds).any(axis=0)
    whole = counters.task_moments(ds, member, "C_P", together=together)

    for step in (1, 2, 4):
        monkeypatch.setattr(counters, "_MODELS", step)
        np.testing.assert_allclose(counters.task_moments(ds, member, "C_P", together=together), whole)


def usd(counted, prompt_price, completion_price, declared=None, tokens=(10, 20)):
    ds = planned([8, 8], [1, 1])
    prices = {"price_prompt": prompt_price, "price_completion": completion_price}
    coords = {
        name: ("model", np.array([value, value])) for name, value in prices.items() if value is not None
    }
    if declared is not None:
        coords["price_declared"] = ("model", np.array([declared, False]))
    bare = ds.drop_vars(["price_prompt", "price_completion"]).assign_coords(coords)
    prompt, completion = (np.full(2, float(number)) for number in tokens)
    return counters.usd_of(bare, np.full(2, float(counted)), prompt, completion).tolist()


def test_usd_of__goes_by_prices_where_there_are_any_and_else_by_what_was_counted():
    assert usd(7, 1, 3) == [70e-6] * 2
    assert usd(7, 0, 3) == [60e-6] * 2
    assert usd(7, 1, 0) == [10e-6] * 2
    assert usd(7, None, None) == usd(7, None, 3) == [7] * 2
    assert usd(7, 0, 0) == [7] * 2
    assert usd(7, 0, 0, declared=True) == [0, 7]
    assert usd(7, 1, 3, tokens=(0, 0)) == [7] * 2
    assert usd(7, 1, 3, tokens=(1, 0)) == [1e-6] * 2
    assert np.isnan(usd(0, 0, 0)).all()


def test_unmarked_tasks__are_those_with_a_planned_question_that_was_not_compared():
    ds = planned([[2, 1], [1, 1]], None)
    flags = np.zeros((1, 2, 3), np.uint8)
    flags[0, :, 2] = 255

    def unmarked(**changes):
        changed = flags.copy()
        for slot, trial in changes.values():
            changed[0, slot, trial] = 255
        return counters.unmarked_tasks(ds.assign(duplicate=(("task", "params", "trial"), changed))).tolist()

    assert unmarked() == [False]
    assert unmarked(last_planned=(0, 1)) == [True]
    assert unmarked(behind=(1, 1)) == [False]
    assert counters.unmarked_tasks(
        ds.drop_vars("planned_trials").assign(duplicate=(("task", "params", "trial"), flags))
    ).tolist() == [True]


def test_per_trial__is_the_mean_over_tasks_or_over_all_trials():
    ds = dataset([Profile("a")], tasks=2, points=1)
    ds["counters"][:] = 0
    for task, (trials, tokens) in enumerate([(10, 1000), (30, 600)]):
        ds["counters"][0, task, 0, COUNTERS.index("trials")] = trials
        ds["counters"][0, task, 0, COUNTERS.index("tokens_sum")] = tokens

    def tokens_of(**options):
        return counters.per_trial(ds, **options)[..., COUNTERS.index("tokens_sum")].tolist()

    assert tokens_of() == [60]
    assert tokens_of(plain=True) == [40]
    assert tokens_of(by_task=True) == [[100, 20]]
    only = np.zeros((2, ds.sizes["params"]), bool)
    only[1, 0] = True
    assert tokens_of(member=only) == tokens_of(member=only, plain=True) == [20]


def test_weighing__is_told_from_a_thousandth_on():
    def weighing(share):
        ds = dataset([Profile("a")], tasks=1, points=2)
        ds["counters"][..., COUNTERS.index("trials")] = [[1000, 1000 * share, 0]]
        return counters.weighing(ds.assign_coords(base_trials=(("task", "params"), [[1000, 1000, 1000]])))

    assert [weighing(share) for share in (1, 0.9995, 0.99, 0.5)] == ["", "", "base", "base"]
