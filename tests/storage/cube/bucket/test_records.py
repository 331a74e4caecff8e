"""The log and the lease of a cube in a bucket: numbered objects, lost answers, and takers that are late."""

import json

import obstore
import pytest
from obstore import exceptions

from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import conditions
from evalcube.storage.cube.bucket.records import LINES_OF_OBJECT
from evalcube.storage.cube.space import LeaseState, LogConflictError
from evalcube.storage.errors import StorageError
from tests.storage.support import buckets

URL = "s3://bucket/team/c.zarr"


@pytest.fixture
def stores(monkeypatch):
    monkeypatch.setattr(conditions, "_PAUSE_SECONDS", 0.0)
    return buckets.in_memory(monkeypatch)


@pytest.fixture
def space(stores):  # noqa: ARG001 - its bucket is there
    return space_of(URL)


def test_log__puts_many_lines_as_one_object(space, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("evalcube.storage.cube.bucket.records.elapsed_seconds", lambda: now[0])
    log = space.log("ledger.jsonl")
    lines = [b"%d\n" % number for number in range(LINES_OF_OBJECT + 3)]
    for line in lines:
        log.append(line)

    assert list(space.list()) == ["ledger/00000000.jsonl"]
    log.flush(older_than=2.0)
    assert len(list(space.list())) == 1
    now[0] += 2.0
    log.append(b"last\n")
    assert len(list(space.list())) == 2
    assert list(space.log("ledger.jsonl").lines()) == [*lines, b"last\n"]


@pytest.mark.parametrize("objects", [0, 1, 2, 3, 7, 8, 70])
def test_log__is_read_and_continued_without_a_list(space, monkeypatch, objects):
    log = space.log("ledger.jsonl")
    for number in range(objects):
        log.append(b"%d\n" % number)
        log.flush()
    monkeypatch.setattr(obstore, "list", None)

    other = space.log("ledger.jsonl")
    other.append(b"last\n")
    other.close()

    assert list(space.log("ledger.jsonl").lines()) == [*(b"%d\n" % n for n in range(objects)), b"last\n"]


def test_log__cannot_be_continued_by_whoever_was_taken_over_from(space):
    stale = space.log("ledger.jsonl")
    assert list(stale.lines()) == []

    successor = space.log("ledger.jsonl")
    successor.claim()
    assert list(successor.lines()) == []
    stale.append(b"late\n")
    with pytest.raises(LogConflictError):
        stale.flush()
    successor.append(b"right\n")
    successor.flush()

    assert list(space.log("ledger.jsonl").lines()) == [b"right\n"]


def test_lease__renewal_whose_answer_was_lost_is_the_holders(space, monkeypatch):
    held = space.lease("lease.json").take(lambda _: LeaseState(b"me", 1.0))
    with monkeypatch.context() as patch:
        real = obstore.put

        def fail(*_, **__):
            raise exceptions.GenericError("connection reset")

        def put(*args, **kwargs):
            real(*args, **kwargs)
            fail()

        patch.setattr(obstore, "put", put)
        patch.setattr(obstore, "get", fail)
        with pytest.raises(StorageError):
            held.renew(2.0)

    assert space.lease("lease.json").read().at == 2.0
    assert held.is_mine()
    assert held.renew(3.0)
    held.withdraw()
    assert space.lease("lease.json").read() is None


def test_lease__counts_its_takers(space):
    for _ in range(3):
        space.lease("lease.json").take(lambda _: LeaseState(b"me", 1.0)).withdraw()

    assert json.loads(space.get("lease.json").data)["epoch"] == 3
    assert space.lease("lease.json").read() is None


@pytest.mark.parametrize("data", [b"\xff not a lease", b'{"epoch": 1e999, "at": 0}\n', b"[" * 50_000])
def test_lease__that_is_not_ours_is_somebodys(space, data):
    space.put("lease.json", data)

    assert space.lease("lease.json").read().data == data
