import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcube.storage.clocks import LAST_YEAR
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.ledger import MAX_LINE, Ledger, Receipt, from_line, most_fingerprints, to_line
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "side" / "ledger.jsonl"


def filled(path, receipts):
    with Ledger(Directory(path.parent)) as ledger:
        for receipt in receipts:
            ledger.append(receipt)
    return path.read_bytes()


def test_newest__greatest_generation_then_the_later(path, workers):
    ledger = Ledger(Directory(path.parent))
    assert ledger.newest() == {}
    assert not path.exists()
    region, other = Region(0, 1, 2), Region(5, 0, 0)
    receipts = [
        workers.make_receipt(3, region),
        workers.make_receipt(1, other),
        workers.make_receipt(2, region),
        replace(workers.make_receipt(3, region), complete=False),
    ]
    for receipt in receipts:
        ledger.append(receipt)

    assert Ledger(Directory(path.parent)).newest() == {region: receipts[3], other: receipts[1]}
    assert list(Ledger(Directory(path.parent)).receipts()) == receipts


causes = st.dictionaries(st.text(max_size=6), st.integers(0, 10**12), max_size=8)


@given(causes=causes)
def test_to_line__round_trip_is_exact(causes):
    receipt = Receipt(Region(1, 2, 3), 4, 32, 1, 320, False, 5, 6, causes, "ab" * 16)

    line = to_line(receipt)

    assert from_line(line) == receipt
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= MAX_LINE


@given(causes=causes, at=st.integers(0, LAST_YEAR - 1))
def test_to_line__round_trip_with_a_time(causes, at):
    receipt = Receipt(Region(1, 2, 3), 4, 32, 1, 320, False, 5, 6, causes, "ab" * 16, "2", at)

    assert from_line(to_line(receipt)) == receipt


def test_from_line__knows_no_time_that_no_calendar_has(workers):
    receipt = replace(workers.make_receipt(1, Region(0, 0, 0)), at=LAST_YEAR)

    assert from_line(to_line(receipt)) is None


def test_from_line__knows_no_region_with_more_failures_than_trials(workers):
    receipt = replace(workers.make_receipt(1), planned=4, transport=3, missing=2)

    assert from_line(to_line(receipt)) is None
    assert from_line(to_line(replace(receipt, planned=5))) is not None


LINE = (
    b'{"check":"bae02dd5e162","receipt":{"region":{"model":1,"trial":2,"repeat":0},"generation":4,"trials":32,'
    b'"repeats":1,"planned":320,"complete":false,"transport":5,"missing":6,"causes":{"at":17,"fp":{"fp_1":3}},'
    b'"digest":"ab","counts":{"timeout":2}}}\n'
)


def test_to_line__is_as_ledgers_have_it():
    receipt = Receipt(
        Region(1, 2, 0), 4, 32, 1, 320, False, 5, 6, {"timeout": 2}, "ab", at=17, fingerprints={"fp_1": 3}
    )

    assert to_line(receipt) == LINE


def test_to_line__leaves_out_fingerprints_that_find_no_room(workers):
    receipt = replace(
        workers.make_receipt(0), at=1_763_800_000, fingerprints={f"{number:0300}": 1 for number in range(4)}
    )

    assert from_line(to_line(receipt)) == replace(receipt, fingerprints={})


def test_most_fingerprints__keeps_the_most_frequent():
    counts = [{"a": 5, "b": 1}, {"b": 9}, dict.fromkeys("cdefgh", 2)]

    found = most_fingerprints(counts)

    assert list(found)[:2] == ["b", "a"]
    assert len(found) == 4


def test_to_line__the_longest_receipt_is_less_than_a_kilobyte():
    causes = {f"{number} {'HTTP 503 after the last retry':40}": 10**12 for number in range(8)}
    receipt = Receipt(
        Region(10**6, 10**6, 10**6),
        10**6,
        10**6,
        10**6,
        10**12,
        False,
        10**9,
        10**9,
        causes,
        "f" * 32,
        shape=10**4,
        at=10**10,
    )

    assert len(to_line(receipt)) < 1024


@pytest.mark.parametrize("count", [float("nan"), float("inf"), 2.0, True, "2"])
def test_append__refuses_causes_that_are_not_counted(path, workers, count):
    with pytest.raises(StorageError, match="whole numbers"):
        Ledger(Directory(path.parent)).append(replace(workers.make_receipt(0), causes={"timeout": count}))


