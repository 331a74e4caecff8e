"""Files that anyone may have made are read within bounds, and every refusal says where."""

import io
import json
import struct
import zipfile
import zlib
from contextlib import contextmanager

import pytest
import zstandard

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports import bounded
from evalcube.flows.share.imports.bounded import Archive, content_text, finite, flatten, lines, parse, whole


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


def zstd_archive(path, name, data, size=None):
    """A ZIP of one member by method 93, which `zipfile` does not write; `size` is what the directory claims."""
    packed, crc = zstandard.ZstdCompressor().compress(data), zlib.crc32(data)
    size = len(data) if size is None else size
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 63, 0, 93, 0, 0, crc, len(packed), size, len(name), 0)
    central = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 63, 63, 0, 93, 0, 0, crc, len(packed), size, len(name), 0, 0, 0, 0, 0, 0
    )
    end = struct.pack(
        "<4s4H2IH",
        b"PK\x05\x06",
        0,
        0,
        1,
        1,
        len(central) + len(name),
        len(local) + len(name) + len(packed),
        0,
    )
    path.write_bytes(local + name.encode() + packed + central + name.encode() + end)
    return path


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": ', "1" * 5000, ""], ids=["deep", "cut", "digits", "empty"]
)
def test_parse__refuses_with_the_place(text):
    with pytest.raises(SweepError, match=r"^log\.eval, x: "):
        parse(text, "log.eval, x")


def test_lines__pass_over_empty_ones_and_read_packed_files(tmp_path):
    import gzip

    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":1}\n\n{"a":2}'))

    assert list(lines(path)) == [(1, b'{"a":1}\n'), (3, b'{"a":2}')]


def test_lines__refuse_what_is_cut_or_too_long(tmp_path, monkeypatch):
    import gzip

    cut = tmp_path / "a.jsonl.gz"
    cut.write_bytes(gzip.compress(b"x" * 50)[:-10])
    long = tmp_path / "b.jsonl"
    long.write_bytes(b"x" * 100)
    monkeypatch.setattr(bounded, "MOST_DOCUMENT", 99)

    with pytest.raises(SweepError, match=r"a\.jsonl\.gz: "):
        list(lines(cut))
    with pytest.raises(SweepError, match=r"b\.jsonl, line 1: "):
        list(lines(long))


def test_whole__refuses_what_is_too_large(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 100)

    assert len(whole(path, 100)) == 100
    with pytest.raises(SweepError, match=r"a\.json"):
        whole(path, 99)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archive__reads_members(tmp_path, method):
    path = archive(tmp_path / "a.eval", {"a.json": b"{}" * 500, "b/c.json": b"[]"}, method)

    with Archive(path) as opened:
        assert opened.names == ["a.json", "b/c.json"]
        assert opened.read_member("a.json") == b"{}" * 500
        assert opened.read_member("b/c.json") == b"[]"


def test_archive__reads_zstandard_within_the_size_that_the_directory_says(tmp_path):
    with Archive(zstd_archive(tmp_path / "a.eval", "a.json", b"x" * 1000)) as opened:
        assert opened.read_member("a.json") == b"x" * 1000
    bomb = zstd_archive(tmp_path / "b.eval", "a.json", b"x" * 10_000_000, size=10)
    with Archive(bomb) as opened, pytest.raises(SweepError, match=r"b\.eval, a\.json: "):
        opened.read_member("a.json")


def test_archive__refuses_bombs_before_anything_is_unpacked(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.eval", {"a.json": b"\0" * 1_000_000})
    monkeypatch.setattr(bounded, "_MOST_UNPACKED", 1000)
    files = []
    real = bounded.open_log

    @contextmanager
    def watched(name):
        with real(name) as file:
            files.append(file)
            yield file

    monkeypatch.setattr(bounded, "open_log", watched)

    with pytest.raises(SweepError) as refusal:
        Archive(path)
    assert [file.closed for file in files] == [True]
    refusal.match(r"it would unpack from [\d,]+ to 1,000,000 bytes")


def test_archive__refuses_large_members(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.eval", {"a.json": b"\0" * 1000})
    monkeypatch.setattr(bounded, "MOST_DOCUMENT", 999)

    with Archive(path) as opened, pytest.raises(SweepError, match=r"a\.json: a document"):
        opened.read_member("a.json")


def test_archive__refuses_changed_bytes(tmp_path):
    path = archive(tmp_path / "a.eval", {"a.json": b"abcdefgh" * 10}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"abcd")] ^= 1
    path.write_bytes(data)

    with Archive(path) as opened, pytest.raises(SweepError, match="it is damaged"):
        opened.read_member("a.json")


def test_archive__refuses_a_member_beyond_what_a_file_can_have(tmp_path):
    path = archive(tmp_path / "a.eval", {"a.json": b"{}"})
    data = path.read_bytes()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    extra = struct.pack("<HHQ", 1, 8, 2**63)  # the member's place, in 64 bits
    entry = data[start : start + 30] + struct.pack("<H", len(extra)) + data[start + 32 : start + 42]
    entry += b"\xff" * 4 + b"a.json" + extra
    tail = data[end : end + 12] + struct.pack("<I", len(entry)) + data[end + 16 :]
    path.write_bytes(data[:start] + entry + tail)

    with Archive(path) as opened, pytest.raises(SweepError, match=r"a\.json: it cannot"):
        opened.read_member("a.json")


@pytest.mark.parametrize("cut", [5, 60, 100])
def test_archive__refuses_what_is_no_zip(tmp_path, cut):
    path = archive(tmp_path / "a.eval", {"a.json": b"{}"})
    path.write_bytes(path.read_bytes()[:cut])

    with pytest.raises(SweepError, match=r"a\.eval"), Archive(path) as opened:
        opened.read_member("a.json")


def test_archive__takes_the_last_of_equal_names(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("a.json", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            made.writestr("a.json", b"2")
    (tmp_path / "a.eval").write_bytes(buffer.getvalue())

    with Archive(tmp_path / "a.eval") as opened:
        assert opened.read_member("a.json") == b"2"


def test_finite__takes_numbers_only():
    values = [1, 0.5, True, "1", float("nan"), float("inf"), 10**400, 1e300, None]

    assert [finite(value) for value in values] == [1.0, 0.5, *[None] * 7]


def test_flattened__names_roles_of_several_messages_only():
    one = [{"role": "user", "content": "Hi"}]
    parts = [
        {"type": "text", "text": "See"},
        {"type": "image", "image": "data:..."},
        {"type": "reasoning", "text": "x"},
    ]

    assert flatten("Hi") == flatten(one) == "Hi"
    assert flatten([{"role": "system", "content": "Be brief."}, *one]) == "system: Be brief.\n\nuser: Hi"
    assert content_text(parts) == "See\n[image]"
    assert flatten(json.loads('[null, 3, {"role": 1}]')) == "\n\n\n\n"
