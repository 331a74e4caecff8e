"""Evaluations are ranked on points that more than half were asked; those without some of them are not ranked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalcube.stages.analyze.labelled.points import (
    common_in_groups,
    common_points,
    contradicting,
    shortfall,
    told_of_points,
)
from evalcube.stages.reply.status import COUNTERS
from tests.cases import with_cases
from tests.stages.analyze.synthetic import Profile, dataset

TASKS = ("sort", "letters")
ALL, SORT, ONE = [[1, 1, 1], [1, 0, 0]], [[1, 1, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]
NONE = [[0, 0, 0], [0, 0, 0]]


@with_cases(
    ("asked", "points", "lacks", "left_out"),
    [
        ([ALL, ALL], ALL, ["", ""], ""),
        ([ALL, ALL, NONE], ALL, ["", "", ""], ""),
        ([ALL, ALL, SORT], ALL, ["", "", "lacks letters"], ""),
        ([ALL, ALL, ONE], ALL, ["", "", "lacks 2 points of sort and letters"], ""),
        ([ALL, SORT, SORT], SORT, ["", "", ""], "letters"),
        ([ALL, SORT], SORT, ["", ""], "letters"),
        (
            [ALL, ALL, [[1, 1, 0], [1, 1, 1]]],
            ALL,
            ["", "", "lacks 1 point of sort"],
            "",
        ),
        (
            [[[1, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]]],
            NONE,
            ["has no point in common with the others"] * 2,
            "",
        ),
        # Of each point only one of three lacks it: they have the rest in common.
        (
            [[[1, 1, 1], [0, 0, 0]], [[1, 1, 0], [1, 0, 0]], [[1, 0, 1], [1, 0, 0]]],
            ONE,
            ["", "", ""],
            "2 points of sort and letters",
        ),
    ],
)
def test_common_points__are_those_of_most(asked, points, lacks, left_out):
    found = common_points(np.array(asked, dtype=bool), TASKS)

    assert found.points.tolist() == np.array(points, dtype=bool).tolist()
    assert (list(found.lacks), found.left_out) == (lacks, left_out)


def test_common_points__one_lost_cell_each_does_not_unrank_a_class():
    asked = np.ones((9, 2, 6), dtype=bool)
    for place in range(8):
        asked[place, place % 2, place % 5] = False

    found = common_points(asked, TASKS)

    assert sum(not text for text in found.lacks) >= 5
    assert found.points[:, 5].all()


def test_common_points__is_alone_only_who_shares_none():
    pairs = [[[1, 1, 0], [0, 0, 0]]] * 2 + [[[0, 0, 1], [1, 0, 0]]] * 2 + [[[0, 0, 0], [0, 0, 1]]]

    found = common_points(np.array(pairs, dtype=bool), TASKS)

    assert found.lacks == ("has no point that most others were asked",) * 4 + (
        "has no point in common with the others",
    )


@given(arrays(bool, (4, 2, 3)), st.permutations(range(4)))
def test_common_points__do_not_depend_on_order(asked, order):
    one, other = common_points(asked, TASKS), common_points(asked[list(order)], TASKS)

    assert (other.points == one.points).all()
    assert other.lacks == tuple(one.lacks[place] for place in order)
    assert other.left_out == one.left_out


def test_common_points__names_reach_no_terminal_as_they_are():
    asked = np.array([[[1], [1]], [[1], [0]]], dtype=bool)

    assert common_points(asked, ["a", "b\x1b[31m"]).left_out == "b⟨U+001B⟩[31m"


@given(arrays(bool, (5, 2, 2), elements=st.sampled_from([True, True, True, False])))
def test_common_points__are_the_most_that_half_of_them_have(asked):
    """At least two, if there are so many; those that more than half were asked, if there are none such."""
    there = asked[asked.any(axis=(1, 2))]
    number, times = len(there), there.sum(axis=0)
    choices = [times >= least for least in range(number // 2 + 1, number + 1)]
    enough = [
        points
        for points in choices
        if points.any() and (there | ~points).all(axis=(1, 2)).sum() >= max(min(2, number), number / 2)
    ]

    found = common_points(asked, TASKS)

    assert found.points.tolist() == (enough[0] if enough else 2 * times > number).tolist()
    assert [not text for text in found.lacks] == [
        not row.any() or bool(found.points.any() and (row | ~found.points).all()) for row in asked
    ]


def test_common_in_groups__compares_each_group_by_itself_and_leaves_even_points_alone():
    fewer = np.array([ALL, ALL, [[1, 1, 0], [1, 0, 0]], SORT], dtype=bool)

    points, words = common_in_groups(fewer, [np.arange(3), np.arange(3, 6)], TASKS)

    assert points.all()  # who lacks some of a group is compared on all of its own
    assert words == {"left_out": "", "lacking": [2]}  # and who was asked nothing of it, not at all
    one = np.array([ALL, SORT, SORT], dtype=bool)
    points, words = common_in_groups(one, [np.arange(6)], TASKS)
    assert points[:, 1, 0].tolist() == [False] * 3
    assert words == {"left_out": "letters", "lacking": []}


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ({"left_out": "", "lacking": []}, []),
        ({"left_out": "sort", "lacking": []}, ["asked: sort."]),
        ({"left_out": "sort", "lacking": [0, 2]}, ["asked: sort.", "points: a, c."]),
    ],
)
def test_told_of_points__names_points_and_models(words, parts):
    sentences = told_of_points(words, ["a", "b", "c"])

    assert [sentence.endswith(part) for sentence, part in zip(sentences, parts, strict=True)] == [True] * len(
        parts
    )


def test_shortfall__is_of_points_with_less_than_half_or_many_lost():
    ds = dataset([Profile("full"), Profile("half"), Profile("less"), Profile("lossy")], tasks=1, points=3)
    ds = ds.assign_coords(base_trials=(("task", "params"), [[64, 64, 64, 0]]))
    cells = ds["counters"].values
    trials, lost, right = (COUNTERS.index(name) for name in ("trials", "transport", "correct"))
    cells[..., right] = cells[..., trials] / 2
    cells[1, 0, 0] *= 0.5
    cells[2, 0, :2] *= 0.48
    cells[:, 0, 1, lost] = 3  # of 67, which is no twentieth
    cells[3, 0, 1, lost] = 16

    found = shortfall(ds, np.ones((4, 1, 4), dtype=bool))

    assert found.thin == [0, 0, 2, 0]
    assert [bounds is not None for bounds in found.bounds] == [False, False, True, True]
    low, high = found.bounds[3]
    assert low == pytest.approx((0.5 + 32 / 80 + 0.5) / 3)
    assert high == pytest.approx((0.5 + 48 / 80 + 0.5) / 3)


def test_contradicting__names_tasks_that_first_plans_weigh_in_other_proportions():
    ds = dataset([Profile("a"), Profile("b"), Profile("c")], tasks=2, points=2).isel(params=slice(2))
    base = np.array([[[8, 8], [8, 8]], [[4, 4], [8, 16]], [[1, 9], [9, 1]]])
    ds = ds.assign_coords(base_trials=(("model", "task", "params"), base))
    used = np.ones((3, 2, 2), dtype=bool)
    used[2] = False  # nothing of it is compared

    assert contradicting(ds, used) == (ds["task"].values[1],)
    assert contradicting(ds, np.zeros_like(used)) == ()
