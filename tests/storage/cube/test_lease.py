import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalcube.storage import processes as processes_module
from evalcube.storage.cube import holder as holder_module
from evalcube.storage.cube import lease as lease_module
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.directory.records import DirectoryLease, HeldFile
from evalcube.storage.cube.holder import read_holder
from evalcube.storage.cube.lease import Lease
from evalcube.storage.errors import LeaseHeldError, LeaseLostError, NotWritableError, StorageError
from evalcube.storage.processes import Life, ProcessIdentity, _state_and_start, life_of, this_process
from tests.storage.cube.leases import ELSEWHERE, Watching, write_lease
from tests.waiting import PATIENCE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "side" / "lease.json"


@pytest.fixture
def records(path):
    return Directory(path.parent)


def test_acquire__held_until_released(path, records):
    with Lease.acquire(records) as lease:
        lease.check()
        assert not lease.lost.is_set()
        with pytest.raises(LeaseHeldError):
            Lease.acquire(records)

    assert not path.exists()
    with pytest.raises(LeaseLostError):
        lease.check()
    lease.release()
    Lease.acquire(records).release()


@pytest.fixture
def watching(monkeypatch):
    clock = Watching()
    for module in (lease_module, holder_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


DAYS = [0.0, 300.0, -300.0, 2 * 86400.0, -2 * 86400.0]


@pytest.mark.parametrize("skew", DAYS)
def test_acquire__a_holder_elsewhere_that_renews_is_refused_whatever_its_clock_says(
    path, records, watching, skew
):
    began = time.time() + skew
    write_lease(path, ELSEWHERE, began)

    def renew(passed):
        if passed >= 20:  # as seldom as older versions do
            os.utime(path, (began + passed, began + passed))

    watching.meanwhile = renew

    with pytest.raises(LeaseHeldError) as caught:
        Lease.acquire(records, notify=watching.notify)

    assert 20 <= watching.now - 500 < 21
    text = str(caught.value)
    assert time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began)) in text
    assert "process 77 on far-away" in text
    assert "kill 77" in text
    assert "by its clock" in text
    assert len(watching.texts) == 1
    assert "up to 60 s" in watching.texts[0]


@pytest.mark.parametrize("skew", DAYS)
def test_acquire__takes_over_elsewhere_after_watching_in_vain(path, records, watching, skew):
    write_lease(path, ELSEWHERE, time.time() + skew)

    with Lease.acquire(records, notify=watching.notify) as lease:
        assert 60 <= watching.now - 500 < 61
        found = read_holder(records)
        assert found is not None
        assert found[0].process == this_process()
        lease.check()
    assert "taken over" in watching.texts[1]


def test_acquire__at_once_when_it_is_released_while_it_is_watched(path, records, watching):
    write_lease(path, ELSEWHERE, time.time())
    watching.meanwhile = lambda passed: path.unlink(missing_ok=True) if passed >= 3 else None

    Lease.acquire(records).release()

    assert watching.now - 500 < 4


@pytest.mark.usefixtures("watching")
def test_acquire__another_successor_under_way_is_refused(path, records, monkeypatch):
    write_lease(path, ELSEWHERE, time.time())
    take = DirectoryLease.take

    def faster(record, successor):
        write_lease(path, replace(ELSEWHERE, pid=78), time.time())
        return take(record, successor)

    monkeypatch.setattr(DirectoryLease, "take", faster)

    with pytest.raises(LeaseHeldError, match="process 78"):
        Lease.acquire(records)


@pytest.mark.parametrize("skew", DAYS)
def test_acquire__a_live_process_of_this_machine_keeps_it_whatever_clocks_say(path, records, watching, skew):
    write_lease(
        path, replace(this_process(), pid=os.getppid(), start=started(os.getppid())), time.time() - skew
    )

    with pytest.raises(LeaseHeldError, match=f"kill {os.getppid()}"):
        Lease.acquire(records, notify=watching.notify)

    assert watching.now == 500
    assert watching.texts == []


@pytest.mark.parametrize("skew", DAYS)
def test_acquire__a_dead_process_of_this_machine_at_once_whatever_clocks_say(path, records, watching, skew):
    write_lease(path, replace(this_process(), start=this_process().start - 1), time.time() - skew)

    Lease.acquire(records).release()

    assert watching.now == 500


OUTSIDE, EARLIER = "/pid:[4026531836]", "c0ffee00-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("changes", "machine", "at_once"),
    [
        ({}, "this one", True),
        ({}, "another one", False),
        ({}, "", False),
        ({"host": "far-away"}, "this one", False),
        ({"boot": f"{EARLIER}/pid:[4026539999]"}, "this one", False),
    ],
    ids=["before its restart", "another machine", "not known", "another name", "in a container"],
)
def test_acquire__from_before_this_machine_was_started_anew(
    path, records, watching, monkeypatch, changes, machine, at_once
):
    monkeypatch.setattr(processes_module, "machine_id", lambda: "this one")
    monkeypatch.setattr(processes_module, "_boot", lambda: f"now{OUTSIDE}")
    before = replace(this_process(), **{"boot": EARLIER + OUTSIDE, **changes})
    write_lease(path, before, time.time(), machine=machine)

    Lease.acquire(records, notify=watching.notify).release()

    assert (watching.texts == []) is at_once
    assert (watching.now == 500) is at_once


def started(pid):
    known = _state_and_start(pid)
    assert known is not None
    return known[1]


def test_acquire__what_a_part_of_this_process_could_not_release(path, records, monkeypatch):
    lease = Lease.acquire(records)
    monkeypatch.setattr(HeldFile, "withdraw", lambda _: Path("/nowhere/at/all").stat())
    with pytest.raises(StorageError):
        lease.release()
    monkeypatch.undo()
    assert path.exists()

    Lease.acquire(records).release()


