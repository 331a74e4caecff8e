import fcntl
import gc
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from journals import copied, file_of, logs, recorded

from storage import journal as journal_module
from storage.cache import DirectoryCache
from storage.errors import DiskFullError


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


class Calls:
    """Calls that matter for durability, in order, as (what, path below the cache)."""

    def __init__(self, root, monkeypatch):
        self.root, self.events = root, []
        for name in ("pwrite", "fsync", "unlink"):
            monkeypatch.setattr(os, name, self._spy(name, getattr(os, name)))

    def _spy(self, name, real):
        def call(target, *args, **options):
            path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else str(target)
            result = real(target, *args, **options)
            self.events.append((name, str(Path(path).relative_to(self.root))))
            return result

        return call

    def of(self, *folders):
        return [event for event in self.events if event[1].split("/")[0] in folders]


def test_commit__one_write_and_one_sync_before_it_returns(cache, workers, monkeypatch):
    cache.put_many([workers.entry("first", 0)])
    log = f"journal/{logs(cache.path)[0].name}"
    calls = Calls(cache.path, monkeypatch)

    for number in range(64):
        cache.put(*workers.entry("order", number))
    assert {name for name, _ in calls.events} == {"unlink"}
    calls.events.clear()
    cache.commit()

    assert calls.events == [("pwrite", log), ("fsync", log)]
    cache.commit()
    assert len(calls.events) == 2


def test_commit__locks_the_journal(cache, workers):
    cache.put_many([workers.entry("lock", 0)])

    with logs(cache.path)[0].open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_records__end_at_the_first_damaged_one(cache, workers):
    entries = [workers.entry("records", number) for number in range(3)]
    cache.put_many(entries)
    log = logs(cache.path)[0]
    content = bytearray(log.read_bytes())
    content[content.index(bytes.fromhex(entries[1][0]))] ^= 1
    log.write_bytes(content)

    assert recorded(log) == [entries[0][0]]


def test_commit__the_first_also_syncs_the_name_of_the_journal(cache, workers, monkeypatch):
    calls = Calls(cache.path, monkeypatch)

    cache.put_many([workers.entry("first", 0)])

    log = f"journal/{logs(cache.path)[0].name}"
    assert calls.of("journal") == [("pwrite", log), ("fsync", log), ("fsync", "journal")]


def test_commit__takes_along_what_another_put_and_did_not_commit(cache, tmp_path, workers):
    key, value = workers.entry("other", 0)
    other = DirectoryCache(cache.path)
    assert other.put(key, value)

    assert cache.put_many([(key, b"late")]) == [False]

    path = copied(cache, tmp_path / "after")
    file_of(path, key).write_bytes(b"")
    assert DirectoryCache(path).get(key) == value


def test_commit__begins_another_journal_when_its_own_was_deleted(cache, workers):
    cache.put_many([workers.entry("gone", 0)])
    logs(cache.path)[0].unlink()

    cache.put_many([workers.entry("gone", 1)])

    assert [recorded(log) for log in logs(cache.path)] == [[workers.entry("gone", 1)[0]]]


def test_commit__a_failure_forgets_nothing(cache, workers, monkeypatch):
    keys = [workers.entry("fail", number)[0] for number in range(5)]
    fsync = os.fsync

    def fail(_):
        raise OSError(28, "No space left on device")

    for number in range(3):
        cache.put(*workers.entry("fail", number))
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(DiskFullError, match=r"cannot write the cache's journal.*Free some space"):
            cache.commit()
        monkeypatch.setattr(os, "fsync", fsync)
    cache.put(*workers.entry("fail", 3))
    cache.commit()
    cache.put_many([workers.entry("fail", 4)])

    assert [recorded(log) for log in logs(cache.path)] == [keys]


def test_commit__tries_again_after_the_disk_was_full(small_disk, tmp_path, workers):
    disk = small_disk("600k")
    rng = np.random.default_rng(0)
    cache = DirectoryCache(disk / "cache")
    entries = [(workers.entry("full", i)[0], rng.bytes(2000)) for i in range(40)]
    cache.put_many(entries[:20])
    for item in entries[20:]:
        cache.put(*item)
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))

    for _ in range(2):
        with pytest.raises(DiskFullError):
            cache.commit()
    ballast.unlink()
    cache.commit()

    path = copied(cache, tmp_path / "after")
    for key, _ in entries:
        file_of(path, key).unlink()
    after = DirectoryCache(path)
    assert [after.get(key) for key, _ in entries] == [value for _, value in entries]


