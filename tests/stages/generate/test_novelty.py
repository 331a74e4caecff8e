"""Prompts that occurred before."""

import random
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.novelty import find_repeats, points_with_few
from evalcube.stages.reply.status import FEW_TRIALS
from tests.stages.generate.family import FAMILY
from tests.strategies import params_with, random_params


@given(st.lists(st.text(max_size=2)))
def test_repeated__flags_all_but_the_first_of_equal_prompts(prompts):
    flags = find_repeats(prompts).tolist()

    assert flags == [int(text in prompts[:i]) for i, text in enumerate(prompts)]


def test_repeated__takes_text_that_is_no_valid_unicode():
    assert find_repeats(["\ud800", "\ud800", ""]).tolist() == [0, 1, 0]


def test_repeated__a_small_cell_repeats_and_a_longer_sample_keeps_the_flags():
    task = TASKS["brackets"]
    cell = Cell(task, task.Params(length=1, max_depth=1), 42)
    prompts = [cell.trial(i).prompt for i in range(400)]

    flags = find_repeats(prompts)

    assert 0 < flags.sum() < 400
    assert (find_repeats(prompts[:100]) == flags[:100]).all()
    assert 400 - flags.sum() == len(set(prompts))


def test_problem__is_one_in_other_words() -> None:
    task = TASKS["brackets"]
    cell = Cell(task, params_with(task, length=1), 1)
    made = [cell.trial(i) for i in range(201)]

    problems = [task.problem(trial) for trial in made]

    assert len({trial.prompt for trial in made}) > 100
    assert len(set(problems)) == int((1 - find_repeats(problems)).sum()) < 5


@given(
    st.sampled_from(sorted(FAMILY)),
    st.sampled_from([FEW_TRIALS - 1, FEW_TRIALS, 40]),
    st.integers(0, 99),
)
def test_points_with_few__are_such_points(name, trials, seed):
    task = FAMILY[name]
    cells = [Cell(task, random_params(task, random.Random(seed + i)), 3) for i in range(3)]

    few = points_with_few(cells, trials)

    made = [
        find_repeats(task.problem(cell.trial(i)) for i in range(trials)).sum() > trials / 2 for cell in cells
    ]
    assert few <= sum(made) * (trials >= FEW_TRIALS)


def test_points_with_few__finds_them_among_many_and_makes_few_trials():
    task = TASKS["brackets"]
    cells = [Cell(task, task.Params(length=length), 42) for length in (*range(40, 60), 1, 2)]
    one, none = Cell(task, task.Params(length=1), 42), Cell(task, task.Params(length=30), 42)
    with patch.object(Cell, "trial", autospec=True, side_effect=Cell.trial) as made:
        assert points_with_few(cells, 10**9) == 2

    assert made.call_count <= 8 * (16 + 100)
    assert [points_with_few([one], trials) for trials in (FEW_TRIALS - 1, FEW_TRIALS, 10**9)] == [0, 1, 1]
    assert points_with_few([none], 10**9) == 0
