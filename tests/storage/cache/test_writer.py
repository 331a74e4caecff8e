"""What is written into packs, and when it is synced and sealed."""

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
from packed import KEY, copied, indexes, packs, recorded, records, tree, unindexed

from evalcube.storage.cache import key_index as key_index_module
from evalcube.storage.cache import writer as writer_module
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.errors import DiskFullError


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


class Calls:
    """Calls that matter for durability, in order, as (what, path below the cache)."""

    def __init__(self, root, monkeypatch):
        self.root, self.events = root, []
        for name in ("pwrite", "fsync", "unlink", "open", "link", "listdir"):
            monkeypatch.setattr(os, name, self._spy(name, getattr(os, name)))

    def _spy(self, name, real):
        def call(target, *args, **options):
            path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else str(target)
            result = real(target, *args, **options)
            self.events.append((name, str(Path(path).relative_to(self.root))))
            return result

        return call


def test_put__is_one_write_and_commit_one_sync(cache, workers, monkeypatch):
    cache.put_many([workers.entry("first", 0)])
    pack = f"packs/{packs(cache.path)[0].name}"
    calls = Calls(cache.path, monkeypatch)

    for number in range(64):
        assert cache.put(*workers.entry("order", number))
    assert calls.events == [("pwrite", pack)] * 64
    calls.events.clear()
    more = [workers.entry("more", number) for number in range(16)]
    assert cache.put_all([*more, more[0]]) == [True] * 16 + [False]
    assert calls.events == [("pwrite", pack)]
    calls.events.clear()
    cache.commit()
    cache.commit()

    assert calls.events == [("fsync", pack)]


def test_commit__the_first_also_syncs_the_name_of_the_pack(cache, workers, monkeypatch):
    calls = Calls(cache.path, monkeypatch)

    cache.put_many([workers.entry("first", 0)])

    pack = f"packs/{packs(cache.path)[0].name}"
    synced = [event for event in calls.events if event[0] in ("pwrite", "fsync")]
    assert synced == [("pwrite", pack), ("fsync", pack), ("fsync", "packs")]


def test_close__syncs_the_index_before_it_has_its_name(cache, workers, monkeypatch):
    cache.put(*workers.entry("close", 0))
    calls = Calls(cache.path, monkeypatch)

    cache.close()

    synced = [path for name, path in calls.events if name == "fsync"]
    assert [path.split("/")[0] for path in synced] == ["packs", "packs", "tmp", "packs"]
    assert synced[-1] == "packs"
    assert list((cache.path / "tmp").iterdir()) == []


def test_put__locks_the_pack(cache):
    cache.put(KEY, b"x")

    with packs(cache.path)[0].open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_put__what_another_put_and_did_not_commit_is_taken_along(cache, tmp_path):
    other = DirectoryCache(cache.path)
    other.put(KEY, b"value")
    assert cache.get(KEY) == b"value"

    assert cache.put_many([(KEY, b"late")]) == [False]

    packs(cache.path)[0].write_bytes(b"")  # the other one's, after a power cut
    assert DirectoryCache(copied(cache, tmp_path / "after")).get(KEY) == b"value"


def test_commit__begins_another_pack_when_its_own_was_deleted(cache, workers):
    entries = [workers.entry("gone", number) for number in range(4)]
    cache.put_many(entries[:3])
    packs(cache.path)[0].unlink()

    cache.put_many(entries[3:])

    assert [recorded(pack) for pack in packs(cache.path)] == [[key for key, _ in entries]]
    assert cache.get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_commit__a_failure_forgets_nothing(cache, workers, monkeypatch):
    fsync = os.fsync

    def fail(_):
        raise OSError(28, "No space left on device")

    cache.put_many([workers.entry("fail", 99)])
    for number in range(3):
        cache.put(*workers.entry("fail", number))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFullError):
        cache.commit()
    monkeypatch.setattr(os, "fsync", fsync)
    calls = Calls(cache.path, monkeypatch)
    cache.commit()

    # After a failed sync, the kernel holds what it could not write for written.
    assert [name for name, _ in calls.events] == ["pwrite", "fsync"]
    assert len(recorded(packs(cache.path)[0])) == 4


@pytest.mark.cluster
def test_put__a_full_disk_leaves_no_torn_record(small_disk, workers):
    disk = small_disk("600k")
    rng = np.random.default_rng(0)
    cache = DirectoryCache(disk / "cache")
    entries = [(workers.entry("full", i)[0], rng.bytes(2000)) for i in range(40)]
    cache.put_many(entries[:20])
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    stored = [entries[0]]
    for item in entries[20:]:
        size = packs(cache.path)[0].stat().st_size
        try:
            cache.put(*item)
            stored.append(item)
        except DiskFullError:
            assert packs(cache.path)[0].stat().st_size == size
    assert len(stored) < 10
    assert cache.get(entries[-1][0]) is None
    ballast.unlink()
    cache.put_many(entries)

    assert [cache.get(key) for key, _ in entries] == [value for _, value in entries]
    assert cache.damaged_count == 0
    assert sorted(recorded(packs(cache.path)[0])) == sorted(key for key, _ in entries)


