import fcntl
import os
import shutil
import time

import numpy as np
import pytest
from journals import (
    EARLIER_BOOT,
    ENDED,
    OTHER_CONTAINER,
    OTHER_HOST,
    OTHER_MACHINE,
    copied,
    cut_power,
    file_of,
    has_heading,
    logs,
    process,
)

from storage import journal as journal_module
from storage.cache import DirectoryCache
from storage.journal import FOREIGN_SECONDS, Owner
from storage.processes import machine_id

ENTRIES = 120


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


@pytest.mark.parametrize("seed", range(8))
def test_recover__after_a_power_cut_every_committed_entry_is_there(cache, tmp_path, workers, seed):
    rng = np.random.default_rng(seed)
    entries = [(workers.entry(seed, i)[0], rng.bytes(int(rng.integers(3000)))) for i in range(ENTRIES)]
    for part in np.array_split(np.arange(ENTRIES), 9):
        for i in part:
            assert cache.put(*entries[i])
        cache.commit()
    size = logs(cache.path)[0].stat().st_size
    late = [workers.entry("late", i) for i in range(5)]
    cache.put_many(late)
    path = copied(cache, tmp_path / "after")
    # What the last commit wrote is torn, as it is when the power goes before its sync is over.
    log = logs(path)[0]
    end = size + log.stat().st_size - logs(cache.path)[0].stat().st_size
    content = log.read_bytes()
    cut = int(rng.integers(end, len(content)))
    tail = [b"", bytes(len(content) - cut), rng.bytes(500)][seed % 3]
    log.write_bytes(content[:cut] + tail)
    cut_power(path, [key for key, _ in entries + late], rng)

    after = DirectoryCache(path)

    assert [after.get(key) for key, _ in entries] == [value for _, value in entries]
    assert after.damaged == 0
    assert all(after.get(key) in (None, value) for key, value in late)
    assert logs(path) == []
    after.put_many(late)
    assert [after.get(key) for key, _ in late] == [value for _, value in late]


def test_recover__without_damage_changes_no_file(cache, tmp_path, workers):
    entries = [workers.entry("calm", i) for i in range(ENTRIES)]
    cache.put_many(entries)
    path = copied(cache, tmp_path / "after", ENDED)
    before = {key: file_of(path, key).stat().st_ino for key, _ in entries}

    DirectoryCache(path)

    assert {key: file_of(path, key).stat().st_ino for key, _ in entries} == before
    assert logs(path) == []


def test_recover__keeps_a_whole_entry_that_differs_and_skips_a_bad_record(cache, tmp_path, workers):
    (first, value), (second, _) = workers.entry(1, 1), workers.entry(1, 2)
    cache.put(first, value)
    cache._journal.remember(second, b"no entry")
    cache.commit()
    path = copied(cache, tmp_path / "after")
    file_of(path, first).unlink()
    other = DirectoryCache(tmp_path / "other")
    other.put(first, b"stored first")
    shutil.copy(file_of(other.path, first), file_of(path, first))

    after = DirectoryCache(path)

    assert after.get(first) == b"stored first"
    assert after.get(second) is None


def test_recover__syncs_in_bounded_groups_before_it_deletes(cache, tmp_path, workers, monkeypatch):
    entries = [workers.entry("groups", i) for i in range(10)]
    cache.put_many(entries)
    path = copied(cache, tmp_path / "after")
    log = logs(path)[0]
    monkeypatch.setattr(journal_module, "_SYNC_GROUP", 4)
    groups = []

    def spy(_, keys):
        groups.append(list(keys))
        assert log.exists()

    monkeypatch.setattr(journal_module, "sync_entries", spy)

    DirectoryCache(path)

    assert groups == [[key for key, _ in entries][at : at + 4] for at in (0, 4, 8)]
    assert not log.exists()


