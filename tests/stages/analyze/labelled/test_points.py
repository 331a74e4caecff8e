"""Evaluations are ranked on points that more than half were asked; those without some of them are not ranked."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalcube.stages.analyze.labelled.points import common_points
from tests.cases import with_cases

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
