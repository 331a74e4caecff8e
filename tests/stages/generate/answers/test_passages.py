"""What all readers of final answers share: how marks are found, and that no text takes long."""

from __future__ import annotations

import time

import pytest

from evalcube.stages.generate.answers.choices import ChoiceReader, truth_value
from evalcube.stages.generate.answers.numbers import last_integer

READERS = [last_integer, truth_value, ChoiceReader(["drum", "drum kit", "lamp", "hat"]).read]

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
]


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
@pytest.mark.parametrize("ending", ["", "a", "\n1a"], ids=ascii)
def test_readers__take_linear_time(piece: str, ending: str) -> None:
    text = piece * (40_000 // len(piece)) + ending

    for read in READERS:
        start = time.process_time()
        read(text)
        assert time.process_time() - start < 0.3  # quadratic time would be many seconds
