"""Ranges, windows and densities: which values of an axis are measured, and what is said when a window does not fit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import (
    TASKS,
    Axis,
    Entry,
    RangeWindow,
    Task,
    TaskError,
    TaskParams,
    expand,
    find_problems,
)
from evalcube.stages.generate.manifold import MAX_POINTS

TASK = TASKS["arithmetic"]
RANGE = [8, 16, 24, 32, 40, 48]
SLIDING = Axis(RANGE, RangeWindow(body=4))


def lengths(entry: Entry) -> list[int]:
    return [point.params.length for point in expand(TASK, [entry])]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("degree", "expected"), [(0, [8, 16, 24, 32]), (1, [16, 24, 32, 40]), (2, [24, 32, 40, 48])]
)
def test_expand__window_slides_up_with_the_degree(degree: int, expected: list[int]) -> None:
    assert lengths(Entry(grid={"length": SLIDING}, degree=degree)) == expected


def test_expand__window_with_a_fixed_skip_or_a_longer_step() -> None:
    fixed, double = Axis(RANGE, RangeWindow(2, skip=3, step=0)), Axis(RANGE, RangeWindow(2, step=2))

    assert lengths(Entry(grid={"length": fixed}, degree=7)) == [32, 40]
    assert lengths(Entry(grid={"length": double}, degree=2)) == [40, 48]


def test_expand__range_without_a_window_is_all_of_it() -> None:
    assert lengths(Entry(grid={"length": Axis(RANGE)}, degree=3)) == RANGE


@pytest.mark.parametrize(
    ("axis", "told"),
    [
        (
            SLIDING,
            (
                "length: a window of 4 after the first 3 values (degree 3) reaches past the end of a range of 6; "
                "the largest degree is 2, or give the range more values"
            ),
        ),
        (
            Axis(RANGE, RangeWindow(2, step=2)),
            (
                "length: a window of 2 after the first 6 values (degree 3) reaches past the end of a range of 6; "
                "the largest degree is 2, or give the range more values"
            ),
        ),
        (
            Axis(RANGE, RangeWindow(7)),
            (
                "length: a window of 7 after the first 3 values (degree 3) reaches past the end of a range of 6; "
                "make body or skip smaller, or give the range more values"
            ),
        ),
        (
            Axis(RANGE, RangeWindow(4, skip=3, step=0)),
            (
                "length: a window of 4 after the first 3 values (degree 3) reaches past the end of a range of 6; "
                "make body or skip smaller, or give the range more values"
            ),
        ),
    ],
)
def test_expand__window_past_the_end_tells_the_largest_degree(axis: Axis, told: str) -> None:
    (problem,) = find_problems(TASK, [Entry(grid={"length": axis, "max_depth": [0, 1]}, degree=3)])

    assert problem.message == told
    assert (problem.field, problem.value, problem.where) == ("length", 3, ("grid", "length", "window"))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 4), st.integers(0, 3), st.integers(0, 9))
def test_largest_degree__is_where_the_window_stops_to_fit(
    length: int, body: int, skip: int, step: int, degree: int
) -> None:
    window = RangeWindow(body, skip, step)
    axis = Axis(range(length), window)
    largest = window.largest_degree(length)
    try:
        chosen = axis.chosen(degree, "normal")
    except IndexError:
        assert largest is None or degree > largest
    else:
        assert chosen == list(range(skip + step * degree, skip + step * degree + body))
        assert step == 0 or (largest is not None and degree <= largest)


@pytest.mark.parametrize(
    ("density", "expected"),
    [
        ("normal", [[0, 1, 2, 3, 4, 5], [3, 4], [0]]),
        ("lowdef", [[0, 2, 5], [3, 4], [0]]),
        ("corner", [[0, 5], [3, 4], [0]]),
    ],
)
def test_expand__density_resamples_each_long_axis(density: Any, expected: list[list[int]]) -> None:
    grid = {"swaps": [n + 1 for n in range(6)], "length": [6, 7], "confounders": 0}
    entry = Entry(grid=grid, density=density)

    points = [point.params.canonical() for point in expand(TASKS["shuffle"], [entry])]

    assert sorted({point["swaps"] for point in points}) == [n + 1 for n in expected[0]]
    assert len(points) == len(expected[0]) * 2


def test_expand__density_comes_after_the_window_and_leaves_points_alone() -> None:
    assert lengths(Entry(grid={"length": SLIDING}, degree=1, density="corner")) == [16, 40]
    listed = [{"length": n} for n in (4, 5, 6, 7)]
    assert lengths(Entry(points=listed, density="corner")) == [4, 5, 6, 7]


def test_expand__places_of_wrong_values_are_those_in_the_whole_range() -> None:
    entry = Entry(grid={"length": Axis([4, 8, 99, 100, 16], RangeWindow(3))}, degree=1)

    assert [p.where for p in find_problems(TASK, [entry])] == [("grid", "length", 2), ("grid", "length", 3)]


def test_expand__fixed_params_are_shared_and_yield_to_own_values() -> None:
    fixed = {"length": 20, "max_depth": 1}
    entries = [Entry(grid={"length": [4, 5]}, fixed=fixed), Entry(points=[{}], fixed=fixed)]

    points = [(p.params.length, p.params.max_depth) for p in expand(TASK, entries)]  # type: ignore[attr-defined]

    assert points == [(4, 1), (5, 1), (20, 1)]


def test_find_problems__names_fixed_params() -> None:
    entry = Entry(grid={"length": [4, 5]}, fixed={"max_dept": 1, "max_depth": 9})

    (unknown,) = find_problems(TASK, [entry])
    (wrong,) = find_problems(TASK, [Entry(grid={"length": [4, 5]}, fixed={"max_depth": 9})])

    assert unknown.where == ("params", "max_dept")
    assert wrong.where == ("params", "max_depth")
    assert re.findall(r"\d+", wrong.message) == ["0", "8", "9"]


def test_size__counts_what_the_window_and_the_density_leave() -> None:
    huge = Axis(range(10**6), RangeWindow(2))

    assert Entry(grid={"length": SLIDING, "max_depth": [0, 1]}).size() == 8
    assert Entry(grid={"length": SLIDING, "max_depth": [0, 1]}, density="corner").size() == 4
    assert Entry(grid={"length": SLIDING}, degree=3).size() == 0
    assert Entry(points=[{}, {}]).size() == 2
    assert MAX_POINTS > Entry(grid={"length": huge, "max_depth": huge}).size() == 4


class Resolving(type(TASK)):  # type: ignore[misc]
    """Arithmetic that looks at what its params refer to."""

    def resolve(self, params: TaskParams) -> TaskParams:
        if params.length == 13:  # type: ignore[attr-defined]
            raise TaskError("length 13 is nowhere to be found", field="length", value=13)
        if params.max_depth == 3:  # type: ignore[attr-defined]
            raise TaskError("nothing to be found", field="seed", value=None)
        return params.model_copy(update={"min_number": -5})


def test_expand__resolves_each_point_and_tells_where_that_fails() -> None:
    task: Task = Resolving()
    entry = Entry(grid={"length": [12, 13], "max_depth": [0, 3]})

    (point,) = expand(task, [Entry(points=[{"length": 12}])])
    problems = find_problems(task, [entry])

    assert point.params.canonical()["min_number"] == -5
    assert [(p.message, p.where) for p in problems] == [
        ("nothing to be found", ("grid",)),
        ("length 13 is nowhere to be found", ("grid", "length", 1)),
    ]
