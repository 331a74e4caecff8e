"""The contract of tasks whose questions another package makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.foreign import rendered
from evalcube.stages.generate.foreign.rendered import BLOCK, block_names, rows_of_block
from evalcube.stages.generate.recent import Recent
from tests.stages.generate.foreign.made_elsewhere import Sums


@pytest.fixture(autouse=True)
def _nothing_is_at_hand(monkeypatch):
    monkeypatch.setattr(rendered, "_HELD", Recent(9))


def cell_of(seed=7, level=1):
    task = Sums()
    return Cell(task, task.Params(level=level), seed)


def test_trial__is_the_same_in_any_order_and_renders_each_block_once():
    cell, other = cell_of(), cell_of()
    places = [0, 70, 3, 31, 32, 69]

    there = {place: cell.trial(place) for place in places}

    assert [len(seeds) for seeds in cell.task.rendered] == [BLOCK] * 3
    rendered._HELD = Recent(9)
    assert {place: other.trial(place) for place in reversed(places)} == there


def test_trial__has_a_seed_of_its_own_which_is_not_that_of_a_neighbour():
    trials = [cell_of(seed=seed).trial(i).prompt for seed in range(20) for i in range(BLOCK)]

    assert len(set(trials)) == len(trials)


def test_trial__comes_from_a_cube_where_the_package_is_missing():
    cell = cell_of()
    copy = {name: cell.task.block(cell, number) for number, name in enumerate(block_names(cell, 40))}
    here = cell_of()
    here.task.missing = True
    rendered._HELD = Recent(9)
    here.task.cubes = (lambda name: iter([copy[name]]) if name in copy else None,)

    assert here.trial(39) == cell.trial(39)
    with pytest.raises(TaskError, match="missing"):
        here.trial(64)


def test_trial__is_rendered_again_where_a_copy_is_damaged():
    cell, other = cell_of(), cell_of()
    there, damaged = cell.trial(5), cell.task.block(cell, 0)[:-3]
    rendered._HELD = Recent(9)
    other.task.cubes = (lambda _: iter([damaged]),)

    assert other.trial(5) == there
    assert len(other.task.rendered) == 1


def test_blocks__are_forgotten_where_there_are_many(monkeypatch):
    monkeypatch.setattr(rendered, "_HELD", Recent(1))
    cell = cell_of()

    made = [cell.trial(0), cell.trial(BLOCK), cell.trial(0)]

    assert made[0] == made[2]
    assert len(cell.task.rendered) == 3


@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=9)), min_size=1))
def test_recent__weighs_what_it_keeps(puts):
    kept = Recent(12, len)
    for key, value in puts:
        kept.put(key, value)

    held = {key: value for key in range(6) if (value := kept.get(key)) is not None}
    assert held.items() <= dict(puts).items()
    assert sum(map(len, held.values())) <= 12
    assert puts[-1][0] in held


@given(st.binary(max_size=200))
def test_rows_of_block__takes_nothing_that_is_no_block(data):
    assert rows_of_block(data) is None
    assert rows_of_block(b'{"sha256": "0"}\n' + data) is None


@pytest.mark.parametrize("row", [{"prompt": "?"}, {"prompt": 1, "target": "a"}, ["a"], {}])
def test_trial__says_that_rows_lack_what_they_need(row, monkeypatch):
    monkeypatch.setattr(Sums, "render", lambda *_: [row] * BLOCK)

    with pytest.raises(TaskError, match="prompt and target"):
        cell_of().trial(0)
