"""Prompts that occurred before."""

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.novelty import repeated
from tests.strategies import params_with


@given(st.lists(st.text(max_size=2)))
def test_repeated__flags_all_but_the_first_of_equal_prompts(prompts):
    flags = repeated(prompts).tolist()

    assert flags == [int(text in prompts[:i]) for i, text in enumerate(prompts)]


def test_repeated__takes_text_that_is_no_valid_unicode():
    assert repeated(["\ud800", "\ud800", ""]).tolist() == [0, 1, 0]


def test_repeated__a_small_cell_repeats_and_a_longer_sample_keeps_the_flags():
    task = TASKS["brackets"]
    cell = Cell(task, task.Params(length=1, max_depth=1), 42)
    prompts = [cell.trial(i).prompt for i in range(400)]

    flags = repeated(prompts)

    assert 0 < flags.sum() < 400
    assert (repeated(prompts[:100]) == flags[:100]).all()
    assert 400 - flags.sum() == len(set(prompts))


def test_problem__is_one_in_other_words() -> None:
    task = TASKS["brackets"]
    cell = Cell(task, params_with(task, length=1), 1)
    made = [cell.trial(i) for i in range(201)]

    problems = [task.problem(trial) for trial in made]

    assert len({trial.prompt for trial in made}) > 100
    assert len(set(problems)) == int((1 - repeated(problems)).sum()) < 5
