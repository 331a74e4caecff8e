"""Words of the tasks."""

from __future__ import annotations

import re

from evalcube.stages.generate.material.words import ITEMS, NAMES, WORDS
from evalcube.stages.generate.tasks.letters import LETTERS


def test_words__are_ordinary_and_distinct() -> None:
    for words in (WORDS, NAMES, ITEMS):
        assert len(set(words)) == len(words)
    assert all(re.fullmatch("[a-z]{3,12}", word) for word in WORDS + ITEMS)
    assert all(re.fullmatch("[A-Z][a-z]+", name) for name in NAMES)
    assert {letter for word in WORDS for letter in word} == set("abcdefghijklmnopqrstuvwxyz")
    assert sorted("".join(LETTERS.values())) == sorted(set("".join(LETTERS.values())))
