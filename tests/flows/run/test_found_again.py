"""Answers of the cache: those of other runs, and those that this run had paid for before a worker died."""

import json

from evalcube.flows.run.follow.events import BlockDone, LookedUp, Started
from evalcube.flows.run.follow.progress import ReuseCounter, Tracker
from evalcube.flows.run.follow.records import EventLog

ORIGIN = (0, 0, 0, 0, 7)


def block(key, **changes):
    return BlockDone(key, 0, trials=8, transport=0, missing=0, origin=ORIGIN, **changes)


def test_count__counts_replies_of_this_run_apart_from_those_of_other_runs():
    tracker, reuse = Tracker(), ReuseCounter()

    reuse.note_look_up(LookedUp(ORIGIN, 3))
    reuse.note_look_up(LookedUp(ORIGIN, 6))  # a worker died, after it had asked some of the other five
    tracker(reuse.count(block(ORIGIN, cached=6)))

    assert (tracker.cached, tracker.found_again) == (3, 3)


def test_count__counts_the_hits_of_a_block_once_that_was_taken_apart():
    tracker, reuse = Tracker(), ReuseCounter()

    reuse.note_look_up(LookedUp(ORIGIN, 3))
    for index in range(1_000_000, 1_000_004):
        reuse.note_look_up(LookedUp(ORIGIN, 2))
        tracker(reuse.count(block((0, 0, 0, 0, index), cached=2)))

    assert (tracker.cached, tracker.found_again) == (3, 5)


def test_count__finds_all_of_a_block_again_that_is_graded_once_more():
    reuse = ReuseCounter()
    reuse.note_look_up(LookedUp(ORIGIN, 3))

    assert reuse.count(block(ORIGIN, cached=3)).found_again == 0
    assert reuse.count(block(ORIGIN, cached=8)).found_again == 8


def test_displays_and_log__mean_by_cached_what_the_summary_means(tmp_path):
    tracker, event = Tracker(), block(ORIGIN, cached=7, found_again=3)
    with EventLog(tmp_path / "log.jsonl") as log:
        for subscriber in (tracker, log):
            subscriber(Started("r", "c", 8, 0, ("a",)))
            subscriber(event)

    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert tracker.cached == line["cached"] == 4
    assert line["found_again"] == 3