def test_append__refuses_a_long_receipt(path, workers):
    with pytest.raises(StorageError, match="1024 bytes"):
        Ledger(Directory(path.parent)).append(replace(workers.make_receipt(0), digest="f" * 1024))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_open__a_torn_tail_is_dropped_and_cut_by_the_next_append(tmp_path, workers, data):
    path = tmp_path / "ledger.jsonl"
    path.unlink(missing_ok=True)
    receipts = [workers.make_receipt(i) for i in range(data.draw(st.integers(0, 3)))]
    whole = filled(path, receipts) if receipts else b""
    tail = to_line(workers.make_receipt(99))
    cut = data.draw(st.integers(0, len(tail) - 1))
    torn = data.draw(st.sampled_from([tail[:cut], b"\0" * cut, b"x" * (cut + 3000)]))
    path.write_bytes(whole + torn)

    with Ledger(Directory(path.parent)) as ledger:
        assert list(ledger.receipts()) == receipts
        assert ledger.damaged == 0
        assert path.read_bytes() == whole + torn
        ledger.append(workers.make_receipt(7))

    assert path.read_bytes() == whole + to_line(workers.make_receipt(7))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_receipts__a_flipped_byte_costs_its_line_and_is_counted(tmp_path, workers, data):
    path = tmp_path / "ledger.jsonl"
    path.unlink(missing_ok=True)
    receipts = [workers.make_receipt(i) for i in range(3)]
    whole = filled(path, receipts)
    first = len(to_line(receipts[0]))
    position = data.draw(st.integers(0, first - 2))
    mask = data.draw(st.integers(1, 255))
    path.write_bytes(whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :])

    ledger = Ledger(Directory(path.parent))

    assert list(ledger.receipts()) == receipts[1:]
    assert (damaged := ledger.damaged) in (1, 2)  # 2 if the byte became a line break
    assert (list(ledger.receipts()), ledger.damaged) == (receipts[1:], damaged)


def test_append__a_second_writer_is_noticed(path, workers):
    one, two = Ledger(Directory(path.parent)), Ledger(Directory(path.parent))
    one.append(workers.make_receipt(0))
    two.append(workers.make_receipt(1))

    with pytest.raises(StorageError, match="another process"):
        one.append(workers.make_receipt(2))

    assert [receipt.generation for receipt in two.receipts()] == [0, 1]


@pytest.mark.parametrize("step", ["pwrite", "fsync"])
def test_append__a_failure_leaves_the_ledger_as_it_was(path, workers, monkeypatch, step):
    ledger = Ledger(Directory(path.parent))
    ledger.append(workers.make_receipt(0))
    before = path.read_bytes()
    real, calls = os.pwrite, []

    def full(descriptor, data=b"", offset=0):
        calls.append(data)
        if step == "fsync" or len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(descriptor, bytes(data)[:10], offset)

    monkeypatch.setattr(os, step, full)
    with pytest.raises(DiskFullError):
        ledger.append(workers.make_receipt(1))
    monkeypatch.undo()

    assert path.read_bytes() == before
    ledger.append(workers.make_receipt(2))
    assert [receipt.generation for receipt in ledger.receipts()] == [0, 2]


@pytest.mark.cluster
def test_disk_full__acknowledged_receipts_stay(small_disk, workers):
    disk = small_disk("64k")
    ledger = Ledger(Directory(disk))
    acknowledged = []

    def fill():
        for generation in range(10_000):
            ledger.append(workers.make_receipt(generation))
            acknowledged.append(generation)

    with pytest.raises(DiskFullError):
        fill()

    assert len(acknowledged) > 20
    assert [receipt.generation for receipt in ledger.receipts()] == acknowledged
    assert ledger.damaged == 0
    assert (disk / "ledger.jsonl").read_bytes().endswith(b"\n")


def test_append__below_a_file(below_a_file, workers):
    with pytest.raises(NotWritableError, match="file"):
        Ledger(Directory(below_a_file)).append(workers.make_receipt(0))


def test_kill__acknowledged_receipts_are_there(tmp_path, workers, processes):
    rng = np.random.default_rng(5)
    path, acks = tmp_path / "ledger.jsonl", tmp_path / "acks"
    start = 0
    for _ in range(10):
        lines = processes.killed(
            workers.append_receipts, tmp_path, start, acks, acks=acks, delay=rng.uniform(0, 0.1)
        )
        ledger = Ledger(Directory(path.parent))
        generations = [receipt.generation for receipt in ledger.receipts()]
        assert ledger.damaged == 0
        assert set(map(int, lines)) <= set(generations)
        assert len(generations) - len(lines) <= 10
        start = generations[-1] + 1
