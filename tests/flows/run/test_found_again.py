"""Answers of the cache: those of other runs, and those that this run had paid for before a worker died."""

import json
from dataclasses import replace

from evalcube.flows.run.follow.events import BlockDone, LookedUp, Started
from evalcube.flows.run.follow.progress import FoundAgain, Tracker
from evalcube.flows.run.follow.records import EventLog

ORIGIN = (0, 0, 0, 0, 7)


def block(key, **changes):
    return BlockDone(key, 0, trials=8, transport=0, missing=0, origin=ORIGIN, **changes)


def test_told_apart__counts_replies_of_this_run_apart_from_those_of_other_runs():
    tracker, found_again = Tracker(), FoundAgain()

    found_again.looked_up(LookedUp(ORIGIN, 3))
    found_again.looked_up(LookedUp(ORIGIN, 6))  # a worker died, after it had asked some of the other five
    tracker(found_again.told_apart(block(ORIGIN, cached=7, shared=1)))

    assert (tracker.cached, tracker.found_again) == (4, 3)


def test_told_apart__counts_the_hits_of_a_block_once_that_was_taken_apart():
    tracker, found_again = Tracker(), FoundAgain()

    found_again.looked_up(LookedUp(ORIGIN, 3))
    for index in range(1_000_000, 1_000_004):
        found_again.looked_up(LookedUp(ORIGIN, 2))
        tracker(found_again.told_apart(block((0, 0, 0, 0, index), cached=2)))

    assert (tracker.cached, tracker.found_again) == (3, 5)


def test_told_apart__finds_all_of_a_block_again_that_is_graded_once_more():
    found_again = FoundAgain()
    found_again.looked_up(LookedUp(ORIGIN, 3))

    assert found_again.told_apart(block(ORIGIN, cached=3)).found_again == 0
    assert found_again.told_apart(block(ORIGIN, cached=8)).found_again == 8


def test_told_apart__counts_what_a_look_up_was_too_early_for_by_whether_a_worker_died():
    tracker, found_again = Tracker(), FoundAgain()

    found_again.looked_up(LookedUp(ORIGIN, 0))
    tracker(found_again.told_apart(block(ORIGIN, cached=3, shared=1, late=2)))  # all by another run
    assert (tracker.cached, tracker.found_again) == (3, 0)
    other = (0, 0, 0, 0, 8)
    found_again.looked_up(LookedUp(other, 1))
    found_again.looked_up(LookedUp(other, 2))  # by another worker, after the first one had asked all and died
    tracker(found_again.told_apart(replace(block(other, cached=8, late=6), origin=other)))

    assert (tracker.cached, tracker.found_again) == (4, 7)


def test_displays_and_log__mean_by_cached_what_the_summary_means(tmp_path):
    tracker, event = Tracker(), block(ORIGIN, cached=7, found_again=3)
    with EventLog(tmp_path / "log.jsonl") as log:
        for subscriber in (tracker, log):
            subscriber(Started("r", "c", 8, 0, ("a",)))
            subscriber(event)

    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert tracker.cached == line["cached"] == 4
    assert line["found_again"] == 3
