"""What "not found" means: no such model, a wrong path, or a forgotten /v1."""

import io
import socket
import time
import urllib.error
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace

import pytest

from evalcube.flows.run import endpoint_use
from evalcube.stages.infer.endpoint import Endpoint

BASE = "http://host:8000"
LISTS = {
    f"{BASE}/v1/models": (200, ["good", "better"]),
    "http://asks-for-a-key/v1/models": (401, []),
    "http://plain/models": (403, []),
}


@pytest.mark.parametrize(
    ("base", "model", "said"),
    [
        (BASE, "good", f"Write `endpoint: {BASE}/v1`"),
        (f"{BASE}/v1", "goood", f"{BASE}/v1 has no model 'goood'. Did you mean `model: good`?"),
        (f"{BASE}/v1", "zzz", "It has: good, better"),
        (f"{BASE}/v1", "good", "knows no model 'good', or has no /chat/completions"),
        ("http://asks-for-a-key", "good", "Write `endpoint: http://asks-for-a-key/v1`"),
        ("http://asks-for-a-key/v1", "good", "knows no model 'good'"),
        ("http://plain", "good", "knows no model 'good'"),
        ("http://else/api", "good", "nothing is at http://else/api/chat/completions, or no model 'good'"),
        ("http://else/v1", "good", "Look at `endpoint`"),
    ],
)
def test_not_found_lines__tell_the_causes_apart(monkeypatch, base, model, said):
    monkeypatch.setattr(endpoint_use, "_listing", lambda address: LISTS.get(address, (404, [])))
    config = SimpleNamespace(name="m", model=model)

    (line,) = endpoint_use.not_found_lines([config], {"m": Endpoint("m", base)})

    assert line.startswith("m: ")
    assert said in line


def test_not_found_lines__leave_out_models_that_were_not_asked():
    assert endpoint_use.not_found_lines([SimpleNamespace(name="m", model="x")], {}) == []


class Reply(io.BytesIO):
    """A reply that urllib would give."""

    status = 200


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"data": [{"id": "good"}, {"id": 7}, {"id": "a\\u0007b"}]}', (200, ["good"])),
        (b"<html>", (0, [])),
        (b'{"data": 3}', (0, [])),
        (b"[" * 100_000, (0, [])),
        (OSError("away"), (0, [])),
        (urllib.error.HTTPError(BASE, 404, "no", {}, io.BytesIO()), (404, [])),
    ],
)
def test_listing__takes_any_reply(monkeypatch, body, found):
    class Opener:
        def open(self, _address, timeout):
            assert timeout <= 10
            if isinstance(body, Exception):
                raise body
            return Reply(body)

    monkeypatch.setattr(endpoint_use.urllib.request, "build_opener", lambda *_: Opener())

    assert endpoint_use._listing(f"{BASE}/models") == found
    assert endpoint_use._listing("file:///etc/passwd") == (0, [])


def test_listing__does_not_wait_for_who_sends_byte_by_byte(monkeypatch):
    def drip(server):
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(200):
                connection.sendall(b" ")
                time.sleep(0.05)

    monkeypatch.setattr(endpoint_use, "_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=drip, args=(server,), daemon=True).start()
        began = time.monotonic()
        assert endpoint_use._listing(f"http://127.0.0.1:{server.getsockname()[1]}/models") == (0, [])
    assert time.monotonic() - began < 5
