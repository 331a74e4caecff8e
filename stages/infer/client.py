"""Requests in, durable records out: the asynchronous client, on an event loop and a thread of its own.

The only module that imports aiohttp. Policies are elsewhere: `reply` tells what an answer means, `retry` when to try
again and when to give up. A worker has one `Engine` for all its blocks, so that one block's slow tail never idles an
endpoint.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp

from stages.infer.endpoint import Endpoint, InferenceError
from stages.infer.jobs import Job, Result, Stats
from stages.infer.pending import Block, Pending
from stages.infer.reply import Reply, Verdict, classify
from stages.infer.retry import Breaker, backoff
from stages.infer.writer import Store, Writer
from stages.record import Record

_CLOSING_SECONDS = 30.0
_SHORTEST_SECRET = 8
"""Characters of a key below which it is a placeholder ("none", "EMPTY") and may stand in any text."""


class Engine:
    """Sends requests and stores the replies that count. Blocks of any thread may run in it at once.

    Parameters
    ----------
    endpoints
        By label of the model.
    store
        Where final replies are put before their request counts as done.
    workers, rank
        Number of engines that share the endpoints, and this one's place among them. With 0 workers nothing is sent
        until `share_out` tells better.
    """

    def __init__(
        self, endpoints: Mapping[str, Endpoint], store: Store, *, workers: int = 1, rank: int = 0
    ) -> None:
        self.stats = Stats()
        self._endpoints = dict(endpoints)
        self._share = {name: endpoint.share(workers, rank) for name, endpoint in endpoints.items()}
        self._lanes: dict[str, _Lane] = {}
        self._in_flight: dict[str, Pending] = {}
        self._halted = False
        self._closed = False
        self._state = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._writer = Writer(store, self._loop)
        self._thread = threading.Thread(target=self._serve, name="evalcube-infer", daemon=True)
        self._thread.start()

    def run(self, model: str, jobs: Sequence[Job]) -> list[Result]:
        """Send `jobs` to a model's endpoint and wait; the results come in the order of the jobs.

        Raises
        ------
        InferenceError
            If the endpoint's key is missing.
        Exception
            Whatever the store raises when it cannot store a record; then the block's other jobs are not sent.
        """
        block = Block(len(jobs))
        with self._state:
            if self._closed:
                return [Result.skipped()] * len(jobs)
            self._loop.call_soon_threadsafe(self._submit, model, jobs, block)
        try:
            return block.future.result()
        finally:
            block.waiting = False

    def share_out(self, workers: int, rank: int) -> None:
        """Take another share of the endpoints' connections; requests in flight above it end as usual."""
        with self._state:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._resize, workers, rank)

    def drain(self) -> None:
        """Start no further request; those in flight end as usual, the others come back as skipped."""
        with self._state:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._halt)

    def close(self) -> None:
        """Stop at once: requests in flight are given up, records already received are stored."""
        with self._state:
            if self._closed:
                return
            self._closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(2 * _CLOSING_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING_SECONDS)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _submit(self, model: str, jobs: Sequence[Job], block: Block) -> None:
        try:
            lane = self._lane(model)
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            block.fail(error)
            return
        for index, job in enumerate(jobs):
            pending = self._in_flight.get(job.digest)
            new = pending is None
            if pending is None:
                pending = Pending(job, self._in_flight)
            pending.add(block, index)
            if new:
                lane.put(pending)

    def _lane(self, model: str) -> _Lane:
        if model not in self._lanes:
            lane = _Lane(self._endpoints[model], self._share[model], self.stats, self._writer)
            if self._halted:
                lane.halt()
            self._lanes[model] = lane
        return self._lanes[model]

    def _resize(self, workers: int, rank: int) -> None:
        self._share = {name: endpoint.share(workers, rank) for name, endpoint in self._endpoints.items()}
        for name, lane in self._lanes.items():
            lane.resize(self._share[name])

    def _halt(self) -> None:
        self._halted = True
        for lane in self._lanes.values():
            lane.halt()

    async def _close(self) -> None:
        self._halt()
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))
        await self._writer.close(_CLOSING_SECONDS)
        for pending in tuple(self._in_flight.values()):
            pending.resolve(Result.skipped())  # given up in flight, or not stored because the store hangs


