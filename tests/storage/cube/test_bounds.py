"""Objects that claim or unpack to more than any cube has, and servers that lead elsewhere: one error, and no memory."""

import http.server
import io
import itertools
import json
import os
import shutil
import struct
import threading
import tracemalloc
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest
import zstandard

from evalcube.storage.cube import served
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bounds import MOST_DECODED, MOST_OBJECT, refuse_bomb
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError, StorageError
from tests.storage.support.file_server import serving

pytestmark = pytest.mark.long

HUGE = 20 * 2**30


@contextmanager
def lying(folder, answer):
    """A server of files; `answer` may answer a path in its place, and then returns True."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_):
            pass

        def do_GET(self):
            if not answer(self):
                super().do_GET()

        def do_HEAD(self):
            if not answer(self):
                super().do_HEAD()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(served, "RETRIES", 0)


@pytest.fixture
def cube(tmp_path, workers):
    made = workers.make_cube(tmp_path / "c.zarr")
    with Ledger(made.records) as ledger:
        region = next(iter(made.regions()))
        made.write_region(region, workers.region_arrays(made, region, 0))
        ledger.append(workers.make_receipt(0, region))
    return made


def claiming(part, length):
    def answer(handler):
        if part not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(b"x" * 1000)
        return True

    return answer


def read_all(cube):
    list(Ledger(cube.records).receipts())
    cube.summary()
    cube.dataset()["status"].load()
    for region in cube.regions():
        cube.read_region(region)


@pytest.mark.cluster
@pytest.mark.parametrize("part", ["zarr.json", "ledger", "/status/c.", "/params_json/c."])
@pytest.mark.parametrize("length", [MOST_OBJECT - 1, 2**62])
def test_reading__ends_at_a_length_that_is_only_claimed(tmp_path, cube, part, length):
    with lying(tmp_path, claiming(part, length)) as url, pytest.raises(StorageError):
        read_all(Cube.open(f"{url}/c.zarr"))

    read_all(cube)


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
@pytest.mark.parametrize("part", ["zarr.json", "ledger", "/status/c."])
def test_reading__follows_no_redirect_to_another_origin(tmp_path, part):
    with serving(tmp_path) as (other, asked):

        def elsewhere(handler):
            if part not in handler.path:
                return False
            handler.send_response(302)
            handler.send_header("Location", other + handler.path)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True

        with (
            lying(tmp_path, elsewhere) as url,
            pytest.raises(StorageError, match="another host: http"),
        ):
            read_all(Cube.open(f"{url}/c.zarr"))

    assert asked == []


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
def test_reading__of_a_redirect_to_no_address_fails(tmp_path):
    def nowhere(handler):
        handler.send_response(302)
        handler.send_header("Location", "http://[x/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    with (
        lying(tmp_path, nowhere) as url,
        pytest.raises(StorageError, match="server: Inv"),
    ):
        Cube.open(f"{url}/c.zarr")


@pytest.mark.cluster
def test_reading__follows_redirects_within_an_origin(tmp_path, cube):
    shutil.copytree(tmp_path / "c.zarr", tmp_path / "moved" / "c.zarr")

    def moved(handler):
        if handler.path.startswith("/moved"):
            return False
        handler.send_response(301)
        handler.send_header("Location", "/moved" + handler.path)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    with lying(tmp_path, moved) as url:
        assert Cube.open(f"{url}/c.zarr").sizes == cube.sizes


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:1/x",
        "https://one.example/x",
        "http://one.example:81/x",
        "ftp://one.example/x",
        "file:///etc/passwd",
    ],
)
def test_same_origin__is_scheme_host_and_port(target):
    from urllib.request import Request

    asked = Request("http://one.example/c.zarr/zarr.json")

    with pytest.raises(StorageError, match="another host"):
        served._SameOrigin().redirect_request(asked, io.BytesIO(), 302, "", {}, target)


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
def test_ledger__of_a_server_that_has_every_object_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.storage.cube.bucket.records.MOST_OBJECTS", 20)

    def every(handler):
        if "ledger.jsonl" in handler.path:
            handler.send_error(404)
            return True
        if "/ledger/" not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    with lying(tmp_path, every) as url, pytest.raises(CubeDamagedError, match="more than 20 objects"):
        list(Ledger(Cube.open(f"{url}/c.zarr").records).receipts())


def giving(part, content):
    def answer(handler):
        if part not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if handler.command == "GET":
            with suppress(OSError):
                handler.wfile.write(content)
        return True

    return answer


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
@pytest.mark.parametrize(("part", "said"), [("ledger.jsonl", "line is longer"), ("/ledger/", "are the most")])
def test_ledger__of_endless_lines_is_not_read_to_their_end(tmp_path, part, said):
    endless = giving(part, bytes(2**22))
    if part != "ledger.jsonl":
        (tmp_path / "c.zarr" / "_evalcube" / "ledger.jsonl").unlink()
    with lying(tmp_path, endless) as url, pytest.raises(CubeDamagedError, match=said):
        list(Ledger(Cube.open(f"{url}/c.zarr").records).receipts())


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
def test_lease__of_an_endless_record_is_not_read_to_its_end(tmp_path):
    with lying(tmp_path, giving("lease.json", b'{"epoch"'.ljust(2**22))) as url:
        record = Cube.open(f"{url}/c.zarr").records.lease("lease.json").read()

    assert len(record.data) < 2**20


def frame(size):
    """A Zstandard frame of a few bytes that says it holds so many."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"\x01\x00\x00"


