"""Who holds a lease, and whether that process still does."""

import json
import time

import pytest

from evalcube.storage import processes as processes_module
from evalcube.storage.cube import holder as holder_module
from evalcube.storage.cube import lease as lease_module
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.lease import Lease, check_holder
from evalcube.storage.errors import LeaseLostError
from tests.storage.cube.leases import ELSEWHERE, Watching, write_lease


@pytest.fixture
def path(tmp_path):
    return tmp_path / "side" / "lease.json"


@pytest.fixture
def records(path):
    return Directory(path.parent)


@pytest.fixture
def watching(monkeypatch):
    clock = Watching()
    for module in (lease_module, holder_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_acquire__records_its_machine(path, records):
    with Lease.acquire(records):
        assert json.loads(path.read_text())["machine"] == processes_module.machine_id()


@pytest.mark.parametrize(("seconds", "seems"), [(0.0, True), (50.0, True), (70.0, False), (-3600.0, True)])
def test_apparent_holder__elsewhere_by_the_stores_clock(path, records, watching, monkeypatch, seconds, seems):
    write_lease(path, ELSEWHERE, 1.0)
    monkeypatch.setattr(watching, "time", lambda: time.time() + seconds)

    assert (apparent_holder(records) is not None) == seems
    assert watching.now == 500


ENDLESS = (
    '{"token": "t", "process": {"host": "h", "boot": "b", "pid": 1, "start": 1}, "since": 0, "ttl": 1e9}'
)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": 1}', ENDLESS, ENDLESS.replace("1e9", "NaN")])
def test_acquire__an_unreadable_lease_holds_a_minute(path, content, records, watching):
    path.parent.mkdir()
    path.write_text(content)

    Lease.acquire(records, notify=watching.notify).release()

    assert 60 <= watching.now - 500 < 61
    assert "unknown" in watching.texts[0]


def test_check_holder__knows_the_holder_its_end_and_its_successor(records):
    lease = Lease.acquire(records)
    token = lease.holder.token

    check_holder(records, token)
    lease.release()

    with pytest.raises(LeaseLostError, match="is over"):
        check_holder(records, token)
    with Lease.acquire(records), pytest.raises(LeaseLostError, match="is over"):
        check_holder(records, token)
