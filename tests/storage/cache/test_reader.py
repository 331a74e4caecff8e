"""What is read of packs that are damaged, or after a failure: never a wrong value, and all that is whole."""

import os
import random

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packed import EARLIER_BOOT, KEY, OTHER, copied, find, indexes, make_pack, overwrite, packs, raw, records

from evalcube.storage.cache import pack_index as pack_index_module
from evalcube.storage.cache.cache import DirectoryCache
from evalcube.storage.cache.contract import MAX_VALUE, checksum, encode
from evalcube.storage.errors import DiskFullError, StorageError


@pytest.fixture
def cache(tmp_path):
    return DirectoryCache(tmp_path / "cache")


def content(key, value):
    return encode(key, value, zstandard.ZstdCompressor())


def test_reload__keeps_what_is_being_written_whatever_else_is_begun(cache):
    cache._index.register(f"{1:032x}")  # its file is not there yet
    cache.put(KEY, b"x")

    cache._index.reload()

    assert cache.get(KEY) == b"x"


def test_get__refuses_a_bomb_that_passes_the_checksum(cache):
    bomb = zstandard.ZstdCompressor().compress(b"\0" * (MAX_VALUE + 1))
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(b"x")
    payloads = (bomb, unsized, b"", b"no frame", zstandard.ZstdCompressor().compress(b"x") + b"more")
    for number, payload in enumerate(payloads):
        made = b"EVC1" + checksum(KEY, payload) + payload
        make_pack(cache.path, [(KEY, made)], token=f"{number:032x}")

    found = DirectoryCache(cache.path)

    assert found.get(KEY) is None
    assert found.damaged_count == len(payloads)


def test_damage__copied_once_healed_by_a_put_and_gone_when_all_is_closed(cache):
    cache.put_many([(KEY, b"good" * 100), (OTHER, b"fine")])
    overwrite(cache.path, KEY, b"bad")
    bad = raw(cache.path, KEY)
    cache.close()

    other = DirectoryCache(cache.path)
    for one in (cache, other, cache):
        assert one.get(KEY) is None
    (copy,) = (cache.path / "damaged").iterdir()
    assert copy.name.startswith(KEY)
    assert copy.read_bytes() == bad
    assert [info.key for info in DirectoryCache(cache.path).entries()] == [OTHER]
    assert other.put(KEY, b"new")
    assert other.get(KEY) == DirectoryCache(cache.path).get(KEY) == b"new"
    assert cache.put(KEY, b"late") is False
    assert cache.get(KEY) == b"new"


def test_damage__of_one_of_two_records_costs_nothing(cache):
    other = DirectoryCache(cache.path)
    other.put(KEY, b"value")
    cache.put(KEY, b"value")
    pack, record = find(cache.path, KEY)
    data = bytearray(pack.read_bytes())
    data[record.end - 1] ^= 1
    pack.write_bytes(data)

    reader = DirectoryCache(cache.path)

    assert reader.get_many([KEY]) == [b"value"]
    assert reader.contents([KEY]) == [content(KEY, b"value")]
    assert reader.damaged_count == 1


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("at", [0, 5, 20, 47])
def test_damage__of_a_header_hides_no_other_record(cache, tmp_path, workers, sealed, at):
    entries = [workers.entry("headers", number) for number in range(9)]
    cache.put_many(entries)
    if sealed:
        cache.close()
    path = copied(cache, tmp_path / "after")
    pack, record = find(path, entries[4][0])
    data = bytearray(pack.read_bytes())
    data[record.offset + at] ^= 1
    pack.write_bytes(data)

    for one in (DirectoryCache(path, writable=False), DirectoryCache(path)):
        found = [one.get(key) for key, _ in entries]
        assert [value for key, value in entries if key != entries[4][0]] == found[:4] + found[5:]
        assert found[4] is None


def test_walk__a_reply_that_looks_like_a_record_is_none(cache, tmp_path):
    key = os.urandom(32).hex()  # nothing that a compressor takes apart
    pack = make_pack(cache.path, [(key, content(key, os.urandom(99)))])
    (forged,) = records(pack)
    reply = pack.read_bytes()[forged.offset : forged.end]
    pack.unlink()
    cache.put_many([(KEY, reply), (OTHER, b"x")])
    path = copied(cache, tmp_path / "after")
    victim, record = find(path, KEY)
    data = bytearray(victim.read_bytes())
    assert data.count(reply) == 1
    data[record.offset] ^= 1
    victim.write_bytes(data)

    after = DirectoryCache(path)

    assert after.get(key) is None
    assert after.get(OTHER) == b"x"


