"""Each generator's answers, derived again from the prompt text alone."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.material.words import ITEMS, NAMES, WORDS
from evalcube.stages.generate.tasks.letters import LETTERS, _pools
from tests.cases import with_cases
from tests.stages.generate.family import FAMILY
from tests.stages.generate.solvers import SOLVERS
from tests.stages.generate.solvers_documents import DOCUMENT_SOLVERS
from tests.stages.generate.solvers_lists import LIST_SOLVERS
from tests.stages.generate.solvers_stories import STORY_SOLVERS
from tests.strategies import random_params

ALL_SOLVERS = SOLVERS | LIST_SOLVERS | STORY_SOLVERS | DOCUMENT_SOLVERS


@pytest.mark.long
@pytest.mark.parametrize("name", list(FAMILY))
def test_answer__equals_the_solvers(name: str) -> None:
    task = TASKS[name]
    rng = random.Random(99)
    for number in range(250):
        params = random_params(task, rng)
        if getattr(params, "rows", 0) > 100 and number % 10:
            continue  # one large table takes as long as a hundred small ones
        trial = Cell(task, params, rng.randrange(10**6)).trial(rng.randrange(10**6))

        assert ALL_SOLVERS[name](trial.prompt) == trial.answer, trial.prompt


def test_arithmetic_difficulty__grows_with_the_range_downwards() -> None:
    task = TASKS["arithmetic"]
    steps = [task.difficulty(task.Params(min_number=low)) for low in (0, -9, -99, -999)]

    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def depth_of(expression: str) -> int:
    depth = deepest = 0
    for character in expression:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert depth == 0
    return deepest


@with_cases("name", ["arithmetic", "boolean"])
@with_cases("length", [3, 4, 11, 40])
@with_cases("depth", [0, 1, 2, 5, 8])
def test_expression__has_the_stated_size(name: str, length: int, depth: int) -> None:
    task = TASKS[name]
    cell = Cell(task, task.Params(length=length, max_depth=depth), 3)
    for i in range(20):
        expression = cell.trial(i).prompt.split("\n\n")[1]
        terms = re.findall(r"\d+|True|False", expression)

        assert len(terms) == length
        assert depth_of(expression) == min(depth, length - 2)


@pytest.mark.parametrize("name", ["arithmetic", "boolean"])
def test_expression__loses_the_stated_share_of_spaces(name: str) -> None:
    task = TASKS[name]

    def spaces(probability: float) -> float:
        cell = Cell(task, task.Params(length=20, max_depth=4, prob_dewhitespace=probability), 3)
        return sum(cell.trial(i).prompt.split("\n\n")[1].count(" ") for i in range(200))

    removable = spaces(0) - spaces(1)
    assert removable > 0
    assert (spaces(0) - spaces(0.25)) / removable == pytest.approx(0.25, abs=0.03)
    if name == "arithmetic":
        assert spaces(1) == 0


def test_arithmetic__numbers_stay_in_range() -> None:
    task = TASKS["arithmetic"]
    cell = Cell(task, task.Params(length=50, min_number=3, max_number=5), 3)
    seen = {n for i in range(20) for n in re.findall(r"\d+", cell.trial(i).prompt.split("\n\n")[1])}

    assert seen == {"3", "4", "5"}


@pytest.mark.parametrize("params", [{}, {"length": 40, "max_depth": 8}, {"length": 3, "prob_not": 0}])
def test_boolean__both_answers_are_equally_frequent(params: dict[str, int]) -> None:
    task = TASKS["boolean"]
    cell = Cell(task, task.Params(**params), 11)
    share = sum(cell.trial(i).answer == "true" for i in range(1000)) / 1000

    assert share == pytest.approx(0.5, abs=0.07)  # 4.4 standard errors


def test_boolean__all_operators_and_nots_occur() -> None:
    task = TASKS["boolean"]
    cell = Cell(task, task.Params(length=40, prob_not=0.25), 11)
    words = Counter(w for i in range(300) for w in cell.trial(i).prompt.split("\n\n")[1].split())

    assert words["not"] / (300 * 40) == pytest.approx(0.25, abs=0.02)
    for operator in ("and", "or", "xor"):
        assert words[operator] / (300 * 39) == pytest.approx(1 / 3, abs=0.02)


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


def test_words__are_ordinary_and_distinct() -> None:
    for words in (WORDS, NAMES, ITEMS):
        assert len(set(words)) == len(words)
    assert all(re.fullmatch("[a-z]{3,12}", word) for word in WORDS + ITEMS)
    assert all(re.fullmatch("[A-Z][a-z]+", name) for name in NAMES)
    assert {letter for word in WORDS for letter in word} == set("abcdefghijklmnopqrstuvwxyz")
    assert sorted("".join(LETTERS.values())) == sorted(set("".join(LETTERS.values())))
