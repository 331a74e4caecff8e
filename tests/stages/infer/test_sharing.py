"""What is lent to workers: never more than declared, and what they can use."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.infer.controller import Pace
from evalcube.stages.infer.counts import Mark, shares
from evalcube.stages.infer.rates import Quota
from evalcube.stages.infer.sharing import Gate, Loan, Setting, Shared

QUOTA = Quota(12)


@given(st.integers(0, 300), st.lists(st.integers(0, 300), min_size=1, max_size=9))
def test_shares__are_the_window_and_nobody_lacks_what_another_has_too_much(window, wanted):
    named = {str(rank): number for rank, number in enumerate(wanted)}

    parts = shares(window, named)

    assert sum(parts.values()) == window
    assert min(parts.values()) >= (window >= len(wanted))
    if any(parts[name] > max(number, 1) for name, number in named.items()):
        assert all(parts[name] >= number for name, number in named.items())


class Worker:
    """One that asks as much as its gate allows, and hears of what was decided late, or twice, or in another order."""

    def __init__(self, name):
        self.name, self.gate = name, Gate()
        self.in_flight = self.wanted = 0
        self.inbox = []

    def start(self):
        self.in_flight = max(self.in_flight, min(self.wanted, self.gate.window))


class Cluster:
    """Workers that join, leave, hang and wake, and a driver that hears of them late."""

    def __init__(self, quota=QUOTA):
        self.now, self.quota, self.shared = 0.0, quota, Shared({"m": (quota, 600.0)}, ["m"])
        self.workers = {}
        self.silent = set()
        """Names of those that hang for so long that the driver does without them."""

    def join(self, name):
        self.workers.setdefault(name, Worker(name))
        self.decide()

    def leave(self, name):
        self.workers.pop(name, None)
        self.silent.discard(name)
        self.decide()

    def hang(self, name):
        if name in self.workers and len(self.workers) - len(self.silent) > 1:
            self.silent.add(name)
            self.workers[name].in_flight = 0  # answered by the endpoint, meanwhile
            self.decide()

    def wake(self, name):
        """Go on, with what came before and during the stop."""
        if name in self.silent:
            gate = self.workers[name].gate
            gate.stop(gate.stops + 1)
            self.hear(name)
            self.silent.discard(name)
            self.decide()

    def ask(self, name, wanted):
        if name in self.workers and name not in self.silent:
            worker = self.workers[name]
            worker.wanted = wanted
            worker.start()

    def end(self, name, number):
        if name in self.workers and name not in self.silent:
            worker = self.workers[name]
            worker.in_flight = max(worker.in_flight - number, 0)
            worker.start()

    def report(self, name):
        if name in self.workers and name not in self.silent:
            worker = self.workers[name]
            report = worker.gate.report(worker.in_flight, max(worker.wanted - worker.in_flight, 0))
            if report is not None:
                self.shared.hear(name, "m", report)

    def decide(self):
        self.now += 0.5
        present = [name for name in self.workers if name not in self.silent]
        decided = self.shared.decide(present, present, self.now, at_once=True).get("m")
        number = self.shared.count(present, present)
        for name in present:
            self.workers[name].inbox.append((number, decided))

    def hear(self, name, place=0):
        """Take one message of those on the way, or all."""
        worker = self.workers.get(name)
        if worker is None or name in self.silent:
            return
        for number, setting in [worker.inbox.pop(place % len(worker.inbox))] if worker.inbox else []:
            if number != worker.gate._workers:
                worker.gate.resize(self.quota.first, self.quota.connections, 600.0, self.now, number)
            if setting is not None:
                worker.gate.obey(setting, self.now, name)
            worker.start()

    def settle(self):
        for _ in range(12):
            self.now += 6.0
            self.decide()
            for name, worker in self.workers.items():
                while worker.inbox:
                    self.hear(name)
                self.report(name)
                worker.in_flight = 0
                worker.start()

    def held(self):
        """Connections that workers have or use, and their part of the rates."""
        awake = [worker for name, worker in self.workers.items() if name not in self.silent]
        return (
            sum(max(worker.gate.window, worker.in_flight) for worker in awake),
            sum(worker.gate.rate for worker in awake),
        )


names = st.sampled_from("abcd")
steps = st.one_of(
    st.tuples(st.just("join"), names),
    st.tuples(st.sampled_from(["hear", "report"]), names),
    st.tuples(st.just("ask"), names, st.integers(0, 16)),
    st.tuples(st.sampled_from(["leave", "hang", "wake"]), names),
    st.tuples(st.just("end"), names, st.integers(0, 16)),
    st.tuples(st.just("hear"), names, st.integers(0, 3)),
    st.tuples(st.just("decide")),
)


@settings(max_examples=100)
@given(st.integers(1, 12), st.lists(steps, min_size=10, max_size=60))
def test_shared__what_workers_hold_is_never_more_than_declared_and_all_of_it_in_the_end(connections, actions):
    cluster = Cluster(Quota(connections, 600.0))

    for action, *arguments in actions:
        getattr(cluster, action)(*arguments)
        held, rate = cluster.held()
        assert held <= connections
        assert rate <= 1.0 + 1e-9

    for name in sorted(cluster.silent):
        cluster.wake(name)
    cluster.settle()
    if cluster.workers:
        held, rate = cluster.held()
        assert (held, rate) == (connections, pytest.approx(1.0))


def three_workers(*wanted):
    cluster = Cluster()
    for name, number in zip("abc", wanted, strict=True):
        cluster.join(name)
        cluster.ask(name, number)
    return cluster


def test_shared__what_one_worker_cannot_use_goes_to_others():
    cluster = three_workers(16, 16, 0)

    cluster.settle()

    assert [worker.gate.window for worker in cluster.workers.values()] == [5, 6, 1]


def test_shared__fewer_connections_than_workers_go_to_those_that_have_work():
    cluster = Cluster(Quota(2))
    for name, wanted in zip("abcd", (0, 16, 0, 16), strict=True):
        cluster.join(name)
        cluster.ask(name, wanted)

    cluster.settle()

    assert [worker.gate.window for worker in cluster.workers.values()] == [0, 1, 0, 1]


def test_gate__after_a_stop_starts_nothing_before_the_driver_has_answered():
    cluster = three_workers(4, 4, 4)
    cluster.settle()
    worker = cluster.workers["a"]
    cluster.decide()
    before = cluster.shared.settings["m"]

    worker.gate.stop(1)
    worker.gate.obey(before, cluster.now, "a")  # it was on its way

    assert worker.gate.window == 0
    assert worker.gate.report(3, 0).held.connections == 3  # they are on their way
    cluster.report("a")
    cluster.decide()
    cluster.hear("a", -1)
    assert worker.gate.window == worker.gate.report(3, 0).held.connections == 4


def test_shared__what_a_worker_counted_before_it_was_started_again_stays_counted(monkeypatch):
    seen, shared = [], Shared({"m": (Quota(4), 600.0)}, ["m"])
    monkeypatch.setattr(
        "evalcube.stages.infer.controller.Controller.look",
        lambda *seconds_and_counts: seen.append(seconds_and_counts[2].all_sent),
    )

    for now, sent in enumerate((10, 4, 3, 5)):
        gate = Gate()
        gate.resize(4, 4, 600.0, 0.0, 2)
        gate.counts.all_sent = sent
        shared.hear("a", "m", gate.report(0, 0))
        shared.decide(["a", "b"], ["a", "b"], float(now))

    assert seen == [10, 14, 17, 19]


def test_shared__turns_at_a_pace_are_for_those_who_have_work():
    shared = Shared({"m": (Quota(128, start=16), 600.0)}, ["m"])
    gates = {name: Gate() for name in ("busy", "idle")}
    shared.decide(list(gates), list(gates), 0.0)
    for name, gate in gates.items():
        gate.resize(16, 128, 600.0, 0.0, 2)
        gate.counts.sent = gate.counts.all_sent = 100
        gate.counts.refused = gate.counts.all_refused = 40
        shared.hear(name, "m", gate.report(0, 0 if name == "idle" else 9))

    setting = shared.decide(list(gates), list(gates), 3.0)["m"]

    assert setting.pace is not None
    assert setting.turns == ("busy",)


def test_gate__takes_the_same_turns_whatever_its_clock_says():
    setting = Setting(1, 8, Pace(4.0, 100.0, 0.0), None, dict.fromkeys("ab", Loan(4, 1.0)), ("a", "b"), 1)
    waits = []
    for offset in (0.0, 30.25, -30.25):
        gate = Gate()
        gate.offset = offset
        gate.resize(4, 8, 600.0, 0.0, 2)
        gate.obey(setting, 100.0 - offset, "b")
        waits.append([gate.wait(now - offset) for now in (100.0, 100.125, 100.25)])

    assert waits[0] == [0.25, 0.125, 0.0]
    assert waits[1] == waits[2] == waits[0]


@pytest.fixture
def gate():
    """A worker's gate, one of two, that was lent 5 of 8 connections."""
    gate = Gate()
    gate.resize(4, 8, 600.0, 0.0, 2)
    gate.obey(Setting(gate.epoch, 8, None, None, {"a": Loan(3, 0.5), "b": Loan(5, 0.5)}, (), 1), 0.0, "b")
    return gate


