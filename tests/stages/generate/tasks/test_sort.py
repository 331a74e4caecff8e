"""Sort: words come in runs of neighbours, and order counts."""

from __future__ import annotations

import itertools
import re

import pytest

from evalcube.stages.generate import TASKS, Trial
from evalcube.stages.generate.material.words import WORDS
from evalcube.stages.generate.tasks.sort import DICTIONARY
from tests.stages.generate.tasks.trials import body, trials


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
        answers = [t.answer.split(", ") for t in trials("sort", 200, length=20, run_length=run)]
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
