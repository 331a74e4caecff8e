"""The response cache in a directory: what is stored is found, also by others at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packed import KEY, OTHER, keys, packs

from evalcube.storage.cache import key_index as key_index_module
from evalcube.storage.cache import pack_index as pack_index_module
from evalcube.storage.cache import writer as writer_module
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.errors import NotWritableError


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


def test_put__visible_to_all_at_once(cache):
    other = DirectoryCache(cache.path)
    reader = DirectoryCache(cache.path, writable=False)

    assert cache.put(KEY, b"value")

    assert [one.get(KEY) for one in (cache, other, reader)] == [b"value"] * 3
    assert other.put(OTHER, b"2")
    assert [one.get(OTHER) for one in (cache, other, reader)] == [b"2"] * 3


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