class _Lane:
    """One endpoint's queue and the coroutines that empty it, one per connection."""

    def __init__(self, endpoint: Endpoint, width: int, stats: Stats, writer: Writer) -> None:
        self._endpoint = endpoint
        self._stats = stats
        self._writer = writer
        self._url = endpoint.url
        self._proxy = endpoint.proxy()
        key = endpoint.key()
        self._secret = key.encode() if key is not None and len(key) >= _SHORTEST_SECRET else None
        self._session = _session(endpoint, key)
        self._breaker = Breaker(max(2, min(endpoint.connections, 8)))
        self._down: Reply | None = None
        """Why the endpoint was given up."""
        self._halted = False
        self._stopped = asyncio.Event()
        """Set when the lane sends nothing more, for whichever reason."""
        self._queue: asyncio.Queue[Pending | None] = asyncio.Queue()
        self._width = 0
        self._carriers: set[asyncio.Task[None]] = set()
        self.resize(width)

    def put(self, pending: Pending) -> None:
        """Queue a job, or answer it at once where nothing is sent any more."""
        if self._halted:
            pending.resolve(Result.skipped())
        elif self._down is not None:
            self._give_up(pending, self._down, 0)
        else:
            self._queue.put_nowait(pending)

    def resize(self, width: int) -> None:
        """Carry on with so many connections."""
        self._width = width
        for _ in range(width - len(self._carriers)):
            carrier = asyncio.get_running_loop().create_task(self._carry())
            self._carriers.add(carrier)
        # Idle ones wake up and find that they are too many.
        for _ in range(len(self._carriers) - width):
            self._queue.put_nowait(None)

    def halt(self) -> None:
        """Send nothing more but what is in flight."""
        self._halted = True
        self._stop()

    async def close(self) -> None:
        carriers = tuple(self._carriers)
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)
        await self._session.close()

    def _stop(self) -> None:
        self._stopped.set()
        while not self._queue.empty():
            pending = self._queue.get_nowait()
            if pending is not None:
                self.put(pending)

    async def _carry(self) -> None:
        me = asyncio.current_task()
        while len(self._carriers) <= self._width or me is None:
            pending = await self._queue.get()
            if pending is None:
                continue
            if not pending.wanted:
                pending.resolve(Result.skipped())
                continue
            try:
                await self._deliver(pending)
            except Exception as error:  # noqa: BLE001 - a bug must end the block, not the connection
                pending.fail(error)
        self._carriers.discard(me)

    async def _deliver(self, pending: Pending) -> None:
        reply, record = await self._attempt(pending.job)
        attempts = 1
        if reply.retryable:
            reply, record, attempts = await self._insist(pending.job, reply)
        if record is not None:
            self._breaker.succeeded()
            self._stats.count(reply)
            self._writer.put(pending, record, Result.stored(reply, attempts))
        elif self._halted and reply.retryable:
            pending.resolve(Result.skipped())
        else:
            if self._breaker.failed(reply) and self._down is None:
                self._down = reply
                self._stop()
            self._give_up(pending, reply, attempts)

    async def _insist(self, job: Job, reply: Reply) -> tuple[Reply, bytes | None, int]:
        """Try again after a first failure; returns the last reply, its record if it is final, and all attempts."""
        endpoint, jitter = self._endpoint, int(job.digest[:8], 16) / 2**32
        policy = backoff(endpoint.retries, base=endpoint.backoff_base, jitter=jitter)
        next(policy)
        record, attempts = None, 1
        with suppress(StopIteration):
            while not await self._pause(policy.send(reply)):
                self._stats.retries[reply.cause] += 1
                reply, record = await self._attempt(job)
                attempts += 1
        return reply, record, attempts

    async def _pause(self, seconds: float) -> bool:
        """Wait, but not longer than until the lane stops; tells whether it did."""
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
        return self._stopped.is_set()

    def _give_up(self, pending: Pending, reply: Reply, attempts: int) -> None:
        self._stats.failures[reply.cause] += 1
        pending.resolve(Result.failed(reply, attempts))

    async def _attempt(self, job: Job) -> tuple[Reply, bytes | None]:
        """Send once; the record is there only if the reply is final."""
        self._stats.sent += 1
        self._stats.in_flight += 1
        start = time.perf_counter()
        try:
            async with self._session.post(
                self._url, data=job.body, headers=job.headers, proxy=self._proxy, allow_redirects=False
            ) as response:
                body = await _read(response, self._endpoint.response_bytes)
                status, headers = response.status, response.headers
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return _transport_reply(error), None
        finally:
            self._stats.in_flight -= 1
        latency = time.perf_counter() - start
        if body is None:
            limit = self._endpoint.response_bytes
            return Reply(Verdict.FAILED, "too large", f"the response is larger than {limit} bytes"), None
        if self._secret is not None and self._secret in body:
            body = body.replace(self._secret, b"[key]")  # some servers repeat the key that they refuse
        reply = classify(status, headers, body, time.time())
        if reply.verdict is not Verdict.FINAL:
            return reply, None
        return reply, Record(status, latency, body).encode()


def _session(endpoint: Endpoint, key: str | None) -> aiohttp.ClientSession:
    headers = {"content-type": "application/json", "user-agent": "evalcube"}
    headers |= {name.lower(): value for name, value in endpoint.headers.items()}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=endpoint.tls(), keepalive_timeout=60),
        timeout=aiohttp.ClientTimeout(total=endpoint.timeout, sock_connect=min(30.0, endpoint.timeout)),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The whole body, or None if it is larger than `limit` bytes, decompressed."""
    length = response.content_length
    if length is not None and length <= limit and "Content-Encoding" not in response.headers:
        return await response.read()
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            response.close()
            return None
        parts.append(part)
    return b"".join(parts)


def _transport_reply(error: BaseException) -> Reply:
    """A name for what happened on the way. Never the error's own text: it may hold headers, and so the key."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Reply(Verdict.RETRY, "dns", "the endpoint's host name could not be resolved")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Reply(Verdict.FATAL, "tls", "the endpoint's TLS certificate was not accepted")
    if isinstance(error, aiohttp.ClientSSLError):
        return Reply(Verdict.RETRY, "tls", "no TLS connection to the endpoint")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return Reply(Verdict.RETRY, "connect", "no connection to the endpoint")
    if isinstance(error, TimeoutError):
        return Reply(Verdict.RETRY, "timeout", "no whole reply within the timeout")
    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ClientResponseError)):
        return Reply(Verdict.RETRY, "cut reply", "the reply ended early or was no valid HTTP")
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
        return Reply(Verdict.FATAL, "address", "the endpoint's address is no valid URL")
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return Reply(Verdict.RETRY, "reset", "the connection broke before a whole reply")
    return Reply(Verdict.FAILED, "client", f"unexpected {type(error).__name__}")


__all__ = ["Engine", "InferenceError", "Store"]
