"""Blocks that workers died with, taken apart by a driver without a cluster."""

import numpy as np
import pytest
from distributed import KilledWorker
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.plan.targets import Block, Window
from evalcube.flows.run.worker import poison
from evalcube.flows.run.worker.poison import (
    KilledTaskError,
    PoisonIsolation,
    WorkerDiedError,
    is_killed,
    raise_if_failed,
    raise_unless_workers_died,
    run_marked,
)
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.regions import Region


class Done:
    """A future that is over."""

    def __init__(self, value=None, error=None):
        self.value, self.error = value, error
        self.status = "finished" if error is None else "error"

    def exception(self):
        return self.error


class Bench:
    """Runs what is submitted at once; trials of `deadly` kill."""

    def __init__(self, folder, deadly, *, quiet=True):
        self.deadly, self.quiet = set(deadly), quiet
        self.deaths = 0
        self.waiting = []
        self.isolation = PoisonIsolation(
            Directory(folder), self.submit, self.give_up, self.when_done, lambda: self.quiet
        )

    def submit(self, block, mark):
        if self.deadly.intersection(block.positions.tolist()):
            self.deaths += 1
            return Done(error=WorkerDiedError(mark))
        return Done(("done", block.positions.tolist()))

    def give_up(self, block):
        return Done(("given up", block.positions.tolist()))

    def when_done(self, future, handler):
        self.waiting.append((handler, future))

    def run(self):
        while self.waiting:
            handler, future = self.waiting.pop(0)
            handler(future)


def block(size):
    return Block(Window(Region(0, 0, 0), (1, 1, size, 1), 0, 0), 0, 0, np.arange(size))


def sorted_out(results):
    found = {"done": [], "given up": []}
    for _, future in results:
        kind, positions = future.value
        found[kind] += positions
    return {kind: sorted(positions) for kind, positions in found.items()}


@given(size=st.integers(1, 300), deadly=st.sets(st.integers(0, 299), max_size=4))
def test_add__gives_up_exactly_the_trials_that_kill(tmp_path_factory, size, deadly):
    deadly = {trial for trial in deadly if trial < size}
    bench, settled = Bench(tmp_path_factory.getbasetemp() / "none", deadly), []

    bench.isolation.add(block(size), settled.append)
    bench.run()

    assert len(settled) == 1
    assert sorted_out(settled[0]) == {"done": sorted(set(range(size)) - deadly), "given up": sorted(deadly)}
    # At most one death for the block, one for each of three cuts into eight, and one as proof, for each such trial.
    assert bench.deaths <= 5 * len(deadly)


def test_go_on__blames_no_trial_while_others_are_under_way(tmp_path):
    bench, settled = Bench(tmp_path / "none", {0}, quiet=False), []
    bench.isolation.add(block(2), settled.append)
    bench.run()
    assert not settled
    assert bench.isolation.wants_quiet

    bench.quiet = True
    bench.isolation.go_on()
    bench.run()

    assert sorted_out(settled[0]) == {"done": [1], "given up": [0]}
    assert not bench.isolation.wants_quiet


def test_add__passes_on_what_is_no_death(tmp_path):
    bench, settled = Bench(tmp_path / "none", ()), []
    broken = Done(error=OSError("disk full"))
    bench.submit = lambda *_: broken
    bench.isolation = PoisonIsolation(
        Directory(tmp_path), bench.submit, bench.give_up, bench.when_done, lambda: True
    )

    bench.isolation.add(block(4), settled.append)
    bench.run()

    assert [future for _, future in settled[0]] == [broken]


def test_add__asks_again_what_went_with_its_worker_after_it_was_done(tmp_path):
    bench, settled = Bench(tmp_path / "none", {3}), []
    first_done = []

    def submit(block, mark, submit=bench.submit):
        future = submit(block, mark)
        if future.error is None:
            first_done.append(future)
        # The worker that dies now held the first part's result, and the one that computed it again died, too.
        elif bench.deaths == 3:
            first_done[0].status, first_done[0].error = "error", WorkerDiedError("suspects/first")
        return future

    bench.isolation.submit = submit
    bench.isolation.add(block(8), settled.append)
    bench.run()

    assert len(settled) == 1
    assert not any(is_killed(future) for _, future in settled[0])
    assert sorted_out(settled[0]) == {"done": [0, 1, 2, 4, 5, 6, 7], "given up": [3]}


def test_add__settles_in_the_end_though_results_go_again_and_again(tmp_path):
    bench, settled = Bench(tmp_path / "none", ()), []

    class Vanishing(Done):
        """Done when it arrives, dead when it is needed."""

        looks = 0

        @property
        def status(self):
            self.looks += 1
            return "finished" if self.looks == 1 else "error"

        @status.setter
        def status(self, _):
            pass

    bench.isolation.submit = lambda *_: Vanishing(error=WorkerDiedError("suspects/0"))
    bench.isolation.add(block(1), settled.append)
    bench.run()

    assert len(settled) == 1
    raise_unless_workers_died(settled[0][0][1])
    with pytest.raises(KilledTaskError, match="workers die again and again"):
        raise_if_failed(settled[0][0][1])


def test_run_marked__a_worker_that_ends_in_good_order_leaves_no_mark(tmp_path, monkeypatch):
    records, mark = Directory(tmp_path), "suspects/0-infer"
    monkeypatch.setattr(poison, "_marks", poison._Marks())
    seen = []

    def task():
        seen.append(records.get(mark) is not None)
        poison.blame_nobody()
        seen.append(records.get(mark) is not None)

    run_marked(records, mark, task)
    run_marked(records, mark, task)  # one that begins after that is not to blame, either

    assert seen == [True, False, False, False]
    records.put(mark, b"")
    with pytest.raises(WorkerDiedError):
        run_marked(records, mark, task)


def test_run_marked__runs_once_until_it_ends_and_never_after_a_death(tmp_path):
    records, mark = Directory(tmp_path), "suspects/0-generate"

    assert run_marked(records, mark, int, "7") == 7
    assert run_marked(records, mark, int, "8") == 8
    with pytest.raises(ZeroDivisionError):
        run_marked(records, mark, divmod, 1, 0)
    records.put(mark, b"")
    with pytest.raises(WorkerDiedError):
        run_marked(records, mark, int, "9")


def test_is_killed__knows_dasks_own_word():
    assert is_killed(Done(error=KilledWorker("task", None, 3)))
    assert not is_killed(Done(error=OSError()))
    assert not is_killed(Done(1))
