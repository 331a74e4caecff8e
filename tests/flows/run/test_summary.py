"""Totals of a run from its events."""

import numpy as np

from evalcube.flows.run.events import BlockDone, Started, Traffic, process_at
from evalcube.flows.run.summary import Tracker


def block(key, **changes):
    fields = {"model": 0, "trials": 8, "cached": 3, "transport": 2, "missing": 0, "causes": {"timeout": 2}}
    return BlockDone(key=key, **{**fields, "tally": ((0, 0, 8, 6),), **changes})


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


def started(counts, base=32, ranked=((True, True), (True, False)), models=1):
    """A run of two tasks, of which a point is not ranked; earlier runs counted so many trials of each, all right."""
    tallies = np.repeat(np.array(counts, float)[:, :, None], 2, axis=2)
    return Started(
        "run",
        "cube",
        400,
        sum(map(sum, counts)),
        ("a", "b")[:models],
        tallies=np.stack([tallies] * models),
        ranked=np.array(ranked),
        base=np.full((2, 2), base) * np.array(ranked),
    )


def test_accuracies__are_means_over_tasks_with_the_points_weights():
    tracker = Tracker()
    tracker(started(((32, 0), (32, 0)), models=2))

    tracker(
        block((0,), tally=((0, 1, 320, 0),))
    )  # asked ten times as often as the first plan said, all wrong
    tracker(block((1,), model=1, tally=((0, 1, 32, 16), (1, 1, 99, 0))))

    assert tracker.accuracies() == {0: (0.5 + 1) / 2, 1: (0.75 + 1) / 2}


def test_accuracies__count_what_earlier_runs_recorded():
    resumed, anew = Tracker(), Tracker()
    resumed(started(((32, 16), (32, 0))))
    anew(started(((0, 16), (32, 0))))

    for tracker in (resumed, anew):
        tracker(block((0,), tally=((0, 0, 32, 0),)))

    assert resumed.accuracies() == {0: ((16 + 16) / (32 + 16) + 1) / 2}
    assert anew.accuracies() == {0: (16 / 48 + 1) / 2}


def test_accuracies__are_none_until_every_ranked_point_has_trials():
    tracker = Tracker()
    tracker(started(((32, 0), (32, 0))))  # each task has trials, and one of its points has none
    assert tracker.accuracies() == {}

    tracker(block((0,), tally=((0, 1, 1, 0),)))
    assert tracker.accuracies().keys() == {0}

    nothing = Tracker()
    nothing(started(((32, 32), (32, 32)), ranked=((False, False), (False, False))))
    assert nothing.accuracies() == {}


def test_tracker__counts_what_the_cache_saved_but_for_what_the_run_itself_had_paid():
    tracker = Tracker()

    tracker(block((0, 0, 0, 0), cached=4, found_again=1, saved=(400, 80)))
    tracker(block((1, 0, 0, 0), cached=0, saved=(0, 0), model=1))

    assert tracker.saved() == {0: (300.0, 60.0), 1: (0.0, 0.0)}
    assert tracker.cached == 3
