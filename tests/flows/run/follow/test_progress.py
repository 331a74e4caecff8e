"""How far a run is, how fast, and when it will be done, by a clock that follows the events."""

import pytest

from evalcube.flows.events import Asked, BlockDone, Started, Traffic
from evalcube.flows.run.follow.progress import Tracker


class Clock:
    """Runs ahead by half a second at a time, at each of which the progress is looked at."""

    def __init__(self, *asked, **fields):
        self.time = 0.0
        self.tracker = Tracker(lambda: self.time)
        names = tuple(one.model for one in asked)
        self.tracker(Started("r", "c", sum(one.trials for one in asked), 0, names, asked=asked, **fields))

    def until(self, time, counts):
        while self.time < time:
            self.time += 0.5
            answered = {name: int(count(self.time)) for name, count in counts.items()}
            replies = sum(answered.values())
            spans = dict.fromkeys(counts, (0.0, self.time))
            self.tracker(
                Traffic(
                    answered=answered,
                    replies=replies,
                    sent=replies,
                    active=self.time,
                    asked=spans,
                    worker="w",
                )
            )
            self.tracker.progress()
        return self.tracker.progress()


def test_eta__is_that_of_the_slowest_model():
    clock = Clock(Asked("a", 100, 100), Asked("b", 100, 100), Asked("c", 100, 100))

    now = clock.until(40, {"a": lambda t: min(100, 5 * t), "b": lambda t: t, "c": lambda t: t / 2})

    assert now.eta == pytest.approx((100 - 20) / 0.5, rel=0.05)
    assert [model.done for model in now.models] == [100, 40, 20]


def test_eta__answers_of_the_cache_say_nothing_of_the_pace():
    clock = Clock(Asked("a", 1000, 1000))
    clock.tracker(BlockDone((0,), 0, trials=500, cached=500, transport=0, missing=0))

    now = clock.until(60, {"a": lambda t: 2 * t})

    assert now.done == 620
    assert now.eta == pytest.approx((500 - 120) / 2, rel=0.05)


def test_eta__is_unknown_before_the_first_answer_and_0_at_the_end():
    clock = Clock(Asked("a", 10, 10))
    assert clock.tracker.progress().eta is None

    assert clock.until(20, {"a": lambda t: min(t, 10)}).eta == 0.0


def test_eta__what_failed_for_good_is_not_waited_for():
    clock = Clock(Asked("a", 100, 100))
    clock.until(20, {"a": lambda t: t})

    clock.tracker(BlockDone((0,), 0, trials=20, cached=0, transport=80, missing=0))

    assert clock.tracker.progress().eta == 0.0
    assert clock.tracker.progress().done == 20


def test_rates__are_those_since_the_first_request():
    clock = Clock(Asked("a", 1000, 1000))
    clock.time = 10.0

    clock.tracker(
        Traffic(sent=9, replies=30, answered={"a": 30}, active=8.0, asked={"a": (0.0, 8.0)}, worker="w")
    )
    clock.time = 12.0

    now = clock.tracker.progress()
    assert now.replies == now.models[0].rate == pytest.approx(3)
    assert now.eta == pytest.approx(970 / 3)


def test_usd__adds_judges():
    clock = Clock(Asked("m", 10, 10), prices={"m": (0, 1e6), "judge": (0, 1e6)})

    clock.tracker(Traffic(usage={"m": (0, 10), "judge": (0, 4)}, worker="w"))

    assert clock.tracker.progress().usd == 14
