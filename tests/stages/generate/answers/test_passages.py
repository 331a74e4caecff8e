"""What all readers of final answers share: how marks are found, and that no text takes long."""

from __future__ import annotations

import pytest

from evalcube.stages.generate.answers.choices import ChoiceReader, truth_value
from evalcube.stages.generate.answers.numbers import last_integer
from tests.growth import grows_in_proportion

READERS = [last_integer, truth_value, ChoiceReader(["drum", "drum kit", "lamp", "hat"]).read_option]

HOSTILE = [
    "(",
    "1",
    "-",
    "**",
    "**a",
    "answer",
    "\n**__ # final   answer",
    "answer:",
    "answer: ",
    "answer\n",
    "answer is not ",
    "\\boxed{",
    "\\text{",
    "drum ",
    "drum drum  ",
    "drum\t\t\t",
    "not the drum ",
    " ",
    "\n",
    "1,",
    "1,000,",
    "_1",
    "true ",
    "true or ",
    "= ",
    "#",
    "{,}",
    ".0",
    "- 1",
    "negative ",
    "*_ ",
    "\\ ",
    "'",
    "~~",
    "~~a",
    "<del>",
    "Wait, ",
    "Answer: 1\nNo, it's ",
    "that is ",
    "the answer is ",
    "answer: 1. Wait, ",
    "… ",
    "答案",
    "٣",
    "x/1",
]


@pytest.mark.long
@pytest.mark.parametrize("ending", ["a", "\n1a"], ids=ascii)
def test_readers__take_linear_time(ending: str) -> None:
    slow = [
        (read, piece)
        for piece in HOSTILE
        for read in READERS
        if not grows_in_proportion(
            lambda size, read=read, piece=piece: read(piece * (size // len(piece)) + ending), 6_000
        )
    ]

    assert slow == []
