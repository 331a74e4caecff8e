import http.client
import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from tests.simulator.managed import Simulator
from tests.waiting import PATIENCE


class Client:
    """Talks to a running simulator, one connection a request."""

    def __init__(self, server: Simulator) -> None:
        self.server = server
        self.host, _, port = server.address.removeprefix("http://").partition(":")
        self.port = int(port)

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def chat(
        self, body: bytes | None = None, truth: Truth | None = None, headers: dict[str, str] | None = None
    ):
        extra = {} if truth is None else {HEADER: encode(truth)}
        return self.send(
            "POST",
            "/v1/chat/completions",
            chat_body() if body is None else body,
            {**extra, **(headers or {})},
        )

    def faults(self, *rules: dict[str, Any]) -> None:
        status, _, body = self.send("POST", "/control/faults", json.dumps(rules).encode())
        assert status == 200, body

    def stats(self) -> dict[str, Any]:
        return json.loads(self.send("GET", "/control/stats")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def raw(self, *pieces: bytes, answers: int = 0) -> bytes:
        """Send pieces, then read until the server closes, or until there are so many whole answers and no more."""
        with self.connect() as peer:
            for piece in pieces:
                peer.sendall(piece)
            return read_all(peer, answers)


def read_all(peer: socket.socket, answers: int) -> bytes:
    read = b""
    whole = False
    try:
        while part := peer.recv(1 << 16):
            read += part
            if answers and not whole:
                whole = whole_answers(read) >= answers
                peer.settimeout(0.4 if whole else PATIENCE)
    except TimeoutError:
        assert whole, read[-1000:]
    return read


def whole_answers(read: bytes) -> int:
    """Number of answers that have come with all of their body."""
    count = at = 0
    while (end := read.find(b"\r\n\r\n", at)) >= 0:
        length = re.search(rb"content-length: (\d+)", read[at:end])
        at = end + 4 + (0 if length is None else int(length[1]))
        if at > len(read):
            break
        count += 1
    return count


def chat_body(text: str = "What is 20 + 21?", profile: Profile | None = None, **fields: object) -> bytes:
    model = (profile or Profile()).model_name("m")
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": model, "messages": messages, **fields}).encode()


@pytest.fixture(name="chat_body")
def _chat_body() -> Callable[..., bytes]:
    return chat_body


@pytest.fixture(scope="session")
def running() -> Iterator[Simulator]:
    with Simulator() as server:
        yield server


@pytest.fixture
def client(running: Simulator) -> Iterator[Client]:
    client = Client(running)
    client.faults()
    client.send("POST", "/control/reset")
    yield client
    client.faults()


@pytest.fixture
def connect_to() -> Callable[[Simulator], Client]:
    return Client