@pytest.mark.parametrize(
    ("owner", "age", "replayed"),
    [
        (EARLIER_BOOT, 0, True),
        (ENDED, 0, True),
        (OTHER_CONTAINER, 0, True),
        (OTHER_HOST, 0, False),
        (OTHER_MACHINE, 0, False),
        (OTHER_HOST, FOREIGN_SECONDS + 60, True),
        (Owner(process(), machine_id()), FOREIGN_SECONDS + 60, False),
    ],
)
@pytest.mark.parametrize("locked", [False, True])
def test_recover__only_what_a_dead_process_left(cache, tmp_path, workers, owner, age, replayed, locked):
    cache.put_many([workers.entry("owner", 0)])
    path = copied(cache, tmp_path / "after", owner)
    log = logs(path)[0]
    os.utime(log, (time.time() - age,) * 2)
    file_of(path, workers.entry("owner", 0)[0]).unlink()
    with log.open("rb") as file:
        if locked:
            fcntl.flock(file, fcntl.LOCK_EX)

        after = DirectoryCache(path)

    assert after.contains(workers.entry("owner", 0)[0]) == (replayed and not locked)
    assert log.exists() != (replayed and not locked)


@pytest.mark.parametrize("owner", [EARLIER_BOOT, ENDED, OTHER_CONTAINER])
def test_recover__on_a_file_system_without_locks(cache, tmp_path, workers, owner, monkeypatch):
    cache.put_many([workers.entry("owner", 0)])
    path = copied(cache, tmp_path / "after", owner)
    key, value = workers.entry("owner", 0)
    file_of(path, key).write_bytes(b"torn")

    def flock(*_):
        raise OSError("No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)

    after = DirectoryCache(path)

    assert bool(logs(path)) == (owner is OTHER_CONTAINER)
    if not logs(path):
        assert after.get(key) == value


@pytest.mark.parametrize("content", [b"", b"EVJ1", b"EVJ1" + b"\xff" * 8, bytes(100)])
def test_recover__a_torn_heading_goes_after_an_hour(cache, content):
    log = cache.path / "journal" / "torn.log"
    log.write_bytes(content)

    DirectoryCache(cache.path)
    assert log.exists()
    os.utime(log, (1, 1))
    DirectoryCache(cache.path)

    assert not log.exists()


def test_recover__leaves_the_journal_of_a_living_process(cache, tmp_path, workers, processes):
    acks = tmp_path / "acks"
    processes.start(workers.put_entries, cache.path, 0, acks)
    processes.wait_lines(acks, 3)
    cache.put_many([workers.entry("mine", 0)])
    before = logs(cache.path)
    assert len(before) == 2

    for _ in range(5):
        DirectoryCache(cache.path)

    assert logs(cache.path) == before


def test_recover__by_two_processes_at_once(cache, tmp_path, workers, processes):
    rng = np.random.default_rng(0)
    for number in range(6):
        entries = [workers.entry(number, i) for i in range(ENTRIES)]
        cache.put_many(entries)
        path = copied(cache, tmp_path / f"after{number}")
        cut_power(path, [key for key, _ in entries], rng)
        results = [tmp_path / f"r{number}{i}" for i in range(2)]
        start = tmp_path / f"start{number}"
        for result in results:
            processes.start(workers.read_after_open, path, number, ENTRIES, start, result)
        for result in results:
            processes.wait_lines(f"{result}.ready")
        start.touch()

        assert [processes.wait_lines(result) for result in results] == [[str(ENTRIES)]] * 2
        assert logs(path) == []


def test_kill__nothing_that_a_put_returned_for_is_lost(tmp_path, workers, processes):
    rng = np.random.default_rng(5)
    folder, acks = tmp_path / "cache", tmp_path / "acks"
    found_logs = 0
    for seed in range(12):
        acks.unlink(missing_ok=True)
        lines = processes.killed(workers.put_singly, folder, seed, acks, acks=acks, delay=rng.uniform(0, 0.1))
        found_logs += len(logs(folder))
        cache = DirectoryCache(folder)
        # Killed before it named its owner, a journal has nothing yet; it goes after an hour.
        assert not any(has_heading(log) for log in logs(folder))
        count = int(lines[-1]) + 1
        for number in range(count + 20):
            key, value = workers.entry(seed, number)
            found = cache.get(key)
            assert found == value or (found is None and number >= count)
        assert cache.damaged == 0
    assert found_logs > 0
