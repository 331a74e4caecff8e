"""Workers that hang or are paused, as a scheduler that is looked at shows them."""

import pytest

from evalcube.deploy.clusters.registrar import ClusterView, Queue
from evalcube.flows.run.health import Health, Queueing


class Looked:
    """A run's workers, looked at once a second."""

    def __init__(self):
        self.notes, self.now = [], 100.0
        self.health = Health(self.notes.append, str)

    def look(self, seconds, *, heard=(), quiet=(), paused=(), step=1.0):
        """Look for so long; those that are heard of report each second."""
        for _ in range(round(seconds / step)):
            self.now += step
            seen = dict.fromkeys(quiet, 1.0) | dict.fromkeys(heard, self.now)
            view = ClusterView(dict.fromkeys(seen, ""), {}, seen, frozenset(paused))
            self.health.see(view, self.now)


@pytest.fixture
def looked():
    return Looked()


def test_health__names_who_is_silent_within_15_seconds_and_moves_its_blocks_within_a_minute(looked):
    looked.look(2, heard="a", quiet="b")
    looked.look(12, heard="a", quiet="b")

    assert ["worker b " in note and "10 s" in note for note in looked.notes] == [True]
    assert (looked.health.doubtful, looked.health.aside) == (["b"], frozenset())

    looked.look(30, heard="a", quiet="b")

    assert ["worker b still" in note for note in looked.notes[1:]] == [True]
    assert looked.health.aside == looked.health.silent == {"b"}

    looked.look(2, heard="ab")

    assert looked.notes[2:] == ["worker b responds again"]
    assert looked.health.aside == frozenset()


def test_health__who_answers_a_question_does_not_hang(looked):
    for _ in range(20):
        looked.look(6, heard="a", quiet="b")
        looked.health.note_answers(["b", "gone"])

    assert looked.notes == []


def test_health__a_driver_that_was_stopped_does_not_take_workers_for_hung(looked):
    looked.look(2, heard="a", quiet="b")
    looked.look(3600, heard="a", quiet="b", step=3600)

    assert looked.notes == []


def test_health__nothing_is_moved_where_nobody_is_left(looked):
    looked.look(60, quiet="a")

    assert "worker a still" in looked.notes[-1]
    assert "no other" in looked.notes[-1]
    assert looked.health.aside == frozenset()


def test_health__a_pause_counts_when_it_lasts(looked):
    looked.look(3, heard="ab", paused="b")
    looked.look(3, heard="ab")
    assert looked.health.aside == frozenset()

    looked.look(8, heard="ab", paused="b")
    assert (looked.health.aside, looked.health.silent) == ({"b"}, frozenset())
    looked.look(1, heard="ab")

    assert looked.health.aside == frozenset()
    assert ["paused worker b," in looked.notes[0], "no longer" in looked.notes[1]] == [True, True]
    assert len(looked.notes) == 2


def test_queueing__says_once_that_it_waits_behind_others_and_that_it_goes_on():
    notes = []
    queueing = Queueing(notes.append)

    for now in range(20):
        queueing.see(Queue(0, 4, 100), float(now))
    assert queueing.behind
    queueing.see(Queue(1, 3, 100), 20.0)

    assert not queueing.behind
    assert ["100 tasks" in notes[0], "continues" in notes[1]] == [True, True]
    assert len(notes) == 2


@pytest.mark.parametrize("queue", [Queue(1, 4, 9), Queue(0, 0, 9), Queue(0, 4, 0)])
def test_queueing__is_not_behind_others_while_it_works_or_is_alone(queue):
    queueing = Queueing(pytest.fail)

    for now in range(20):
        queueing.see(queue, float(now))

    assert not queueing.behind
