"""What an engine says of the pauses and slowdowns of its models."""

from types import SimpleNamespace

from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Learned, Slowdown
from evalcube.stages.infer.queue import HttpQueue

NOTHING = Learned()


class Taught(HttpQueue):
    """A queue that sends nothing, and has learned this of its endpoint."""

    report = None

    def __init__(self, pause=None, lessons=NOTHING):
        self.pause, self.feedback = pause, SimpleNamespace(lessons=lessons)

    def current_pause(self, now):  # noqa: ARG002 - the interface
        return self.pause


def engine_at(seconds, **queues):
    """An engine whose loop is not run, with a queue for each model."""
    engine = Engine.__new__(Engine)
    engine._loop = SimpleNamespace(time=lambda: seconds)
    engine._accounts, engine._queues, engine._lent = {name: name for name in queues}, queues, {}
    engine._reported, engine._counted = {}, {}
    return engine


def test_waiting__is_of_pauses_that_are_not_over():
    engine = engine_at(100.0, idle=Taught(), over=Taught((90.0, "429")), paused=Taught((130.0, "503")))

    assert engine.waiting() == {"paused": {"seconds": 30.0, "reason": "503"}}


def test_slowdowns__are_each_said_once():
    lessons = {"paused": Learned(0, 130.0, "503"), "over": Learned(0, 90.0, "503"), "overloaded": Learned(1)}
    engine = engine_at(100.0, idle=Taught(), **{name: Taught(lessons=each) for name, each in lessons.items()})

    assert engine.slowdowns() == [
        Slowdown("paused", 30.0, "503"),
        Slowdown("over"),
        Slowdown("overloaded", overload=True),
    ]
    assert engine.slowdowns() == []
