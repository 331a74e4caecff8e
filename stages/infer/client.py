"""Requests in, durable records out: the asynchronous client, on an event loop and a thread of its own.

The only module that imports aiohttp. Policies are elsewhere: `reply` tells what an answer means, `retry` when to try
again. A worker has one `Engine` for all its blocks, so that one block's slow tail never idles an endpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import aiohttp

from stages.infer.endpoint import Endpoint, InferenceError
from stages.infer.jobs import Job, Result, Stats
from stages.infer.reply import Reply, Verdict, classify
from stages.infer.retry import backoff
from stages.record import Record

_WRITE_BATCH = 64
_DOWN_CAUSES = frozenset({"connect", "dns"})
_Outcome = tuple[Reply, bytes | None]


class Store(Protocol):
    """Where records go; durable when `put_many` returns."""

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store records under their digests; the first of equal digests wins."""


class Engine:
    """Sends requests and stores the replies that count. Blocks of any thread may run in it at once.

    Parameters
    ----------
    endpoints
        By label of the model.
    store
        Where final replies are put before their request counts as done.
    workers, rank
        Number of engines that share the endpoints, and this one's place among them.
    """

    def __init__(
        self, endpoints: Mapping[str, Endpoint], store: Store, *, workers: int = 1, rank: int = 0
    ) -> None:
        self.stats = Stats()
        self._endpoints = dict(endpoints)
        self._share = {name: endpoint.share(workers, rank) for name, endpoint in endpoints.items()}
        self._lanes: dict[str, _Lane] = {}
        self._in_flight: dict[str, asyncio.Future[Result]] = {}
        self._halt = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._writer = _Writer(store, self._loop)
        self._thread = threading.Thread(target=self._serve, name="evalcube-infer", daemon=True)
        self._thread.start()

    def run(self, model: str, jobs: Sequence[Job]) -> list[Result]:
        """Send `jobs` to a model's endpoint and wait; the results come in the order of the jobs.

        Raises
        ------
        InferenceError
            If the endpoint's key is missing.
        Exception
            Whatever the store raises when it cannot store a record.
        """
        return asyncio.run_coroutine_threadsafe(self._run(model, jobs), self._loop).result()

    def drain(self) -> None:
        """Start no further request; those in flight end as usual, the others come back as skipped."""
        self._loop.call_soon_threadsafe(self._halt.set)

    def close(self) -> None:
        """Stop at once: requests in flight are given up, records already received are stored."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(timeout=30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=30)
        self._writer.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _close(self) -> None:
        self._halt.set()
        for lane in self._lanes.values():
            await lane.close()

    async def _run(self, model: str, jobs: Sequence[Job]) -> list[Result]:
        lane = self._lane(model)
        futures = []
        for job in jobs:
            future = self._in_flight.get(job.digest)
            if future is None:
                future = self._loop.create_future()
                self._in_flight[job.digest] = future
                future.add_done_callback(partial(self._forget, job.digest))
                lane.put(job, future)
            futures.append(future)
        # Every future is waited for, so that none is left with an exception that nobody reads.
        results = await asyncio.gather(*futures, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, Result)]

    def _forget(self, digest: str, _: asyncio.Future[Result]) -> None:
        del self._in_flight[digest]

    def _lane(self, model: str) -> _Lane:
        if model not in self._lanes:
            self._lanes[model] = _Lane(
                self._endpoints[model],
                self._share[model],
                self.stats,
                self._writer,
                self._halt,
            )
        return self._lanes[model]


class _Lane:
    """One endpoint's queue and the coroutines that empty it, one per connection."""

    def __init__(
        self, endpoint: Endpoint, width: int, stats: Stats, writer: _Writer, halt: asyncio.Event
    ) -> None:
        self._endpoint = endpoint
        self._stats = stats
        self._writer = writer
        self._halt = halt
        self._down: Reply | None = None
        self._exhausted = 0
        self._patience = max(2, min(width, 8))
        self._jobs: asyncio.Queue[tuple[Job, asyncio.Future[Result]]] = asyncio.Queue()
        self._session = _session(endpoint, width)
        self._proxy = endpoint.proxy()
        self._carriers = [asyncio.create_task(self._carry()) for _ in range(width)]

    def put(self, job: Job, future: asyncio.Future[Result]) -> None:
        self._jobs.put_nowait((job, future))

    async def close(self) -> None:
        for carrier in self._carriers:
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)
        while not self._jobs.empty():
            _resolve(self._jobs.get_nowait()[1], Result.skipped())
        await self._session.close()

    async def _carry(self) -> None:
        while True:
            job, future = await self._jobs.get()
            if self._halt.is_set():
                _resolve(future, Result.skipped())
                continue
            if self._down is not None:
                self._give_up(future, self._down, 0)
                continue
            try:
                await self._deliver(job, future)
            except asyncio.CancelledError:
                _resolve(future, Result.skipped())
                raise
            except Exception as error:  # noqa: BLE001 - a bug must end the block, not the connection
                _fail(future, error)

    async def _deliver(self, job: Job, future: asyncio.Future[Result]) -> None:
        policy = backoff(self._endpoint.retries, jitter=int(job.digest[:8], 16) / 2**32)
        wait, attempts = next(policy), 0
        while True:
            if wait:
                await self._pause(wait)
            if attempts and (self._halt.is_set() or self._down is not None):
                break
            reply, record = await self._attempt(job)
            attempts += 1
            try:
                wait = policy.send(reply)
            except StopIteration:
                break
            self._stats.retries[reply.cause] += 1
        if record is not None:
            self._exhausted = 0
            self._stats.count(reply)
            self._writer.put(job.digest, record, future, Result.stored(reply, attempts))
        elif self._halt.is_set() and reply.retryable:
            _resolve(future, Result.skipped())
        else:
            self._note_failure(reply)
            self._give_up(future, reply, attempts)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until the run stops."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._halt.wait(), seconds)

    def _note_failure(self, reply: Reply) -> None:
        """Close the lane when nothing can succeed, rather than fail a million requests one by one."""
        self._exhausted += 1 if reply.cause in _DOWN_CAUSES else 0
        if reply.verdict is Verdict.FATAL or self._exhausted >= self._patience:
            self._down = reply

    def _give_up(self, future: asyncio.Future[Result], reply: Reply, attempts: int) -> None:
        self._stats.failures[reply.cause] += 1
        _resolve(future, Result.failed(reply, attempts))

    async def _attempt(self, job: Job) -> _Outcome:
        """Send once; the record is there only if the reply is final."""
        self._stats.sent += 1
        self._stats.in_flight += 1
        start = time.perf_counter()
        try:
            async with self._session.post(
                self._endpoint.url,
                data=job.body,
                headers=job.headers,
                proxy=self._proxy,
                allow_redirects=False,
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
        reply = classify(status, headers, body, time.time())
        if reply.verdict is not Verdict.FINAL:
            return reply, None
        return reply, Record(status, latency, body).encode()


def _session(endpoint: Endpoint, width: int) -> aiohttp.ClientSession:
    headers = {"Content-Type": "application/json", "User-Agent": "evalcube", **endpoint.headers}
    key = endpoint.key()
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=width, ssl=endpoint.tls(), keepalive_timeout=60),
        timeout=aiohttp.ClientTimeout(total=endpoint.timeout, sock_connect=min(30.0, endpoint.timeout)),
        headers=headers,
        skip_auto_headers=["Accept"],
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The whole body, or None if it is larger than `limit` bytes."""
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
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        return Reply(Verdict.FATAL, "tls", "the endpoint's TLS certificate or protocol was not accepted")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return Reply(Verdict.RETRY, "connect", "no connection to the endpoint")
    if isinstance(error, TimeoutError):
        return Reply(Verdict.RETRY, "timeout", "no whole reply within the timeout")
    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ContentTypeError)):
        return Reply(Verdict.RETRY, "cut reply", "the reply ended early or could not be decoded")
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
        return Reply(Verdict.FATAL, "address", "the endpoint's address is no valid URL")
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return Reply(Verdict.RETRY, "reset", "the connection broke before a whole reply")
    return Reply(Verdict.FAILED, "client", f"unexpected {type(error).__name__}")


class _Writer:
    """Stores records on a thread of its own, in batches, and only then lets their requests count as done."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._queue: queue.SimpleQueue[tuple[str, bytes, asyncio.Future[Result], Result] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._serve, name="evalcube-store", daemon=True)
        self._thread.start()

    def put(self, digest: str, record: bytes, future: asyncio.Future[Result], result: Result) -> None:
        self._queue.put((digest, record, future, result))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join(timeout=30)

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = [first], False
            while len(batch) < _WRITE_BATCH and not last:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    last = True
                else:
                    batch.append(item)
            self._store_batch(batch)
            if last:
                return

    def _store_batch(self, batch: list[tuple[str, bytes, asyncio.Future[Result], Result]]) -> None:
        problem: Exception | None = None
        try:
            self._store.put_many([(digest, record) for digest, record, _, _ in batch])
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            problem = error
        try:
            self._loop.call_soon_threadsafe(_settle, batch, problem)
        except RuntimeError:
            return  # the loop is closed: the records are stored, nobody waits


def _settle(
    batch: list[tuple[str, bytes, asyncio.Future[Result], Result]], problem: Exception | None
) -> None:
    for _, _, future, result in batch:
        if problem is None:
            _resolve(future, result)
        else:
            _fail(future, problem)


def _resolve(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


__all__ = ["Engine", "InferenceError", "Store"]
