"""Sends POSTs over aiohttp's connections, without what its session works out anew for each of them.

That is half of all CPU of a small request: headers merged, addresses read, cookies, a task that writes. Here it is done
once for an address and key. aiohttp still opens and keeps the connections (names, TLS, proxies) and parses the reply.
Of what is called here its documentation has `connect` and the connection only; `pyproject.toml` bounds its version from
above for that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TypeVar, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from multidict import CIMultiDictProxy
from yarl import URL

from evalcube.stages.infer.deadline import Deadline

HEADER_BYTES = 8190
"""Bound on one header and on the status line; there are 128 headers at most."""
_SWITCHING_PROTOCOLS = 101
_MOST_HEADS = 32
"""Heads of informational responses that may come before the reply: they can be endless."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_Read = TypeVar("_Read")


class Poster:
    """Sends POSTs to one address.

    Parameters
    ----------
    connections
        Shared with others; one that is idle is used again.
    timeout
        Of a connection.
    deadline
        Of a request as a whole.
    url
        The address.
    headers
        Of all requests.
    proxy
        The way there, if it is not direct.
    """

    def __init__(
        self,
        connections: aiohttp.TCPConnector,
        timeout: aiohttp.ClientTimeout,
        deadline: Deadline,
        url: str,
        headers: Mapping[str, str],
        proxy: str | None,
    ) -> None:
        self._connections = connections
        self._timeout = timeout
        self._deadline = deadline
        self._url = URL(url)
        self._headers = headers
        self._proxy = None if proxy is None else URL(proxy)

    @cached_property
    def _request(self) -> aiohttp.ClientRequest:
        """What all have in common; it asks for connections, and none of it is sent by itself."""
        if self._url.scheme not in {"http", "https"}:
            raise aiohttp.NonHttpUrlClientError(self._url)
        return aiohttp.ClientRequest("POST", self._url, headers=self._headers, proxy=self._proxy)

    @cached_property
    def _head(self) -> str:
        """The lines that all begin with. A proxy that does not just let TLS through is told the whole address."""
        whole = self._proxy is not None and not self._request.is_ssl()
        address = self._url.with_user(None) if whole else self._url.raw_path_qs
        headers = self._request.headers.copy()
        headers.popall("Content-Length", None)  # of no body
        return f"POST {address} HTTP/1.1\r\n{_lines(headers)}"

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | None,
        read: Callable[[int, CIMultiDictProxy[str], aiohttp.StreamReader], Awaitable[_Read]],
    ) -> _Read:
        """Send a request; returns what `read` makes of the reply."""
        loop = asyncio.get_running_loop()
        # Before there is a connection: to wait for one is part of the request's time.
        exchange = self._deadline.begin(loop)
        try:
            connection, protocol = await self._connect()
            try:
                exchange.waits_for(protocol)
                # Only now: aiohttp keeps what arrives unparsed until it knows what kind of reply to expect.
                protocol.set_response_params(
                    read_until_eof=True, max_line_size=HEADER_BYTES, max_field_size=HEADER_BYTES
                )
                head = f"{self._head}Content-Length: {len(body)}\r\n{_lines(headers or {})}\r\n"
                transport = cast("asyncio.Transport", protocol.transport)
                # Head and body at once: one system call, and for most requests one packet.
                transport.write(head.encode() + body)
                message, content = await _read_head(protocol)
                exchange.waits_for(content)
                result = await read(message.code, message.headers, content)
            except BaseException:  # a reply that comes later would be taken for the next request's
                connection.close()
                raise
            connection.release()
            return result
        finally:
            self._deadline.end(exchange)

    async def _connect(self) -> tuple[Connection, ResponseHandler]:
        """A connection that nobody uses."""
        while True:
            try:
                connection = await self._connections.connect(self._request, traces=[], timeout=self._timeout)
            except TimeoutError as error:
                raise aiohttp.ConnectionTimeoutError from error
            protocol = cast("ResponseHandler", connection.protocol)
            if not protocol.should_close:
                return connection, protocol
            connection.close()  # something came that nobody asked for, and would be taken for the reply


async def _read_head(protocol: ResponseHandler) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """The head of the reply, and its body, after informational responses."""
    # `100 Continue` and early hints come before the reply, and say nothing of it.
    for _ in range(_MOST_HEADS):
        message, content = await protocol.read()
        if message.code >= 200 or message.code == _SWITCHING_PROTOCOLS:
            return message, content
    raise HttpProcessingError(message="one informational response after another")


def _lines(headers: Mapping[str, str]) -> str:
    """Headers as they are sent."""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    if any(_CONTROL.search(line, 0, len(line) - 2) for line in lines):
        raise ValueError("a control character in a header")
    return "".join(lines)
