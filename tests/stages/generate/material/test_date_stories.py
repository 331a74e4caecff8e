"""Stories of dates: their kinds, and the conventions of their steps."""

from __future__ import annotations

from datetime import date
from typing import get_args

from evalcube.stages.generate.material.date_stories import (
    STORIES,
    months,
    weekday_after,
    weekday_before,
    workdays,
)
from evalcube.stages.generate.tasks.dates import Kind
from tests.cases import with_cases


def test_stories__are_the_kinds() -> None:
    assert get_args(Kind) == ("any", *STORIES)
    assert len(STORIES) >= 24
    assert {story.level for story in STORIES.values()} == {1, 2, 3, 4}


@with_cases(
    ("found", "expected"),
    [
        (months(date(2023, 12, 31), 2), "2024-02-29"),
        (months(date(2024, 2, 29), 12), "2025-02-28"),
        (months(date(2024, 3, 31), -1), "2024-02-29"),
        (months(date(2024, 1, 15), -13), "2022-12-15"),
        (workdays(date(2021, 3, 5), 1), "2021-03-08"),
        (workdays(date(2021, 3, 6), 5), "2021-03-12"),
        (workdays(date(2021, 3, 7), -10), "2021-02-22"),
        (workdays(date(2021, 3, 8), 5), "2021-03-15"),
        (weekday_after(date(2021, 3, 5), 4, 1), "2021-03-12"),
        (weekday_before(date(2021, 3, 5), 4, 2), "2021-02-19"),
        (weekday_after(date(2021, 3, 5), 5, 1), "2021-03-06"),
    ],
)
def test_steps__follow_the_stated_conventions(found: date, expected: str) -> None:
    assert found.isoformat() == expected
