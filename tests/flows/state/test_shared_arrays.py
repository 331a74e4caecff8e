"""What is known of repeats where a comparison of prompts was cut short."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.plan.plan import PlannedCell, TaskPlan
from evalcube.flows.state import shared_arrays
from evalcube.flows.state.shared_arrays import keep_compared, read_compared, repeat_flags
from evalcube.stages.generate import TASKS, Cell
from evalcube.storage.cube.address import space_of

UNKNOWN = 255


def test_repeat_flags__leaves_whole_cells_unknown_when_stopped_and_goes_on_with_these():
    task = TASKS["arithmetic"]
    cells = tuple(PlannedCell(Cell(task, task.Params(length=n), 42), (), 10) for n in (3, 4))
    plan, planned = TaskPlan("arithmetic", task, cells), np.array([10, 10])
    asked = count()

    cut = repeat_flags(plan, planned, np.full((2, 10), UNKNOWN, np.uint8), lambda: next(asked) >= 15)
    known = (cut != UNKNOWN).tolist()
    whole = repeat_flags(plan, planned, cut)

    assert known == [[True] * 10, [False] * 10]
    assert (whole == repeat_flags(plan, planned, np.full((2, 10), UNKNOWN, np.uint8))).all()
    assert (whole != UNKNOWN).all()


def grown(sizes, records=None, made=None):
    """Flags of a small task after it has grown to some sizes in turn, each time by another process."""
    task = TASKS["brackets"]
    cells = tuple(PlannedCell(Cell(task, task.Params(length=1, max_depth=n), 42), (), 10) for n in (1, 2))
    plan, flags = TaskPlan("brackets", task, cells), np.zeros((2, 0), np.uint8)
    for size in sizes:
        flags = np.pad(flags, ((0, 0), (0, size - flags.shape[1])), constant_values=UNKNOWN)
        compared = {} if records is None else read_compared(records, 0)

        def trial(cell, index):
            if made is not None:
                made.append(index)
            return cell.trial(index)

        flags = repeat_flags(plan, np.full(2, size), flags, trial=trial, compared=compared)
        if records is not None:
            keep_compared(records, 0, compared)
    return flags


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4).map(sorted))
def test_repeat_flags__are_the_same_however_a_task_has_grown(tmp_path_factory, sizes):
    records = space_of(tmp_path_factory.mktemp("cube"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_arrays, "_FEW", 1)

        assert (grown(sizes, records) == grown(sizes[-1:])).all()


def test_repeat_flags__of_a_task_that_grows_make_none_of_its_problems_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_arrays, "_FEW", 1)
    made = []

    grown((30, 50), space_of(tmp_path), made)

    assert made == [*range(30), *range(30), *range(30, 50), *range(30, 50)]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:-8] + bytes(8), lambda _: b"", lambda data: b"x" + data],
)
def test_read_compared__of_a_damaged_record_is_nothing(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(shared_arrays, "_FEW", 1)
    records = space_of(tmp_path)
    grown((30,), records)
    path = tmp_path / "problems" / "0"
    path.write_bytes(damage(path.read_bytes()))

    assert read_compared(records, 0) == {}
    assert (grown((30, 40), records) == grown((40,))).all()


def test_keep_compared__leaves_small_tasks_without_a_record(tmp_path):
    grown((30,), space_of(tmp_path))

    assert list(tmp_path.iterdir()) == []
