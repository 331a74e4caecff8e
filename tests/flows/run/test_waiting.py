"""Waiting for a cluster's first workers."""

import itertools
from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters import ClusterError, Connection, ExistingScheduler
from evalcube.deploy.clusters.code import EVERYBODY, WorkerChoice
from evalcube.deploy.clusters.registrar import ClusterView
from evalcube.flows.events import Noted
from evalcube.flows.run import cluster, workers
from evalcube.flows.run.cluster import wait_for_workers
from tests.flows.run.parts import run_parts
from tests.flows.shared_cluster import PROCESSES
from tests.flows.support import sweep_config


class Lease:
    checks = 0

    def check(self):
        self.checks += 1


class Seen:
    """What is seen of a cluster, one look after another."""

    def __init__(self, workers):
        self.workers = iter(workers)
        self.choice = EVERYBODY

    def look(self):
        view = ClusterView(next(self.workers), {})
        return SimpleNamespace(done=True, answer=lambda: view)


class Queue(Connection):
    def __init__(self, notes=(), workers=()):
        super().__init__(None, Seen(workers))
        self.notes = iter(notes)

    def tend(self, present):  # noqa: ARG002 - the interface
        return [text for text in [next(self.notes, "")] if text]


@pytest.fixture
def clock(monkeypatch):
    """Seconds pass by sleeping only."""
    now = [0.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))


def arriving(*counts):
    """Looks at a cluster that has so many workers, one look after another."""
    there = itertools.chain(counts, itertools.repeat(counts[-1]))
    return ({f"tcp://{i}": "" for i in range(count)} for count in there)


@pytest.mark.usefixtures("clock")
def test_wait_for_workers__keeps_the_lease_and_says_that_it_waits():
    lease, notes = Lease(), []

    found = wait_for_workers(
        ExistingScheduler("a", patience=3600, minimum=2),
        Queue(["2 jobs wait: Resources"], arriving(*[0] * 1500, 1, 2)),
        lease,
        notes.append,
    )

    assert found == ["tcp://0", "tcp://1"]
    assert lease.checks > 1500
    assert notes[0] == "2 jobs wait: Resources"
    assert [": 0 of 2 " in note for note in notes[1:]] == [True, True]


@pytest.mark.usefixtures("clock")
def test_wait_for_workers__ends_after_the_patience():
    cluster, notes = ExistingScheduler("a", patience=90, minimum=3), []
    with pytest.raises(ClusterError, match="for 90 s"):
        wait_for_workers(cluster, Queue(workers=arriving(0)), Lease(), notes.append)

    assert len(wait_for_workers(cluster, Queue(workers=arriving(2)), Lease(), notes.append)) == 2
    assert "2 workers of" in notes[-1]


def test_workers__what_tending_finds_reaches_the_user(monkeypatch):
    notes = []
    monkeypatch.setattr(workers.Workers, "_share_out", lambda _: None)

    workers.Workers(run_parts(Queue(["job 4 is replaced"], [{"a": "job-1"}]), notes.append), ()).poll()

    assert [note.message for note in notes] == ["job 4 is replaced"]


def test_workers__of_a_cluster_that_replaces_them_come_and_go_without_a_note(monkeypatch):
    notes = []
    monkeypatch.setattr(workers, "_POLL_SECONDS", -1.0)
    monkeypatch.setattr(workers.Workers, "_share_out", lambda _: None)
    replaced = Queue(workers=({f"{number}": ""} for number in range(100)))
    replaced.replaces = True

    of_a_batch_system = workers.Workers(run_parts(replaced, notes.append), ())
    for _ in range(12):
        of_a_batch_system.poll()

    assert [event for event in notes if isinstance(event, Noted)] == []


def test_run__a_config_that_names_its_cluster_is_run_there_and_the_cube_does_not_hold_it(
    tmp_path, simulator, monkeypatch
):
    from evalcube.flows.run.sweep import run
    from evalcube.flows.state.records import read_notes
    from evalcube.storage.cube.cube import Cube

    plain = sweep_config(tmp_path, simulator.base_url, trials=2, cube="plain.zarr")
    run(plain)
    notes, made = [], []
    monkeypatch.setattr(cluster, "LocalProcesses", lambda workers: made.append(workers) or PROCESSES)

    run(
        {**plain, "cube": str(tmp_path / "c.zarr"), "cluster": {"class": "local", "scale": 1}},
        subscribers=[notes.append],
    )

    assert made == [1]
    assert any("2 workers, dashboard" in getattr(note, "message", "") for note in notes)  # of all tests
    left, right = (Cube.open(str(tmp_path / name)) for name in ("plain.zarr", "c.zarr"))
    assert left.attrs["spec"] == right.attrs["spec"]
    assert "cluster" not in read_notes(right.records)["config"]


@pytest.mark.usefixtures("clock")
def test_wait_for_workers__ends_when_the_run_is_ordered_to_stop():
    asked = iter([False, False, True])

    queue = Queue(workers=arriving(0))

    assert wait_for_workers(ExistingScheduler("a"), queue, Lease(), print, lambda: next(asked)) == []


@pytest.mark.usefixtures("clock")
def test_wait_for_workers__names_whom_it_waits_for_where_not_all_will_do():
    queue = Queue(workers=itertools.repeat({}))
    queue.code.choice = WorkerChoice(("gpu1", "gpu2"))
    look = queue.code.look
    queue.code.look = lambda: SimpleNamespace(answer=lambda: look().answer()._replace(others=("cpu1",)))

    with pytest.raises(ClusterError, match=r"gpu1 or gpu2 \(it has cpu1"):
        wait_for_workers(ExistingScheduler("a"), queue, Lease(), print)
