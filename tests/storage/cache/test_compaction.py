"""Removing entries, merging packs and tidying up."""

import os
import resource
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from packed import keys, packs, recorded, unindexed

from evalcube.storage.cache import compaction
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.packs import SealedIndex


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


def filled(path, workers, count=5, each=20):
    """Entries in so many sealed packs."""
    entries = [workers.entry("upkeep", number) for number in range(count * each)]
    for number in range(count):
        made = DirectoryCache(path)
        made.put_many(entries[number * each : (number + 1) * each])
        made.close()
    return entries


def test_remove__rewrites_packs_without_the_entries(cache, workers):
    entries = filled(cache.path, workers)
    before = {info.key: info for info in cache.entries()}
    gone = [key for key, _ in entries[:20]] + [key for key, _ in entries[30:95]]
    reader = DirectoryCache(cache.path, writable=False)

    assert cache.remove(gone) == 0

    left = {key: value for key, value in entries if key not in gone}
    assert keys(cache.path) == sorted(left)
    assert len(packs(cache.path)) == 2
    assert unindexed(cache.path) == []
    for one in (cache, reader, DirectoryCache(cache.path)):
        assert {key: one.get(key) for key in left} == left
        assert {info.key: info for info in one.entries()} == {key: before[key] for key in left}
    assert cache.get_many(gone) == [None] * len(gone)
    assert cache.put(gone[0], b"again")
    assert list((cache.path / "tmp").glob("*.pack")) == []


def test_remove__leaves_packs_of_living_writers_and_says_so(cache, workers):
    entries = filled(cache.path, workers, 1)
    other = DirectoryCache(cache.path)
    more = [workers.entry("living", number) for number in range(3)]
    other.put_many(more)

    assert cache.remove([key for key, _ in entries[:5] + more]) == 3

    assert cache.stats().entries == 15 + 3
    other.put_many([workers.entry("living", 3)])
    other.close()
    assert cache.remove([key for key, _ in more]) == 0
    assert cache.stats().entries == 15 + 1


def test_remove__leaves_a_pack_that_was_taken_for_abandoned_and_grows(cache, workers):
    entries = [workers.entry("grows", number) for number in range(4)]
    cache.put_many(entries[:2])
    (pack,) = packs(cache.path)
    compaction.recover(Folders(cache.path), pack.stem, was_sealed=True)
    cache.put_many(entries[2:])

    assert DirectoryCache(cache.path).remove([entries[0][0]]) == 1

    assert packs(cache.path) == [pack]
    assert cache.get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_close__of_a_pack_that_was_deleted_at_that_moment_writes_it_anew(cache, workers, monkeypatch):
    entries = [workers.entry("gone", number) for number in range(4)]
    cache.put_many(entries)
    real = cache._writer.commit
    monkeypatch.setattr(cache._writer, "commit", lambda: None)
    cache._writer._pack._synced = 0
    packs(cache.path)[0].unlink()
    cache._writer._retire(cache._writer._pack)
    monkeypatch.setattr(cache._writer, "commit", real)

    cache.close()
    cache.close()

    assert DirectoryCache(cache.path).get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_remove__a_reader_whose_packs_go_looks_again(cache, workers, monkeypatch):
    from evalcube.storage.cache import pack_index as pack_index_module

    monkeypatch.setattr(pack_index_module, "_OPEN_FILES", 1)
    entries = filled(cache.path, workers)
    readers = [DirectoryCache(cache.path, writable=False) for _ in range(2)]
    listing = readers[0].entries()
    first = next(listing)

    cache.remove([entries[number][0] for number in range(0, 100, 10)])

    expected = [None if number % 10 == 0 else value for number, (_, value) in enumerate(entries)]
    readers[0].get("00" * 32)
    assert [readers[0].get(key) for key, _ in entries] == expected
    found = readers[1].get_many([key for key, _ in entries])
    assert all(
        value in (wanted, entries[n][1])
        for n, (value, wanted) in enumerate(zip(found, expected, strict=True))
    )
    assert len({first, *listing}) == 100


def test_remove__killed_before_the_old_pack_is_deleted_loses_nothing(cache, workers):
    entries = filled(cache.path, workers, 1)
    (old,) = packs(cache.path)
    whole = {path.name: path.read_bytes() for path in (old, old.with_suffix(".idx"))}
    cache.remove([entries[0][0]])
    for name, content in whole.items():
        (cache.path / "packs" / name).write_bytes(content)

    after = DirectoryCache(cache.path)

    assert after.stats().entries == 20
    assert after.get_many([key for key, _ in entries]) == [value for _, value in entries]
    after.sweep(delete=True)
    assert sum(len(recorded(pack)) for pack in packs(cache.path)) == 20


def test_sweep__merges_small_packs_and_keeps_times_and_order(cache, workers):
    entries = filled(cache.path, workers)
    before = list(cache.entries())
    reader = DirectoryCache(cache.path, writable=False)
    readers_first = reader.get(entries[0][0])

    assert cache.sweep(delete=False) == 0
    assert len(packs(cache.path)) == 5
    assert cache.sweep(delete=True) == 0

    assert len(packs(cache.path)) == 1
    assert list(cache.entries()) == list(DirectoryCache(cache.path).entries()) == before
    assert readers_first == entries[0][1]
    for one in (cache, reader):
        assert one.get_many([key for key, _ in entries]) == [value for _, value in entries]
    cache.sweep(delete=True)
    assert len(packs(cache.path)) == 1


