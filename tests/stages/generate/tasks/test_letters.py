"""Letters: words have the stated lengths and letters, and every count is as frequent."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.tasks.letters import LETTERS, _pools


@pytest.mark.parametrize("kind", list(LETTERS))
def test_letters__words_have_the_stated_lengths_and_letters(kind: str) -> None:
    task = TASKS["letters"]
    cell = Cell(
        task,
        task.Params(letters=kind, min_word_length=4, max_word_length=7, target_words=9, confounder_words=6),
        3,
    )
    for i in range(100):
        question, words = cell.trial(i).prompt.split("\n\n")[:2]
        (letter,) = re.findall(r'"([a-z])"', question)
        listed = words.split(", ")

        assert letter in LETTERS[kind]
        assert all(4 <= len(word) <= 7 for word in listed)
        assert sum(letter in word for word in listed) <= 9
        assert len(listed) == 15


def test_letters__words_are_not_repeated_often_where_all_have_some_of_the_letters() -> None:
    task = TASKS["letters"]
    shape = {"target_letters": 4, "min_word_length": 12, "max_word_length": 12, "target_words": 30}
    cell = Cell(task, task.Params(**shape, confounder_words=30), 3)
    for i in range(50):
        repeats = Counter(cell.trial(i).prompt.split("\n\n")[1].split(", "))

        assert max(repeats.values()) <= 5


def test_letters__every_range_of_lengths_has_words() -> None:
    for letters in ("e", "aeio", "j", "jqxz"):
        for length in range(3, 13):
            pools = _pools(letters, length, length)
            assert len(pools) > 1
            assert all(pools)


def test_letters__every_count_is_equally_frequent() -> None:
    task = TASKS["letters"]
    cell = Cell(task, task.Params(target_words=2, confounder_words=2), 3)
    counts = Counter(cell.trial(i).answer for i in range(2100))

    assert sorted(counts, key=int) == [str(count) for count in range(5)]
    assert max(counts.values()) / 2100 == pytest.approx(1 / 5, abs=0.04)
