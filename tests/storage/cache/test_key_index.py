"""Tables beyond a size are mapped, and find what tables in memory find."""

import numpy as np
import pytest

from evalcube.storage.cache import directory, key_index
from evalcube.storage.cache.cache import open_cache, prepare_cache
from evalcube.storage.cache.folders import Folders
from evalcube.storage.cache.key_index import KeyIndex
from evalcube.storage.cache.pack_index import PackIndex


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    monkeypatch.setattr(key_index, "MOST_ROWS", 64)


def filled(rows):
    """An index of so many records in two packs, pushed a few at a time; their keys."""
    index = KeyIndex()
    packs = [index.pack(token) for token in ("a" * 32, "b" * 32)]
    keys = np.random.default_rng(3).integers(0, 256, (rows, 32), np.uint8)
    for at in range(0, rows, 10):
        part = keys[at : at + 10]
        index.push([index.rows(packs[at % 2], part, np.arange(at, at + len(part), dtype=np.uint64))])
    return index, keys


def is_mapped(table):
    return all(isinstance(column, np.memmap) for column in table)


def test_push__holds_little_of_a_large_index_in_memory_and_finds_all():
    index, keys = filled(1000)

    found = index.find_many(keys.tobytes())

    assert sum(len(heads) for heads, _ in index.tables) == 1000
    assert sum(len(table[0]) for table in index.tables if not is_mapped(table)) < 64
    assert [[place.offset for place in found[number]] for number in range(1000)] == [[n] for n in range(1000)]
    assert index.find(keys[7].tobytes())[0].offset == 7


def test_push__where_no_file_can_be_written_everything_is_in_memory(monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(key_index.tempfile, "TemporaryFile", full)

    index, keys = filled(200)

    assert not any(map(is_mapped, index.tables))
    assert len(index.find_many(keys.tobytes())) == 200


@pytest.mark.parametrize("most", [64, 10_000], ids=["mapped", "in memory"])
def test_find__finds_what_is_found_many_at_a_time(monkeypatch, most):
    monkeypatch.setattr(key_index, "MOST_ROWS", most)
    index, keys = filled(300)
    index.add(index.packs[0], keys[5].tobytes(), 999)  # in both packs, and new
    absent = np.random.default_rng(4).integers(0, 256, (50, 32), np.uint8)
    wanted = [key.tobytes() for key in (*keys, *absent, *keys[:1, ::-1])]

    found = index.find_many(b"".join(wanted))

    assert [index.find(key) for key in wanted] == [found.get(number, []) for number in range(len(wanted))]
    assert len(found[5]) == 2


def test_prepare_cache__reads_no_index(tmp_path, monkeypatch):
    with_entry = open_cache(tmp_path / "cache")
    with_entry.put_many([("0" * 64, b"{}")])
    with_entry.close()
    monkeypatch.setattr(directory, "PackIndex", lambda *_: pytest.fail("read"))

    prepare_cache(tmp_path / "cache")

    monkeypatch.setattr(directory, "PackIndex", PackIndex)
    assert open_cache(tmp_path / "cache").get("0" * 64) == b"{}"


def test_prepare_cache__joins_the_packs_of_small_runs_unless_somebody_else_does(tmp_path):
    url, digests = tmp_path / "cache", [f"{number:064x}" for number in range(8)]
    for digest in digests:
        run = open_cache(url)
        run.put_many([(digest, b"{}")])
        run.close()
    reader = open_cache(url, writable=False)
    assert reader.get(digests[0]) == b"{}"

    with Folders(url).exclusive():
        prepare_cache(url)
    assert len(list(url.glob("packs/*.pack"))) == 8
    prepare_cache(url)

    assert len(list(url.glob("packs/*.pack"))) == 1
    for cache in (reader, open_cache(url)):
        assert cache.get_many(digests) == [b"{}"] * 8
