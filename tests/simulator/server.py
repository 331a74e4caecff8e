"""The simulator's HTTP/1.1 server on asyncio, with keep-alive, pipelining, and connections that fail on purpose."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import cast

import httptools

from evalcube.deploy.simulator.truth import HEADER
from tests.simulator.app import Application, Request
from tests.simulator.counts import Ticket
from tests.simulator.wire import Ending, Response, encode, error_response, steps

MAX_BODY = 16 << 20
"""Bytes of a request's body."""
MAX_FILE = 256 << 20
"""Bytes of an upload."""
MAX_HEAD = 64 << 10
"""Bytes of a request's head."""
MAX_PIPELINED = 64
"""Responses that may wait on a connection before no more requests are read from it."""
LINGER = 1.0
"""Seconds in which the rest of a refused request is read and dropped, so that the client sees the refusal."""

_TRUTH = HEADER.encode()
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Slot:
    """One response in the order of its connection; `ready` once its delay is over.

    Parameters
    ----------
    head
        Bytes of the head, as far as it is sent.
    body
        Bytes of the body, as far as it is sent.
    ending
        What becomes of the connection afterwards.
    """

    __slots__ = ("body", "ending", "head", "ready", "response", "steps", "ticket", "timer")

    def __init__(self, head: bytes, body: bytes, ending: Ending) -> None:
        self.head = head
        self.body = body
        self.ending = ending
        self.ready = True
        self.ticket: Ticket | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.response: Response | None = None
        self.steps: Sequence[int] = ()
        """Where the body is paused, in bytes from its start."""