def run_threads(work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_commit__by_threads_while_packs_are_sealed(cache, workers, monkeypatch):
    monkeypatch.setattr(writer_module, "SEAL_BYTES", 5_000)
    monkeypatch.setattr(key_index_module, "_RECENT", 30)
    errors = []

    def work(thread):
        for number in range(150):
            key, value = workers.entry(thread, number)
            if not cache.put(key, value) or cache.get(key) != value:
                errors.append(key)
            if number % 5 == 0:
                cache.commit()

    run_threads(work)
    cache.close()

    assert errors == []
    assert len(packs(cache.path)) == len(indexes(cache.path)) > 5
    fresh = DirectoryCache(cache.path)
    assert all(
        fresh.get(key) == value for key, value in (workers.entry(t, n) for t in range(4) for n in range(150))
    )
    assert sum(len(records(pack)) for pack in packs(cache.path)) == 600


def test_commit__of_threads_return_when_all_before_is_synced(cache, workers, monkeypatch):
    synced, fsync, errors = [0], os.fsync, []

    def spy(descriptor):
        size = os.fstat(descriptor).st_size
        fsync(descriptor)
        synced.append(size)

    monkeypatch.setattr(os, "fsync", spy)
    cache.put_many([workers.entry("x", 0)])

    def work(thread):
        for number in range(60):
            cache.put(*workers.entry(thread, number))
            size = cache._writer._pack.size
            cache.commit()
            if max(synced) < size:
                errors.append(number)

    run_threads(work)

    assert errors == []


def test_close__seals_and_leaves_the_cache_usable(cache, workers):
    entries = [workers.entry("close", number) for number in range(10)]
    cache.put_many(entries[:5])
    cache.put(*entries[5])
    assert cache.stats().journals == len(unindexed(cache.path)) == 1

    cache.close()
    cache.close()

    assert unindexed(cache.path) == []
    assert len(packs(cache.path)) == 1
    cache.put_many(entries[6:])
    assert len(unindexed(cache.path)) == 1
    cache.close()
    assert unindexed(cache.path) == []
    assert cache.get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_close__of_one_that_put_nothing_leaves_nothing(cache):
    cache.get(KEY)
    cache.close()

    assert tree(cache.path) == {}


def test_close__tries_again_after_a_failure(cache, monkeypatch):
    cache.put(KEY, b"x")
    replace = Path.replace

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(DiskFullError):
        cache.close()
    assert cache.get(KEY) == DirectoryCache(cache.path, writable=False).get(KEY) == b"x"
    monkeypatch.setattr(Path, "replace", replace)
    cache.close()

    assert unindexed(cache.path) == []
    assert list((cache.path / "tmp").iterdir()) == []


def test_close__happens_when_the_cache_is_collected(tmp_path, workers):
    cache = DirectoryCache(tmp_path)
    cache.put_many([workers.entry("collected", 0)])
    assert len(unindexed(tmp_path)) == 1

    del cache
    gc.collect()

    assert len(indexes(tmp_path)) == 1


@pytest.mark.cluster
def test_close__happens_at_the_end_of_the_interpreter(tmp_path):
    code = """
import sys
from evalcube.storage.cache.cache import DirectoryCache
cache = DirectoryCache(sys.argv[1])
cache.put_many([("ab" * 32, b"x")])
cache.put("cd" * 32, b"y")
print(len(list((cache.path / "packs").glob("*.idx"))))
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(writer_module.__file__).parents[3])}

    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    assert (done.stdout, done.stderr) == ("0\n", "")
    assert unindexed(tmp_path) == []
    assert DirectoryCache(tmp_path).stats().entries == 2


def test_fork__leaves_the_pack_of_the_parent_to_it(tmp_path, workers, processes):
    result = tmp_path / "result"
    processes.start(workers.put_on_both_sides_of_a_fork, tmp_path / "cache", result)
    processes.wait_lines(result)

    (pack,) = unindexed(tmp_path / "cache")
    (index,) = indexes(tmp_path / "cache")

    assert recorded(pack) == [workers.entry("fork", number)[0] for number in (0, 1, 3)]
    assert recorded(index.with_suffix(".pack")) == [workers.entry("fork", 2)[0]]
