"""Readers of final answers: tables of ordinary replies, then hostile ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.generate.answers.explicit import (
    _EXPLICIT,
    ChoiceReader,
    _explicit_matches,
    last_integer,
    truth_value,
)
from tests.strategies import hostile_text

OPTIONS = ChoiceReader(["drum", "drum kit", "lamp", "hat"])

INTEGERS: list[tuple[str, str | None]] = [
    ("Answer: 42", "42"),
    ("answer is **-7**.", "-7"),
    ("**Answer:** 1,234", "1234"),
    ("**Answer**: 5", "5"),
    ("\\boxed{1{,}234}", "1234"),
    ("$\\boxed{\\text{-12}}$", "-12"),
    ("So 12 - 5 = 7", "7"),
    ("Answer: 3 + 4 = 7", "7"),
    ("Answer: 42 (40+2=42, see step 3)", "42"),
    ("The answer is 42. I checked 3 times.", "42"),
    ("### Answer\n\n17", "17"),
    ("Final answer\n**17**", "17"),
    ("Answer: - 7", "-7"),
    ("Answer: \u22127", "-7"),
    ("x = 3\ny = 3.5", "3"),
    ("3.50", None),
    ("7.00", "7"),
    ("1,2,3", None),
    ("a-3", None),
    ("2nd", None),
    ("Answer: <integer>", None),
    ("Answer: 5\n\nFinish with Answer: <integer>", "5"),
    ("Answer: $1\\,234$", "1234"),
    ("negative 5", "-5"),
    ("Answer: -0", "0"),
    ("007", "7"),
    ("Answer: 5 or 6", None),
    ("the answer to the question is: 12.", "12"),
    ("Answer = 12", "12"),
    ("Answer:\n12", "12"),
    ("Answer: 12345678901234567890123", "12345678901234567890123"),
    ("(-5)", "-5"),
    ("= -5", "-5"),
    ("5-3", "3"),
    ("5 - 3", "3"),
    ("Answer: `8`", "8"),
    ("The answer isn't 5. It's 6", "6"),
    ("**9**\nHope that helps, you have 2 options", "9"),
    ("Answer: **3 + 4 = 7**", "7"),
    ("Answer: \\(7\\)", "7"),
    ("Answer: 7!", "7"),
    ("answer: 7%", "7"),
    ("", None),
    ("\u0663", None),
    ("Answer: (-7)", "-7"),
    ("Answer: 3 times 4 = 12", "12"),
    ("Answer: 2+2=4", "4"),
    ("**Answer: -3**", "-3"),
    ("Answer: 10\u202f000", "10000"),
    ("**Answer**\n\n5", "5"),
    ("Answer - 5", "5"),
    ("Final Answer 5", "5"),
    ("The answer is not 5 but 7.", "7"),
    ("Answer: 5\nBut then again, the answer is 6", "6"),
    ("Answer: see above\nAnswer is 8\n", "8"),
    ("covid-19", None),
    ("the value is -12", "-12"),
    ("list:\n- 7", "7"),
    ("It is 9 -3", "3"),
    ("minus 4", "-4"),
]

TRUTHS: list[tuple[str, str | None]] = [
    ("Answer: True", "true"),
    ("Answer: off", "false"),
    ("Answer: 1", "true"),
    ("answer: 0.", "false"),
    ("Answer: T", "true"),
    ("Answer: F", "false"),
    ("**Answer: no**", "false"),
    ("Answer: True or False", None),
    ("Answer: on/off", None),
    ("Answer: <on or off>", None),
    ("Answer: not True", None),
    ("Answer: yes, because a", "true"),
    ("Answer: no idea", None),
    ("Answer: on reflection I cannot tell", None),
    ("Answer: True and False = False", "false"),
    ("Answer: True (since 1 = 1)", "true"),
    ("The answer is the value on.", "true"),
    ("So it evaluates to False.", "false"),
    ("no", "false"),
    ("hello\non", "true"),
    ("1", "true"),
    ("10", None),
    ("Answer: 10", None),
    ("1.5", None),
    ("Answer: 1.5", None),
    ("\\boxed{\\text{on}}", "true"),
    ("I don't know what's going on", None),
    ("**off**", "false"),
    ("The expression is on because of x", None),
    ("Answer: `yes`", "true"),
    ("Answer: 0 (false)", "false"),
    ('Answer: "off"', "false"),
    ("**Final answer:** on", "true"),
    ("True", "true"),
    ("Is it True or False?", None),
    ("Answer: on\n\nThat's because on or off is on or xor", "true"),
    ("Answer: 1 and 0 = 0", "false"),
    ("The answer is: **False**", "false"),
    ("Answer: $1$", "true"),
    ("Answer: 1 or 0", None),
    ("Answer: isn't true", None),
    ("therefore, the final answer is no.", "false"),
    ("Answer: <1>", "true"),
    ("Answer: true.", "true"),
    ("Answer: on.", "true"),
    ("Answer: on off", None),
    ("Answer: false, not true", "false"),
    ("The answer is not true.", None),
    ("Answer: f", "false"),
    ("The answer is no longer clear", None),
]

CHOICES: list[tuple[str, str | None]] = [
    ("Answer: lamp, not the drum", "lamp"),
    ("Answer: not the drum but the lamp", "lamp"),
    ("Answer: lamp or drum", None),
    ("Answer: the lamp (Bob took the drum)", "lamp"),
    ("drum then lamp", "lamp"),
    ("drum-kits that", None),
    ("lampshade", None),
    ("what", None),
    ("**Drum**\nlamp", "drum"),
    ("He has the lamp, not the drum.", "lamp"),
    ("Answer: <item>\nhat", "hat"),
    ("Answer: Alice does not have the lamp", None),
    ("Answer: Alice holds the lamp.", "lamp"),
    ("Answer: lamp, drum, hat", None),
    ("\\boxed{\\text{drum kit}}", "drum kit"),
    ("Answer: the lamp and the hat", None),
    ("Answer: **drum\tkit**", "drum kit"),
    ("Answer: lamp/drum", None),
    ("It isn't the drum, it's the hat", "hat"),
]

READERS = [last_integer, truth_value, OPTIONS.read]

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


@pytest.mark.parametrize(("text", "expected"), INTEGERS)
def test_last_integer__reads(text: str, expected: str | None) -> None:
    assert last_integer(text) == expected


@pytest.mark.parametrize(("text", "expected"), TRUTHS)
def test_truth_value__reads(text: str, expected: str | None) -> None:
    assert truth_value(text) == expected


@pytest.mark.parametrize(("text", "expected"), CHOICES)
def test_choice_reader__reads(text: str, expected: str | None) -> None:
    assert OPTIONS.read(text) == expected


@given(value=st.integers())
def test_last_integer__reads_every_way_to_write_a_number(value: int) -> None:
    for text in (
        f"{value}",
        f"{value:,}",
        f"Answer: {value:_}.",
        f"so it is {value}.0",
        f"= {value}",
        f"${value:,}$",
    ):
        assert last_integer(text) == str(value), text


@settings(deadline=None)
@given(text=hostile_text(), value=st.integers(-999, 999))
def test_last_integer__explicit_last_line_wins(text: str, value: int) -> None:
    assert last_integer(f"{text}\nAnswer: {value}") == str(value)


def test_last_integer__reads_numbers_beyond_the_limit_of_int() -> None:
    digits = "7" * 100_000

    assert last_integer(f"Answer: -{digits}") == f"-{digits}"
    assert last_integer(digits) == digits


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
