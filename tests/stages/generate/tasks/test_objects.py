"""Brackets, objects, sequence and sort: sizes are as stated, and continuations are unique."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from typing import Any

import pytest

from evalcube.stages.generate import TASKS, Cell, Trial
from evalcube.stages.generate.material.words import ADJECTIVES, WORDS
from evalcube.stages.generate.tasks.objects import GROUPS, NUMBERS
from evalcube.stages.generate.tasks.sequence import PERIODS, shown_terms
from evalcube.stages.generate.tasks.sort import DICTIONARY
from tests.cases import with_cases
from tests.stages.generate.solvers_lists import KINDS, every, number_of


def trials(name: str, count: int = 200, **params: Any) -> list[Trial]:
    cell = Cell(TASKS[name], TASKS[name].Params(**params), 3)
    return [cell.trial(i) for i in range(count)]


def body(trial: Trial) -> str:
    return trial.prompt.split("\n\n")[1]


# ---- brackets


@with_cases("length", [1, 2, 7, 60])
@with_cases("depth", [1, 2, 5, 20])
def test_brackets__prefix_has_the_stated_size(length: int, depth: int) -> None:
    deepest = min(length, depth)
    for trial in trials("brackets", 60, length=length, max_depth=depth, kinds=4):
        levels = list(itertools.accumulate(1 if c in "([{<" else -1 for c in body(trial)))

        assert sum(c in "([{<" for c in body(trial)) == length
        assert max(levels) == deepest
        assert levels[-1] == len(trial.answer)
        assert (deepest + 1) // 2 <= len(trial.answer) <= deepest


@pytest.mark.parametrize(("kinds", "used"), [(1, "()"), (2, "()[]"), (3, "()[]{}"), (4, "()[]{}<>")])
def test_brackets__kinds_in_play(kinds: int, used: str) -> None:
    assert set("".join(body(t) + t.answer for t in trials("brackets", kinds=kinds))) == set(used)


# ---- objects


def nouns(trial: Trial) -> list[str]:
    words = re.findall("[a-z-]+", trial.prompt.split("\n\n")[0])
    known = {noun for things in GROUPS.values() for thing in things for noun in thing}
    return [word for word in words if word in known]


def test_objects__story_has_the_stated_things() -> None:
    for trial in trials("objects", 100, target_items=5, target_groups=3, distractor_count=40, max_count=9):
        groups = [
            next(g for g, things in GROUPS.items() if any(n in t for t in things)) for n in nouns(trial)
        ]
        asked = [g for g in GROUPS if re.search(rf"\b{g}\b", trial.prompt.split("\n\n")[1])]

        assert len(set(nouns(trial))) == 5 * 3 + 40
        assert len(asked) == 3
        assert all(groups.count(g) == 5 for g in asked)
        assert 15 <= int(trial.answer) <= 15 * 9


def test_objects__counts_reach_the_largest_and_never_exceed_it() -> None:
    told = {number_of(w) for t in trials("objects", max_count=37) for w in re.findall("[a-z-]+", t.prompt)}

    assert max(n for n in told if n is not None) == 37


@pytest.mark.parametrize("probability", [0, 0.25, 1])
def test_objects__share_of_adjectives(probability: float) -> None:
    stories = [t.prompt.split("\n\n")[0] for t in trials("objects", 400, prob_adjective=probability)]
    found = sum(
        word in ADJECTIVES for story in stories for word in re.findall("[a-z]+", story.replace("A large", ""))
    )

    assert found / (400 * 7) == pytest.approx(probability, abs=0.04)


def test_things__each_belongs_to_one_group() -> None:
    forms = [noun for things in GROUPS.values() for thing in things for noun in thing]

    assert len(forms) == len(set(forms)) == 11 * 14 * 2
    assert not set(forms) & {*ADJECTIVES, *NUMBERS}
    assert [number_of(word) for word in NUMBERS] == list(range(100))


# ---- sequence


def rank(rows: list[list[int]]) -> int:
    matrix = [[Fraction(value) for value in row] for row in rows]
    done = 0
    for column in range(len(matrix[0])):
        pivot = next((i for i in range(done, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[done], matrix[pivot] = matrix[pivot], matrix[done]
        for i in range(done + 1, len(matrix)):
            factor = matrix[i][column] / matrix[done][column]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[done], strict=True)]
        done += 1
    return done


@pytest.mark.parametrize("rules", [1, 2, 3, 4])
def test_sequence__continuation_is_unique_whatever_the_kinds(rules: int) -> None:
    """All sequences of all kinds lie in one space; the shown terms fix each member of it."""
    one, linear, square = KINDS["the steps themselves grow by the same number each time"]
    power = KINDS["each term is twice the term before plus a fixed number"][1]
    common = [one, linear, square, power, *KINDS["each term is the sum of the two terms before it"]]
    for periods in itertools.combinations(PERIODS, rules - 1):
        basis = [*common, *map(every, periods)]
        shown = [[f(n) for f in basis] for n in range(1, shown_terms(rules) + 1)]

        assert rank(shown) == len(basis), periods


@with_cases("rules", [1, 2, 3, 4])
@with_cases("terms", [1, 8])
def test_sequence__has_the_stated_rules_and_terms(rules: int, terms: int) -> None:
    periods = set()
    for trial in trials("sequence", rules=rules, terms=terms):
        told = re.findall(r"every (\d)\w\w term", trial.prompt)
        periods |= set(told)

        assert len(told) == rules - 1
        assert len(body(trial).split(", ")) - 1 == shown_terms(rules)
        assert len(trial.answer.split(", ")) == terms
    assert len(periods) == (len(PERIODS) if rules > 1 else 0)


def test_sequence__larger_constants_make_larger_terms() -> None:
    def size(limit: int) -> int:
        return sum(len(body(t)) for t in trials("sequence", 400, max_constant=limit))

    assert size(3) < size(9) < size(30) < size(99)


# ---- sort


def listed(trial: Trial) -> list[str]:
    return re.findall("[A-Za-z]+", body(trial))


@pytest.mark.parametrize("length", [3, 10, 60])
@pytest.mark.parametrize("run", [1, 4, 20])
def test_sort__words_come_in_runs_of_neighbours(length: int, run: int) -> None:
    run_length = min(length, run)
    for trial in trials("sort", 50, length=length, run_length=run):
        places = sorted(DICTIONARY.index(word) for word in listed(trial))
        neighbours = sum(b - a == 1 for a, b in itertools.pairwise(places))

        assert len(places) == length
        assert neighbours >= length - -(-length // run_length)


def test_sort__neighbours_share_more_letters() -> None:
    def shared(run: int) -> int:
        answers = [t.answer.split(", ") for t in trials("sort", length=20, run_length=run)]
        pairs = [pair for words in answers for pair in itertools.pairwise(words)]
        return sum(len(list(itertools.takewhile(lambda ab: ab[0] == ab[1], zip(a, b)))) for a, b in pairs)  # noqa: B905

    assert shared(1) < shared(3) < shared(10)


@pytest.mark.parametrize("probability", [0, 0.3, 1])
def test_sort__share_of_changed_and_repeated_words(probability: float) -> None:
    made = trials("sort", 400, length=10, prob_mutation=probability, prob_duplication=probability)
    words = [word for trial in made for word in listed(trial)]

    assert len(words) / 4000 == pytest.approx(1 + probability, abs=0.04)
    assert sum(not w.islower() for w in words) / len(words) == pytest.approx(probability, abs=0.04)
    assert len({len(set(map(str.lower, listed(t)))) for t in made}) == 1


def test_sort__case_does_not_matter_but_order_and_repeats_do() -> None:
    grade = TASKS["sort"].grade

    assert grade("APPLE, bear, Bear", "apple, Bear, bear")
    assert not grade("bear, apple", "apple, bear")
    assert not grade("apple, bear", "apple, bear, bear")


def test_sort__reader_knows_every_word() -> None:
    assert TASKS["sort"].parse(f"Answer: {', '.join(WORDS[:500])}") == ", ".join(WORDS[:500])
    for word in WORDS:  # an answer of words without commas must not be taken for prose
        assert TASKS["sort"].parse(f"Answer: cat {word} dog") == f"cat, {word}, dog"