def test_commit__concurrent_ones_return_when_all_before_is_synced(cache, workers):
    errors = []

    def work(thread):
        for number in range(60):
            key, value = workers.entry(thread, number)
            cache.put(key, value)
            cache.commit()
            if key not in recorded(logs(cache.path)[0]):
                errors.append(key)

    run_threads(work)

    assert errors == []
    assert len(recorded(logs(cache.path)[0])) == 240


def run_threads(work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_remember__commits_when_very_much_waits(cache, workers, monkeypatch):
    monkeypatch.setattr(journal_module, "ROTATE_BYTES", 1000)

    for number in range(20):
        cache.put(*workers.entry("much", number))

    assert cache._journal._waiting < 1000


def test_rotate__deletes_only_after_entries_and_directories_are_synced(cache, workers, monkeypatch):
    entries = [workers.entry("rotate", number) for number in range(30)]
    for item in entries:
        cache.put(*item)
    calls = Calls(cache.path, monkeypatch)
    monkeypatch.setattr(journal_module, "ROTATE_BYTES", 100)

    cache.commit()
    cache._journal._thread.join()

    log = next(path for name, path in calls.events if name == "pwrite")
    end = calls.events.index(("unlink", log))
    synced = {path for name, path in calls.events[:end] if name == "fsync"}
    assert {f"{key[:2]}/{key[2:]}" for key, _ in entries} <= synced
    last = max(calls.events.index(("fsync", f"{key[:2]}/{key[2:]}")) for key, _ in entries)
    assert {("fsync", key[:2]) for key, _ in entries} <= set(calls.events[last:end])
    assert logs(cache.path) == []


def test_rotate__under_concurrent_puts(cache, workers, monkeypatch):
    monkeypatch.setattr(journal_module, "ROTATE_BYTES", 5_000)

    def work(thread):
        for number in range(200):
            cache.put(*workers.entry(thread, number))
            if number % 5 == 0:
                cache.commit()

    run_threads(work)
    assert len(logs(cache.path)) <= 2
    cache.close()

    assert logs(cache.path) == []
    for thread in range(4):
        for number in range(200):
            key, value = workers.entry(thread, number)
            assert cache.get(key) == value


def test_rotate__a_failure_keeps_the_journal_until_it_succeeds(cache, workers, monkeypatch):
    monkeypatch.setattr(journal_module, "ROTATE_BYTES", 100)
    real = journal_module.sync_entries

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal_module, "sync_entries", fail)
    for number in range(3):
        cache.put_many([workers.entry("eio", number)])
        cache._journal._thread.join()
    assert len(logs(cache.path)) == 3

    monkeypatch.setattr(journal_module, "sync_entries", real)
    cache.close()

    assert logs(cache.path) == []


def test_close__leaves_no_journal_and_the_cache_usable(cache, workers):
    entries = [workers.entry("close", number) for number in range(10)]
    cache.put_many(entries[:5])
    cache.put(*entries[5])
    file_of(cache.path, entries[0][0]).unlink()

    cache.close()
    cache.close()

    assert logs(cache.path) == []
    cache.put_many(entries[6:])
    assert len(logs(cache.path)) == 1
    cache.close()
    assert logs(cache.path) == []


def test_close__happens_when_the_cache_is_collected(tmp_path, workers):
    cache = DirectoryCache(tmp_path)
    cache.put_many([workers.entry("collected", 0)])
    assert len(logs(tmp_path)) == 1

    del cache
    gc.collect()

    assert logs(tmp_path) == []


def test_close__happens_at_the_end_of_the_interpreter(tmp_path):
    code = """
import sys
from storage.cache import DirectoryCache
cache = DirectoryCache(sys.argv[1])
cache.put_many([("ab" * 32, b"x")])
cache.put("cd" * 32, b"y")
print(len(list((cache.path / "journal").glob("*.log"))))
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(journal_module.__file__).parents[1])}

    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    assert (done.stdout, done.stderr) == ("1\n", "")
    assert logs(tmp_path) == []
    assert DirectoryCache(tmp_path).stats().entries == 2


def test_fork__leaves_the_journal_of_the_parent_to_it(tmp_path, workers, processes):
    result = tmp_path / "result"
    processes.start(workers.put_on_both_sides_of_a_fork, tmp_path / "cache", result)
    processes.wait_lines(result)

    (log,) = logs(tmp_path / "cache")

    assert recorded(log) == [workers.entry("fork", number)[0] for number in (0, 1, 3)]


def test_stats__ignore_the_journal(cache, workers):
    cache.put_many([workers.entry("stats", 0)])

    assert cache.stats().entries == 1
    assert cache.stats().bytes == file_of(cache.path, workers.entry("stats", 0)[0]).stat().st_size
