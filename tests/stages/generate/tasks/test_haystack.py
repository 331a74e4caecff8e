"""One fact among others in a long text."""

from evalcube.stages.generate import TASKS, Cell
from tests.strategies import params_with


def test_haystack__whoever_takes_any_of_the_facts_that_stand_together_is_right_as_often_as_declared():
    task = TASKS["haystack"]

    trial = Cell(task, params_with(task, distractors=0), 7).trial(0)

    assert trial.prompt.count(" is kept in box ") == 1 / trial.guess_chance
