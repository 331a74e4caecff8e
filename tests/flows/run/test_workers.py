"""How soon a worker that joins late has its share, and what that costs, by a clock that nobody waits for."""

from types import SimpleNamespace

import pytest
from distributed import LocalCluster

from evalcube.deploy.clusters import Connection
from evalcube.deploy.clusters.code import State
from evalcube.deploy.clusters.registrar import ClusterView, Registrar
from evalcube.flows.events import Noted
from evalcube.flows.run import workers
from evalcube.flows.run.preflight import Members
from evalcube.flows.run.sweep import run
from evalcube.flows.run.workers import Workers
from evalcube.stages.infer.jobs import Slowdown
from tests.flows.run.parts import run_parts
from tests.flows.support import sweep_config

LOOP_SECONDS = 0.25
"""In which a driver that has nothing else to do comes round again."""


def answered(value):
    return SimpleNamespace(done=True, answer=lambda: value)


class Late:
    """A cluster of workers that join and get ready at given times."""

    def __init__(self, clock, **times):
        self.clock, self.times = clock, times
        self.asked = 0

    def look(self):
        there = {name: name for name, (joins, _) in self.times.items() if joins <= self.clock[0]}
        return answered(ClusterView(there, {}))

    def states(self, name, there):  # noqa: ARG002 - the interface
        self.asked += len(there)
        return answered({one: State(self.times[one][1] <= self.clock[0], "", one) for one in there})

    def allow(self, name, addresses, silent=()):  # noqa: ARG002
        return answered(None)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def told(monkeypatch, clock):
    """When each worker was first told its share, and how often any was."""
    found = SimpleNamespace(first={}, times=0)

    def ask_each(client, function, name, *arguments, workers):  # noqa: ARG001 - the interface
        for one in workers:
            found.first.setdefault(one, clock[0])
        found.times += len(workers)
        return dict.fromkeys(workers, True)

    monkeypatch.setattr(workers, "ask_each", ask_each)
    monkeypatch.setattr(workers, "PendingAnswer", lambda _, value: answered(value))
    return found


def follow(code, clock, seconds):
    connection = Connection(None, code)
    connection.tend = lambda _: ()
    followed = Workers(run_parts(connection, admission=Members(code, "run")), ())
    end = clock[0] + seconds
    while clock[0] < end:
        followed.poll()
        clock[0] += LOOP_SECONDS


@pytest.mark.parametrize("late", [1.0, 1.1, 1.3, 1.7, 2.2, 2.9])
def test_workers__one_that_joins_late_has_its_share_within_a_second_of_being_ready(clock, told, late):
    ready = 104.0 + late
    code = Late(clock, first=(0.0, 0.0), late=(104.0, ready))

    follow(code, clock, 15.0)

    assert told.first["first"] == 100.0 + LOOP_SECONDS
    assert 0.0 <= told.first["late"] - ready <= 0.75


def test_workers__many_that_join_are_asked_and_told_no_more_than_some_hundred_times_a_second(clock, told):
    many = {f"w{number}": (100.0, 105.0 + number / 70) for number in range(700)}  # ready within 10 s

    code = Late(clock, first=(0.0, 0.0), **many)
    follow(code, clock, 18.0)

    assert told.first.keys() == {"first", *many}
    assert code.asked / 15 <= 500  # until the last is ready
    assert told.times / 15 <= 500


@pytest.mark.cluster
def test_run__begins_on_a_cluster_that_adapts_from_no_worker_and_calls_no_retired_one_a_crash(
    tmp_path, simulator
):
    notes = []
    config = sweep_config(tmp_path, simulator.base_url, trials=2)

    with LocalCluster(
        n_workers=0, processes=False, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        summary = run(config, cluster=cluster, subscribers=[notes.append])

    assert (summary.reason, summary.done) == ("complete", 10)
    assert not [note for note in notes if isinstance(note, Noted) and "ended" in note.message]


@pytest.mark.parametrize("opened", [True, False])
def test_slow_down__is_taken_over_from_other_workers_by_those_that_take_part(monkeypatch, opened):
    slowdowns = []
    workspace = SimpleNamespace(slow_down=slowdowns.append)
    monkeypatch.setattr(workers, "workspace_on", lambda *_: workspace if opened else None)

    workers._slow_down("run", [Slowdown(name, worker=name) for name in "ab"], SimpleNamespace(address="a"))

    assert slowdowns == [Slowdown("b", worker="a")] * opened


@pytest.mark.parametrize(("told", "crashes"), [(True, 0), (False, 1)])
def test_registrar__counts_workers_that_nobody_told_to_go(told, crashes):
    registrar = Registrar("run", "client", "group", [], (), "")

    registrar.log_event("all", {"action": "remove-worker", "expected": told})
    registrar.log_event("all", {"action": "add-worker"})
    registrar.log_event("tcp://a:1", {"action": "remove-worker", "expected": False})

    assert registrar.crashes == crashes