def test_acquire__refuses_a_ttl_of_zero(records):
    with pytest.raises(StorageError, match="positive"):
        Lease.acquire(records, ttl=0)


def test_acquire__below_a_file(below_a_file):
    with pytest.raises(NotWritableError, match="file"):
        Lease.acquire(Directory(below_a_file))


@pytest.fixture
def renewals(monkeypatch):
    """Counts the renewals of leases, so that a test can wait for one."""
    count, renew = threading.Semaphore(0), HeldFile.renew

    def counted(held, now, *, late=False):
        try:
            return renew(held, now, late=late)
        finally:
            count.release()

    monkeypatch.setattr(HeldFile, "renew", counted)
    return count


@pytest.mark.parametrize("skew", [0.0, 86400.0, -86400.0])
def test_lease__is_renewed_by_another_time_each_time(records, renewals, monkeypatch, skew):
    now = time.time() + skew  # of a clock that stands still
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(time=lambda: now, monotonic=time.monotonic))
    with Lease.acquire(records, ttl=0.12) as lease:
        seen = {read_holder(records)}
        for _ in range(4):
            assert renewals.acquire(timeout=PATIENCE)
            seen.add(read_holder(records))

        assert {holder for holder, _ in seen} == {lease.holder}
        assert {round(at - now, 3) for _, at in seen} == {0.0, 0.001}
        lease.check()
        with pytest.raises(LeaseHeldError):
            Lease.acquire(records)


def test_release__leaves_a_successor_alone(path, records):
    lease = Lease.acquire(records)
    path.unlink()
    write_lease(path, ELSEWHERE, time.time())
    before = path.read_text()

    with pytest.raises(LeaseLostError, match="no longer holds"):
        lease.check()
    lease.release()

    assert lease.lost.is_set()
    assert path.read_text() == before


def test_check__late_without_a_successor_goes_on(path, records):
    lease = Lease.acquire(records)
    os.utime(path, (1, 1))
    lease._renewed -= 100

    lease.check()

    assert path.stat().st_mtime > 1
    lease.release()


def is_gone(process):
    return life_of(process) is Life.ENDED


def test_life_of__this_process_its_id_reused_and_others():
    me = this_process()
    assert not is_gone(me)
    assert is_gone(ProcessIdentity(me.host, me.boot, me.pid, me.start - 1))
    assert not is_gone(ProcessIdentity("other", me.boot, 999_999_999, 1))
    assert not is_gone(ProcessIdentity(me.host, "other", 999_999_999, 1))
    assert is_gone(ProcessIdentity(me.host, me.boot, 999_999_999, 1))


@pytest.mark.cluster
def test_life_of__a_zombie():
    child = subprocess.Popen(["sleep", "999"])
    known = _state_and_start(child.pid)
    assert known is not None
    identity = replace(this_process(), pid=child.pid, start=known[1])
    assert not is_gone(identity)

    child.kill()
    deadline = time.monotonic() + PATIENCE
    while not is_gone(identity):
        assert time.monotonic() < deadline

    assert Path(f"/proc/{child.pid}").exists()
    child.wait()


def test_acquire__of_a_killed_process_at_once(tmp_path, path, workers, processes, records):
    process = processes.start(workers.hold_lease, records, 3600.0, tmp_path / "acks")
    processes.wait_lines(tmp_path / "acks")
    with pytest.raises(LeaseHeldError, match=str(process.pid)):
        Lease.acquire(records)
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while not is_gone(ProcessIdentity(**{**vars_of(path), "pid": process.pid})):
        assert time.monotonic() < deadline

    Lease.acquire(records).release()


def vars_of(path):
    return json.loads(path.read_text())["process"]


def test_lost__a_stopped_process_notices_its_successor(
    tmp_path, path, workers, processes, records, monkeypatch
):
    process = processes.start(workers.hold_lease, records, 1.0, tmp_path / "acks")
    processes.wait_lines(tmp_path / "acks")
    os.kill(process.pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while life_of(replace(this_process(), pid=process.pid, start=started(process.pid))) is not Life.STOPPED:
        assert time.monotonic() < deadline
    with pytest.raises(LeaseHeldError, match=f"kill -CONT {process.pid}"):
        Lease.acquire(records)
    # As if the machine were another one: what is stopped there for longer than its lease lives is taken over.
    monkeypatch.setattr(holder_module, "life_of", lambda _: Life.UNKNOWN)
    successor = Lease.acquire(records)
    os.kill(process.pid, signal.SIGCONT)

    assert processes.wait_lines(tmp_path / "acks", 2)[1] == "lost True"
    successor.check()
    successor.release()
    assert not path.exists()


@pytest.mark.parametrize("before", ["absent", "expired", "dead"])
def test_race__exactly_one_wins(tmp_path, path, workers, processes, before, records):
    for number in range(4):
        me = this_process()
        if before == "expired":
            write_lease(path, ELSEWHERE, time.time() - 100, ttl=0.3)
        elif before == "dead":
            write_lease(path, ProcessIdentity(me.host, me.boot, me.pid, me.start - 1), time.time())
        start, stop = tmp_path / f"start{number}", tmp_path / f"stop{number}"
        results = [tmp_path / f"{number}.{i}" for i in range(4)]
        for result in results:
            processes.start(workers.race_lease, records, start, stop, result)
        for result in results:
            processes.wait_lines(f"{result}.ready")
        start.touch()

        outcomes = sorted(processes.wait_lines(result)[0] for result in results)

        assert outcomes == ["held"] * 3 + ["won"]
        stop.touch()
        processes.join()
        assert not path.exists()
