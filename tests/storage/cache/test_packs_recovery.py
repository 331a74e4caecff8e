"""Packs of processes that were killed, and of machines that lost their power."""

import fcntl
import os
import time

import numpy as np
import pytest
from packed import (
    EARLIER_BOOT,
    ENDED,
    LIVING,
    OTHER_CONTAINER,
    OTHER_HOST,
    OTHER_MACHINE,
    copied,
    give_to,
    indexes,
    packs,
    records,
    tree,
    unindexed,
)

from evalcube.storage.cache import compaction
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.cache.folders import Folders
from evalcube.storage.processes import FOREIGN_SECONDS

ENTRIES = 120


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


def test_power_cut__at_every_byte_of_the_tail_all_committed_entries_are_there(cache, tmp_path, workers):
    committed = [workers.entry("cut", i) for i in range(20)]
    late = [workers.entry("late", i) for i in range(3)]
    cache.put_many(committed)
    size = packs(cache.path)[0].stat().st_size
    cache.put_many(late)
    path = copied(cache, tmp_path / "after")
    (pack,) = packs(path)
    whole = pack.read_bytes()
    size += len(whole) - packs(cache.path)[0].stat().st_size  # another owner has another heading
    ends = [record.end for record in records(pack)][20:]
    for cut in range(size, len(whole) + 1):
        pack.write_bytes(whole[:cut])
        for index in indexes(path):
            index.unlink()
        reader = DirectoryCache(path, writable=cut % 2 == 0)

        assert reader.get_many([key for key, _ in committed]) == [value for _, value in committed]
        expected = [value if cut >= end else None for (_, value), end in zip(late, ends, strict=True)]
        assert [reader.get(key) for key, _ in late] == expected
        assert reader.damaged_count == 0
        assert reader.stats().entries == 20 + sum(cut >= end for end in ends)


@pytest.mark.parametrize("seed", range(6))
def test_power_cut__with_zeros_or_rubbish_behind_it(cache, tmp_path, workers, seed):
    rng = np.random.default_rng(seed)
    entries = [(workers.entry(seed, i)[0], rng.bytes(int(rng.integers(3000)))) for i in range(ENTRIES)]
    for part in np.array_split(np.arange(ENTRIES), 9):
        for i in part:
            assert cache.put(*entries[i])
        cache.commit()
    late = [workers.entry("late", i) for i in range(5)]
    cache.put_many(late)
    path = copied(cache, tmp_path / "after")
    (pack,) = packs(path)
    whole = pack.read_bytes()
    cut = int(rng.integers(records(pack)[ENTRIES].offset, len(whole)))
    tail = [bytes(len(whole) - cut), rng.bytes(500), rng.bytes(5000)][seed % 3]
    pack.write_bytes(whole[:cut] + tail)

    for after in (DirectoryCache(path, writable=False), DirectoryCache(path)):
        assert after.get_many([key for key, _ in entries]) == [value for _, value in entries]
        assert all(after.get(key) in (None, value) for key, value in late)
        assert after.damaged_count == 0
    assert unindexed(path) == []
    after.put_many(late)
    assert [after.get(key) for key, _ in late] == [value for _, value in late]


@pytest.mark.parametrize(
    ("owner", "age", "recovered"),
    [
        (EARLIER_BOOT, 0, True),
        (ENDED, 0, True),
        (OTHER_CONTAINER, 0, True),
        (OTHER_HOST, 0, False),
        (OTHER_MACHINE, 0, False),
        (OTHER_HOST, FOREIGN_SECONDS + 60, True),
        (LIVING, FOREIGN_SECONDS + 60, False),
    ],
)
@pytest.mark.parametrize("locked", [False, True])
def test_recover__only_what_a_dead_process_left(cache, tmp_path, workers, owner, age, recovered, locked):
    key, value = workers.entry("owner", 0)
    cache.put_many([(key, value)])
    path = copied(cache, tmp_path / "after", owner)
    (pack,) = packs(path)
    os.utime(pack, (time.time() - age,) * 2)
    with pack.open("rb") as file:
        if locked:
            fcntl.flock(file, fcntl.LOCK_EX)

        after = DirectoryCache(path)

    assert after.get(key) == value
    assert bool(indexes(path)) == (recovered and not locked)
    assert after.stats().journals == len(unindexed(path)) == 1 - len(indexes(path))


