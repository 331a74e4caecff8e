"""Second readers: a pattern, a function by name, and the task's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, TaskError, Trial
from evalcube.stages.generate.contract import HOSTILE, check_task
from evalcube.stages.generate.reader import SecondReader
from evalcube.stages.generate.tasks.arithmetic import Arithmetic
from tests.cases import with_cases

TRIAL = Trial("How many?", "1234", extras={"accepted": ["1234", "12"]})
STRICT = {"name": "strict-match", "pattern": r"#### (\-?[0-9\.\,]+)", "ignore": [","]}


def score(described, text, trial=TRIAL):
    return SecondReader(described).of(Cell(Arithmetic(), Arithmetic().example(), 1), trial)(text)


@with_cases(
    ("described", "text", "expected"),
    [
        (STRICT, "so #### 1,234", 1.0),
        (STRICT, "so #### 12 is one of them", 1.0),
        (STRICT, "#### 7, then #### 12", 0.0),
        (STRICT | {"take": "last"}, "#### 7, then #### 12", 1.0),
        (STRICT, "Answer: 1234", None),
        ({"name": "a", "pattern": "(x)?(12)"}, "x12", 0.0),
        ({"name": "a", "pattern": "(x)?(12)", "group": 2}, "x12", 1.0),
        ({"name": "a", "pattern": "(x)?(12)"}, "12", 1.0),
        ({"name": "a", "pattern": "(?P<n>12)x", "group": "n"}, "12x", 1.0),
        ({"name": "a", "pattern": "(x)?12", "group": 1}, "12", None),
        ({"name": "a", "pattern": r"\d+", "take": "last"}, "7 and 12", 1.0),
    ],
)
def test_second_reader__by_pattern(described, text, expected):
    assert score(described, text) == expected


@pytest.mark.parametrize(("case", "expected"), [(True, 0.0), (False, 1.0)])
def test_second_reader__compares_with_what_the_source_has(case, expected):
    trial = Trial("Where?", "Paris")

    found = [
        score({"name": "a", "pattern": "P?p?aris", "case": case}, text, trial) for text in ("Paris", "paris")
    ]

    assert found == [1.0, expected]


def test_second_reader__a_pattern_that_takes_too_long_finds_nothing():
    assert score({"name": "a", "pattern": "(a+)+$"}, "a" * 40 + "b") is None


@given(text=st.text() | st.sampled_from(HOSTILE))
def test_second_reader__no_text_makes_it_raise(text):
    assert score(STRICT, text) in (0.0, 1.0, None)


class Twice(Arithmetic):
    """Has a reader of its own, which says what the test wants."""

    said = 0.5

    def second_reader(self, params):  # noqa: ARG002
        return "half"

    def theirs(self, text, params, trial):  # noqa: ARG002
        return self.said


def test_second_reader__of_the_task_itself_is_told_what_was_asked():
    class Echo(Twice):
        def theirs(self, text, params, trial):
            return float(text == f"{params.length} {trial.answer}")

    cell = Cell(Echo(), Echo().example(), 1)

    assert SecondReader({"name": "half", "own": True}).of(cell, TRIAL)(f"{cell.params.length} 1234") == 1.0


def test_check_task__of_a_second_reader_wants_a_score():
    check_task(Twice())
    wrong = Twice()
    wrong.said = 7

    with pytest.raises(TaskError, match="theirs returns 7"):
        check_task(wrong)
