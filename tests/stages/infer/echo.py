"""A minimal HTTP server that remembers raw requests and answers with bytes of the test's choice, also over TLS."""

import json
import socket
import ssl
import threading
from collections.abc import Callable

GOOD = json.dumps(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
).encode()


def http(body: bytes, status: int = 200, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{lines}\r\n".encode() + body


class Echo:
    """Serves until the `with` block ends.

    `answer` makes the response's bytes from those of the request; None closes the connection instead.
    """

    def __init__(
        self,
        answer: Callable[[bytes], bytes | None] = lambda _: http(GOOD),
        *,
        port: int = 0,
        delay: float = 0.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        self._delay = delay
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def base_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Echo":
        self._begin(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and all connections."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _begin(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                peer, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._begin(self._serve, peer)
        self._listener.close()

    def _serve(self, peer: socket.socket) -> None:
        try:
            peer.settimeout(60.0)
            if self._tls is not None:
                peer = self._tls.wrap_socket(peer, server_side=True)
            peer.settimeout(0.05)
            while (request := self._receive(peer)) is not None:
                self.requests.append(request)
                self._over.wait(self._delay)
                answer = self._answer(request)
                if answer is None:
                    return
                peer.settimeout(60.0)  # of whoever reads late
                peer.sendall(answer)
                peer.settimeout(0.05)
        except OSError:
            pass
        finally:
            peer.close()

    def _receive(self, peer: socket.socket) -> bytes | None:
        data = b""
        while not self._over.is_set():
            head, end, body = data.partition(b"\r\n\r\n")
            if end:
                lengths = (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-len")
                )
                length = next(lengths, 0)  # a request without a body says none
                if len(body) >= length:
                    return data
            try:
                part = peer.recv(1 << 16)
            except TimeoutError:
                continue
            if not part:
                return None
            data += part
        return None
