"""Evaluations that were asked other points than most are said to be, and are not ranked among them."""

import numpy as np
import pytest

from evalcube.stages.analyze.labelled.other_points import other_points

TASKS = ("sort", "letters")
ALL = [[1, 1, 1], [1, 0, 0]]


def told(*asked):
    return other_points(np.array(asked, dtype=bool), TASKS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([ALL, ALL], ["", ""]),
        ([ALL, ALL, [[0, 0, 0], [0, 0, 0]]], ["", "", ""]),
        ([ALL, ALL, [[1, 1, 1], [0, 0, 0]]], ["", "", "lacks letters"]),
        ([ALL, ALL, [[1, 0, 0], [0, 0, 0]]], ["", "", "lacks 2 points of sort and letters"]),
        (
            [ALL, [[1, 1, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]]],
            ["was asked also letters", "", ""],
        ),
        ([ALL, [[1, 1, 1], [0, 0, 0]]], ["", "lacks letters"]),
        (
            [ALL, ALL, [[1, 1, 0], [1, 1, 1]]],
            ["", "", "lacks 1 point of sort, and was asked also 2 points of letters"],
        ),
    ],
)
def test_other_points__says_what_is_lacking_and_what_is_more(asked, words):
    assert told(*asked) == words


def test_other_points__names_reach_no_terminal_as_they_are():
    asked = np.array([[[1], [1]], [[1], [0]]], dtype=bool)

    assert other_points(asked, ["a", "b\x1b[31m"]) == ["", "lacks b⟨U+001B⟩[31m"]
