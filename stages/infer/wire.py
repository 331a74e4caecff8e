"""Sends one request over HTTP and returns what came of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import aiohttp
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDictProxy

from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.deadline import Deadline
from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from evalcube.stages.infer.fields import BadEventError
from evalcube.stages.infer.jobs import Job
from evalcube.stages.infer.keys import KeyHolder, KeyMask
from evalcube.stages.infer.posting import HEADER_BYTES, Poster
from evalcube.stages.infer.reply import EndHabit, Reply, RetryClass, classify, one_line
from evalcube.stages.infer.sse import TooLargeError
from evalcube.stages.infer.streams import CutError, ReplyStream
from evalcube.stages.infer.turns import PIECE_BYTES, LoopShare, LoopTurns, Pieces
from evalcube.stages.reply.body import parse_body, refused_parameter
from evalcube.stages.reply.forms import Record

_CONNECT_SECONDS = 30.0
_PROBE_SECONDS = 10.0
_PROBE_BYTES = 1_000_000
_SERVER_ERRORS = 500
_MASKED_KEYS = 4
"""Keys that are masked in replies: the present one, and those before it that requests in flight may have carried."""
_REFUSED_KEY = "http 401"
_UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError, aiohttp.ConnectionTimeoutError)
_CUT = (aiohttp.ClientPayloadError, aiohttp.ClientResponseError, HttpProcessingError, CutError)
_NO_ADDRESS = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
_BROKEN = (aiohttp.ClientError, OSError)
_REFUSED_BY_PROXY = (403, 407)
_TRAILING_SECONDS = 1.0
"""How long a stream may go on after its reply is over; then its connection is not used again."""

Connector = aiohttp.TCPConnector
_Headers: TypeAlias = CIMultiDictProxy[str]
_Sent: TypeAlias = tuple[Reply, bytes | None]
"""What came of a request, and the encoded record of a final reply."""


def connector(endpoint: Endpoint) -> Connector:
    """Connections to an endpoint, kept open between requests; how many there are, others decide."""
    return Connector(limit=0, ssl=endpoint.tls(), keepalive_timeout=60)


class Sender:
    """Sends one model's requests. The connections are the caller's, who closes them.

    Parameters
    ----------
    endpoint
        Where to.
    connections
        Made by `connector`; shared with other models at the address.
    keys
        The key, shared with those models, too.
    share
        The model's part of the event loop; without one it is alone.

    Raises
    ------
    InferenceError
        If the endpoint's address or proxy is none.
    """

    def __init__(
        self, endpoint: Endpoint, connections: Connector, keys: KeyHolder, share: LoopShare | None = None
    ) -> None:
        self._share = share or LoopShare()
        self._timeout = endpoint.timeout
        self._limit = endpoint.response_bytes
        self._proxies = tuple(map(endpoint.proxy, endpoint.urls))
        self._keys = keys
        self._generation = 0
        self._masks: deque[KeyMask] = deque(maxlen=_MASKED_KEYS)
        self._session = _open_session(endpoint, connections)
        self._connections = connections
        self._deadline = Deadline(endpoint.timeout)
        self._plain = {
            "content-type": "application/json",
            "user-agent": "evalcube",
            **APIS[endpoint.api].headers,
            **{name.lower(): value for name, value in endpoint.headers.items()},
        }
        self._headers = self._plain
        """With the present key. The session has none of them: it would tell them to a proxy on the way to TLS."""
        self._urls = endpoint.targets
        self._posters = self._make_posters()
        self._probes = endpoint.probes
        self._api = endpoint.api
        self._habit, self._patience = EndHabit(), endpoint.patience
        self._ending = APIS[endpoint.api].stream if endpoint.stream else None
        """What the request ends with in place of its brace, if it asks for a stream."""

    def _make_posters(self) -> tuple[Poster, ...]:
        """One for each server, with the present key."""
        return tuple(
            Poster(self._connections, self._session.timeout, self._deadline, url, self._headers, proxy)
            for url, proxy in zip(self._urls, self._proxies, strict=True)
        )

    async def close(self) -> None:
        """Close the session, but no connection."""
        await self._session.close()

    async def send(self, job: Job, place: int = 0) -> _Sent:
        """Send `job` once; an encoded record comes with a final reply, or one that may become so, only.

        Whatever goes wrong on the way is a reply with a cause, never an exception.
        """
        # Noted before it is sent: when it is refused, another request may have renewed the key already.
        generation = await self._use_key()
        reply, record = await self._send(job, place)
        return await self._after(reply, generation), record

    async def is_there(self, place: int) -> bool:
        """Whether a server answers a probe, with anything but an error of its own; sends no question."""
        status, _ = await self._get(self._probes[place], place)
        return 0 < status < _SERVER_ERRORS

    async def look_up(self, place: int, url: str) -> object:
        """The JSON document at an address of a server; None where there is none that can be read."""
        status, document = await self.get_document(place, url)
        return document if 200 <= status < 300 else None

    async def get_document(self, place: int, url: str) -> tuple[int, object]:
        """Status and JSON document of an address of a server; status 0 where nothing answers."""
        status, body = await self._get(url, place)
        return status, parse_body(await self._without_keys(body, self._turns()))

    async def _get(self, url: str, place: int) -> tuple[int, bytes]:
        """Status and body of a small document; status 0 where there is no answer. Never raises."""
        try:
            await self._use_key()
            async with (
                asyncio.timeout(_PROBE_SECONDS),
                # Without redirects: the key must not follow one to another host.
                self._session.get(
                    url, headers=self._headers, proxy=self._proxies[place], allow_redirects=False
                ) as response,
            ):
                return response.status, await read_body(response.headers, response.content, _PROBE_BYTES)
        except Exception:  # noqa: BLE001 - whoever does not answer a probe is not there, for whatever reason
            return 0, b""

    async def _use_key(self) -> int:
        """Have further requests carry the present key; returns its generation."""
        if not self._keys.generation:
            await self._keys.ready()
        if self._generation != self._keys.generation:
            self._generation, key = self._keys.generation, self._keys.key
            if key is not None:
                api = APIS[self._api]
                self._headers = self._plain | {api.key_header: f"{api.key_prefix}{key}"}
                self._posters = self._make_posters()
                self._masks.append(KeyMask(key))
        return self._generation

    async def _after(self, reply: Reply, generation: int) -> Reply:
        """A reply to a request with the key of a generation: worth another attempt if there is another key by now."""
        if reply.cause != _REFUSED_KEY:
            return reply
        try:
            renewed = await self._keys.renew(generation)
        except InferenceError as problem:
            return reply._replace(detail=one_line(f"{reply.detail}; {problem}"))
        return reply._replace(retry_class=RetryClass.RETRY) if renewed else reply

    def _turns(self) -> LoopTurns:
        """Those of a reply to a request that is sent now."""
        return LoopTurns(self._share, time.monotonic() + self._timeout)

    async def _without_keys(self, body: bytes, turns: LoopTurns) -> bytes:
        """The bytes without the key, also without those that it was a moment ago."""
        for mask in self._masks:
            body = await turns.take(mask.steps(body))
        return body

    async def _send(self, job: Job, place: int) -> _Sent:
        data = job.body if self._ending is None else job.body[:-1] + self._ending
        read = partial(self._read_reply, data, time.perf_counter(), self._turns())
        try:
            return await self._posters[place].post(data, job.headers, read)
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return self._transport_reply(error), None

    async def _read_reply(
        self,
        data: bytes,
        start: float,
        turns: LoopTurns,
        status: int,
        headers: _Headers,
        content: aiohttp.StreamReader,
    ) -> _Sent:
        first, is_good = math.nan, 200 <= status < 300
        if self._ending is not None and is_good:  # errors are not streamed
            stream, pieces = ReplyStream(self._api, self._limit), Pieces(content, turns)
            async for piece in pieces:
                if stream.feed(piece, time.perf_counter() - start):
                    await _drain(pieces)
                    break
            status, body = stream.result()
            first, latency = stream.first_token, stream.latency
        else:
            body = await read_body(headers, content, self._limit)
            latency = time.perf_counter() - start
            turns.begin()
            if is_good and not body.startswith(b"{"):  # some stream what nobody asked to be streamed
                stream = ReplyStream(self._api, self._limit)
                await turns.take(_feed(stream, body))
                status, body = stream.result()
        body = await self._without_keys(body, turns)
        reply = self._habit.judge(classify(status, headers, body, time.time(), self._api))
        if len(body) >= PIECE_BYTES:
            # The reply is here, but its model has its share of the loop and no more.
            with suppress(TimeoutError):
                await turns.take_turn(len(body))
        return self._with_record(reply, data, status, body, first, latency)

    def _with_record(
        self, reply: Reply, data: bytes, status: int, body: bytes, first: float, latency: float
    ) -> _Sent:
        """Return a reply to the request `data`, with its record if it is final or may become so."""
        if reply.retry_after and self._patience:  # nobody waits longer, whatever was asked for
            reply = reply._replace(retry_after=min(reply.retry_after, self._patience))
        if not (reply.is_final or reply.is_refusal):
            return reply, None
        if reply.is_refusal:
            reply = reply._replace(refused=refused_parameter(status, body, data))
        return reply, Record(status, latency, body, first, self._api).encode()

    def _transport_reply(self, error: BaseException) -> Reply:
        if isinstance(error, TooLargeError):
            return Reply(RetryClass.FAILED, "too large", f"the response is larger than {self._limit} bytes")
        return _transport_reply(error)


def get_document(endpoint: Endpoint, url: str) -> tuple[int, object]:
    """Status and JSON document of an address of an endpoint, asked for once; status 0 where nothing answers.

    Whoever calls may be in an event loop, so that a thread of its own has another one.
    """

    async def ask() -> tuple[int, object]:
        connections = connector(endpoint)
        async with connections:
            sender = Sender(endpoint, connections, KeyHolder(endpoint))
            try:
                return await sender.get_document(0, url)
            finally:
                await sender.close()

    with ThreadPoolExecutor(1) as pool, suppress(InferenceError):  # the key may be on the workers only
        return pool.submit(asyncio.run, ask()).result()
    return 0, None


def _open_session(endpoint: Endpoint, connections: Connector) -> aiohttp.ClientSession:
    """A session with an endpoint's timeouts, without its headers."""
    seconds = endpoint.timeout
    return aiohttp.ClientSession(
        connector=connections,
        connector_owner=False,
        timeout=aiohttp.ClientTimeout(seconds, connect=seconds, sock_connect=min(_CONNECT_SECONDS, seconds)),
        # One reply must not change what is sent with the next request.
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
    )


