"""Shuffle: answers are spread, events are anchored."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell
from tests.cases import with_cases


def test_shuffle__answers_are_spread_over_people() -> None:
    task = TASKS["shuffle"]
    cell = Cell(task, task.Params(length=4, swaps=6), 3)
    places = Counter(trial.options.index(trial.answer) for trial in map(cell.trial, range(2000)))

    for place in range(4):
        assert places[place] / 2000 == pytest.approx(0.25, abs=0.045)


@with_cases(
    ("anchors", "marks"),
    [
        ("none", ["", "", ""]),
        ("numbers", ["1. ", "2. ", "40. "]),
        ("roman", ["I. ", "II. ", "XL. "]),
        ("letters", ["a) ", "b) ", "an) "]),
        ("hex", ["0x01: ", "0x02: ", "0x28: "]),
    ],
)
def test_shuffle__events_are_anchored(anchors: str, marks: list[str]) -> None:
    task = TASKS["shuffle"]
    lines = Cell(task, task.Params(swaps=30, confounders=10, anchors=anchors), 3).trial(0).prompt.splitlines()
    events = lines[2:42]

    for event, mark in zip((events[0], events[1], events[39]), marks, strict=True):
        assert re.match(re.escape(mark) + r"[A-Z]\w+ ", event), event
