"""Rules of task `constraints`: each is kept by the reference, and broken by a text that breaks it."""

from __future__ import annotations

import random

import pytest

from evalcube.stages.generate import TASKS, Cell, Trial
from evalcube.stages.generate.tasks.constraints import MOST_TEXT, broken_rules
from tests.cases import with_cases
from tests.stages.generate.no_work import excess_of_no_work
from tests.stages.generate.tasks.test_noisy_solver import ERROR

TASK = TASKS["constraints"]


def of_rules(*rules: tuple[str, object]) -> Trial:
    return Trial("", "", extras={"rules": [list(rule) for rule in rules]})


@with_cases(
    ("rule", "kept", "broken"),
    [
        (("count", 3), '- one two-fold\n- "three" *', "one two fold three"),
        (("topic", "lamp"), "A Lamp!", "lamps"),
        (("first", "red"), "**Red** sky", "a red sky"),
        (("last", "sky"), "red SKY!!", "sky red"),
        (("avoid", "sky"), "skyline", "the sky."),
        (("twice", "sky"), "sky, Sky", "sky sky sky"),
        (("without", "e"), "a sky", "An Elk"),
        (("lower", ""), "all low 1", "Low"),
        (("marks", 2), "so! so!", "so!"),
        (("commas", 1), "a, b", "a b"),
        (("lines", 2), "one\n\n***\ntwo", "one two"),
        (("bullets", 1), "a\n- b\n-", "- a\n- b"),
        (("quoted", ""), "“a b”", 'a "b"'),
        (("title", ""), "# A B\nc", "A b\nC"),
    ],
)
def test_rules__are_kept_and_broken(rule: tuple[str, object], kept: str, broken: str) -> None:
    assert broken_rules(kept, of_rules(rule)) == []
    assert broken_rules(broken, of_rules(rule)) == [rule[0]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "rules"), [("words", 2), ("letters", 4), ("layout", 6), ("mixed", 2), ("mixed", 6)]
)
def test_reference__keeps_all_rules_and_no_work_seldom_does(kind: str, rules: int) -> None:
    cell = Cell(TASK, TASK.Params(kind=kind, rules=rules), 5)
    trials = [cell.trial(i) for i in range(300)]

    excess, strategy = excess_of_no_work(cell, 300)

    assert excess < 0.02, strategy
    assert all(broken_rules(trial.answer, trial) == [] for trial in trials)
    assert all(len(trial.extras["rules"]) == rules for trial in trials)  # type: ignore[arg-type]


@with_cases(
    ("reply", "text"),
    [
        ("I plan it.\n**Answer:**\n\nOne\ntwo\n", "One\ntwo"),
        ("Answer: draft\n\nWait.\nanswer: one two", "one two"),
        ("Answer:\n```text\none\n```", "one"),
        ("The answer is here: one", None),
        ("Answer: <text>", None),
        ("Answer:" + "x " * MOST_TEXT, None),
    ],
)
def test_parse__takes_what_stands_behind_the_last_mark(reply: str, text: str | None) -> None:
    assert TASK.parse(reply) == text


def test_difficulty__grows_where_a_noisy_writer_is_right_less_often() -> None:
    rng = random.Random(3)

    def right(rules: int) -> int:
        cell = Cell(TASK, TASK.Params(rules=rules), 5)
        return sum(
            all(rng.random() > ERROR for _ in trial.answer.split() for _ in range(rules))
            for trial in map(cell.trial, range(400))
        )

    counts = [right(rules) for rules in (2, 4, 6)]
    steps = [TASK.difficulty(TASK.Params(rules=rules)) for rules in (2, 4, 6)]

    assert counts == sorted(counts, reverse=True)
    assert steps == sorted(set(steps))
