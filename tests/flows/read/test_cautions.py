"""The warning of points that repeat a few problems."""

from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.read.cautions import (
    _few_problems,
    _graders,
    _mostly_invalid,
    _not_compared,
    _uncounted_trials,
    _unverified_recipes,
    describe_missing,
)
from evalcube.stages.process.grading import GRADER, IMPORTED
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.regions import Region
from tests.cases import with_cases
from tests.flows.cli.made_up import make_cube


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return Cube.open(make_cube(tmp_path_factory.mktemp("few"))).dataset()


@pytest.mark.parametrize(
    ("trials", "repeats", "said"), [(40, 21, True), (40, 20, False), (20, 11, True), (19, 18, False)]
)
def test_few_problems__of_more_than_half_of_enough_trials(counted, trials, repeats, said):
    dataset = counted.copy(deep=True)
    for name, value in (("trials", trials), ("duplicates", repeats)):
        dataset["counters"].loc[{"counter": name}] = 0
        dataset["counters"][
            {"task": 1, "params": 0, "counter": dataset["counter"].values.tolist().index(name)}
        ] = value

    found = _few_problems(dataset)

    assert [text.split(" repeat")[0] for text in found] == ["sort: 1 of 1 points"] * said


def with_counts(dataset, model, **counts):
    """The dataset with counters of one model in one point, and nothing else."""
    changed = dataset.copy(deep=True)
    changed["counters"][:] = 0
    names = changed["counter"].values.tolist()
    for name, value in counts.items():
        changed["counters"][{"model": model, "task": 0, "params": 1, "counter": names.index(name)}] = value
    return changed


@pytest.mark.parametrize(
    ("completed", "invalid", "said"), [(20, 11, True), (20, 10, False), (19, 19, False), (40, 21, True)]
)
def test_mostly_invalid__of_more_than_half_of_enough_replies(counted, completed, invalid, said):
    found = _mostly_invalid(with_counts(counted, 1, completed=completed, invalid=invalid))

    assert [text.split(" replies")[0] for text in found] == [f"middle: {invalid} of {completed}"] * said
    assert _mostly_invalid(counted.drop_vars("counters")) == ()


@pytest.mark.parametrize(("recorded", "late"), [((30, 20), 10), ((30, 10), 0), ((10, 10), 0)])
def test_uncounted_trials__are_recorded_and_in_no_counter(counted, recorded, late):
    receipts = [
        SimpleNamespace(region=Region(1, part, 0), finished=number) for part, number in enumerate(recorded)
    ]
    receipts.append(SimpleNamespace(region=Region(99, 0, 0), finished=1000))

    found = _uncounted_trials(with_counts(counted, 1, trials=40), receipts)

    assert [text.split(" are")[0] for text in found] == [f"{late} recorded trials of middle"] * (late > 0)
    assert _uncounted_trials(counted.drop_vars("counters"), receipts) == ()


@with_cases(
    ("graders", "said"),
    [
        ([GRADER], ""),
        ([IMPORTED], ""),
        ([GRADER, IMPORTED], ""),
        ([], ""),
        (["2"], "Grader version 2 graded"),
        (["2", GRADER], f"graders 2 and {GRADER} meet"),
        (["2", "3", "4"], "graders 2, 3 and 4 meet"),
        ([f"{GRADER}+2"], f"graders 2 and {GRADER} meet"),
    ],
)
def test_graders__are_told_where_they_are_several_or_older(graders, said):
    found = _graders([SimpleNamespace(grader=grader) for grader in graders])

    assert len(found) == bool(said)
    assert all(said in text for text in found)


def test_describe_missing__names_the_evaluations_that_lack_readings():
    lost, asked = np.array([[0, 3], [0, 0], [0, 1500]]), np.array([[10, 10], [10, 10], [10, 2000]])

    (said,) = describe_missing(["a", "b"], ["m", "n", "o"], lost, asked)

    assert said.startswith("Judge b gave no score in 1,503 of 2,020 readings (3 of m, 1,500 of o): ")


def test_not_compared__names_tasks_whose_questions_may_repeat(counted):
    changed = counted.copy(deep=True)
    assert _not_compared(changed) == _not_compared(changed.drop_vars("duplicate")) == ()
    changed["duplicate"][1] = 255

    (said,) = _not_compared(changed)

    assert "questions of sort are new" in said


def test_unverified_recipes__are_those_of_tasks_that_are_there(counted):
    notes = {"config": {"tasks": {"sort": {"params": {}}, "arithmetic": None}}}

    for unknown in ({}, {"config": 5}, {"config": {"tasks": []}}, notes):
        assert _unverified_recipes(unknown, counted) == ()
