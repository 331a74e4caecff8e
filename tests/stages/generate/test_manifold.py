"""Manifold entries to points, and what is said about wrong ones."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from evalcube.stages.generate import TASKS, Entry, TaskError, expand, find_problems
from evalcube.stages.generate.manifold import MAX_POINTS
from tests.cases import with_cases

TASK = TASKS["arithmetic"]


def lengths_and_depths(entries: list[Entry]) -> list[tuple[Any, ...]]:
    return [(p.params.length, p.params.max_depth, p.tiers) for p in expand(TASK, entries)]  # type: ignore[attr-defined]


def test_expand__grid_is_a_product_with_the_last_field_fastest() -> None:
    entry = Entry(grid={"length": [4, 8], "max_depth": (0, 1)}, tiers=("easy",))

    assert lengths_and_depths([entry]) == [
        (4, 0, ("easy",)),
        (4, 1, ("easy",)),
        (8, 0, ("easy",)),
        (8, 1, ("easy",)),
    ]


def test_expand__scalars_are_one_value() -> None:
    assert lengths_and_depths([Entry(grid={"length": [4, 8], "max_depth": 1})]) == [(4, 1, ()), (8, 1, ())]


def test_expand__empty_grid_mapping_is_the_default_point() -> None:
    assert [point.params for point in expand(TASK, [Entry(grid={})])] == [TASK.Params()]


def test_expand__text_is_a_scalar() -> None:
    (point,) = expand(TASKS["boolean"], [Entry(grid={"format": "on/off"})])

    assert point.params.canonical()["format"] == "on/off"


def test_expand__equal_points_are_one_with_all_tiers() -> None:
    entries = [
        Entry(grid={"length": [4, 16]}, tiers=("easy", "medium")),
        Entry(
            points=[{"length": 16.0, "max_depth": 0}, {"length": 5}, {"length": 16}], tiers=("hard", "easy")
        ),
    ]

    assert lengths_and_depths(entries) == [
        (4, 0, ("easy", "medium")),
        (16, 0, ("easy", "medium", "hard")),
        (5, 0, ("hard", "easy")),
    ]


@with_cases(
    ("entry", "field", "value", "where", "message"),
    [
        (
            Entry(grid={"lenght": [4]}),
            "lenght",
            [4],
            ("grid", "lenght"),
            "unknown field 'lenght'. Did you mean 'length'?",
        ),
        (
            Entry(grid={"nesting": [2]}),
            "nesting",
            [2],
            ("grid", "nesting"),
            "unknown field 'nesting'. Did you mean 'max_depth'?",
        ),
        (
            Entry(points=[{}, {"zzz": 1}]),
            "zzz",
            1,
            ("points", 1, "zzz"),
            (
                "unknown field 'zzz'. Params of arithmetic: "
                "length, max_depth, min_number, max_number, prob_dewhitespace."
            ),
        ),
        (
            Entry(grid={"length": [4, 60]}),
            "length",
            60,
            ("grid", "length", 1),
            "length must be a whole number from 3 to 50, got 60",
        ),
        (
            Entry(grid={"length": 4.5}),
            "length",
            4.5,
            ("grid", "length"),
            "length must be a whole number from 3 to 50, got 4.5",
        ),
        (
            Entry(points=[{"prob_dewhitespace": "much"}]),
            "prob_dewhitespace",
            "much",
            ("points", 0, "prob_dewhitespace"),
            "prob_dewhitespace must be a number from 0 to 1, got 'much'",
        ),
        (
            Entry(grid={"max_number": [-20, 5]}),
            "max_number",
            -20,
            ("grid", "max_number", 0),
            "max_number must be greater than min_number (-9), got -20",
        ),
        (
            Entry(grid={"min_number": 10}),
            "max_number",
            9,
            ("grid",),
            "max_number must be greater than min_number (10), got 9",
        ),
        (
            Entry(grid={"length": []}),
            "length",
            [],
            ("grid", "length"),
            "length has no values; give at least one",
        ),
        (Entry(points=[]), None, None, ("points",), "empty list of points; give at least one"),
        (Entry(), None, None, (), "an entry has either a grid or points; give exactly one of them"),
        (
            Entry(grid={}, points=[{}]),
            None,
            None,
            (),
            "an entry has either a grid or points; give exactly one of them",
        ),
    ],
)
def test_expand__names_field_value_and_place(
    entry: Entry, field: str | None, value: object, where: tuple[object, ...], message: str
) -> None:
    with pytest.raises(TaskError) as caught:
        expand(TASK, [Entry(grid={"length": 4}), entry])

    error = caught.value
    assert (error.field, error.value, error.entry, error.where) == (field, value, 1, where)
    assert error.message == message
    assert str(error).startswith("manifold[1]")
    assert str(error).endswith(message)


def test_expand__listed_values_are_named() -> None:
    with pytest.raises(TaskError, match=r"format .*True/False, .*, yes/no, got True"):
        expand(TASKS["boolean"], [Entry(grid={"format": [True]})])


def test_expand__truth_values_and_numeric_texts_are_no_numbers() -> None:
    for value in (True, "8"):
        with pytest.raises(TaskError, match=r": length .*whole number"):
            expand(TASK, [Entry(grid={"length": value})])
    with pytest.raises(TaskError, match=r": prob_dewhitespace "):
        expand(TASK, [Entry(grid={"prob_dewhitespace": [True]})])


def test_expand__no_entries() -> None:
    with pytest.raises(TaskError, match=r"'arithmetic' .*manifold"):
        expand(TASK, [])


def test_expand__refuses_a_huge_grid_quickly() -> None:
    axis = list(range(3, 51))
    entry = Entry(grid={"length": axis, "max_depth": axis, "min_number": axis, "max_number": axis})

    with pytest.raises(TaskError, match=f"at most {MAX_POINTS}"):
        expand(TASK, [entry])


def test_find_problems__reports_all_of_them_once() -> None:
    entries = [
        Entry(grid={"length": [2, 4, 60], "max_depth": [0, 9]}),
        Entry(points=[{"lenght": 3, "max_dept": 1}]),
        Entry(grid={"length": 4}),
    ]

    places = [(problem.entry, *problem.where) for problem in find_problems(TASK, entries)]

    assert sorted(places) == [
        (0, "grid", "length", 0),
        (0, "grid", "length", 2),
        (0, "grid", "max_depth", 1),
        (1, "points", 0, "lenght"),
        (1, "points", 0, "max_dept"),
    ]


def test_task_error__survives_pickling() -> None:
    error = TaskError("wrong", field="a", value=3, entry=1, where=("grid", "a", 0))
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert str(copy) == str(error) == "manifold[1].grid.a[0]: wrong"
    assert vars(copy) == vars(error)
