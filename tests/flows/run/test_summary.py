"""Totals of a run from its events."""

import numpy as np

from flows.run.events import TALLY, BlockDone, Started, Traffic
from flows.run.summary import Tracker


def block(key, **changes):
    fields = {"model": 0, "trials": 8, "cached": 3, "transport": 2, "missing": 0, "causes": {"timeout": 2}}
    return BlockDone(key=key, **{**fields, "tally": (((8.0, 8.0, 6.0, 0.0, 0.0, 80.0),),), **changes})


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


def test_scores__are_those_of_the_running_counts():
    tracker = Tracker()
    tracker(Started("run", "cube", 100, 0, ("a",)))

    tracker(block((0,), tally=(((100.0, 100.0, 100.0, 0.0, 0.0, 1.0),),)))
    tracker(block((1,), model=1, tally=(((100.0, 100.0, 0.0, 0.0, 0.0, 1.0),),)))

    scores = tracker.scores()
    assert round(scores[0]) == 1000
    assert 0 < scores[1] < 50


def started(counts, ranked=((True, True),)):
    """A run of one model with one tier and two tasks; earlier runs counted so many trials of each, all right."""
    tally = np.zeros((1, 1, 2, len(TALLY)))
    tally[0, 0, :, :3] = np.array(counts)[:, None]
    return Started(
        "run",
        "cube",
        400,
        sum(counts),
        ("a",),
        recorded=(sum(counts),),
        tallies=tally,
        ranked=np.array(ranked),
    )


def test_scores__count_what_earlier_runs_recorded():
    wrong = (((100.0, 100.0, 0.0, 0.0, 0.0, 1.0), (0.0,) * 6),)
    resumed, anew = Tracker(), Tracker()
    resumed(started((100, 100)))
    anew(started((0, 100)))

    assert round(resumed.scores()[0]) == 1000
    for tracker in (resumed, anew):
        tracker(block((0,), tally=wrong))
    assert resumed.scores()[0] > anew.scores()[0] + 50


def test_scores__are_none_until_every_task_has_trials():
    tracker = Tracker()
    tracker(started((100, 0)))
    assert tracker.scores() == {}

    tracker(block((0,), tally=(((0.0,) * 6, (8.0, 8.0, 8.0, 0.0, 0.0, 1.0)),)))
    assert tracker.scores().keys() == {0}

    other = Tracker()
    other(started((100, 0), ranked=((True, False),)))  # the other task has nothing to rank
    assert other.scores().keys() == {0}