def _feed(stream: ReplyStream, body: bytes) -> Generator[int, None, None]:
    """Give a stream a whole body, in steps that say how many bytes they took."""
    for begin in range(0, len(body), PIECE_BYTES):
        if stream.feed(body[begin : begin + PIECE_BYTES], math.nan):
            return
        yield PIECE_BYTES


async def _drain(pieces: Pieces) -> None:
    """Read what is left, so that the connection can be used again, unless that takes long."""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(_TRAILING_SECONDS):
            async for _ in pieces:
                pass


async def read_body(headers: _Headers, content: aiohttp.StreamReader, limit: int) -> bytes:
    """The whole body, decompressed."""
    length = headers.get("Content-Length")
    # What a compressed body unpacks to, its length does not say.
    if length is not None and int(length) <= limit and "Content-Encoding" not in headers:
        return await content.read()
    parts, size = [], 0
    async for part in content.iter_any():
        size += len(part)
        if size > limit:
            raise TooLargeError
        parts.append(part)
    return b"".join(parts)


_CAUSES: tuple[tuple[tuple[type[BaseException], ...], Reply], ...] = (
    (
        (aiohttp.ClientConnectorDNSError,),
        Reply(RetryClass.RETRY, "dns", "the endpoint's host name could not be resolved"),
    ),
    (
        (aiohttp.ClientConnectorCertificateError,),
        Reply(RetryClass.FATAL, "tls", "the endpoint's TLS certificate was not accepted"),
    ),
    ((aiohttp.ClientSSLError,), Reply(RetryClass.RETRY, "tls", "no TLS connection to the endpoint")),
    (_UNCONNECTED, Reply(RetryClass.RETRY, "connect", "no connection to the endpoint")),
    ((TimeoutError,), Reply(RetryClass.RETRY, "timeout", "no whole reply within the timeout")),
    ((BadEventError,), Reply(RetryClass.RETRY, "invalid json", "a piece of the stream cannot be read")),
    (_CUT, Reply(RetryClass.RETRY, "cut reply", "the reply ended early or was no valid HTTP")),
    (_NO_ADDRESS, Reply(RetryClass.FATAL, "address", "the endpoint's address is no valid URL")),
    (_BROKEN, Reply(RetryClass.RETRY, "reset", "the connection broke before a whole reply")),
)
"""What errors on the way mean, the first that fits; never in their own words, which may have the key."""


def _transport_reply(error: BaseException) -> Reply:
    """A name for what happened on the way."""
    if isinstance(error, _UNCONNECTED) and (status := getattr(error, "status", None)) in _REFUSED_BY_PROXY:
        return Reply(RetryClass.FATAL, "proxy", f"HTTP {status}: the proxy refuses the way to the endpoint")
    replies = (reply for kinds, reply in _CAUSES if isinstance(error, kinds))
    return next(replies, Reply(RetryClass.FAILED, "client", f"unexpected {type(error).__name__}"))
