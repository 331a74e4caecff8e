"""The questions of other packages that a cube keeps: by blocks, for who lacks the package, whatever becomes of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from evalcube.flows.config.kept_questions import key_of
from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan, PlannedCell, TaskPlan
from evalcube.flows.run.worker.context import unmade
from evalcube.flows.state.questions import (
    copy_questions,
    is_whole,
    keep_block,
    keep_blocks,
    keep_questions,
    kept_blocks,
    offer_questions,
    put_block,
    texts_of,
)
from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.foreign import rendered
from evalcube.stages.generate.foreign.rendered import BLOCK, _as_kept, block_names
from evalcube.stages.generate.recent import Recent
from tests.flows.support import sweep_config
from tests.stages.generate.foreign.made_elsewhere import Sums
from tests.storage.support.memory_space import Bucket, MemorySpace


@pytest.fixture(autouse=True)
def _nothing_is_at_hand(monkeypatch):
    monkeypatch.setattr(rendered, "_HELD", Recent(9))


@pytest.fixture
def records():
    return MemorySpace("memory", Bucket())


@pytest.fixture
def plan(tmp_path):
    """Two points of the task."""
    made = build_plan(from_mapping(sweep_config(tmp_path, "http://127.0.0.1:1/v1")))
    task = Sums()
    cells = [PlannedCell(Cell(task, task.Params(level=level), 3), ("default",), 1) for level in (0, 1)]
    return replace(made, tasks=(TaskPlan("sums", task, tuple(cells)),), trials=100)


def names(records, plan):
    return [name for *_, name, _ in kept_blocks(records, plan)]


def of_cell(plan, place, trials):
    return block_names(plan.tasks[0].cells[place].cell, trials)


def test_keep_questions__keeps_the_first_of_each_point_and_keep_blocks_as_many_as_are_wanted(records, plan):
    keep_questions(records, plan)
    first = names(records, plan)
    keep_blocks(records, plan, np.array([[100, 32]]))

    assert first == [*of_cell(plan, 0, 1), *of_cell(plan, 1, 1)]
    assert names(records, plan) == [*of_cell(plan, 0, 100), *of_cell(plan, 1, 1)]
    assert len(plan.tasks[0].task.rendered) == 5


def test_offer_questions__reads_those_that_come_later_too(records, plan, monkeypatch):
    offer_questions(records, plan)
    keep_blocks(records, plan, np.array([[64, 64]]))
    cell = plan.tasks[0].cells[1].cell
    there = cell.trial(50)
    monkeypatch.setattr(rendered, "_HELD", Recent(9))
    monkeypatch.setattr(Sums, "missing", True)

    assert cell.trial(50) == there
    with pytest.raises(TaskError, match="missing"):
        cell.trial(64)


@pytest.mark.parametrize("opened_last", ["mine", "strange"])
def test_offer_questions__of_a_stranger_are_read_in_its_cube_and_asked_in_no_other(
    records, plan, monkeypatch, opened_last
):
    plan = replace(plan, seed=3)  # that of its points
    monkeypatch.setattr("evalcube.flows.plan.plan.installed_task", lambda *_: plan.tasks[0].task)
    strange = MemorySpace("strange", Bucket())
    cell, first = plan.tasks[0].cells[0].cell, of_cell(plan, 0, 1)[0]
    packed = zstandard.compress(_as_kept([{"prompt": "EVIL", "target": "0", "entry": []}] * BLOCK))
    put_block(strange, first, packed)

    def opened(space):
        described = Plan.from_spec(json.loads(json.dumps(plan.spec())), 100, 1)
        offer_questions(space, described)
        return described.tasks[0].cells[0].cell

    theirs = opened(strange)
    read = theirs.trial(0).prompt
    keep_blocks(records, plan, np.array([[1, 0]]))
    mine = opened(records)
    if opened_last == "strange":
        theirs = opened(strange)
    monkeypatch.setattr(Sums, "missing", True)  # all is read from the cubes

    assert read == theirs.trial(0).prompt == "EVIL"
    assert mine.trial(0).prompt.endswith("+ 0?")
    ((_, data),) = [(name, data) for *_, name, data in kept_blocks(records, plan)]
    assert data != packed
    assert is_whole(data)
    assert cell.task.cubes == ()


def test_keep_questions__says_before_anything_is_asked_that_the_package_is_missing(
    records, plan, monkeypatch
):
    monkeypatch.setattr(Sums, "missing", True)

    with pytest.raises(TaskError, match="missing"):
        keep_questions(records, plan)
    assert "missing" in unmade(plan)


def test_keep_questions__says_so_where_all_is_kept_as_well(records, plan, monkeypatch):
    keep_questions(records, plan)
    monkeypatch.setattr(Sums, "missing", True)

    with pytest.raises(TaskError, match="missing"):
        keep_questions(records, plan)


def test_copy_questions__takes_what_is_whole(records, plan):
    keep_blocks(records, plan, np.array([[64, 32]]))
    damaged = of_cell(plan, 1, 1)[0]
    records.delete(key_of(damaged))
    records.put(key_of(damaged), b"no block")
    target = MemorySpace("target", Bucket())

    copy_questions(records, target, plan)

    assert names(target, plan) == of_cell(plan, 0, 64)
    assert [name for *_, name, packed in kept_blocks(records, plan) if not is_whole(packed)] == [damaged]


def test_keep_block__heals_a_damaged_one(records, plan):
    keep_blocks(records, plan, np.array([[64, 0]]))
    cell, name = plan.tasks[0].cells[0].cell, of_cell(plan, 0, 64)[1]
    before = [data for *_, data in kept_blocks(records, plan)]
    records.delete(key_of(name))

    keep_block(records, cell.task, cell, 1)

    assert [data for *_, data in kept_blocks(records, plan)] == before


def test_texts_of__says_all_that_is_kept(records, plan):
    keep_blocks(records, plan, np.array([[1, 0]]))

    ((source, text),) = texts_of(records, plan)

    assert source == "made:sums"
    assert plan.tasks[0].cells[0].cell.trial(31).prompt in text
