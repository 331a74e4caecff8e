"""Cars, dates and movies: difficulties in their declared order, and readers that take linear time."""

from __future__ import annotations

import pytest

from evalcube.stages.generate import TASKS
from tests.growth import grows_in_proportion

CARS, DATES, MOVIES = TASKS["cars"], TASKS["dates"], TASKS["movies"]


@pytest.mark.parametrize("task", [CARS, DATES, MOVIES], ids=["cars", "dates", "movies"])
def test_difficulty__follows_the_declared_order_of_listed_values(task: object) -> None:
    orders = {
        "cars": ("reference", ["absolute", "relative", "attribute"]),
        "dates": ("kind", ["days_ahead", "months_ahead", "workdays_ahead", "chain"]),
        "movies": ("hint", ["labels", "lists", "none"]),
    }
    field, values = orders[task.name]  # type: ignore[attr-defined]
    sizes = [task.difficulty(task.Params(**{field: value})) for value in values]  # type: ignore[attr-defined]

    assert sizes == sorted(set(sizes))


PIECES = [
    "1",
    "1-",
    "2021-",
    "2021-03-05",
    "2021-03-05 or ",
    "March ",
    "mar",
    "5 of ",
    "5th ",
    "the ",
    "on the ",
    "answer: 2021-03-05 ",
    "answer: March ",
    "**2021-03-05** ",
    "**Friday, ",
    "(",
    " ",
    "\n",
    "red ",
    "red or ",
    "3 ",
    "third ",
    "answer: red ",
    "Silver ",
    "Silver Postman",
]


@pytest.mark.long
@pytest.mark.parametrize("ending", ["a", "\n1a"], ids=ascii)
def test_parse__takes_linear_time(ending: str) -> None:
    slow = [
        (task, piece)
        for piece in PIECES
        for task in (CARS, DATES, MOVIES)
        if not grows_in_proportion(
            lambda size, read=task.parse, piece=piece: read(piece * (size // len(piece)) + ending), 6_000
        )
    ]

    assert slow == []
