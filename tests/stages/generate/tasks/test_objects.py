"""Objects: stories have the stated things and counts."""

from __future__ import annotations

import re

import pytest

from evalcube.stages.generate import Trial
from evalcube.stages.generate.material.words import ADJECTIVES
from evalcube.stages.generate.tasks.objects import GROUPS, NUMBERS
from tests.stages.generate.solvers_lists import number_of
from tests.stages.generate.tasks.trials import trials


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
    told = {
        number_of(w) for t in trials("objects", 200, max_count=37) for w in re.findall("[a-z-]+", t.prompt)
    }

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
