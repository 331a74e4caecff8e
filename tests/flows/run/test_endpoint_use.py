"""What "not found" means: no such model, a wrong path, or a forgotten /v1."""

import socket
import time
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace

import pytest

from evalcube.flows.run import endpoint_use
from evalcube.stages.infer import wire
from evalcube.stages.infer.endpoint import Endpoint
from tests.cases import with_cases
from tests.stages.infer.echo import Echo, http

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
    monkeypatch.setattr(endpoint_use, "_listing", lambda _, address: LISTS.get(address, (404, [])))
    config = SimpleNamespace(name="m", model=model)

    (line,) = endpoint_use.not_found_lines([config], {"m": Endpoint("m", base)})

    assert line.startswith("m: ")
    assert said in line
    assert ("mostly ends in /v1" in line) == (base == "http://else/api")


def test_not_found_lines__leave_out_models_that_were_not_asked():
    assert endpoint_use.not_found_lines([SimpleNamespace(name="m", model="x")], {}) == []


@with_cases(
    ("reply", "names"),
    [
        (http(b'{"data": [{"id": "good"}, {"id": 7}, {"id": "a\\u0007b"}]}'), (200, ["good"])),
        (http(b"<html>"), (0, [])),
        (http(b'{"data": 3}'), (0, [])),
        (http(b"[" * 100_000), (0, [])),
        (http(b"{}", 404), (404, [])),
        (http(b"", 302, "location: /elsewhere"), (302, [])),
        (None, (0, [])),
    ],
)
def test_listing__takes_any_reply(reply, names):
    with Echo(lambda _: reply) as echo:
        assert endpoint_use._listing(Endpoint("m", echo.base_url), f"{echo.base_url}/models") == names


def test_listing__of_no_server_or_of_a_file_is_nothing():
    for address in ("http://127.0.0.1:9/v1", "file:///etc/passwd"):
        assert endpoint_use._listing(Endpoint("m", "http://127.0.0.1:9/v1"), address) == (0, [])


def test_listing__is_asked_for_with_the_models_key_and_headers(monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-0123456789abcdef")
    with Echo(lambda _: http(b'{"data": [{"id": "good"}, {"id": "sk-0123456789abcdef"}]}')) as echo:
        endpoint = Endpoint("m", echo.base_url, key_env="A_KEY", headers={"X-Team": "blue"})
        assert endpoint_use._listing(endpoint, f"{echo.base_url}/models") == (200, ["good", "[key]"])

    assert len(echo.requests) == 1
    assert b"authorization: bearer sk-0123456789abcdef" in echo.requests[0].lower()
    assert b"x-team: blue" in echo.requests[0].lower()


def test_listing__without_the_key_asks_nothing():
    with Echo() as echo:
        endpoint = Endpoint("m", echo.base_url, key_env="NO_SUCH_KEY")
        assert endpoint_use._listing(endpoint, f"{echo.base_url}/models") == (0, [])

    assert not echo.requests


def test_listing__does_not_wait_for_who_sends_byte_by_byte(monkeypatch):
    def drip(server):
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(200):
                connection.sendall(b" ")
                time.sleep(0.05)

    monkeypatch.setattr(wire, "_PROBE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=drip, args=(server,), daemon=True).start()
        began = time.monotonic()
        base = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert endpoint_use._listing(Endpoint("m", base), f"{base}/models") == (0, [])
    assert time.monotonic() - began < 5