def test_gate__counts_what_it_sends_and_what_becomes_of_it(gate):
    for start in range(5):
        gate.start(float(start))
    for started, in_flight, now in ((0.0, 2, 1.5), (1.0, 4, 3.0), (2.0, 5, 5.0)):
        gate.note_passed(now, Mark(started, in_flight, gate.epoch), 10.0 if in_flight > 2 else 0.0)
    gate.note_passed(9.0, Mark(3.0, 8, gate.epoch + 1), 50.0)  # of another epoch
    for started, in_flight, now, pause in ((3.0, 5, 3.5, 0.0), (3.0, 4, 5.0, 7.0), (4.0, 6, 5.0, 2.0)):
        gate.note_refused(now, Mark(started, in_flight, gate.epoch), pause)
    gate.note_refused(9.0, Mark(0.0, 1, gate.epoch - 1), 99.0)

    counts = gate.counts
    assert (counts.sent, counts.passed, counts.refused, counts.most_passed, counts.least_refused) == (
        5,
        3,
        3,
        5,
        4,
    )
    assert (counts.answers, counts.waited, counts.tokens) == (2, 2.0 + 3.0, 20.0)  # with the window 4/5 full
    assert (counts.pause, counts.delay) == (7.0, 2.0)
    assert (counts.all_sent, counts.all_passed, counts.all_refused) == (5, 4, 4)


