"""Arithmetic and expressions: sizes and ranges are as stated."""

from __future__ import annotations

import re

import pytest

from evalcube.stages.generate import TASKS, Cell
from tests.cases import with_cases


def test_arithmetic_difficulty__grows_with_the_range_downwards() -> None:
    task = TASKS["arithmetic"]
    steps = [task.difficulty(task.Params(min_number=low)) for low in (0, -9, -99, -999)]

    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def depth_of(expression: str) -> int:
    depth = deepest = 0
    for character in expression:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert depth == 0
    return deepest


@with_cases("name", ["arithmetic", "boolean"])
@with_cases("length", [3, 4, 11, 40])
@with_cases("depth", [0, 1, 2, 5, 8])
def test_expression__has_the_stated_size(name: str, length: int, depth: int) -> None:
    task = TASKS[name]
    cell = Cell(task, task.Params(length=length, max_depth=depth), 3)
    for i in range(20):
        expression = cell.trial(i).prompt.split("\n\n")[1]
        terms = re.findall(r"\d+|True|False", expression)

        assert len(terms) == length
        assert depth_of(expression) == min(depth, length - 2)


@pytest.mark.parametrize("name", ["arithmetic", "boolean"])
def test_expression__loses_the_stated_share_of_spaces(name: str) -> None:
    task = TASKS[name]

    def spaces(probability: float) -> float:
        cell = Cell(task, task.Params(length=20, max_depth=4, prob_dewhitespace=probability), 3)
        return sum(cell.trial(i).prompt.split("\n\n")[1].count(" ") for i in range(200))

    removable = spaces(0) - spaces(1)
    assert removable > 0
    assert (spaces(0) - spaces(0.25)) / removable == pytest.approx(0.25, abs=0.03)
    if name == "arithmetic":
        assert spaces(1) == 0


def test_arithmetic__numbers_stay_in_range() -> None:
    task = TASKS["arithmetic"]
    cell = Cell(task, task.Params(length=50, min_number=3, max_number=5), 3)
    seen = {n for i in range(20) for n in re.findall(r"\d+", cell.trial(i).prompt.split("\n\n")[1])}

    assert seen == {"3", "4", "5"}
