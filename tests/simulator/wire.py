"""Responses as values, their bytes in HTTP/1.1, and how the connection ends after each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from http import HTTPStatus
from itertools import accumulate, takewhile
from typing import NamedTuple

JSON = "application/json"


class Ending(Enum):
    """What becomes of the connection after a response."""

    KEEP = "keep"
    """It serves the next request, if the client wants that."""
    CLOSE = "close"
    """It is closed in an orderly way, with FIN."""
    RESET = "reset"
    """It is reset with RST, as by a crashed server or a firewall."""
    HANG = "hang"
    """Nothing more ever comes."""


class Response(NamedTuple):
    """One response, and the manner of its delivery."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    """Seconds to wait before the first byte."""
    ending: Ending = Ending.KEEP
    head_share: float = 1.0
    """Share of the head that is sent; below 1 the body is not sent at all."""
    body_share: float = 1.0
    """Share of the body that is sent; content-length is that of the whole."""
    drip: float = 0.0
    """Seconds between single bytes of the body; 0 sends it at once."""
    events: tuple[bytes, ...] = ()
    """The body in the chunks of a stream; `body` is empty then."""
    pace: float = 0.0
    """Seconds between the chunks; 0 sends all at once."""


def json_response(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A response with a JSON value."""
    return Response(json.dumps(value, separators=(",", ":")).encode(), status, JSON, headers)


def error_response(
    status: int, message: str, code: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """A response with an error, as OpenAI's API has it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error: Mapping[str, object] = {"message": message, "type": kind, "param": None, "code": code}
    return json_response({"error": error}, status, headers)


def encode(
    response: Response, *, keep_alive: bool = True, head_only: bool = False, old: bool = False
) -> tuple[bytes, bytes]:
    """Bytes of head and body, each cut to the response's share.

    Parameters
    ----------
    response
        The response.
    keep_alive
        Whether the connection stays open; if not, the head has ``connection: close``.
    head_only
        Whether to leave the body out, as for HEAD.
    old
        Whether the client speaks HTTP/1.0: it needs ``connection: keep-alive``, and knows no chunks.
    """
    body = response.body
    if response.events:
        body = b"".join(response.events if old else _framed(response))
    lines = (
        f"HTTP/1.1 {response.status} {_reason(response.status)}\r\ncontent-type: {response.content_type}\r\n"
    )
    for name, value in response.headers:
        lines += f"{name}: {value}\r\n"
    if not keep_alive:
        lines += "connection: close\r\n"
    elif old:
        lines += "connection: keep-alive\r\n"
    size = "transfer-encoding: chunked" if response.events and not old else f"content-length: {len(body)}"
    head = f"{lines}{size}\r\n\r\n".encode("latin-1", errors="replace")
    if response.head_share < 1.0:
        return head[: int(len(head) * response.head_share)], b""
    if response.body_share < 1.0:
        body = body[: int(len(body) * response.body_share)]
    return head, b"" if head_only else body


def _framed(response: Response) -> list[bytes]:
    """The chunks of a stream as HTTP/1.1 has them; the empty one that ends it is part of the last."""
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in response.events]
    chunks[-1] += b"0\r\n\r\n"
    return chunks


def steps(response: Response, size: int) -> Sequence[int]:
    """Where a body is paused, in bytes from its start and its end included; empty if it is sent at once.

    Parameters
    ----------
    response
        Has the pace.
    size
        Bytes of the body, which may be cut.
    """
    if response.drip > 0.0:
        return range(1, size + 1)
    if not response.pace > 0.0:
        return ()
    ends = accumulate(map(len, _framed(response)))
    return [*takewhile(lambda end: end < size, ends), size]


_REASONS = {int(status): status.phrase for status in HTTPStatus}


def _reason(status: int) -> str:
    return _REASONS.get(status, "Unknown")
