"""The bytes of packs: which records are found in whole, torn and damaged ones, however they are read."""

import os
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.storage.cache import packs
from evalcube.storage.cache.contract import MAGIC, MOST_BYTES, checksum
from evalcube.storage.cache.packs import HEADER_BYTES, Columns, PackRecord, SealedIndex

LEAST = HEADER_BYTES + len(MAGIC)
KEYS = st.binary(min_size=32, max_size=32)
CONTENTS = st.lists(
    st.tuples(KEYS, st.binary(max_size=150)), min_size=1, max_size=6, unique_by=lambda record: record[0]
)
SALT = packs.salt_of("ab" * 16)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Has a file hold a heading and records, of which one header may be damaged; returns it open and the records."""
    path = tmp_path_factory.mktemp("packs") / "pack"

    def write(contents, start=0, damaged=None):
        data, records = bytearray(start), []
        for number, (key, content) in enumerate(contents):
            records.append(PackRecord(key, len(data), len(content), float(number)))
            data += packs.make_record(key, content, number, SALT)
        if damaged is not None:
            data[records[damaged].offset + 9] ^= 1
        path.write_bytes(data)
        return packs.OpenFile(path), records, len(data)

    return write


def walked(handle, start, stop, **options):
    return list(packs.walk(handle.descriptor, start, stop, SALT, **options))


@given(CONTENTS, st.integers(LEAST, 400), st.integers(0, 70), st.booleans())
def test_walk__finds_every_record_however_much_is_read_at_once(pack, contents, block, start, resume):
    handle, records, size = pack(contents, start)

    with patch.object(packs, "_BLOCK", block):
        assert walked(handle, start, size, resume=resume) == records
        assert walked(handle, records[-1].offset, size, resume=resume) == records[-1:]
        # Torn at the end, be it by one byte: the last one is not there yet.
        assert walked(handle, start, size - 1, resume=resume) == records[:-1]
        assert walked(handle, start, records[-1].offset + HEADER_BYTES - 1, resume=resume) == records[:-1]


@given(CONTENTS, st.integers(LEAST, 400), st.data())
def test_walk__goes_on_behind_a_damaged_header_only_if_it_is_to(pack, contents, block, data):
    contents = [(key, MAGIC + content) for key, content in contents]
    damaged = data.draw(st.integers(0, len(contents) - 1))
    handle, records, size = pack(contents, 5, damaged)

    with patch.object(packs, "_BLOCK", block):
        assert walked(handle, 5, size, resume=False) == records[:damaged]
        assert walked(handle, 5, size, resume=True) == records[:damaged] + records[damaged + 1 :]


def test_walk__is_not_misled_by_a_content_that_looks_like_a_record(pack):
    inner = packs.make_record(b"x" * 32, MAGIC + b"inner", 0, packs.salt_of("cd" * 16))
    handle, records, size = pack([(b"a" * 32, inner), (b"b" * 32, MAGIC)], damaged=0)

    assert walked(handle, 0, size, resume=True) == records[1:]


@given(CONTENTS, st.integers(HEADER_BYTES, 300))
def test_read_content__is_that_of_the_key(pack, contents, first):
    handle, records, size = pack(contents)

    with patch.object(packs, "_FIRST_READ", first):
        for record, (key, content) in zip(records, contents, strict=True):
            assert packs.read_content(handle.descriptor, record.offset, key, SALT) == content
            another = bytes([key[0] ^ 1]) + key[1:]
            assert packs.read_content(handle.descriptor, record.offset, another, SALT) is None
        assert packs.read_content(handle.descriptor, size, contents[0][0], SALT) == b""


def test_read_content__of_a_damaged_header_is_what_follows_and_of_a_cut_file_what_is_left(pack):
    key, content = b"k" * 32, b"content"
    handle, _, size = pack([(key, content)], damaged=0)
    assert packs.read_content(handle.descriptor, 0, key, SALT) == content
    handle, _, size = pack([(key, content)])
    os.truncate(f"/proc/self/fd/{handle.descriptor}", size - 3)

    assert packs.read_content(handle.descriptor, 0, key, SALT) == content[:-3]


@pytest.mark.parametrize(("length", "known"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
def test_header_at__takes_no_length_that_no_entry_has(length, known):
    with patch.object(packs, "len", lambda _: length, create=True):
        data = b"??" + packs.make_record(b"k" * 32, b"", 7.5, SALT)

    assert packs.header_at(data, 2, SALT) == ((length, 7.5, b"k" * 32) if known else None)


def test_intact_records__leave_out_what_is_damaged_at_the_end_alone(pack):
    contents = []
    for number, intact in enumerate([True, False, True, False, False]):
        key = bytes([number]) * 32
        contents.append((key, MAGIC + checksum(key.hex(), b"payload") + (b"payload" if intact else b"other")))
    handle, records, size = pack(contents)

    assert packs.intact_records(handle.descriptor, 0, size, SALT) == records[:3]
    assert packs.intact_records(handle.descriptor, 0, size - 1, SALT) == records[:3]


@given(st.lists(st.tuples(KEYS, st.integers(0, 2**40)), max_size=20), st.integers(1, 200))
def test_index__has_its_records_in_the_order_of_their_keys(pack_index, rows, chunk):
    records = [PackRecord(key, offset, offset % 1000, offset / 7) for key, offset in rows]
    columns = Columns.of(records)

    with patch.object(packs, "_CHUNK", chunk):
        packs.write_index(pack_index, columns, 2**33, pack_index.parent)
        index = SealedIndex.open(pack_index)

    assert (index.count, index.covered) == (len(rows), 2**33)
    expected = columns.sort_by_head()
    heads = sorted(record.key[:8] for record in records)
    assert index.heads().astype(">u8").tobytes() == b"".join(heads)
    for start, stop in ((0, len(rows)), (len(rows) // 3, len(rows) // 2)):
        part, wanted = index.columns(start, stop), expected.columns(start, stop)
        for name in ("keys", "offsets", "lengths", "times"):
            np.testing.assert_array_equal(getattr(part, name), getattr(wanted, name), name)
    np.testing.assert_array_equal(index.offsets(), index.columns().offsets)


@pytest.fixture(scope="module")
def pack_index(tmp_path_factory):
    return tmp_path_factory.mktemp("indexes") / "pack.idx"


def test_index__that_is_missing_cut_or_changed_is_none(tmp_path):
    path = tmp_path / "x.idx"
    assert SealedIndex.open(path) is None
    packs.write_index(path, Columns.of([PackRecord(b"k" * 32, 3, 4, 5.0)]), 99, tmp_path)
    whole = path.read_bytes()
    assert SealedIndex.open(path) is not None

    for place in (0, 4, 8, 16, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert SealedIndex.open(path) is None, place
    for cut in (0, 10, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert SealedIndex.open(path) is None, cut


def test_index__that_is_cut_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "x.idx"
    packs.write_index(path, Columns.of([PackRecord(b"k" * 32, 3, 4, 5.0)] * 9), 99, tmp_path)
    index = SealedIndex.open(path)
    os.truncate(path, 60)

    with pytest.raises(OSError, match="became shorter"):
        index.columns()


def test_columns__are_joined_chosen_and_left_out():
    first, second = (
        Columns.of([PackRecord(bytes([number]) * 32, number, 7, number / 2) for number in numbers])
        for numbers in ((3, 1), (2,))
    )

    both = Columns.concatenate([first, second])

    assert both.offsets.tolist() == [3, 1, 2]
    assert both.sort_by_head().offsets.tolist() == [1, 2, 3]
    assert both.without(lambda offset: offset == 1).times.tolist() == [1.5, 1.0]
    assert (len(both), len(both.take(slice(0, 1)))) == (3, 1)


def test_tokens_in__are_names_of_packs_alone():
    first, second = packs.new_token(), packs.new_token()

    assert packs.tokens_in(
        [f"{second}.pack", f"{first}.idx", "x.pack", f"{first}.pack", f"{first}.pack~"]
    ) == sorted((first, second))
    assert packs.new_token(first)[:16] == first[:16]
    assert packs.new_token(first) != first
    assert packs.salt_of(first) != packs.salt_of(second)