def test_sweep__has_the_merged_pack_and_its_name_on_disk_before_an_old_one_goes(cache, workers, monkeypatch):
    filled(cache.path, workers)
    old, events = {pack.name for pack in packs(cache.path)}, []

    def spy(name):
        call = getattr(os, name)

        def note(target, *args, **options):
            path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target)
            events.append((name, path))
            return call(target, *args, **options)

        monkeypatch.setattr(os, name, note)

    for name in ("fsync", "replace", "unlink"):
        spy(name)
    cache.sweep(delete=True)

    (merged,) = packs(cache.path)
    draft = cache.path / "tmp" / merged.name
    first_gone = next(i for i, (name, path) in enumerate(events) if name == "unlink" and path.name in old)
    renamed = events.index(("replace", draft))
    assert ("fsync", draft) in events[:renamed]
    assert ("fsync", cache.path / "packs") in events[renamed:first_gone]


def test_sweep__merges_more_than_it_holds_in_memory_at_once(cache, workers, monkeypatch):
    entries = filled(cache.path, workers)
    monkeypatch.setattr(compaction, "_BUFFER", 64)

    cache.sweep(delete=True)

    assert len(packs(cache.path)) == 1
    reader = DirectoryCache(cache.path, writable=False)
    assert reader.get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_join_newest__keeps_packs_few_and_copies_entries_a_few_times(cache, workers):
    folders, entries, copied = Folders(cache.path), [], 0
    for number in range(60):
        entries += filled_once(cache.path, workers, number)
        before = {pack.name for pack in packs(cache.path)}
        compaction.join_newest(folders)
        after = packs(cache.path)
        copied += sum(len(recorded(pack)) for pack in after if pack.name not in before)
        assert len(after) < 2 * compaction._MANY

    assert copied < 5 * len(entries)
    assert keys(cache.path) == sorted(key for key, _ in entries)
    assert DirectoryCache(cache.path).get_many([key for key, _ in entries]) == [value for _, value in entries]


def filled_once(path, workers, number):
    """Some entries in one more sealed pack."""
    entries = [workers.entry("joined", 3 * number + place) for place in range(3)]
    made = DirectoryCache(path)
    made.put_many(entries)
    made.close()
    return entries


def test_sweep__never_merges_across_a_pack_that_is_written(cache, workers):
    filled(cache.path, workers, 2)
    living = DirectoryCache(cache.path)
    living.put(*workers.entry("living", 0))
    filled(cache.path, workers, 1)
    more = DirectoryCache(cache.path)
    more.put("ef" * 32, b"x")
    more.close()

    cache.sweep(delete=True)

    assert [path.with_suffix(".idx").exists() for path in packs(cache.path)] == [True, False, True]
    assert living.get(workers.entry("living", 0)[0]) == workers.entry("living", 0)[1]


def test_sweep__packs_have_a_greatest_size(cache, workers, monkeypatch):
    monkeypatch.setattr(compaction, "_MERGED_RECORDS", 50)
    entries = filled(cache.path, workers)

    cache.sweep(delete=True)

    assert [len(recorded(pack)) for pack in packs(cache.path)] == [40, 40, 20]
    assert cache.get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_sweep__deletes_indexes_without_a_pack_after_an_hour(cache, workers):
    filled(cache.path, workers, 1)
    packs(cache.path)[0].unlink()
    (index,) = (cache.path / "packs").iterdir()

    assert cache.sweep(delete=True) == 0
    os.utime(index, (1, 1))
    assert [cache.sweep(delete=delete) for delete in (False, True, True)] == [1, 1, 0]


def test_many_packs__need_few_open_files(cache, workers):
    entries = filled(cache.path, workers, 40, 1)
    again = DirectoryCache(cache.path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(file.name) for file in Path("/proc/self/fd").iterdir()}
    free = (number for number in count() if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, 20, None)), limits[1]))
    try:
        assert sorted(info.key for info in again.entries()) == sorted(key for key, _ in entries)
        again.sweep(delete=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert len(packs(cache.path)) == 1


def test_entries__of_a_large_index_are_read_in_parts(cache, workers, monkeypatch):
    from evalcube.storage.cache import reader as scan_module

    monkeypatch.setattr(scan_module, "_SHARD_ROWS", 16)
    entries = filled(cache.path, workers)
    again = DirectoryCache(cache.path)
    again.put("00" * 32, b"first")
    again.put("ff" * 32, b"last")

    found = [info.key for info in again.entries()]

    assert found == sorted([*(key for key, _ in entries), "00" * 32, "ff" * 32])
    assert again.get_many([key for key, _ in entries]) == [value for _, value in entries]
    assert again.stats().entries == 102
    index = SealedIndex.open(packs(cache.path)[0].with_suffix(".idx"))
    assert index._handle is not None


def test_memory__a_million_entries(tmp_path):
    import tracemalloc

    from evalcube.storage.cache.packs import Columns, write_index

    cache = DirectoryCache(tmp_path)
    count = 250_000
    for number in range(4):
        token = f"{number:032x}"
        pack = Folders(tmp_path).pack(token)
        with pack.open("wb") as file:
            file.truncate(300 * count)
        names = np.random.default_rng(number).integers(0, 256, (count, 32), np.uint8)
        offsets = np.arange(count, dtype=np.uint64) * np.uint64(300)
        columns = Columns(names, offsets, np.full(count, 252, np.uint32), np.full(count, 1.0))
        write_index(Folders(tmp_path).index(token), columns, 300 * count, tmp_path / "tmp")
    tracemalloc.start()
    reader = DirectoryCache(tmp_path, writable=False)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert kept < 25 * 2**20
    assert reader.get_many([names[7].tobytes().hex()]) == [None]  # found, but there is a hole in its place
    assert reader.damaged_count == 1
    cache.close()