class Connection(asyncio.Protocol):
    """One client connection.

    Requests may come in pieces or several at once; responses leave in the order of the requests.

    Parameters
    ----------
    application
        Answers the requests.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._slots: deque[Slot] = deque()
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._deaf = False
        """Whether all further requests are ignored."""
        self._busy = False
        """Whether no response may leave, because one is dripping or the connection is about to end."""
        self._full = False
        """Whether the client reads too slowly."""
        self._head = 0
        """Number of the request whose head is being read, 0 between a head's end and the next beginning."""
        self._head_size = 0
        self._heads = 0
        self._clear()

    def _clear(self) -> None:
        self._url = b""
        self._truth = b""
        self._keys: dict[bytes, bytes] = {}
        self._expect = False
        self._size = 0
        self._pieces: list[bytes] = []

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Read requests, and write the responses that are due."""
        if self._deaf:
            return
        head = self._head
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(error_response(400, "upgrades are not supported", "invalid_upgrade"))
        except httptools.HttpParserError:
            self._refuse(error_response(400, "this is no HTTP request", "invalid_http"))
        # The parser has no limit of its own: a head that never ends would be read for ever.
        if head and head == self._head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(error_response(431, "the request's head is too large", "head_too_large"))
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Drop all that was not delivered."""
        self._deaf = True
        # Each ticket has to go back, or its request would count as in flight until the server ends.
        for slot in self._slots:
            self._drop(slot)
        self._slots.clear()

    def pause_writing(self) -> None:
        """Take no more requests from a client that does not read."""
        self._full = True
        self._throttle()

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._flush()

    # called by the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._heads += 1
        self._head = self._heads
        self._head_size = 0
        self._clear()

    def on_url(self, url: bytes) -> None:
        """Gather the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the few headers that matter."""
        name = name.lower()
        if name == _TRUTH:
            self._truth = value
        elif name in (b"authorization", b"x-api-key", b"anthropic-version", b"x-goog-api-key"):
            self._keys[name] = value
        elif name == b"expect":
            self._expect = value.lower() == b"100-continue"
        elif name == b"content-length" and value.isdigit() and (len(value) > 18 or int(value) > self._most):
            self._size = self._most + 1

    def on_headers_complete(self) -> None:
        """Check what can be checked before the body."""
        self._head = 0
        if self._size > self._most:
            self._refuse_size()
        elif self._expect and not self._deaf:
            # In the queue like a response: earlier ones, which may still be delayed, leave before it.
            self._slots.append(Slot(_CONTINUE, b"", Ending.KEEP))
            self._flush()

    def on_body(self, piece: bytes) -> None:
        """Gather the body."""
        if self._deaf:
            return
        self._size += len(piece)
        if self._size > self._most:
            self._pieces.clear()
            self._refuse_size()
        else:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Have the request answered."""
        if self._deaf:
            return
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        method = self._parser.get_method().decode("latin-1")
        request = Request(method, self._url.decode("latin-1"), body, self._truth, self._keys)
        response, ticket = self._application.handle(request)
        keep = self._parser.should_keep_alive()
        self._enqueue(response, ticket, keep_alive=keep, head_only=method == "HEAD")

    # how responses leave

    def _enqueue(
        self, response: Response, ticket: Ticket | None, *, keep_alive: bool, head_only: bool = False
    ) -> None:
        keep = keep_alive and response.ending is Ending.KEEP
        old = self._parser.get_http_version() == "1.0"
        head, body = encode(response, keep_alive=keep, head_only=head_only, old=old)
        ending = response.ending if keep or response.ending is not Ending.KEEP else Ending.CLOSE
        slot = Slot(head, body, ending)
        slot.ticket = ticket
        slot.response = response
        if response.delay > 0.0:
            slot.ready = False
            slot.timer = self._loop.call_later(response.delay, self._due, slot)
        if not keep_alive:
            self._deaf = True
        self._slots.append(slot)

    def _due(self, slot: Slot) -> None:
        slot.ready = True
        self._flush()

    def _flush(self) -> None:
        # HTTP/1.1 has responses leave in the order of their requests: one whose delay is not over holds up the rest.
        # All that may leave does so in one write, for one system call.
        out: list[bytes] = []
        while self._slots and self._slots[0].ready and not self._busy and not self._full:
            slot = self._slots.popleft()
            out.append(slot.head)
            if slot.response is not None and (slot.response.drip > 0.0 or slot.response.pace > 0.0):
                self._busy = True
                slot.steps = steps(slot.response, len(slot.body))
                self._loop.call_soon(self._drip, slot, 0)
            else:
                out.append(slot.body)
                self._leave(slot)
        if out:
            self._transport.write(b"".join(out))
        self._throttle()

    def _leave(self, slot: Slot) -> None:
        if slot.ending is Ending.HANG:
            self._slots.appendleft(slot)  # in flight until the client goes; then `connection_lost` drops it
        elif slot.ticket is not None:
            self._application.left(slot.ticket, delivered=slot.ending is not Ending.RESET)
        if slot.ending is not Ending.KEEP:
            self._busy = self._deaf = True
            # Not at once: what was gathered for this connection is written only after this call.
            self._loop.call_soon(self._end, slot.ending)

    def _throttle(self) -> None:
        # Not reading is what slows a client down: the kernel's buffers fill up, and it can no longer write.
        if self._full or len(self._slots) > MAX_PIPELINED:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _drip(self, slot: Slot, done: int) -> None:
        """Send the next part of a body that comes bit by bit."""
        whole = len(slot.steps)
        if not self._transport.is_closing() and done < whole:
            self._transport.write(slot.body[slot.steps[done - 1] if done else 0 : slot.steps[done]])
            done += 1
            if done < whole:
                seconds = 0.0 if slot.response is None else slot.response.drip or slot.response.pace
                self._loop.call_later(seconds, self._drip, slot, done)
                return
        self._busy = False
        if slot.ticket is not None:
            self._application.left(slot.ticket, delivered=done >= whole)
        if slot.ending is not Ending.KEEP:
            self._transport.close()
        self._flush()

    def _end(self, ending: Ending) -> None:
        if ending is Ending.CLOSE:
            self._transport.close()
        elif ending is Ending.RESET:
            # The pause lets what was written leave the kernel's buffer; the reset throws away what is still there.
            self._loop.call_later(0.01, self._reset)

    def _reset(self) -> None:
        peer = self._transport.get_extra_info("socket")
        if peer is not None and not self._transport.is_closing():
            # With a linger time of 0 closing sends RST, as a crashed server does, where it would else send FIN.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _drop(self, slot: Slot) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
        if slot.ticket is not None:
            self._application.left(slot.ticket, delivered=False)

    @property
    def _most(self) -> int:
        return MAX_FILE if self._url == b"/v1/files" else MAX_BODY

    def _refuse_size(self) -> None:
        self._refuse(error_response(413, f"the body is larger than {self._most} bytes", "body_too_large"))

    def _refuse(self, response: Response) -> None:
        """Answer, then drop what still comes for `LINGER` seconds.

        Closing a socket with unread data resets the connection, and the client would never see the answer.
        """
        if self._deaf:
            return
        head, body = encode(response, keep_alive=False)
        self._slots.append(Slot(head, body, Ending.HANG))
        self._deaf = True
        self._loop.call_later(LINGER, self._transport.close)


async def serve(application: Application, port: int = 0) -> asyncio.Server:
    """A server that listens on the loopback address.

    Parameters
    ----------
    application
        Answers the requests.
    port
        Port to listen on; 0 takes a free one.

    Raises
    ------
    OSError
        The port is taken or not allowed.
    """
    loop = asyncio.get_running_loop()
    # Hundreds of clients connect in the same moment; with asyncio's backlog of 100 some would wait a second for it.
    return await loop.create_server(lambda: Connection(application), "127.0.0.1", port, backlog=2048)
