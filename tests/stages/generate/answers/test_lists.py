"""Readers of lists: tables of ordinary replies, then hostile ones."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalcube.stages.generate.answers.brackets import closing_brackets
from evalcube.stages.generate.answers.lists import integer_list, word_list
from tests.cases import with_cases
from tests.growth import grows_in_proportion
from tests.strategies import hostile_text

WORDS: list[tuple[str, str | None]] = [
    ("Answer: apple, bear, cat", "apple, bear, cat"),
    ("Answer: apple,bear,cat.", "apple, bear, cat"),
    ("**Answer:** Apple, BEAR, and cat", "Apple, BEAR, cat"),
    ("Answer: apple, bear and cat", "apple, bear, cat"),
    ('Answer: ["apple", "bear", "cat"]', "apple, bear, cat"),
    ("Answer: `apple`, `bear`, `cat`", "apple, bear, cat"),
    ("Answer: <apple, bear, cat>", "apple, bear, cat"),
    ("Answer: **apple**, **bear**, **cat**", "apple, bear, cat"),
    ("\\boxed{apple, bear, cat}", "apple, bear, cat"),
    ("$\\boxed{\\text{apple, bear, cat}}$", "apple, bear, cat"),
    ("$\\boxed{\\text{apple}, \\text{bear}, \\text{cat}}$", "apple, bear, cat"),
    ("Answer:\n1. apple\n2. bear\n3. cat", "apple, bear, cat"),
    ("Answer:\n- apple\n- bear\n- cat\n\nI hope this helps!", "apple, bear, cat"),
    ("### Final Answer\n\napple\nbear\ncat", "apple, bear, cat"),
    ("Answer: 1. apple, 2. bear, 3. cat", "apple, bear, cat"),
    ("Answer: apple bear cat", "apple, bear, cat"),
    ("Answer: apple; bear; cat", "apple, bear, cat"),
    ("Answer:\n```\napple, bear, cat\n```", "apple, bear, cat"),
    ("Answer: apple, bear,\ncat, dog", "apple, bear, cat, dog"),
    ("Answer: apple, bear, cat\nThis is sorted.", "apple, bear, cat"),
    ("Answer: apple, bear, cat\nDone", "apple, bear, cat"),
    ("Answer: apple, bear, cat\nsorted, done", "apple, bear, cat"),
    ("Answer: apple, bear,\ncat", "apple, bear, cat"),
    ("Answer:\napple\nbear\ncat\nsorted, done", "apple, bear, cat"),
    ("Answer: apple, bear, cat (three words)", "apple, bear, cat"),
    ("Answer: apple, bear, cat. All are sorted, really, yes.", "apple, bear, cat"),
    ("Answer: The sorted list is: apple, bear, cat", "apple, bear, cat"),
    ("Answer: The words in order are apple, bear, cat", "apple, bear, cat"),
    ("The answer is:\n\napple, bear, cat", "apple, bear, cat"),
    ("Answer: here they are:\napple, bear, cat", "apple, bear, cat"),
    ("Answer: bear, apple\nWait.\nAnswer: apple, bear", "apple, bear"),
    ("Answer: apple, bear\nAnswer: <the sorted words, separated by commas>", "apple, bear"),
    ("apple, bear, cat", "apple, bear, cat"),
    ("Sorted:\napple, bear, cat", "apple, bear, cat"),
    ("Sure!\n1. apple\n2. bear\n3. cat", "apple, bear, cat"),
    ("Answer: I do not know", None),
    ("Answer: I cannot sort this", None),
    ("No idea, sorry", None),
    ("", None),
]

INTEGERS: list[tuple[str, str | None]] = [
    ("Answer: 5, 7, 9", "5, 7, 9"),
    ("Answer: 5,7,9.", "5, 7, 9"),
    ("Answer: 5 7 9", "5, 7, 9"),
    ("Answer: 5, 7 and 9", "5, 7, 9"),
    ("Answer: 5, 7, and 9", "5, 7, 9"),
    ("Answer: [5, 7, 9]", "5, 7, 9"),
    ("Answer: <5, 7, 9>", "5, 7, 9"),
    ("**Answer: -5, \u22127, 9**", "-5, -7, 9"),
    ("Answer: **5**, **7**, **9**", "5, 7, 9"),
    ("Answer: 1,234, 5,678", "1234, 5678"),
    ("Answer: 12,15,18", "12, 15, 18"),
    ("$\\boxed{5, 7, 9}$", "5, 7, 9"),
    ("\\boxed{-5}", "-5"),
    ("Answer: 5", "5"),
    ("Answer: - 5", "-5"),
    ("Answer: -1, - 2, -3", "-1, -2, -3"),
    ("Answer: 5, 7, 9 (adding 2 each time)", "5, 7, 9"),
    ("Answer: The next 3 terms are: 5, 7, 9", "5, 7, 9"),
    ("The answer is:\n5, 7, 9", "5, 7, 9"),
    ("Answer:\n1. 5\n2. 7\n3. -9", "5, 7, -9"),
    ("Answer:\n- 5\n- 7\n\nThese 2 follow.", "5, 7"),
    ("Answer: 20 + 5 = 25", "25"),
    ("Answer: the next terms are 5, 7, 9", "5, 7, 9"),
    ("Answer: a 5, as 3 is added", "5"),
    ("Answer: 5, 7, 9 (check: 3 steps)", "5, 7, 9"),
    ("Answer: 5, 7, 9, ...", "5, 7, 9"),
    ("Answer: 5.0, 7.0", "5, 7"),
    ("Answer: 5.5", None),
    ("Answer: 5 or 6", None),
    ("Answer: 5, 7 or 5, 8", None),
    ("Answer: 1\nNo.\nAnswer: 2, 3", "2, 3"),
    ("Answer: 2, 3\nAnswer: <integers separated by commas>", "2, 3"),
    ("So it goes on with 5, 7, 9.", "5, 7, 9"),
    ("First come 1, 2, 3.\nThen:\n\n5, 7, 9", "5, 7, 9"),
    ("Answer: -0, 007", "0, 7"),
    ("x1, a-3, 2nd", None),
    ("", None),
]

READERS = [word_list, integer_list, closing_brackets]

HOSTILE = [
    "a",
    "a,",
    "a, ",
    "a ",
    "a\n",
    " ",
    ", ",
    "\n",
    "and ",
    " and",
    "1",
    "1,",
    "1, ",
    "1,000,",
    "1 ",
    "-",
    "- ",
    "1\n",
    "- 1\n",
    "1. ",
    "1 or ",
    "1 + ",
    "(",
    ")",
    ") ",
    "),",
    ") \t",
    "> ",
    "*",
    "* ",
    "`",
    "```",
    "```a",
    "\\boxed{",
    "\\boxed{)",
    "\\text{",
    "\\boxed{\\text{",
    "answer",
    "answer:",
    "answer: ",
    "answer: a, ",
    "answer: 1, ",
    "answer: )",
    "answer:\n",
    "answer is: ",
    "a: ",
    "is ",
    "\\}",
    "&gt;",
    "'",
    "a'",
    "a-",
]


@with_cases(("text", "expected"), WORDS)
def test_word_list__reads(text: str, expected: str | None) -> None:
    assert word_list(text) == expected


@with_cases(("text", "expected"), INTEGERS)
def test_integer_list__reads(text: str, expected: str | None) -> None:
    assert integer_list(text) == expected


@settings(deadline=None)
@given(text=hostile_text(), values=st.lists(st.integers(), min_size=1, max_size=8))
def test_integer_list__explicit_last_line_wins(text: str, values: list[int]) -> None:
    assume("boxed" not in text and "nswer" not in text)  # two final forms that differ are no answer
    expected = ", ".join(map(str, values))

    assert integer_list(f"{text}\nAnswer: {expected}") == expected
    assert integer_list(f"{text}\nAnswer: {', '.join(f'{value:,}' for value in values)}.") == (
        expected if len(values) > 1 else integer_list(f"Answer: {values[0]:,}")
    )


@settings(deadline=None)
@given(text=hostile_text(), words=st.permutations(["ant", "Bee", "cat", "DOG", "elk"]))
def test_word_list__explicit_last_line_wins(text: str, words: list[str]) -> None:
    assume("boxed" not in text)  # two final forms that differ are no answer
    expected = ", ".join(words)

    for written in (expected, " ".join(words), "\n".join(f"{i}. {w}" for i, w in enumerate(words, 1))):
        assert word_list(f"{text}\nAnswer: {written}") == expected


@given(text=hostile_text())
def test_readers__never_raise_nor_give_an_empty_list(text: str) -> None:
    for read in READERS:
        assert read(text) != ""


@pytest.mark.long
@pytest.mark.parametrize(("start", "ending"), [("", "a"), ("Answer: ", "\n1a")], ids=ascii)
def test_readers__take_linear_time(start: str, ending: str) -> None:
    slow = [
        (read, piece)
        for piece in HOSTILE
        for read in READERS
        if not grows_in_proportion(
            lambda size, read=read, piece=piece: read(start + piece * (size // len(piece)) + ending), 14_000
        )
    ]

    assert slow == []