@pytest.mark.parametrize("owner", [EARLIER_BOOT, ENDED, OTHER_CONTAINER, LIVING])
def test_recover__on_a_file_system_without_locks(cache, tmp_path, workers, owner, monkeypatch):
    def flock(*_):
        raise OSError("No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    key, value = workers.entry("owner", 0)
    cache.put_many([(key, value)])
    path = copied(cache, tmp_path / "after", owner)

    after = DirectoryCache(path)

    assert bool(indexes(path)) == (owner in (EARLIER_BOOT, ENDED))
    assert after.get(key) == value
    assert after.put(key, b"late") is False
    assert after.remove([key]) == len(unindexed(path))
    after.sweep(delete=True)
    cache.close()
    assert unindexed(cache.path) == []


@pytest.mark.parametrize("content", [b"", b"EVP1", b"EVP1" + b"\xff" * 8, bytes(100)])
def test_recover__a_torn_heading_goes_after_an_hour(cache, content):
    pack = cache.path / "packs" / f"{'ab' * 16}.pack"
    pack.write_bytes(content)

    DirectoryCache(cache.path)
    assert pack.exists()
    os.utime(pack, (1, 1))
    DirectoryCache(cache.path)

    assert tree(cache.path) == {}


def test_recover__leaves_the_pack_of_a_living_process(cache, workers, processes, tmp_path):
    acks = tmp_path / "acks"
    processes.start(workers.put_entries, cache.path, 0, acks)
    processes.wait_lines(acks, 3)
    cache.put_many([workers.entry("mine", 0)])
    before = unindexed(cache.path)
    assert len(before) == 2

    for _ in range(5):
        DirectoryCache(cache.path)

    assert unindexed(cache.path) == before
    # What the other one puts is found by `get` as soon as it is there.
    for line in (processes.lines(acks)[-1], processes.wait_lines(acks, 10)[-1]):
        key, value = workers.entry(0, int(line) * 16 + 15)
        assert cache.get(key) == value


def test_recover__by_two_processes_at_once(cache, tmp_path, workers, processes):
    for number in range(3):
        entries = [workers.entry(number, i) for i in range(ENTRIES)]
        cache.put_many(entries)
        cache.close()
        path = copied(cache, tmp_path / f"after{number}")
        for index in indexes(path):
            index.unlink()
        for pack in packs(path):
            give_to(pack, ENDED)
        results = [tmp_path / f"r{number}{i}" for i in range(2)]
        start = tmp_path / f"start{number}"
        for result in results:
            processes.start(workers.read_after_open, path, number, ENTRIES, start, result)
        for result in results:
            processes.wait_lines(f"{result}.ready")
        start.touch()

        assert [processes.wait_lines(result) for result in results] == [[str(ENTRIES)]] * 2
        assert unindexed(path) == []


def test_recover__a_pack_that_grows_after_it_was_taken_for_abandoned(cache, workers):
    entries = [workers.entry("false", number) for number in range(6)]
    cache.put_many(entries[:2])
    (pack,) = packs(cache.path)
    compaction.recover(Folders(cache.path), pack.stem, was_sealed=True)
    cache.put_many(entries[2:4])
    late = DirectoryCache(cache.path)
    cache.put_many(entries[4:])

    for one in (late, DirectoryCache(cache.path), cache):
        assert [one.get(key) for key, _ in entries] == [value for _, value in entries]
    cache.close()
    assert DirectoryCache(cache.path).stats().entries == 6


@pytest.mark.parametrize("writers", [1, 3])
def test_kill__nothing_that_a_put_returned_for_is_lost(tmp_path, workers, processes, writers):
    rng = np.random.default_rng(5)
    folder, left = tmp_path / "cache", 0
    for seed in range(4):
        acks = [tmp_path / f"acks{seed}-{writer}" for writer in range(writers)]
        started = [
            processes.start(workers.put_singly, folder, f"{seed}-{writer}", ack)
            for writer, ack in enumerate(acks)
        ]
        for ack in acks:
            processes.wait_lines(ack, 1)
        time.sleep(rng.uniform(0, 0.1))
        for process in started:
            process.kill()
            process.join()
        left += len(unindexed(folder))
        cache = DirectoryCache(folder)
        # Killed before it named its owner, a pack has nothing yet; it goes after an hour.
        assert [pack.stat().st_size for pack in unindexed(folder)] == [0] * len(unindexed(folder))
        for writer, ack in enumerate(acks):
            count = int(processes.lines(ack)[-1]) + 1
            for number in range(count + 20):
                key, value = workers.entry(f"{seed}-{writer}", number)
                found = cache.get(key)
                assert found == value or (found is None and number >= count)
        assert cache.damaged_count == 0
    assert left > 0


def test_kill__while_packs_are_rewritten_loses_no_entry(cache, tmp_path, workers, processes):
    rng = np.random.default_rng(6)
    entries = [workers.entry("kept", number) for number in range(200)]
    cache.put_many(entries)
    cache.close()
    acks = tmp_path / "acks"
    for seed in range(4):
        processes.killed(workers.rewrite_packs, cache.path, seed, acks, acks=acks, delay=rng.uniform(0, 0.05))

        after = DirectoryCache(cache.path)

        assert after.get_many([key for key, _ in entries]) == [value for _, value in entries]
        assert [cache.get(key) for key, _ in entries] == [value for _, value in entries]
        assert (after.damaged_count, cache.damaged_count) == (0, 0)
    assert after.stats().entries >= 200


def test_sweep__while_others_put_loses_no_entry(cache, tmp_path, workers, processes):
    acks = [tmp_path / f"acks{writer}" for writer in range(2)]
    for writer, ack in enumerate(acks):
        processes.start(workers.put_singly, cache.path, writer, ack)
        processes.wait_lines(ack, 1)
    alien = [workers.entry("alien", number) for number in range(40)]
    for number in range(4):
        cache.put_many(alien[10 * number : 10 * number + 10])
        cache.remove([key for key, _ in alien[10 * number + 1 : 10 * number + 10]])
        cache.sweep(delete=True)
        for writer, ack in enumerate(acks):
            found = [workers.entry(writer, int(line)) for line in processes.lines(ack)]
            assert [cache.get(key) for key, _ in found] == [value for _, value in found]
    processes.end()

    assert DirectoryCache(cache.path).get_many([key for key, _ in alien[::10]]) == [v for _, v in alien[::10]]
    assert cache.damaged_count == 0