BOMBS = {
    "zstd": frame(16 * 2**30),
    "zstd of untold length": zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 100),
    "blosc": struct.pack("<BBBBIII", 2, 1, 0x94, 1, 2**32 - 1, 2**20, 32) + bytes(16),
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_refuse_bomb__by_what_the_header_says(data):
    with pytest.raises(CubeDamagedError, match="would decode to"):
        refuse_bomb("label/c.0", data, "here")

    refuse_bomb("label/zarr.json", data, "here")


@pytest.mark.parametrize("data", [b"", b"x", frame(MOST_DECODED), b"\x28\xb5\x2f\xfd"])
def test_refuse_bomb__leaves_the_rest_to_the_decoder(data):
    refuse_bomb("label/c.0", data, "here")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("zstd", "params_json/c.0.0"),
        ("zstd of untold length", "counters/c.0.0.0.0"),
        ("blosc", "status/c.0.0.0.0.0"),
    ],
)
def test_reading__ends_at_a_chunk_that_is_a_bomb(tmp_path, cube, kind, name):
    path = tmp_path / "c.zarr" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(BOMBS[kind])

    with pytest.raises(CubeDamagedError):
        read_all(Cube.open(cube.url))


@pytest.mark.parametrize(
    "name", ["zarr.json", "params_json/c.0.0", "status/c.0.0.0.0.0", "_evalcube/ledger.jsonl"]
)
def test_reading__ends_at_a_file_that_is_too_long(tmp_path, cube, name):
    os.truncate(tmp_path / "c.zarr" / name, HUGE)

    with pytest.raises(StorageError):
        read_all(Cube.open(cube.url))


def test_label__of_more_texts_than_bytes_takes_no_memory(tmp_path, cube):
    path = tmp_path / "c.zarr" / "task" / "c.0"
    texts = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    path.write_bytes(zstandard.ZstdCompressor().compress(struct.pack("<I", 2**24) + texts[4:]))

    tracemalloc.start()
    try:
        for read in (lambda: cube.read_label("task"), cube.summary, cube.dataset):
            with pytest.raises(CubeDamagedError, match="more texts than"):
                read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2**26


def chain(*names):
    known = {
        "bytes": {"name": "bytes", "configuration": {"endian": "little"}},
        "zstd": {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
        "gzip": {"name": "gzip", "configuration": {"level": 1}},
        "crc32c": {"name": "crc32c"},
        "transpose": {"name": "transpose", "configuration": {"order": [0, 1, 2, 3, 4]}},
    }
    return [known[name] for name in names]


@pytest.mark.parametrize(
    "codecs",
    [
        chain("bytes"),
        chain("bytes", "gzip"),
        chain("bytes", "zstd", "zstd"),
        chain("bytes", "crc32c", "zstd"),
        chain("transpose", "bytes", "zstd"),
        chain("bytes", "zstd", "crc32c", "crc32c"),
    ],
)
def test_open__refuses_other_codecs_than_a_cube_has(tmp_path, cube, codecs):
    path = tmp_path / "c.zarr" / "zarr.json"
    document = json.loads(path.read_text())
    document["consolidated_metadata"]["metadata"]["status"]["codecs"] = codecs
    path.write_text(json.dumps(document))

    with pytest.raises(CubeDamagedError, match="'status' is stored"):
        Cube.open(cube.url)


@pytest.mark.parametrize("name", ["counters", "status", "planned_trials", "duplicate"])
def test_open__refuses_chunks_that_fill_the_memory(tmp_path, cube, name):
    path = tmp_path / "c.zarr" / "zarr.json"
    document = json.loads(path.read_text())
    array = document["consolidated_metadata"]["metadata"][name]
    array["chunk_grid"]["configuration"]["chunk_shape"] = [10**6] * len(array["shape"])
    path.write_text(json.dumps(document))

    with pytest.raises(CubeDamagedError, match=f"'{name}' has|has chunks of"):
        Cube.open(cube.url)


def test_space__has_a_bound_for_whole_objects(tmp_path, cube):
    (tmp_path / "c.zarr" / "more").touch()
    os.truncate(tmp_path / "c.zarr" / "more", MOST_OBJECT + 1)

    with pytest.raises(CubeDamagedError, match="are the most"):
        space_of(cube.url).get("more")

    assert space_of(cube.url).get("more", 10).size == MOST_OBJECT + 1
    assert Region(0, 0, 0) in list(cube.regions())


def test_reading__takes_no_memory_for_what_a_file_does_not_have_or_may_not_have(tmp_path, cube):
    os.truncate(tmp_path / "c.zarr" / "status" / "c.0.0.0.0.0", MOST_OBJECT + 1)

    tracemalloc.start()
    try:
        found = space_of(cube.url).get("zarr.json", MOST_OBJECT)
        with pytest.raises(CubeDamagedError, match="are the most"):
            read_all(cube)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(found.data) == found.size
    assert peak < 2**26


@pytest.mark.cluster
@pytest.mark.usefixtures("cube")
def test_reading__ends_where_a_server_sends_a_byte_now_and_then(tmp_path, monkeypatch):
    minutes, dripping = itertools.count(step=100), []
    monkeypatch.setattr(served, "time", SimpleNamespace(monotonic=lambda: next(minutes) if dripping else 0))

    def drip(handler):
        if "ledger" not in handler.path or handler.command != "GET":
            return False
        dripping.append(handler.path)
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x")
        return True

    with (
        lying(tmp_path, drip) as url,
        pytest.raises(StorageError, match="than 10,000 bytes"),
    ):
        list(Ledger(Cube.open(f"{url}/c.zarr").records).receipts())

    assert len(dripping) == 1
