"""What is foretold of runs, on recorded events and a clock that follows them."""

import gzip
from pathlib import Path

import pytest

from benchmarks.eta import KEPT, SCENARIOS, foretold
from evalcube.flows.run.events import Asked, BlockDone, Started, Traffic
from evalcube.flows.run.progress import Progress
from evalcube.flows.run.summary import Tracker


def recorded(name):
    return gzip.decompress((Path(KEPT) / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()


@pytest.mark.parametrize("name", SCENARIOS)
def test_progress__foretells_the_end_from_a_third_on(name):
    end, looks = foretold(recorded(name))

    late = [(at, eta) for at, eta, _ in looks if at >= end / 3]
    assert len(late) > 20
    assert all(eta is not None for _, eta in late)
    assert max(abs(at + eta - end) / end for at, eta in late) < 0.2


@pytest.mark.parametrize("name", SCENARIOS)
def test_progress__foretells_the_cost_from_a_third_on(name):
    end, looks = foretold(recorded(name))

    costs = [usd for at, _, usd in looks if at >= end / 3]
    assert None not in costs
    assert costs[-1] > 0
    assert max(abs(usd / costs[-1] - 1) for usd in costs) < 0.2


class Clock:
    """Runs ahead by half a second at a time, at each of which the progress is looked at."""

    def __init__(self, *asked):
        self.time = 0.0
        self.progress = Progress(Tracker(lambda: self.time))
        names = tuple(one.model for one in asked)
        self.progress(Started("r", "c", sum(one.trials for one in asked), 0, names, asked=asked))

    def until(self, time, counts):
        while self.time < time:
            self.time += 0.5
            answered = {name: int(count(self.time)) for name, count in counts.items()}
            self.progress(Traffic(answered=answered, replies=sum(answered.values()), worker="w"))
            self.progress.look()
        return self.progress.now()


def test_eta__is_that_of_the_slowest_endpoint_and_models_of_one_share_it():
    clock = Clock(Asked("a", 100, 100, 0, 4), Asked("b", 100, 100, 1, 4), Asked("c", 100, 100, 1, 4))

    now = clock.until(40, {"a": lambda t: min(100, 5 * t), "b": lambda t: t, "c": lambda t: t / 2})

    assert now.eta == pytest.approx((200 - 60) / 1.5, rel=0.05)
    assert now.connections == 4
    assert [model.done for model in now.models] == [100, 40, 20]


def test_eta__goes_by_the_last_half_where_a_run_became_faster():
    clock = Clock(Asked("a", 1000, 1000, 0, 4))

    now = clock.until(100, {"a": lambda t: t if t < 50 else 50 + 10 * (t - 50)})

    assert now.eta == pytest.approx(450 / 10, rel=0.1)


def test_eta__answers_of_the_cache_at_the_beginning_are_forgotten():
    clock = Clock(Asked("a", 1000, 1000, 0, 4))
    clock.progress(BlockDone((0,), 0, trials=500, cached=500, transport=0, missing=0))

    now = clock.until(60, {"a": lambda t: 2 * t})

    assert now.eta == pytest.approx((500 - 120) / 2, rel=0.05)


def test_eta__is_unknown_at_first_and_0_at_the_end():
    clock = Clock(Asked("a", 10, 10, 0, 4))
    assert clock.progress.now().eta is None

    assert clock.until(2, {"a": lambda t: t}).eta is None
    assert clock.until(20, {"a": lambda t: min(t, 10)}).eta == 0.0


def test_eta__what_failed_for_good_is_not_waited_for():
    clock = Clock(Asked("a", 100, 100, 0, 4))
    clock.until(20, {"a": lambda t: t})
    clock.progress(BlockDone((0,), 0, trials=20, cached=0, transport=80, missing=0))
    clock.progress.look()

    assert clock.progress.now().eta == 0.0


def test_progress__long_runs_keep_few_looks_and_the_right_pace():
    clock = Clock(Asked("a", 100_000, 100_000, 0, 4))

    now = clock.until(5000, {"a": lambda t: 4 * t})

    assert len(clock.progress._looks) <= 601
    assert now.eta == pytest.approx(80_000 / 4, rel=0.05)
    assert now.models[0].rate == pytest.approx(4, rel=0.2)