@pytest.mark.parametrize("damage", ["gone", "flipped", "cut", "empty", "other"])
def test_index__is_made_anew_when_it_is_damaged(cache, workers, damage):
    entries = [workers.entry("index", number) for number in range(30)]
    cache.put_many(entries)
    cache.close()
    (index,) = indexes(cache.path)
    whole = index.read_bytes()
    broken = {
        "flipped": whole[:700] + bytes([whole[700] ^ 4]) + whole[701:],
        "cut": whole[:-1],
        "empty": b"",
        "other": bytes(len(whole)),
    }
    index.unlink() if damage == "gone" else index.write_bytes(broken[damage])
    reader = DirectoryCache(cache.path, writable=False)
    assert reader.get_many([key for key, _ in entries]) == [value for _, value in entries]
    assert reader.stats().entries == 30

    writer = DirectoryCache(cache.path)

    assert [writer.get(key) for key, _ in entries] == [value for _, value in entries]
    if damage != "gone":  # as long as this process lives, the pack might be written
        assert index.read_bytes() == whole


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_read__never_a_wrong_value_and_never_an_error(tmp_path_factory, data):
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    path = tmp_path_factory.mktemp("any")
    entries = [(rng.randbytes(32).hex(), rng.randbytes(rng.randrange(200))) for _ in range(8)]
    cache = DirectoryCache(path / "cache")
    cache.put_many(entries[:5])
    if data.draw(st.booleans()):
        cache.close()
    cache.put_many(entries[5:])
    after = copied(cache, path / "after", data.draw(st.sampled_from([EARLIER_BOOT, None])) or EARLIER_BOOT)
    files = [*packs(after), *indexes(after)]
    for _ in range(data.draw(st.integers(1, 4))):
        file = data.draw(st.sampled_from(files))
        content = bytearray(file.read_bytes())
        start, stop = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
        content[start : min(stop, start + 60)] = data.draw(st.binary(max_size=60))
        file.write_bytes(content)

    for options in ({"writable": False}, {}):
        found = DirectoryCache(after, **options)
        values = found.get_many([key for key, _ in entries])
        assert values == [found.get(key) for key, _ in entries]
        for (_, value), read in zip(entries, values, strict=True):
            assert read in (None, value)
        found.stats()
        assert list(found.entries()) is not None
    healed = DirectoryCache(after)
    healed.put_many(entries)
    assert healed.get_many([key for key, _ in entries]) == [value for _, value in entries]
    healed.close()
    assert DirectoryCache(after).get_many([key for key, _ in entries]) == [value for _, value in entries]


def test_get__finds_all_after_reading_one_of_several_packs_has_failed(cache, workers, monkeypatch):
    entries = [workers.entry("several", number) for number in range(3)]
    writers = [DirectoryCache(cache.path) for _ in entries]
    for writer, (key, value) in zip(writers, entries, strict=True):
        writer.put(key, value)
    read = pack_index_module.PackIndex._new_records
    seen = []

    def fail(index, key_index, pack, names):
        seen.append(pack)
        if len(seen) == 3:
            raise OSError(24, "Too many open files")
        return read(index, key_index, pack, names)

    monkeypatch.setattr(pack_index_module.PackIndex, "_new_records", fail)
    with pytest.raises(StorageError, match="open files"):
        cache.get(entries[0][0])

    assert [cache.get(key) for key, _ in entries] == [value for _, value in entries]


def test_commit__a_deleted_pack_is_written_anew_after_a_failure_too(cache, workers, monkeypatch):
    entries = [workers.entry("gone", number) for number in range(4)]
    pwrite = os.pwrite

    def fail(*_):
        raise OSError(28, "No space left on device")

    cache.put_many(entries[:3])
    packs(cache.path)[0].unlink()
    cache.put(*entries[3])
    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(DiskFullError):
        cache.commit()
    monkeypatch.setattr(os, "pwrite", pwrite)
    cache.commit()

    found = DirectoryCache(cache.path).get_many([key for key, _ in entries])
    assert found == [value for _, value in entries]