def test_gate__counts_an_answer_whose_tokens_nobody_told_as_one(gate):
    gate.note_passed(1.0, Mark(0.0, 5, gate.epoch), 0.0)

    assert gate.counts.tokens == 1.0


def test_gate__tells_the_first_overload_of_an_epoch(gate):
    mark = Mark(0.0, 5, gate.epoch)

    assert not gate.note_overload(1.0, mark._replace(epoch=mark.epoch + 1))
    assert [gate.note_overload(1.0, mark) for _ in range(3)] == [True, False, False]
    assert gate.counts.overloads == 3


def test_gate__of_several_workers_starts_slowly_while_all_are_refused(gate):
    gate.start(10.0)
    for _ in range(8):
        assert gate.wait(10.0) == 0.0
        gate.note_refused(10.0, Mark(10.0, 1, gate.epoch), 0.0)

    assert gate.is_braked
    assert [gate.wait(now) for now in (10.0, 10.1, 10.5)] == pytest.approx([0.25, 0.15, 0.0])
    gate.note_passed(10.5, Mark(10.0, 1, gate.epoch), 1.0)
    assert not gate.is_braked
    alone = Gate()
    alone.resize(4, 8, 600.0, 0.0)
    for _ in range(8):
        alone.note_refused(0.0, Mark(0.0, 1, alone.epoch), 0.0)
    assert not alone.is_braked


def test_gate__takes_its_place_among_all_and_no_more_than_it_may(gate):
    assert (gate.window, gate.rate, gate.phase) == (5, 0.5, 0.5)
    small = Gate()
    small.resize(2, 4, 600.0, 0.0, 2)
    small.obey(Setting(1, 8, None, None, {"a": Loan(5, 0.5), "b": Loan(3, 0.5)}, (), 1), 0.0, "a")

    assert (small.window, small.phase) == (4, 0.0)
    gate.obey(Setting(1, 8, None, None, {"b": Loan(1, 0.1)}, (), 0), 0.0, "b")  # overtaken
    assert gate.window == 5
    gate.obey(Setting(1, 8, None, None, {"a": Loan(8, 1.0)}, (), 1), 0.0, "b")  # names it not
    assert (gate.window, gate.rate) == (0, 0.0)


def test_report__says_what_is_wanted_and_what_may_be_in_flight(gate):
    report = gate.report(3, 9)

    assert (report.wanted, report.held.connections, report.held.rate, report.number) == (8, 5, 0.5, 1)
    assert gate.report(3, 1).wanted == 4
    assert gate.report(7, 0).held.connections == 7
    alone = Gate()
    alone.resize(4, 8, 600.0, 0.0)
    assert alone.report(3, 9) is None
    alone.stop(1)
    assert alone.report(3, 9) is not None
    gate.resize(4, 8, 600.0, 0.0, 0)  # no member
    assert (gate.report(3, 9).wanted, gate.window) == (0, 0)


def test_gate__alone_decides_by_its_own_counts_and_lessens_what_it_starts_at_overload():
    gate = Gate()
    gate.resize(8, 64, 600.0, 0.0)
    for _ in range(8):
        gate.start(0.0)

    changed = gate.note_overload(1.0, Mark(0.0, 8, gate.epoch))

    assert changed
    assert gate.window < 8
    assert gate.epoch > 1


def test_gate__asks_the_driver_before_it_goes_on_by_itself():
    gate = Gate()
    gate.resize(8, 64, 600.0, 0.0)
    gate.stop(1)

    gate.resize(8, 64, 600.0, 0.0)
    gate.note_overload(1.0, Mark(0.0, 8, gate.epoch))

    assert gate.window == 0
    gate.obey(Setting(1, 8, None, None, {"a": Loan(8, 1.0, 1)}, (), 1), 2.0, "a")
    assert (gate.window, gate.rate) == (int(gate.controller.window), 1.0)


def test_gate__doubles_the_window_with_each_round_of_answers_that_come_at_once():
    gate, in_flight, windows = Gate(), deque(), []
    gate.resize(16, 256, 600.0, 0.0)

    for number in range(7):
        now = 0.5 * number
        for _ in range(len(in_flight) + 1):
            while len(in_flight) < gate.window:
                gate.start(now)
                in_flight.append(Mark(now, len(in_flight) + 1, gate.epoch))
            if in_flight[0].started < now:
                gate.note_passed(now, in_flight.popleft(), 10.0)
        windows.append(gate.window)

    assert windows == [16, 32, 32, 64, 128, 256, 256]
