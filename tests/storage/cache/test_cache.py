import os
import pickle
import sys
import threading

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from evalcube.storage.cache import contract
from evalcube.storage.cache.cache import DirectoryCache, find_cache, open_cache
from evalcube.storage.cache.contract import decode, encode
from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError, UnsupportedUrlError

KEY = "ab" * 32
OTHER = "cd" * 32


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


def files_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def test_put_many__results_are_in_order(cache, workers):
    items = [workers.entry("order", i) for i in range(203)]
    cache.put_many(items[::3])

    stored = cache.put_many(items)

    assert stored == [i % 3 != 0 for i in range(203)]
    assert all(cache.get(key) == value for key, value in items)


def test_put_many__refuses_a_value_too_large_and_stores_nothing(cache, monkeypatch):
    monkeypatch.setattr(contract, "MAX_VALUE", 10)

    with pytest.raises(StorageError, match="limit of 10"):
        cache.put_many([(KEY, b"x"), (OTHER, b"x" * 11)])
    with pytest.raises(StorageError, match="limit of 10"):
        cache.put(OTHER, b"x" * 11)

    assert cache.stats().entries == 0


@given(data=st.data(), value=st.binary(max_size=300))
def test_decode__any_damage_is_noticed(data, value):
    whole = encode(KEY, value, zstandard.ZstdCompressor())
    decompressor = zstandard.ZstdDecompressor()
    assert decode(KEY, whole, decompressor) == value
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "zeros"]))
    position = data.draw(st.integers(0, len(whole) - 1))
    if kind == "flip":
        mask = data.draw(st.integers(1, 255))
        damaged = whole[:position] + bytes([whole[position] ^ mask]) + whole[position + 1 :]
    elif kind == "cut":
        damaged = whole[:position]
    elif kind == "more":
        damaged = whole + data.draw(st.binary(min_size=1, max_size=50))
    else:
        damaged = whole[:position] + b"\0" * (len(whole) - position)

    result = decode(KEY, damaged, decompressor)

    assert result is None or damaged == whole


def test_threads__share_a_cache(cache, workers):
    items = [workers.entry("threads", i) for i in range(120)]
    stored, wrong = [], []

    def work(seed):
        order = np.random.default_rng(seed).permutation(len(items))
        for start in range(0, len(items), 20):
            part = [items[i] for i in order[start : start + 20]]
            stored.extend(cache.put_many(part))
            wrong.extend(key for key, value in part if cache.get(key) != value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert sum(stored) == len(items)


def test_open_cache__sweeps_old_temporaries_only(cache):
    old, young = cache.path / "tmp" / "old", cache.path / "tmp" / "young"
    for file in (old, young):
        file.write_bytes(b"")
    os.utime(old, (1, 1))

    open_cache(f"file://{cache.path}")

    assert files_in(cache.path / "tmp") == ["young"]


def test_open_cache__says_what_is_wrong(below_a_file):
    with pytest.raises(NotWritableError, match=r"file.*Choose"):
        open_cache(below_a_file)
    with pytest.raises(UnsupportedUrlError, match=r"ftp://.*s3://.*redis://"):
        open_cache("ftp://user:pw@host/x")


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("obstore", "s3://bucket/x", "objects"),
        ("obstore", "az://bucket", "objects"),
        ("redis", "redis://host", "redis"),
    ],
)
def test_open_cache__names_the_extra_that_is_missing(package, url, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(StorageError, match=rf"needs the package {package}.*evalcube\[{extra}\]"):
        open_cache(url)


def test_open_cache__for_reading_needs_a_cache(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StorageError, match="no cache here"):
            open_cache(path, writable=False)
        assert find_cache(path) is None
    assert list(tmp_path.iterdir()) == []

    open_cache(tmp_path / "made").put_many([(KEY, b"x")])

    assert find_cache(tmp_path / "made").get(KEY) == b"x"


def test_sweep__counts_then_deletes_old_temporaries_only(cache):
    old, young = cache.path / "tmp" / "old", cache.path / "tmp" / "young"
    for file in (old, young):
        file.write_bytes(b"")
    os.utime(old, (1, 1))

    assert [cache.sweep(delete=delete) for delete in (False, True, True)] == [1, 1, 0]
    assert files_in(cache.path / "tmp") == ["young"]


@pytest.mark.cluster
def test_disk_full__acknowledged_entries_stay(small_disk, workers):
    disk = small_disk("400k")
    cache = DirectoryCache(disk / "cache")
    rng = np.random.default_rng(0)
    acknowledged = []

    def fill():
        for i in range(10_000):
            batch = [(workers.entry(i, j)[0], rng.bytes(2000)) for j in range(16)]
            cache.put_many(batch)
            acknowledged.extend(batch)

    with pytest.raises(DiskFullError):
        fill()

    assert len(acknowledged) > 16
    assert all(cache.get(key) == value for key, value in acknowledged)
    assert cache.damaged_count == 0
    assert files_in(cache.path / "tmp") == []


def test_errors__travel_between_processes():
    error = DiskFullError("cannot write", "/some/where", "Free some space.")

    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert type(again) is DiskFullError
    assert str(again) == str(error)
    assert (again.where, again.remedy) == ("/some/where", "Free some space.")


def test_kill__acknowledged_entries_are_there_and_none_is_torn(tmp_path, workers, processes):
    rng = np.random.default_rng(4)
    folder, acks = tmp_path / "cache", tmp_path / "acks"
    for seed in range(10):
        acks.unlink(missing_ok=True)
        lines = processes.killed(
            workers.put_entries, folder, seed, acks, acks=acks, delay=rng.uniform(0, 0.15)
        )
        cache = DirectoryCache(folder)
        count = (int(lines[-1]) + 1) * 16
        for number in range(count + 64):
            key, value = workers.entry(seed, number)
            found = cache.get(key)
            assert found == value or (found is None and number >= count)
        assert cache.damaged_count == 0
