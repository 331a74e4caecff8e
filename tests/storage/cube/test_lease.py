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

from storage.cube import lease as lease_module
from storage.cube.directory import Directory
from storage.cube.directory.lease import HeldFile
from storage.cube.lease import Lease, check_holder, read_holder
from storage.errors import LeaseHeldError, LeaseLostError, NotWritableError, StorageError
from storage.processes import ProcessIdentity, _state_and_start, is_gone, this_process


@pytest.fixture
def path(tmp_path):
    return tmp_path / "side" / "lease.json"


@pytest.fixture
def records(path):
    return Directory(path.parent)


def write_lease(path, process, renewed, ttl=60.0):
    path.parent.mkdir(exist_ok=True)
    fields = {"host": process.host, "boot": process.boot, "pid": process.pid, "start": process.start}
    path.write_text(json.dumps({"token": "t", "process": fields, "since": renewed, "ttl": ttl}))
    os.utime(path, (renewed, renewed))


ELSEWHERE = ProcessIdentity("far-away", "another boot", 77, 5)


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


def test_acquire__says_who_holds_it_since_when_and_until_when(path, records):
    renewed = time.time() - 5
    write_lease(path, ELSEWHERE, renewed)

    with pytest.raises(LeaseHeldError) as caught:
        Lease.acquire(records)

    text = str(caught.value)
    for moment in (renewed, renewed + 60):
        assert time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment)) in text
    assert "process 77 on far-away" in text
    assert "Wait for it" in text


def test_acquire__takes_over_when_expired(path, records):
    write_lease(path, ELSEWHERE, time.time() - 61)

    with Lease.acquire(records) as lease:
        found = read_holder(records)
        assert found is not None
        assert found[0].process == this_process()
        lease.check()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": 1}'])
def test_acquire__an_unreadable_lease_holds_a_minute(path, content, records):
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(LeaseHeldError, match="unknown"):
        Lease.acquire(records)
    os.utime(path, (1, 1))

    Lease.acquire(records).release()


def test_acquire__refuses_a_ttl_of_zero(records):
    with pytest.raises(StorageError, match="positive"):
        Lease.acquire(records, ttl=0)


def test_acquire__below_a_file(below_a_file):
    with pytest.raises(NotWritableError, match="file"):
        Lease.acquire(Directory(below_a_file))


@pytest.fixture
def clock(monkeypatch):
    """The time of day for leases, which stands still but for what a test adds."""
    now = [1_000_000.0]
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(time=lambda: now[0]))
    return now


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


@pytest.mark.parametrize("pause", [0.02, 86400.0], ids=["in time", "late"])
def test_lease__is_renewed(records, clock, renewals, pause):
    with Lease.acquire(records, ttl=0.03) as lease:
        clock[0] += pause
        for _ in range(3):  # the first may have begun before the clock went on, and the second ends after it
            assert renewals.acquire(timeout=60)

        assert lease.expires == clock[0] + 0.03
        assert read_holder(records) == (lease.holder, pytest.approx(lease.expires, abs=1e-4))
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


def test_check_holder__knows_the_holder_its_end_and_its_successor(records):
    lease = Lease.acquire(records)
    token = lease.holder.token

    check_holder(records, token)
    lease.release()

    with pytest.raises(LeaseLostError, match="is over"):
        check_holder(records, token)
    with Lease.acquire(records), pytest.raises(LeaseLostError, match="is over"):
        check_holder(records, token)


def test_check__late_without_a_successor_goes_on(path, records):
    lease = Lease.acquire(records)
    lease._renewed -= 100
    os.utime(path, (lease._renewed, lease._renewed))

    lease.check()

    assert lease.expires > time.time() + 50
    lease.release()


def test_is_gone__this_process_its_id_reused_and_others():
    me = this_process()
    assert not is_gone(me)
    assert is_gone(ProcessIdentity(me.host, me.boot, me.pid, me.start - 1))
    assert not is_gone(ProcessIdentity("other", me.boot, 999_999_999, 1))
    assert not is_gone(ProcessIdentity(me.host, "other", 999_999_999, 1))
    assert is_gone(ProcessIdentity(me.host, me.boot, 999_999_999, 1))


@pytest.mark.cluster
def test_is_gone__a_zombie():
    child = subprocess.Popen(["sleep", "60"])
    known = _state_and_start(child.pid)
    assert known is not None
    identity = replace(this_process(), pid=child.pid, start=known[1])
    assert not is_gone(identity)

    child.kill()
    deadline = time.monotonic() + 20
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
    deadline = time.monotonic() + 20
    while not is_gone(ProcessIdentity(**{**vars_of(path), "pid": process.pid})):
        assert time.monotonic() < deadline

    Lease.acquire(records).release()


def vars_of(path):
    return json.loads(path.read_text())["process"]


def test_lost__a_stopped_process_notices_its_successor(tmp_path, path, workers, processes, records):
    process = processes.start(workers.hold_lease, records, 1.0, tmp_path / "acks")
    processes.wait_lines(tmp_path / "acks")
    os.kill(process.pid, signal.SIGSTOP)
    os.utime(path, (1, 1))  # as if it had been stopped for longer than its lease lives
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
            write_lease(path, ELSEWHERE, time.time() - 100)
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
