"""Totals of a run from its events."""

from dataclasses import replace

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Traffic, process_at
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.summary import RunSummary


def block(key, **changes):
    fields = {"model": 0, "trials": 8, "cached": 3, "transport": 2, "missing": 0, "causes": {"timeout": 2}}
    return BlockDone(key=key, **{**fields, **changes})


def test_tracker__counts_a_block_once_however_often_it_is_graded():
    tracker = Tracker()

    for key in ((0, 0, 0, 0), (0, 0, 0, 1), [0, 0, 0, 0]):
        tracker(block(key))

    assert (tracker.blocks, tracker.cached, tracker.transport) == (2, 6, 4)
    assert tracker.done() == {0: 16}
    assert tracker.causes == {"timeout": 4}


def test_tracker__adds_the_last_word_of_every_worker():
    tracker = Tracker()

    tracker(Traffic(sent=5, replies=4, retries={"reset": 1}, worker="a"))
    tracker(Traffic(sent=9, replies=8, retries={"reset": 2}, worker="a"))
    tracker(Traffic(sent=3, replies=3, failures={"timeout": 1}, worker="b"))

    traffic = tracker.traffic()
    assert (traffic.sent, traffic.replies) == (12, 11)
    assert (traffic.retries, traffic.failures) == ({"reset": 2}, {"timeout": 1})


def test_tracker__has_nothing_in_flight_at_a_process_that_another_has_replaced():
    tracker = Tracker()

    tracker(Traffic(sent=9, replies=5, in_flight=4, worker=process_at("tcp://host:1", 10)))
    tracker(Traffic(sent=6, replies=3, in_flight=3, worker=process_at("tcp://host:2", 11)))
    tracker(Traffic(sent=1, in_flight=1, worker=process_at("tcp://host:1", 12)))

    traffic = tracker.traffic()
    assert (traffic.sent, traffic.replies, traffic.in_flight) == (16, 8, 4)


def test_summary__raises_unless_all_is_done():
    done = RunSummary("complete", "cube", "cache", 1.0, 4, 4, 0, 0, 4, 9, 9)
    left = replace(
        done, reason="incomplete", done=1, transport=3, causes={"refused": 3}, details={"refused": "no"}
    )

    assert done.raise_for_status() is done
    with pytest.raises(SweepError, match=r"3 of 4 .*\(refused ×3; refused: no\)"):
        left.raise_for_status()
