"""Archives of a cache: what goes in comes out, and nothing hostile does."""

import io
import os
import tarfile
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from evalcube.storage.cache.archive import read_archive, write_archive
from evalcube.storage.cache.contract import encode
from evalcube.storage.errors import StorageError
from evalcube.storage.files import replaced
from tests.cases import with_cases

KEY, OTHER = "ab" * 32, "cd" * 32
KEYS = st.binary(min_size=32, max_size=32).map(bytes.hex)


def entry(key, value):
    return key, encode(key, value, zstandard.ZstdCompressor())


def archive(*items):
    file = io.BytesIO()
    write_archive(file, [entry(*item) for item in items])
    return file.getvalue()


def read(data):
    return list(read_archive(io.BytesIO(data), "some.tar.zst"))


@given(st.dictionaries(KEYS, st.binary(max_size=1500), max_size=5))
def test_archive__round_trip_and_equal_bytes(values):
    items = list(values.items())

    assert read(archive(*items)) == items
    assert archive(*items) == archive(*items)


def test_archive__is_a_plain_tar_for_other_tools():
    data = zstandard.ZstdDecompressor().stream_reader(archive((KEY, b"x"))).read()

    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == [f"{KEY[:2]}/{KEY[2:]}", "evalcube-cache.json"]


def test_read_archive__every_cut_is_noticed():
    data = archive((KEY, os.urandom(600)), (OTHER, b"y"))
    for size in range(0, len(data) - 1, 7):
        with pytest.raises(StorageError, match="not an archive"):
            read(data[:size])


def test_read_archive__every_flipped_byte_is_noticed_or_harmless():
    items = [(KEY, b"value" * 40), (OTHER, b"y")]
    data = archive(*items)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x55
        try:
            assert read(bytes(damaged)) == items
        except StorageError:
            continue


def packed(*members, last=True):
    """An archive of raw members: (name, content, changes to the header)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content, changes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for field, value in changes.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(content))
        if last:
            text = b'{"format": 1, "entries": 1}'
            info = tarfile.TarInfo("evalcube-cache.json")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return zstandard.ZstdCompressor().compress(raw.getvalue())


GOOD_NAME = f"{KEY[:2]}/{KEY[2:]}"
GOOD = entry(KEY, b"x")[1]
HOSTILE = {
    "path upwards": ("../" + GOOD_NAME, GOOD, {}),
    "absolute path": ("/etc/cron.d/x", GOOD, {}),
    "name too long": ("a" * 300, GOOD, {}),
    "symbolic link": (GOOD_NAME, GOOD, {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
    "hard link": (GOOD_NAME, GOOD, {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
    "directory": (GOOD_NAME, GOOD, {"type": tarfile.DIRTYPE}),
    "device": (GOOD_NAME, GOOD, {"type": tarfile.CHRTYPE}),
    "fifo": (GOOD_NAME, GOOD, {"type": tarfile.FIFOTYPE}),
    "other key": (f"{OTHER[:2]}/{OTHER[2:]}", GOOD, {}),
    "damaged": (GOOD_NAME, GOOD[:-1], {}),
    "empty": (GOOD_NAME, b"", {}),
}


@with_cases("name", HOSTILE)
def test_read_archive__refuses_all_but_entries(name):
    with pytest.raises(StorageError, match="not an archive") as caught:
        read(packed(HOSTILE[name]))

    assert "\n" not in str(caught.value)


def test_read_archive__the_count_has_to_fit():
    assert read(packed((GOOD_NAME, GOOD, {}))) == [(KEY, b"x")]
    for members, last in (([], True), ([(GOOD_NAME, GOOD, {})], False)):
        with pytest.raises(StorageError, match="not an archive"):
            read(packed(*members, last=last))


@pytest.mark.parametrize("size", [10**9, -1])
def test_read_archive__a_bomb_does_not_fill_the_memory(size):
    header = tarfile.TarInfo(GOOD_NAME)
    header.size = max(size, 0)
    block = header.tobuf(tarfile.USTAR_FORMAT)
    longname = tarfile.TarInfo("././@LongLink")
    longname.type, longname.size = tarfile.GNUTYPE_LONGNAME, 60 * 2**20
    for head in (block, longname.tobuf(tarfile.GNU_FORMAT)):
        bomb = zstandard.ZstdCompressor().compress(head + bytes(60 * 2**20))
        tracemalloc.start()
        with pytest.raises(StorageError, match="not an archive"):
            read(bomb)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 20 * 2**20


def test_read_archive__a_wide_window_is_refused():
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    with pytest.raises(StorageError, match="cannot be decompressed"):
        read(compressor.compress(bytes(2**20)) + compressor.flush())


def test_replaced__a_failure_leaves_the_old_file_and_no_other(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"old")

    def fail():
        with replaced(file) as out:
            out.write(b"new")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert file.read_bytes() == b"old"
    with replaced(file) as out:
        out.write(b"new")
    assert file.read_bytes() == b"new"
