"""Dates: answers equal the solver's, and each kind occurs."""

from __future__ import annotations

import re
from datetime import date

import pytest
from pydantic import ValidationError

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.material.date_stories import (
    STORIES,
)
from evalcube.stages.generate.tasks.dates import EARLIEST, LATEST
from tests.stages.generate.solvers_stories import solve_dates
from tests.strategies import choices

DATES = TASKS["dates"]


@pytest.mark.parametrize("kind", list(STORIES))
def test_dates__answers_of_each_kind_equal_the_solvers_and_lie_in_range(kind: str) -> None:
    for style in choices(DATES, "format"):
        for offset in (1, 7, 60):
            cell = Cell(DATES, DATES.Params(kind=kind, offset=offset, format=style), 3)
            for trial in map(cell.trial, range(25)):
                assert solve_dates(trial.prompt) == trial.answer, trial.prompt
                assert EARLIEST <= date.fromisoformat(trial.answer).year <= LATEST


def test_dates__level_mixes_its_kinds() -> None:
    cell = Cell(DATES, DATES.Params(level=1, offset=60), 3)
    seen = {
        (unit, "ago" in text or "earlier" in text)
        for text in (cell.trial(i).prompt for i in range(200))
        for unit in re.findall(r"\d+ (day|week)s", text)
    }

    assert seen == {("day", False), ("day", True), ("week", False), ("week", True)}


def test_dates__offsets_are_in_the_upper_half() -> None:
    cell = Cell(DATES, DATES.Params(kind="days_ahead", offset=40), 3)
    counts = {int(n) for i in range(500) for n in re.findall(r"(\d+) days", cell.trial(i).prompt)}

    assert counts == set(range(20, 41))


def test_dates__month_ends_and_leap_days_occur() -> None:
    cell = Cell(DATES, DATES.Params(kind="months_ahead", offset=60), 3)
    trials = [cell.trial(i) for i in range(3000)]

    assert any(re.search(r"-(29|30|31)\b", t.prompt) and "-02-2" in t.answer for t in trials)
    assert any(t.answer.endswith("-02-29") for t in trials)


def test_dates_params__named_kind_brings_its_level() -> None:
    params = DATES.Params(kind="chain")

    assert params == DATES.Params(kind="chain", level=4)
    assert params.canonical()["level"] == 4
    with pytest.raises(ValidationError, match="must be 4 for kind chain"):
        DATES.Params(kind="chain", level=2)
