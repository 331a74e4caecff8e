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
from packed import KEY, OTHER, copied, indexes, keys, packs, recorded, records, tree, unindexed

from evalcube.storage.cache import key_index as key_index_module
from evalcube.storage.cache import pack_index as pack_index_module
from evalcube.storage.cache import writer as writer_module
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.errors import DiskFullError, NotWritableError


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


def test_put__visible_to_all_at_once(cache):
    other = DirectoryCache(cache.path)
    reader = DirectoryCache(cache.path, writable=False)

    assert cache.put(KEY, b"value")

    assert [one.get(KEY) for one in (cache, other, reader)] == [b"value"] * 3
    assert other.put(OTHER, b"2")
    assert [one.get(OTHER) for one in (cache, other, reader)] == [b"2"] * 3


def test_put__locks_the_pack(cache):
    cache.put(KEY, b"x")

    with packs(cache.path)[0].open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_put__of_two_that_know_nothing_of_each_other_all_later_readers_see_one(cache):
    other = DirectoryCache(cache.path)
    assert [one.put(KEY, value) for one, value in ((other, b"first"), (cache, b"second"))] == [True, True]
    assert cache.get(KEY) == b"second"

    assert DirectoryCache(cache.path).get(KEY) == b"first"
    for one in (cache, other):
        one.close()
    assert DirectoryCache(cache.path).get(KEY) == b"first"
    DirectoryCache(cache.path).sweep(delete=True)
    assert len(packs(cache.path)) == 1
    assert DirectoryCache(cache.path).get(KEY) == b"first"
    assert keys(cache.path) == [KEY]


def test_put__what_another_put_and_did_not_commit_is_taken_along(cache, tmp_path):
    other = DirectoryCache(cache.path)
    other.put(KEY, b"value")
    assert cache.get(KEY) == b"value"

    assert cache.put_many([(KEY, b"late")]) == [False]

    packs(cache.path)[0].write_bytes(b"")  # the other one's, after a power cut
    assert DirectoryCache(copied(cache, tmp_path / "after")).get(KEY) == b"value"


def test_get_many__finds_what_another_process_stored_a_moment_ago(cache):
    reader = DirectoryCache(cache.path)
    cache.put_many([(KEY, b"1"), (OTHER, b"2")])

    assert reader.get_many([KEY, OTHER]) == [b"1", b"2"]
    cache.put("ef" * 32, b"3")
    assert reader.get_many([KEY, "ef" * 32, "00" * 32]) == [b"1", b"3", None]


def test_get__finds_what_another_threads_refresh_took_up_a_moment_before(cache, monkeypatch):
    reader = DirectoryCache(cache.path)
    cache.put(KEY, b"1")
    refresh = pack_index_module.PackIndex.refresh

    def second(index):
        # Another thread's comes first, so that this one finds nothing new.
        assert refresh(index)
        return refresh(index)

    monkeypatch.setattr(pack_index_module.PackIndex, "refresh", second)

    assert reader.get(KEY) == b"1"


def test_put__of_what_another_thread_put_since_it_was_looked_up_writes_nothing(cache, monkeypatch):
    monkeypatch.setattr(pack_index_module.PackIndex, "find", lambda *_: [])

    assert [cache.put(KEY, value) for value in (b"first", b"second")] == [True, False]
    monkeypatch.undo()
    assert cache.get(KEY) == b"first"


def test_get__of_many_through_tables(cache, workers, monkeypatch):
    monkeypatch.setattr(key_index_module, "_RECENT", 10)
    entries = [workers.entry("tables", number) for number in range(500)]
    reader = DirectoryCache(cache.path)
    for key, value in entries:
        cache.put(key, value)

    for one in (cache, reader, DirectoryCache(cache.path)):
        assert [one.get(key) for key, _ in entries] == [value for _, value in entries]
        assert one.get_many([key for key, _ in entries]) == [value for _, value in entries]
        assert one.get_many([key[::-1] for key, _ in entries]) == [None] * 500
    assert len(cache._index._key_index.tables) < 5


def test_get__keys_with_equal_beginnings(cache, monkeypatch):
    monkeypatch.setattr(key_index_module, "_RECENT", 3)
    names = [f"{'ab' * 8}{number:048x}" for number in range(20)]
    for number, key in enumerate(names):
        assert cache.put(key, str(number).encode())
    cache.close()

    for one in (cache, DirectoryCache(cache.path)):
        assert one.get_many(names) == [str(number).encode() for number in range(20)]
        assert [one.get(key) for key in names] == [str(number).encode() for number in range(20)]
        assert one.get(f"{'ab' * 8}{99:048x}") is None
        assert one.stats().entries == 20
    assert cache.damaged_count == 0


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


@pytest.mark.cluster
def test_read_only__needs_no_right_to_write(cache, workers):
    cache.put_many([workers.entry("read", 0)])
    cache.close()
    cache.put_many([workers.entry("read", 1)])
    code = """
import os, sys
from evalcube.storage.cache.cache import DirectoryCache
DirectoryCache(sys.argv[1], writable=False).stats()  # imports what somebody else may not read
os.setuid(65534)
cache = DirectoryCache(sys.argv[1], writable=False)
print([cache.get(key) is not None for key in sys.argv[2:]], cache.stats().entries)
try:
    DirectoryCache(sys.argv[1])
except Exception as error:
    print(type(error).__name__)
"""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    names = [workers.entry("read", number)[0] for number in range(3)]
    folder = Path("/var/tmp") / f"evalcube-test-{os.getpid()}"
    try:
        subprocess.run(["cp", "-r", cache.path, folder], check=True)
        root = str(Path(writer_module.__file__).parents[3])
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder), *names],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": root},
        )
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
    if "ModuleNotFoundError" in done.stderr or "PermissionError" in done.stderr:
        pytest.skip("another user cannot read the code")
    assert done.stdout.split("\n")[:2] == ["[True, True, False] 2", NotWritableError.__name__], done.stderr
