"""What all readers of final answers share: how marks are found, and that no text takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.generate.answers.choices import ChoiceReader, truth_value
from stages.generate.answers.explicit import _EXPLICIT, _explicit_matches
from stages.generate.answers.numbers import last_integer
from tests.strategies import hostile_text

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
    text = piece * (100_000 // len(piece)) + ending

    for read in READERS:
        start = time.process_time()
        read(text)
        assert time.process_time() - start < 1.0  # quadratic time would be minutes


_PIECES = [
    "answer",
    "\n**__ # final   answer",
    "Answer:",
    "final ",
    "\n",
    "**",
    " ",
    "_",
    "# ",
    "is",
    ": 7",
    "=",
    "\\boxed",
    "\\boxed{",
    "}",
    "a\u017f",
    "x" * 61,
]


@given(st.lists(st.sampled_from(_PIECES), max_size=25).map("".join) | hostile_text())
def test_explicit_matches__finds_what_a_plain_search_finds(text: str) -> None:
    expected = [match.span() for match in _EXPLICIT.finditer(text)]

    assert [match.span() for match in _explicit_matches(text)] == expected
