"""What the closing leaderboard needs is imported while a run asks."""

from __future__ import annotations

import threading

from evalcube.flows.cli import measure
from evalcube.flows.run.follow.events import BlockDone, Noted
from tests.waiting import PATIENCE


def test_board_ahead__imports_once_blocks_come_in(monkeypatch):
    last, imported = threading.Event(), []

    def note(module):
        imported.append((module, threading.current_thread() is threading.main_thread()))
        if len(imported) == 2:
            last.set()

    monkeypatch.setattr(measure, "import_module", note)
    follow = measure.board_ahead()
    block = BlockDone((0,), 0, trials=4, cached=0, transport=0, missing=0)

    follow(Noted("begins"))
    assert not imported
    follow(block)
    follow(block)

    assert last.wait(PATIENCE)
    assert [here for _, here in imported] == [False, False]
