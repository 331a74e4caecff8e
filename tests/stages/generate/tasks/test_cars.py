"""Cars: answers are spread, events are as stated, and usual ways to answer are read."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell
from tests.cases import with_cases

CARS = TASKS["cars"]


@pytest.mark.parametrize("question", ["position", "car"])
@pytest.mark.parametrize("reference", ["absolute", "relative", "attribute"])
def test_cars__answers_are_spread_over_the_line(question: str, reference: str) -> None:
    cell = Cell(CARS, CARS.Params(cars=4, moves=6, question=question, reference=reference), 3)
    places = Counter(trial.options.index(trial.answer) for trial in map(cell.trial, range(2000)))

    for place in range(4):
        assert places[place] / 2000 == pytest.approx(0.25, abs=0.045)


@pytest.mark.parametrize("reference", ["absolute", "relative", "attribute"])
def test_cars__tells_the_stated_number_of_events(reference: str) -> None:
    cell = Cell(CARS, CARS.Params(moves=7, confounders=5, reference=reference), 3)
    for i in range(100):
        _, _, *events, _, _ = cell.trial(i).prompt.splitlines()
        idle = [e for e in events if re.search("honks|flashes|nearly|gets out|windows|rain", e)]

        assert len(events) == 12
        assert len(idle) == 5
        assert any(re.search(r"position", e) for e in events) == (reference == "absolute")


@with_cases(
    ("text", "expected"),
    [
        ("Answer: position 3", "3"),
        ("Answer: 3rd", "3"),
        ("Answer: the third place", "3"),
        ("Answer: 3 (the red car)", "3"),
        ("Answer: 3, the red car", "3"),
        ("Answer: red, in position 3", "red"),
        ("Answer: the Red car", "red"),
        ("Answer: red or blue", None),
        ("Answer: 2 or 3", None),
        ("So the red car is in position 3.", "3"),
        ("So the car in position 3 is the red one.", "red"),
        ("Answer: 13\nOn reflection, Answer: 4", "4"),
        ("\\boxed{\\text{teal}}", "teal"),
        ("Answer: <color>", None),
    ],
)
def test_cars_parse__reads(text: str, expected: str | None) -> None:
    assert CARS.parse(text) == expected
