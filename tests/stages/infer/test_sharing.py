"""Parts of a window that follow what workers can use."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.counts import Mark
from evalcube.stages.infer.sharing import Gate, Shared, shares

WORKERS, CONNECTIONS = 3, 12


@given(st.integers(1, 300), st.lists(st.integers(0, 300), min_size=1, max_size=6))
def test_shares__are_the_window_and_nobody_lacks_what_another_has_too_much(window, wanted):
    named = {str(rank): number for rank, number in enumerate(wanted)}

    found = shares(window, named)

    assert all(part >= 1 for part in found.values())
    assert min(window - len(wanted) + 1, sum(wanted)) <= sum(found.values()) <= max(window, len(wanted))
    if any(found[name] > max(number, 1) for name, number in named.items()):
        assert all(found[name] >= number for name, number in named.items())


class Cluster:
    """Workers that share a declared number of connections, and a driver that hears of them half a second late."""

    def __init__(self):
        self.now, self.shared = 0.0, Shared()
        self.names = [str(rank) for rank in range(WORKERS)]
        self.gates = [Gate() for _ in self.names]
        self.in_flight = [0] * WORKERS
        self.on_the_way = [deque() for _ in self.names]
        for rank, gate in enumerate(self.gates):
            part = CONNECTIONS // WORKERS
            gate.resize(part, part, 600.0, 0.0, WORKERS, rank)

    def tell(self, delays):
        """One report of each worker and one decision; what was decided reaches a worker after so many more."""
        self.now += 0.5
        for name, gate, number, wanted in zip(
            self.names, self.gates, self.in_flight, self.wanted, strict=True
        ):
            self.shared.hear(name, "m", gate.report(number, max(wanted - number, 0)), self.now)
        decided = self.shared.decide(self.names, self.now).get("m")
        for rank, delay in enumerate(delays):
            if decided is not None:
                self.on_the_way[rank].append([delay, decided])
            while self.on_the_way[rank] and self.on_the_way[rank][0][0] <= 0:
                self.gates[rank].obey(self.on_the_way[rank].popleft()[1], self.now, self.names[rank])
            for message in self.on_the_way[rank]:
                message[0] -= 1

    def ask(self, wanted, ended):
        """Have some requests end, and others start as far as the windows go."""
        self.wanted = wanted
        for rank, gate in enumerate(self.gates):
            left = max(self.in_flight[rank] - ended[rank], 0)
            self.in_flight[rank] = max(left, min(wanted[rank], gate.window))


three = st.tuples(*[st.integers(0, 16)] * WORKERS)


@given(st.lists(st.tuples(three, three, st.tuples(*[st.integers(0, 3)] * WORKERS)), max_size=30))
def test_shared__connections_that_are_declared_are_never_exceeded(steps):
    cluster = Cluster()

    for wanted, ended, delays in steps:
        cluster.ask(wanted, ended)
        cluster.tell(delays)
        cluster.ask(wanted, (0, 0, 0))

        held = [
            max(gate.window, number) for gate, number in zip(cluster.gates, cluster.in_flight, strict=True)
        ]
        assert sum(held) <= CONNECTIONS


def test_shared__what_one_worker_cannot_use_goes_to_others_within_two_reports():
    cluster = Cluster()
    cluster.ask((16, 16, 16), (0, 0, 0))
    cluster.tell((0, 0, 0))

    for _ in range(3):
        cluster.ask((16, 16, 0), (4, 4, 4))
        cluster.tell((0, 0, 0))

    assert [gate.window for gate in cluster.gates] == [5, 6, 1]


def test_shared__what_a_worker_counted_before_it_was_started_again_stays_counted(monkeypatch):
    seen, shared = [], Shared()
    monkeypatch.setattr(
        "evalcube.stages.infer.controller.Controller.look",
        lambda *seconds_and_counts: seen.append(seconds_and_counts[2].all_sent),
    )

    for now, sent in enumerate((10, 4, 3, 5)):
        gate = Gate()
        gate.resize(4, 4, 600.0, 0.0, 2)
        gate.counts.all_sent = sent
        shared.hear("a", "m", gate.report(0, 0), float(now))
        shared.decide(["a", "b"], float(now))

    assert seen == [10, 14, 17, 19]


def test_shared__turns_at_a_pace_are_for_those_who_have_work():
    shared, gates = Shared(), {name: Gate() for name in ("busy", "idle")}
    for rank, gate in enumerate(gates.values()):
        gate.resize(8, 128, 600.0, 0.0, 2, rank)
        gate.counts.sent = gate.counts.all_sent = 100
        gate.counts.refused = gate.counts.all_refused = 40
        shared.hear(list(gates)[rank], "m", gate.report(0, 0 if gate is gates["idle"] else 9), 2.0)

    setting = shared.decide(list(gates), 3.0)["m"]

    assert setting.pace is not None
    assert setting.turns == ("busy",)


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
                gate.passed(now, in_flight.popleft(), 10.0)
        windows.append(gate.window)

    assert windows == [16, 32, 32, 64, 128, 256, 256]
